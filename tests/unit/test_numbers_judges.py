"""Numbers of the judges from rows in memory, and macro-F1 against scikit-learn."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from userturn import layout
from userturn.artefacts import Row, canonical
from userturn.judges.labels import LABELS
from userturn.numbers import CellName, Definition, Inputs, Settings
from userturn.numbers.judges import Errors, annotators, between, corrected, errors, gold_labels, on_gold, on_held_out
from userturn.numbers.row import ReadRows
from userturn.numbers.shard import Shard, joined_pairs
from userturn.statistics import macro_f1

SETTINGS = Settings(judge="j", level=0.95, resamples=300, seed=3)
GOLD = layout.GOLD_LABELS
G, U, D, R = "genuine_followup", "unrelated", "degenerate", "restates_prompt"

#: What is true and what the judge said, two turns an item.
TURNS: list[tuple[str, str | None]] = [
    *[(G, G)] * 6,
    *[(G, U)] * 2,
    *[(G, None)] * 2,
    *[(U, U)] * 5,
    *[(U, G)],
    *[(D, D)] * 2,
    *[(D, U)],
    *[(D, None)],
]


def gold_rows() -> list[Row]:
    return [
        {"id": f"turn-{n:02d}", "item": f"i-{n // 2}", "label": truth, "first": truth, "second": truth}
        for n, (truth, _) in enumerate(TURNS)
    ]


def judged_rows() -> list[Row]:
    return [
        {"id": f"turn-{n:02d}", "item": f"i-{n // 2}", "label": label, "state": "scored" if label else "unscored"}
        for n, (_, label) in enumerate(TURNS)
    ]


def by_id(definitions: Iterable[Definition]) -> dict[str, Row]:
    found = [one.row(SETTINGS) for one in definitions]
    named = {row["id"]: row for row in found}
    assert len(named) == len(found), "ids are unique"
    return named


@pytest.fixture(scope="module")
def gold_numbers() -> dict[str, Row]:
    found = {GOLD: gold_rows(), layout.gold("j"): judged_rows()}
    return by_id(on_gold(["j"], GOLD, found.__getitem__))


# On the gold set


def test_errors_by_hand() -> None:
    assert errors(judged_rows(), gold_labels(gold_rows())) == ((6, 8), (8, 9))
    assert errors([], {}) == ((0, 0), (0, 0))
    shuffled = judged_rows()
    random.Random(2).shuffle(shuffled)
    assert errors(shuffled, gold_labels(gold_rows()[::-1])) == ((6, 8), (8, 9))


def test_sensitivity_and_specificity_leave_unscored_turns_out(gold_numbers: dict[str, Row]) -> None:
    row = gold_numbers["sensitivity/j"]
    assert (row["k"], row["n"], row["n_unscored"], row["n_items"]) == (6, 8, 2, 4)
    assert row["value"] == 0.75
    assert row["low"] < 0.75 < row["high"]
    assert row["bounds"] == [pytest.approx(6 / 10), pytest.approx(8 / 10)]
    assert (row["unit"], row["labels"]) == ("proportion", {"judge": "j"})
    assert row["sources"] == ["results/gold/j.jsonl", "data/gold/labels.jsonl"]
    assert row["selector"] == {"known": G, "column": "label", "positive": G}
    row = gold_numbers["specificity/j"]
    assert (row["k"], row["n"], row["n_unscored"]) == (8, 9, 1)
    assert row["value"] == pytest.approx(8 / 9)
    assert row["selector"] == {"known": f"not {G}", "column": "label", "positive": f"not {G}"}


def test_the_confusion_matrix_by_hand(gold_numbers: dict[str, Row]) -> None:
    cells = {id.removeprefix("confusion/j/"): row for id, row in gold_numbers.items() if id.startswith("confusion/")}
    assert set(cells) == {f"{truth}/{given}" for truth in (G, U, D) for given in LABELS}, (
        "no row of a label without turns"
    )
    hits = {name: (row["k"], row["n"], row["n_unscored"]) for name, row in cells.items() if row["k"]}
    assert hits == {
        f"{G}/{G}": (6, 8, 2),
        f"{G}/{U}": (2, 8, 2),
        f"{U}/{U}": (5, 6, 0),
        f"{U}/{G}": (1, 6, 0),
        f"{D}/{D}": (2, 3, 1),
        f"{D}/{U}": (1, 3, 1),
    }
    for truth in (G, U, D):
        assert sum(cells[f"{truth}/{given}"]["value"] for given in LABELS) == pytest.approx(1.0)
    assert cells[f"{D}/{U}"]["labels"] == {"judge": "j", "truth": D, "given": U}


def test_macro_f1_by_hand(gold_numbers: dict[str, Row]) -> None:
    row = gold_numbers["macro_f1/j"]
    each = [2 * 6 / (8 + 7), 2 * 5 / (6 + 8), 2 * 2 / (3 + 2)]
    assert row["value"] == pytest.approx(sum(each) / 3)
    assert (row["k"], row["n"], row["n_unscored"], row["unit"]) == (13, 17, 3, "F1")
    assert row["low"] < row["value"] < row["high"]


def test_the_order_of_rows_changes_nothing(gold_numbers: dict[str, Row]) -> None:
    found = {GOLD: gold_rows(), layout.gold("j"): judged_rows()}
    for rows in found.values():
        random.Random(1).shuffle(rows)
    again = by_id(on_gold(["j"], GOLD, found.__getitem__))
    assert {id: canonical(row) for id, row in again.items()} == {id: canonical(row) for id, row in gold_numbers.items()}


def test_a_judge_that_decides_nothing_has_numbers_without_values() -> None:
    found = {GOLD: gold_rows(), layout.gold("j"): [row | {"label": None} for row in judged_rows()]}
    numbers = by_id(on_gold(["j"], GOLD, found.__getitem__))
    for id in ("sensitivity/j", "specificity/j", "macro_f1/j"):
        assert numbers[id]["value"] is None
    assert (numbers["macro_f1/j"]["n"], numbers["macro_f1/j"]["n_unscored"]) == (0, 20)


def test_a_gold_label_that_is_missing_is_no_silent_gap() -> None:
    found = {GOLD: gold_rows()[1:], layout.gold("j"): judged_rows()}
    with pytest.raises(KeyError, match="turn-00"):
        list(on_gold(["j"], GOLD, found.__getitem__))


# On held-out conversations


def test_held_out_numbers_of_each_classifier() -> None:
    rows = [
        {"group": f"c-{n // 3}", "kind": "k", "label": truth, "given": {"simple": simple, "complex": truth}}
        for n, (truth, simple) in enumerate([(G, G), (G, U), (U, U), (U, G), (U, U), (U, U)] * 3)
    ]
    path = layout.judge_held_out("j")
    numbers = by_id(on_held_out(["j"], {path: rows}.__getitem__))
    assert numbers["held_out_sensitivity/j/simple"]["value"] == 0.5
    assert numbers["held_out_specificity/j/simple"]["value"] == 0.75
    assert numbers["held_out_specificity/j/simple"]["n_items"] == 6
    assert numbers["held_out_macro_f1/j/simple"]["value"] == pytest.approx((2 * 3 / 12 + 2 * 9 / 24) / 2)
    assert numbers["held_out_macro_f1/j/complex"]["value"] == 1.0
    row = numbers[f"held_out_confusion/j/simple/{U}/{G}"]
    assert (row["k"], row["n"], row["quantity"]) == (3, 12, "held_out_confusion")
    assert row["sources"] == [path.as_posix()]
    assert list(on_held_out(["j"], {path: []}.__getitem__)) == []


# Agreement


def test_agreement_of_the_two_labellings() -> None:
    rows = [row | {"second": U if n in {0, 10} else row["first"]} for n, row in enumerate(gold_rows())]
    numbers = by_id(annotators(GOLD, {GOLD: rows}.__getitem__))
    assert set(numbers) == {f"agreement_{m}/gold/first/second" for m in ("raw", "kappa", "alpha", "ac1", "positive")}
    row = numbers["agreement_raw/gold/first/second"]
    assert (row["k"], row["n"], row["unit"], row["n_items"]) == (19, 20, "proportion", 10)
    assert row["sources"] == ["data/gold/labels.jsonl"]
    # first: 10 G, 6 U, 4 D; second: 9 G, 7 U, 4 D
    chance = (10 * 9 + 6 * 7 + 4 * 4) / 400
    assert numbers["agreement_kappa/gold/first/second"]["value"] == pytest.approx((0.95 - chance) / (1 - chance))
    assert numbers["agreement_positive/gold/first/second"]["value"] == pytest.approx(2 * 9 / 19)


CELLS = [CellName("m", "d", "baseline", t) for t in (0.0, 1.0)]


def agreements(judges: str, cells: list[CellName], read: ReadRows) -> dict[str, Row]:
    inputs = Inputs(tuple(cells), judges=tuple(judges))
    shards = [Shard(one, replace(SETTINGS, judge=judges[0]), read, paired=True) for one in inputs.shards()]
    return by_id(between(inputs, lambda: joined_pairs([shard.pairs for shard in shards])))


def judgements(labels: list[str | None]) -> list[Row]:
    return [
        {"item": f"d-{n // 2:02d}", "sample": n % 2, "label": label, "state": "scored" if label else "unscored"}
        for n, label in enumerate(labels)
    ]


def test_agreement_between_judges_goes_over_all_cells() -> None:
    first = [G, U, U, G, D, D, None, G]
    second = [G, U, G, G, D, U, U, None]
    found = {CELLS[0].judgements("a"): judgements(first), CELLS[0].judgements("b"): judgements(second)}
    found |= {CELLS[1].judgements("a"): judgements(first), CELLS[1].judgements("b"): judgements(first)}
    numbers = agreements("ab", CELLS, found.__getitem__)
    row = numbers["agreement_raw/a/b"]
    assert (row["k"], row["n"], row["n_unscored"], row["n_items"]) == (11, 13, 3, 4)
    assert row["labels"] == {"pair": "a/b"}
    assert row["sources"] == [cell.judgements(judge).as_posix() for cell in CELLS for judge in "ab"]
    for rows in found.values():
        random.Random(len(rows)).shuffle(rows)
    random.Random(9).shuffle(found[CELLS[0].judgements("b")])
    again = agreements("ab", CELLS[::-1], found.__getitem__)
    assert again == numbers, "turns are matched by item and sample"


def test_every_pair_of_judges_is_compared_once() -> None:
    found = {CELLS[0].judgements(judge): judgements([G, U, D, R]) for judge in "abc"}
    numbers = agreements("abc", CELLS[:1], found.__getitem__)
    pairs = {id.partition("/")[2] for id in numbers}
    assert pairs == {"a/b", "a/c", "b/c"}
    assert agreements("a", CELLS[:1], found.__getitem__) == {}


# Corrected


def correction(positives: dict[CellName, int], known: Errors, n: int = 40) -> dict[str, Row]:
    found = {
        cell.judgements("j"): judgements([G if i < positive else U for i in range(n)])
        for cell, positive in positives.items()
    }
    (shard,) = Inputs(tuple(positives), judges=("j",)).shards()
    return by_id(corrected(Shard(shard, SETTINGS, found.__getitem__, paired=False), known))


SHUFFLED = CellName("m", "d", "shuffled_context", 1.0)
ALONE = CellName("m", "d", "removed_assistant", 0.5)


@pytest.fixture(scope="module")
def corrections() -> dict[str, Row]:
    """A judge that finds 3 of 4 genuine turns and takes one of ten others for one."""
    return correction({CELLS[1]: 20, SHUFFLED: 2, ALONE: 38}, ((30, 40), (180, 200)))


def test_a_corrected_rate_by_hand(corrections: dict[str, Row]) -> None:
    row = corrections["corrected_rate/m/d/baseline/t1.0"]
    assert row["value"] == pytest.approx((0.5 + 0.9 - 1) / (0.75 + 0.9 - 1))
    assert row["low"] < row["value"] < row["high"]
    assert row["selector"] == {"column": "label", "positive": G, "sensitivity": [30, 40], "specificity": [180, 200]}
    assert row["sources"] == [
        "results/judgements/j/m/d/baseline/t1.0.jsonl",
        "results/gold/j.jsonl",
        "data/gold/labels.jsonl",
    ]


def test_below_the_floor_the_corrected_rate_is_zero(corrections: dict[str, Row]) -> None:
    row = corrections["corrected_rate/m/d/shuffled_context/t1.0"]
    assert (row["value"], row["low"]) == (0.0, 0.0)
    assert 0 < row["high"] < 0.3
    assert row["notes"] == ["the raw rate is below 1 - specificity: corrected to 0"]
    assert corrections["corrected_rate/m/d/removed_assistant/t0.5"]["value"] == 1.0


def test_a_corrected_effect_is_the_raw_one_over_youden(corrections: dict[str, Row]) -> None:
    row = corrections["corrected_effect/m/d/shuffled_context/t1.0"]
    assert row["value"] == pytest.approx((0.05 - 0.5) / 0.65)
    assert row["low"] < row["value"] < row["high"] <= 0
    assert (row["selector"]["minus"], row["selector"]["paired_by"]) == ("m/d/baseline/t1.0", "item")
    assert row["sources"][1] == "results/judgements/j/m/d/baseline/t1.0.jsonl"
    assert [id for id in corrections if id.startswith("corrected_effect")] == [row["id"]], "others lack a baseline"


def test_a_perfect_judge_corrects_nothing() -> None:
    numbers = correction({CELLS[1]: 13}, ((50, 50), (300, 300)))
    assert numbers["corrected_rate/m/d/baseline/t1.0"]["value"] == pytest.approx(13 / 40)


@pytest.mark.parametrize("known", [((0, 0), (9, 9)), ((9, 9), (0, 0)), ((5, 10), (5, 10))])
def test_without_information_about_errors_nothing_is_corrected(known: tuple[tuple[int, int], tuple[int, int]]) -> None:
    numbers = correction({CELLS[1]: 13, SHUFFLED: 2}, known)
    assert len(numbers) == 3
    for row in numbers.values():
        assert row["value"] is None
        assert row["notes"]


# Macro-F1

labelled = st.lists(
    st.tuples(st.sampled_from(LABELS[:4]), st.sampled_from(LABELS), st.sampled_from("pqrs")), min_size=1, max_size=40
)


@settings(max_examples=100, deadline=None)
@given(labelled)
def test_macro_f1_agrees_with_scikit_learn(rows: list[tuple[str, str, str]]) -> None:
    truth, given_labels, items = map(list, zip(*rows, strict=True))
    found = macro_f1(truth, given_labels, items, resamples=1000, seed=1)
    labels = sorted(set(truth))
    wanted = f1_score(truth, given_labels, labels=labels, average="macro", zero_division=0)
    assert found.value == pytest.approx(wanted, abs=1e-12)
    assert (found.n, found.n_items) == (len(rows), len(set(items)))
    assert found.interval is None or 0 <= found.interval.low <= found.interval.high <= 1


@settings(max_examples=30, deadline=None)
@given(labelled, st.randoms(use_true_random=False))
def test_macro_f1_does_not_depend_on_the_order_of_turns(rows: list[tuple[str, str, str]], rng: random.Random) -> None:
    again = rng.sample(rows, len(rows))
    first, second = (
        macro_f1(*map(list, zip(*some, strict=True)), resamples=1000, seed=1)  # type: ignore[arg-type,misc]
        for some in (rows, again)
    )
    assert first == second


@settings(max_examples=30, deadline=None)
@given(labelled)
def test_macro_f1_does_not_depend_on_the_names_of_labels(rows: list[tuple[str, str, str]]) -> None:
    truth, given_labels, items = map(list, zip(*rows, strict=True))
    names = dict(zip(LABELS, (f"{9 - n} other" for n in range(len(LABELS))), strict=True))
    first = macro_f1(truth, given_labels, items, resamples=1000, seed=1)
    second = macro_f1([names[t] for t in truth], [names[g] for g in given_labels], items, resamples=1000, seed=1)
    assert first.value == pytest.approx(second.value, abs=1e-12)
    assert first.k == second.k


def test_macro_f1_golden() -> None:
    # F1: genuine 2*1/(2+1), unrelated 2*1/(2+2), a label never given 0; a label never true is left out
    found = macro_f1([G, G, U, U, D], [G, U, U, R, R], list("aabbc"), resamples=1000, seed=1)
    assert found.value == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    assert (found.k, found.n, found.n_items) == (2, 5, 3)
    perfect = macro_f1([G, U] * 4, [G, U] * 4, list("aabbccdd"), resamples=1000, seed=1)
    assert perfect.value == 1.0
    assert perfect.interval is not None
    assert (perfect.interval.low, perfect.interval.high) == (1.0, 1.0)


def test_macro_f1_takes_items_as_clusters() -> None:
    """The same turns in fewer items tell less."""
    truth, given_labels = [G, G, U, U] * 10, [G, G, U, U] * 5 + [U, U, U, G] * 5
    fine = macro_f1(truth, given_labels, [f"{n}" for n in range(40)], resamples=2000, seed=1)
    coarse = macro_f1(truth, given_labels, [f"{n // 10}" for n in range(40)], resamples=2000, seed=1)
    assert fine.value == coarse.value
    assert fine.interval is not None
    assert coarse.interval is not None
    assert coarse.interval.high - coarse.interval.low > 1.3 * (fine.interval.high - fine.interval.low)


def test_macro_f1_of_nothing_and_of_unequal_lengths() -> None:
    empty = macro_f1([], [], [], resamples=1000, seed=1)
    assert (empty.value, empty.interval, empty.n, empty.notes) == (None, None, 0, ("there are no turns",))
    with pytest.raises(ValueError, match="truth, given and items have lengths 1, 2, 1"):
        macro_f1([G], [G, U], ["a"], resamples=1000, seed=1)


def test_paths_are_relative() -> None:
    """What stands with a number names no machine."""
    found = {GOLD: gold_rows(), layout.gold("j"): judged_rows()}
    numbers = by_id(on_gold(["j"], GOLD, found.__getitem__)).values()
    assert not any(Path(source).is_absolute() for row in numbers for source in row["sources"])
