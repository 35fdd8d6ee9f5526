"""Two studies compared: what became of each number, how surely, and what differs in how they were made."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep

from userturn.artefacts import Row, write_json, write_jsonl
from userturn.cli import main
from userturn.compare.pairs import FISHER, FROM_LIMITS, STATUSES, Pair, compare, fisher
from userturn.files import sha256_file
from userturn.numbers.row import Definition, Settings
from userturn.statistics import Estimate, Interval
from userturn.statistics.intervals import modified_wilson
from userturn.statistics.multiplicity import benjamini_hochberg

SETTINGS = Settings(judge="j", level=0.95, resamples=10, seed=1)


def rate(k: int, n: int, id: str = "followup_rate/m/d/baseline/t0.0", *, items: int | None = None, **more: Any) -> Row:
    """A row as the analysis writes it."""
    items = n if items is None else items
    low, high = modified_wilson(k / n, items, 0.95)
    estimate = Estimate(
        value=k / n,
        interval=Interval(float(low), float(high), "modified Wilson on n_eff", 0.95),
        bootstrap=None,
        n=n,
        n_items=items,
        k=k,
        n_unscored=0,
    )
    defined = Definition(id, {"model": "m"}, lambda **_: estimate, unit="proportion", sources=[], selector={})
    return defined.row(SETTINGS) | more


def one(a: Row, b: Row) -> Pair:
    (pair,) = compare([a], [b]).pairs
    return pair


# What became of a number


def test_the_same_number_is_identical_and_has_p_1() -> None:
    pair = one(rate(3, 20), rate(3, 20, seed=99, family="another", sources=["elsewhere"]))
    assert (pair.status, pair.shift, pair.half_widths, pair.p_value) == ("identical", 0.0, 0.0, 1.0)
    assert pair.low == -pair.high


@pytest.mark.parametrize(
    ("a", "b", "status"),
    [
        ((3, 20), (30, 200), "interval"),
        ((3, 20), (4, 20), "within"),
        ((3, 20), (16, 20), "beyond"),
        # 0.15 is within [0.05, 0.36] of 3/20, but the value of A is outside the narrow interval of B
        ((3, 20), (500, 2000), "beyond"),
        ((0, 20), (20, 20), "beyond"),
        ((0, 20), (0, 40), "interval"),
        # the interval of a rate that was seen never holds 0
        ((0, 20), (1, 20), "beyond"),
    ],
)
def test_statuses_of_rates(a: tuple[int, int], b: tuple[int, int], status: str) -> None:
    assert one(rate(*a), rate(*b)).status == status
    assert one(rate(*b), rate(*a)).status == status


def test_a_limit_itself_is_within() -> None:
    a = rate(5, 20)
    assert one(a, a | {"value": a["high"], "high": 1.0}).status == "within"
    assert one(a, a | {"value": a["high"] + 1e-6, "high": 1.0}).status == "beyond"


@pytest.mark.parametrize(
    ("change_a", "change_b", "status", "note"),
    [
        ({"value": None, "low": None, "high": None}, {}, "undecided", "not defined in A"),
        ({}, {"value": None, "low": None, "high": None}, "undecided", "not defined in B"),
        ({"value": None}, {"value": None}, "identical", "not defined in both"),
        ({"value": None, "n": 3}, {"value": None}, "interval", "not defined in both"),
        ({"low": None, "high": None}, {"value": 0.16}, "undecided", "no interval in A"),
        ({"low": None, "high": None}, {"value": 0.9, "low": 0.8, "high": 0.95}, "beyond", "no interval in A"),
        ({"low": None, "high": None}, {"low": None, "high": None}, "identical", "no interval in both"),
        ({"level": 0.9}, {"value": 0.9}, "beyond", "intervals of 0.9 and 0.95: the shift has none of its own"),
        ({"unit": "agreement"}, {"value": 0.9}, "undecided", "the unit is agreement in A and proportion in B"),
    ],
)
def test_what_cannot_be_tested_says_why(change_a: Row, change_b: Row, status: str, note: str) -> None:
    pair = one(rate(3, 20) | change_a, rate(3, 20) | change_b)
    assert (pair.status, pair.notes, pair.p_value, pair.p_adjusted, pair.low) == (status, (note,), None, None, None)


def test_values_without_any_width_move_but_are_not_tested() -> None:
    a, b = ({"value": x, "low": x, "high": x, "unit": "agreement"} for x in (0.5, 1.0))
    pair = one(rate(1, 1) | a, rate(1, 1) | b)
    assert (pair.status, pair.shift, pair.low, pair.high, pair.p_value) == ("beyond", 0.5, 0.5, 0.5, None)
    assert "no test" in pair.notes[0]
    further = compare([rate(1, 1, "x/1") | a, rate(1, 40, "x/2")], [rate(1, 1, "x/1") | b, rate(39, 40, "x/2")])
    assert [pair.id for pair in further.pairs] == ["x/1", "x/2"]


# Interval and test


def test_a_shift_of_rates_is_newcombes_interval() -> None:
    """Newcombe (1998), table II, example (a): 56/70 and 48/80 give [0.0524, 0.3339]."""

    def wilson(k: int, n: int) -> Row:
        z, p = stats.norm.ppf(0.975), k / n
        centre, half = p + z * z / (2 * n), z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
        return rate(k, n, low=(centre - half) / (1 + z * z / n), high=(centre + half) / (1 + z * z / n))

    pair = one(wilson(48, 80), wilson(56, 70))
    assert (pair.low, pair.high) == (pytest.approx(0.0524, abs=5e-5), pytest.approx(0.3339, abs=5e-5))
    other = confint_proportions_2indep(56, 70, 48, 80, method="newcomb", compare="diff")
    assert (pair.low, pair.high) == pytest.approx(other, abs=1e-4)


def test_rows_with_an_item_each_get_the_exact_test_and_clustered_rows_do_not() -> None:
    pair = one(rate(1, 20), rate(9, 20))
    assert pair.test == FISHER
    assert pair.p_value == pytest.approx(stats.fisher_exact([[1, 19], [9, 11]]).pvalue)
    clustered = one(rate(1, 20, items=10), rate(9, 20, items=10))
    assert clustered.test == FROM_LIMITS
    assert clustered.p_value is not None and pair.p_value is not None and clustered.p_value > pair.p_value


@pytest.mark.parametrize("unit", ["difference of proportions", "nats per token", "correlation", "F1"])
def test_other_units_are_tested_from_their_limits(unit: str) -> None:
    a = rate(3, 20, value=0.1, low=-0.1, high=0.3, unit=unit)
    b = rate(3, 20, value=0.5, low=0.3, high=0.7, unit=unit)
    pair = one(a, b)
    half = (0.2**2 + 0.2**2) ** 0.5
    assert (pair.low, pair.high) == (pytest.approx(0.4 - half), pytest.approx(0.4 + half))
    assert pair.half_widths == pytest.approx(0.4 / half, abs=1e-6)
    error = half / stats.norm.ppf(0.975)
    assert pair.p_value == pytest.approx(2 * stats.norm.sf(0.4 / error))
    assert pair.test == FROM_LIMITS


def test_an_interval_that_leaves_its_value_out_is_stretched() -> None:
    a = rate(3, 20, value=0.1, low=0.15, high=0.3, unit="F1")
    pair = one(a, rate(3, 20, value=0.3, low=0.2, high=0.4, unit="F1"))
    assert pair.low is not None and pair.shift is not None and pair.low < pair.shift


counts = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts, counts)
def test_the_exact_test_is_scipys(a: tuple[int, int], b: tuple[int, int]) -> None:
    (k_a, n_a), (k_b, n_b) = a, b
    expected = stats.fisher_exact([[k_a, n_a - k_a], [k_b, n_b - k_b]]).pvalue
    assert fisher(k_a, n_a, k_b, n_b) == pytest.approx(expected, rel=1e-6)


def test_the_exact_test_at_the_size_of_a_large_study() -> None:
    for k in (1000, 1050, 1400):
        expected = stats.fisher_exact([[1000, 9000], [k, 10000 - k]]).pvalue
        assert fisher(1000, 10000, k, 10000) == pytest.approx(expected, rel=1e-6)


@given(counts, counts, st.booleans())
def test_properties_of_a_pair(a: tuple[int, int], b: tuple[int, int], clustered: bool) -> None:
    rows = [rate(k, n, items=(n + 1) // 2 if clustered else n) for k, n in (a, b)]
    pair, back = one(*rows), one(*reversed(rows))
    assert pair.shift is not None and pair.low is not None and pair.high is not None and pair.half_widths is not None
    assert pair.low <= pair.shift <= pair.high
    assert (back.shift, back.low, back.high) == (-pair.shift, -pair.high, -pair.low)
    assert (back.p_value, back.status, back.half_widths) == (pair.p_value, pair.status, pair.half_widths)
    assert 0.0 <= (pair.p_value or 0.0) <= 1.0
    assert (pair.half_widths > 1) == (pair.low > 0 or pair.high < 0) or pair.half_widths == pytest.approx(1)
    if pair.test == FROM_LIMITS and pair.half_widths > 0:
        assert (pair.p_value < 0.05) == (pair.half_widths > 1) or pair.p_value == pytest.approx(0.05, abs=1e-5)


def test_the_test_from_limits_keeps_its_level_for_independent_studies() -> None:
    """The chance of p <= 0.05 where nothing moved, summed over all pairs of outcomes."""
    n, p = 40, 0.2
    weights = [float(stats.binom.pmf(k, n, p)) for k in range(n + 1)]
    # clustered rows, one item more than rows would need, so that the exact test is not taken
    rows = [rate(k, n, unit="F1") for k in range(n + 1)]
    wrong = sum(
        weights[i] * weights[j]
        for i in range(n + 1)
        for j in range(n + 1)
        if weights[i] * weights[j] > 1e-7 and (one(rows[i], rows[j]).p_value or 1.0) <= 0.05
    )
    assert 0.02 < wrong < 0.055


# Families, order, choice


def numbers(shares: dict[str, int]) -> list[Row]:
    return [rate(k, 20, id) for id, k in shares.items()]


def test_p_values_are_adjusted_within_each_quantity() -> None:
    a = numbers({"x/1": 1, "x/2": 5, "x/3": 5, "y/1": 1, "only/a": 3})
    b = numbers({"x/1": 12, "x/2": 9, "x/3": 5, "y/1": 12, "only/b": 3, "also/b": 1})
    found = compare(a, b)
    by_id = {pair.id: pair for pair in found.pairs}
    assert found.families == {"x": 3, "y": 1}
    expected = benjamini_hochberg([by_id[id].p_value for id in ("x/1", "x/2", "x/3")])
    assert [by_id[id].p_adjusted for id in ("x/1", "x/2", "x/3")] == pytest.approx(expected)
    assert by_id["y/1"].p_adjusted == by_id["y/1"].p_value
    assert (found.only_a, found.only_b) == (("only/a",), ("also/b", "only/b"))
    assert by_id["x/1"].significant and not by_id["x/3"].significant


def test_pairs_come_by_their_shift_in_half_widths_and_those_without_last() -> None:
    a = numbers({"x/a": 5, "x/b": 5, "x/c": 5, "x/d": 5})
    b = numbers({"x/a": 6, "x/b": 18, "x/c": 0, "x/d": 5})
    b[3] |= {"value": None, "low": None, "high": None}
    assert [pair.id for pair in compare(a, b).pairs] == ["x/b", "x/c", "x/a", "x/d"]


def test_a_choice_made_afterwards_does_not_make_families_smaller() -> None:
    a, b = numbers({"x/1": 1, "x/2": 5, "y/1": 2}), numbers({"x/1": 12, "x/2": 5, "y/1": 2, "x/3": 1})
    found = compare(a, b)
    chosen = found.only("x/1")
    assert [pair.id for pair in chosen.pairs] == ["x/1"]
    assert chosen.pairs[0] == next(pair for pair in found.pairs if pair.id == "x/1")
    assert (found.only("x/*").only_b, chosen.only_b) == (("x/3",), ())


def test_an_id_that_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^B has the number 'x/1' twice$"):
        compare(numbers({"x/1": 1}), numbers({"x/1": 1}) * 2)


def test_nothing_in_common() -> None:
    found = compare(numbers({"x": 1}), [])
    assert (found.pairs, found.only_a, found.only_b, sum(found.counts.values())) == ((), ("x",), (), 0)
    assert list(found.counts) == list(STATUSES)


# The command


def manifest(stage: str, **more: Any) -> Row:
    return {
        "stage": stage,
        "spec": {},
        "code": {"digest": "c1", "modules": {"userturn.job": "1", "userturn.perturb": "1"}},
        "lock": {"file": "engine-cpu.lock", "sha256": "1" * 64},
        "python": "3.11.7",
        "packages": {"numpy": "2.3.5"},
        "outputs": [],
        "facts": {},
        "run": {"host": "one"},
    } | more


def write_study(
    folder: Path, rows: list[Row], *, host: str = "one", items: tuple[str, ...] = ("d-1", "d-2"), **spec: Any
) -> Path:
    """A study's folder with what a comparison reads."""
    results = folder / "results"
    write_jsonl(results / "numbers.jsonl", rows)
    write_jsonl(folder / "data" / "datasets" / "d.jsonl", [{"item": item} for item in items])
    engine = {"config": {"name": "vllm", "dtype": "float32"}, "weights_sha256": "w"}
    written = [{"path": "results/numbers.jsonl", "sha256": sha256_file(results / "numbers.jsonl")}]
    manifests = {
        "report": manifest("report", spec={"name": "small", "seed": 1, "probe": {"samples": 1}} | spec),
        "analyse": manifest("analyse", outputs=written),
        "user_turns/m": manifest(
            "user_turns",
            facts={"engine": engine, "template": {"sha256": "t"}},
            outputs=[{"path": f"results/user_turns/m/d/{x}", "sha256": "u"} for x in "abc"],
        ),
        "model/m": manifest("model", facts={"description": {"weights_sha256": "w"}}),
        "judge/j/m": manifest("judge", facts={"judge": {"name": "j", "version": "1"}}),
    }
    for name, content in manifests.items():
        write_json(results / "manifests" / f"{name}.json", content | {"run": {"host": host}})
    return folder


def change(folder: Path, name: str, **more: Any) -> None:
    path = folder / "results" / "manifests" / f"{name}.json"
    write_json(path, json.loads(path.read_text("utf-8")) | more)


A, B = {"x/1": 1, "x/2": 5, "gone/1": 3}, {"x/1": 15, "x/2": 5, "new/1": 3}


@pytest.fixture
def studies(tmp_path: Path) -> tuple[Path, Path]:
    return write_study(tmp_path / "a", numbers(A)), write_study(tmp_path / "b", numbers(B))


def document(capsys: pytest.CaptureFixture[str], *words: object, code: int) -> Row:
    assert main(["diff", *map(str, words), "--json"]) == code
    found: Row = json.loads(capsys.readouterr().out)
    return found


def test_a_study_run_again_elsewhere_is_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only what stands under ``run`` differs."""
    a = write_study(tmp_path / "a", numbers(A))
    b = write_study(tmp_path / "b", numbers(A), host="two")
    found = document(capsys, a, b, code=0)
    assert found["counts"] == {"beyond": 0, "identical": 3, "interval": 0, "undecided": 0, "within": 0}
    assert found["causes"]["differences"] == []
    assert [note.split(".")[0] for note in found["causes"]["notes"]] == ["The studies share items of d"]
    assert main(["diff", str(a), str(b)]) == 0
    assert "nothing that their manifests tell differs" in capsys.readouterr().out


def test_what_moved_is_said_and_the_exit_code_is_1(
    studies: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(capsys, *studies, code=1)
    assert [pair["id"] for pair in found["pairs"]] == ["x/1", "x/2"]
    assert found["pairs"][0]["shift"] == pytest.approx(0.7)
    assert found["pairs"][0]["significant"] is True
    assert (found["only_a"], found["only_b"], found["families"]) == (["gone/1"], ["new/1"], {"x": 2})
    assert main(["diff", *map(str, studies)]) == 1
    said = capsys.readouterr().out
    assert re.search(r"^x/1 +0\.050 +\[\S+ \S+\] +0\.750 .*\+0\.700 .* \* +beyond$", said, re.MULTILINE)
    assert "x/2 " not in said, "an identical number needs no row"
    assert "1 moves are significant" in said and "only in A\n  gone/1" in said and "only in B\n  new/1" in said
    # the exit code is of the numbers that were asked for
    assert main(["diff", *map(str, studies), "--only", "x/2"]) == 0


def test_every_cause_is_named(studies: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    _, b = studies
    write_study(b, numbers(B), items=("d-2", "d-3", "d-4"), seed=2, probe={"samples": 4}, extra={"key": [1, 2]})
    changed = {"digest": "c2", "modules": {"userturn.job": "1", "userturn.perturb": "2", "userturn.seeds": "1"}}
    engine = {"config": {"name": "vllm", "dtype": "bfloat16"}, "weights_sha256": "other"}
    change(
        b,
        "user_turns/m",
        code=changed,
        lock={"file": "engine-cpu.lock", "sha256": "2" * 64},
        packages={"numpy": "2.4.0"},
        facts={"engine": engine, "template": {"sha256": "t2"}},
        outputs=[{"path": f"results/user_turns/m/d/{x}", "sha256": x} for x in "bcd"],
    )
    change(b, "model/m", facts={"description": {"weights_sha256": "w2"}})
    change(b, "judge/j/m", facts={"judge": {"name": "j", "version": "2"}})
    found = document(capsys, *studies, code=1)["causes"]
    told = [(one["kind"], one["what"], one["a"], one["b"], one["note"]) for one in found["differences"]]
    assert told == [
        ("study", "extra.key", None, "[1,2]", ""),
        ("study", "probe.samples", "1", "4", ""),
        ("study", "seed", "1", "2", ""),
        ("items", "d", "2", "3", "1 shared"),
        ("weights", "m", "w", "w2", ""),
        ("template", "m", "t", "t2", ""),
        ("engine", "m: config.dtype", "float32", "bfloat16", ""),
        ("judge", "j: version", "1", "2", ""),
        ("code", "user_turns", "c1", "c2", "perturb, seeds"),
        ("lock", "engine-cpu.lock", "1" * 64, f"{'1' * 64}, {'2' * 64}", ""),
        ("package", "numpy (engine-cpu.lock)", "2.3.5", "2.3.5, 2.4.0", ""),
    ]
    turns = next(one for one in found["outputs"] if one["stage"] == "user_turns")
    assert turns == {"stage": "user_turns", "same": 0, "differ": 2, "only_a": 1, "only_b": 1}
    assert main(["diff", *map(str, studies)]) == 1
    assert "the first stage that wrote other files: user_turns (2 of 2 differ)" in capsys.readouterr().out


def test_folder_results_record_and_file_name_the_same_study(
    studies: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = studies
    sealed = b / "sealed"
    sealed.mkdir()
    (sealed / "record.jsonl").write_text("")
    given = [document(capsys, a, path, code=1) for path in (b, b / "results", b / "results/numbers.jsonl", sealed)]
    assert all(one["pairs"] == given[0]["pairs"] and one["causes"] == given[0]["causes"] for one in given)


def test_numbers_alone_are_compared_without_causes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, shares in (("a.jsonl", A), ("b.jsonl", B)):
        write_jsonl(tmp_path / name, numbers(shares))
    found = document(capsys, tmp_path / "a.jsonl", tmp_path / "b.jsonl", code=1)
    assert found["causes"]["differences"] == found["causes"]["outputs"] == []
    assert len(found["causes"]["notes"]) == 3
    assert "is not known" in " ".join(found["causes"]["notes"])


def test_numbers_that_their_manifest_does_not_know_are_pointed_out(
    studies: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    write_jsonl(studies[1] / "results" / "numbers.jsonl", numbers(A))
    assert "The manifests of B tell of other numbers" in " ".join(document(capsys, *studies, code=0)["causes"]["notes"])


@pytest.mark.parametrize(
    ("rows", "words", "message"),
    [
        (None, (), "no such file or folder"),
        ([], (), "have no number in common"),
        ([{"id": "x/1"}], (), "no number of a study: decimals, high, k, labels"),
        (numbers({"z/1": 3}), (), "have no number in common"),
        (numbers({"x/1": 3}) * 2, (), "B has the number 'x/1' twice"),
        (numbers(A), ("--only", "z*"), "--only 'z*' fits no number; ids are like 'x/1'"),
    ],
)
def test_what_cannot_be_compared_is_wrong_usage(
    rows: list[Row] | None,
    words: tuple[str, ...],
    message: str,
    studies: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = tmp_path / "other.jsonl"
    if rows is not None:
        write_jsonl(other, rows)
    assert main(["diff", str(studies[0]), str(other), *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err


def test_a_folder_without_numbers_and_a_broken_file_are_wrong_usage(
    studies: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", str(studies[0]), str(tmp_path)]) == 2
    assert "no results/numbers.jsonl there" in capsys.readouterr().err
    inside = studies[0] / "empty"
    inside.mkdir()
    assert main(["diff", str(studies[0]), str(inside)]) == 2, "a folder inside a study is not the study"
    (tmp_path / "bad.jsonl").write_text("{not json\n")
    assert main(["diff", str(studies[0]), str(tmp_path / "bad.jsonl")]) == 2
    assert "bad.jsonl:1: not a JSON line" in capsys.readouterr().err


# Hostile text, the page


HOSTILE = "x/<script>alert(1)</script>\x1b[31m\u202e{{ 7 * 7 }}"


def test_the_terminal_obeys_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, k in (("a", 1), ("b", 15)):
        write_study(tmp_path / name, numbers({HOSTILE: k}), extra={f"{name}\x1b]0;t\x07": "\x9b2J"})
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    said = capsys.readouterr().out
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said)
    assert "<U+001B>[31m<U+202E>" in said


class Page(HTMLParser):
    """Tags with their attributes, and the text outside of the style sheet."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] != "style":
            self.text += data


def test_the_page_shows_all_and_runs_nothing(tmp_path: Path) -> None:
    a = write_study(tmp_path / "a", numbers({HOSTILE: 1, "x/2": 5, "x/3": 3, "gone/1": 1}))
    b = write_study(tmp_path / "b", numbers({HOSTILE: 15, "x/2": 5, "x/3": 4}), seed=2)
    out = tmp_path / "out" / "diff.html"
    assert main(["diff", str(a), str(b), "--html", str(out)]) == 1
    first = out.read_bytes()
    assert main(["diff", str(a), str(b), "--html", str(out)]) == 1
    assert out.read_bytes() == first
    page = Page(first.decode("utf-8"))
    names = [tag for tag, _ in page.tags]
    assert not {"script", "iframe", "img", "link", "object", "form"} & set(names)
    assert not [key for _, attrs in page.tags for key in attrs if key.startswith("on") or key in {"href", "src"}]
    assert not [attrs for _, attrs in page.tags if "style" in attrs], "the policy forbids them"
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
    assert "script-src" not in policy
    shown = HOSTILE.replace("\x1b", "⟦U+001B⟧").replace("\u202e", "⟦U+202E⟧")
    for text in (shown, "x/2", "x/3", "gone/1", "+0.700", "Config of the study", "seed"):
        assert text in page.text, text
    assert names.count("svg") == 2, "one for each number that moved"
    assert "SIMULATED" not in page.text


def test_a_simulated_study_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (write_study(tmp_path / name, numbers(A)) for name in "ab")
    change(b, "user_turns/m", facts={"engine": {"config": {"name": "simulated"}}, "template": {"sha256": "t"}})
    out = tmp_path / "diff.html"
    assert main(["diff", str(a), str(b), "--html", str(out)]) == 0
    assert "numbers.jsonl (small, SIMULATED)" in capsys.readouterr().out.splitlines()[1]
    assert "SIMULATED" in out.read_text("utf-8")


# A reader who leaves


def piped(*words: object) -> tuple[int, str]:
    """Runs a command whose output nobody reads; returns its exit code and what it said on stderr."""
    process = subprocess.Popen(
        [sys.executable, "-m", "userturn.cli", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    return process.wait(timeout=60), said


def test_a_reader_who_leaves_ends_a_command_without_a_word(studies: tuple[Path, Path], tmp_path: Path) -> None:
    # more than a buffer holds, and less
    rows = [numbers({id: k}) for id, k in (("x/0", 1), ("x/0", 15))]
    for study, (row,) in zip(studies, rows, strict=True):
        write_jsonl(study / "results/numbers.jsonl", [row | {"id": f"x/{n}"} for n in range(100)])
    assert piped("diff", *studies) == (141, "")
    assert piped("config", "write", "--help") == (141, "")
    # what a command has to say on stderr is still said
    code, said = piped("config", "check", tmp_path / "none.yaml")
    assert (code, said) == (1, f"userturn: error: {tmp_path / 'none.yaml'}: no such config file\n")


def test_a_pipe_of_another_kind_that_breaks_is_not_hidden() -> None:
    code = (
        "import sys, userturn.cli as cli\n"
        "def run(options): raise BrokenPipeError('a connection')\n"
        "cli.plan.run = run\n"
        "sys.exit(cli.main(['plan']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "BrokenPipeError: a connection" in done.stderr
