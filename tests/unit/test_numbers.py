"""Numbers from rows in memory: values, ids, sources, and independence of the rows' order."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from userturn import layout
from userturn.artefacts import Row, canonical, read_jsonl, write_jsonl
from userturn.exclusions import Exclusion, Ledger, LedgerError, read_ledger
from userturn.judges.labels import LABELS
from userturn.numbers import CellName, Inputs, Settings, assemble, definition
from userturn.numbers.families import adjusted

MODEL, DATASET = "m", "d"
BASE = CellName(MODEL, DATASET, "baseline", 1.0)
SHUFFLED = CellName(MODEL, DATASET, "shuffled_context", 1.0)
SETTINGS = Settings(judge="j", level=0.95, resamples=500, seed=3, confirmatory=("effect/*/*/shuffled_context/*",))
ITEMS = [f"d-{n:02d}" for n in range(20)]


def judgement(item: str, sample: int, label: str | None) -> Row:
    return {"item": item, "sample": sample, "label": label, "state": "unscored" if label is None else "scored"}


def artefacts() -> dict[Path, list[Row]]:
    """Ten of forty baseline turns are genuine (two unscored), none under the shuffled context."""
    base = [judgement(i, s, "genuine_followup" if n < 10 else "generic") for n, i in enumerate(ITEMS) for s in (0, 1)]
    base[1] = judgement(ITEMS[0], 1, None)
    base[39] = judgement(ITEMS[19], 1, None)
    return {
        BASE.judgements("j"): base,
        SHUFFLED.judgements("j"): [judgement(i, s, "unrelated") for i in ITEMS for s in (0, 1)],
        layout.scores(MODEL, DATASET): [
            {"item": i, "state": "scored", "correct": n < 5, "strict": False, "loose": n < 5}
            for n, i in enumerate(ITEMS)
        ],
        layout.assistant_turns(MODEL, DATASET): [
            {"item": i, "finish_reason": "length" if n == 0 else "stop"} for n, i in enumerate(ITEMS)
        ],
    }


@pytest.fixture(scope="module")
def numbers() -> dict[str, Row]:
    found = artefacts()
    return {row["id"]: row for row in assemble(Inputs((BASE, SHUFFLED), judges=("j",)), SETTINGS, found.__getitem__)}


def test_rates_count_scored_turns_only(numbers: dict[str, Row]) -> None:
    row = numbers["followup_rate/m/d/baseline/t1.0"]
    assert (row["k"], row["n"], row["n_unscored"], row["n_items"]) == (19, 38, 2, 20)
    assert row["value"] == 0.5
    assert row["low"] < 0.5 < row["high"]
    assert row["bounds"] == [pytest.approx(19 / 40), pytest.approx(21 / 40)]
    assert row["sources"] == ["results/judgements/j/m/d/baseline/t1.0.jsonl"]
    assert row["selector"] == {"column": "label", "positive": "genuine_followup"}
    assert numbers["unscored_rate/m/d/baseline/t1.0"]["value"] == 0.05


def test_a_zero_rate_has_an_upper_bound(numbers: dict[str, Row]) -> None:
    row = numbers["followup_rate/m/d/shuffled_context/t1.0"]
    assert row["value"] == row["low"] == 0.0
    assert 0.05 < row["high"] < 0.3
    assert row["bootstrap"] is not None
    assert row["bootstrap"]["high"] == 0.0


def test_effects_are_paired_and_adjusted(numbers: dict[str, Row]) -> None:
    row = numbers["effect/m/d/shuffled_context/t1.0"]
    assert row["value"] == pytest.approx(-0.5, abs=0.03)
    assert row["high"] < 0
    assert row["p_value"] < 0.05
    assert row["p_adjusted"] == row["p_value"], "one test in the family"
    assert row["family"] == "confirmatory (Holm), 1"
    assert row["selector"]["minus"] == "m/d/baseline/t1.0"
    assert not any(name.startswith("effect/m/d/baseline") for name in numbers)


def test_accuracies(numbers: dict[str, Row]) -> None:
    assert numbers["accuracy/m/d"]["value"] == 0.25
    assert numbers["accuracy_strict/m/d"]["value"] == 0.0
    assert numbers["accuracy_loose/m/d"]["value"] == 0.25
    assert numbers["assistant_cut_rate/m/d"]["k"] == 1


def test_labels_are_complete(numbers: dict[str, Row]) -> None:
    shares = [numbers[f"label_share/m/d/baseline/t1.0/{label}"] for label in LABELS]
    assert sum(row["value"] for row in shares) == pytest.approx(1.0)
    assert all(row["labels"]["label"] == label for row, label in zip(shares, LABELS, strict=True))


def test_the_order_of_rows_changes_nothing(numbers: dict[str, Row]) -> None:
    shuffled = artefacts()
    for rows in shuffled.values():
        random.Random(1).shuffle(rows)
    again = assemble(Inputs((SHUFFLED, BASE), judges=("j",)), SETTINGS, shuffled.__getitem__)
    assert [canonical(row) for row in again] == [canonical(row) for row in numbers.values()]


def test_ids_are_sorted_and_unique(numbers: dict[str, Row]) -> None:
    assert list(numbers) == sorted(numbers)


def test_nothing_scored_is_a_number_without_a_value() -> None:
    found = artefacts()
    found[BASE.judgements("j")] = [judgement(item, 0, None) for item in ITEMS]
    found[layout.scores(MODEL, DATASET)] = [
        {"item": i, "state": "unscored", "correct": None, "strict": None, "loose": None} for i in ITEMS
    ]
    rows = {row["id"]: row for row in assemble(Inputs((BASE, SHUFFLED), judges=("j",)), SETTINGS, found.__getitem__)}
    assert rows["followup_rate/m/d/baseline/t1.0"]["value"] is None
    assert rows["followup_rate/m/d/baseline/t1.0"]["n_unscored"] == 20
    assert rows["effect/m/d/shuffled_context/t1.0"]["value"] is None
    assert rows["accuracy/m/d"]["value"] is None
    assert "accuracy_strict/m/d" not in rows


def test_contrasts_between_cells() -> None:
    """Two models, two temperatures: slopes, associations and the correlation over models are there, with sources."""
    found: dict[Path, list[Row]] = {}
    cells = [CellName(m, DATASET, "baseline", t) for m in ("m", "n", "o") for t in (0.0, 1.0)]
    for rank, cell in enumerate(cells):
        found[cell.judgements("j")] = [
            judgement(i, 0, "genuine_followup" if n < 3 + 2 * rank else "generic") for n, i in enumerate(ITEMS)
        ]
    for rank, model in enumerate("mno"):
        found[layout.scores(model, DATASET)] = [
            {"item": i, "state": "scored", "correct": n < 4 + rank, "strict": None, "loose": None}
            for n, i in enumerate(ITEMS)
        ]
        found[layout.assistant_turns(model, DATASET)] = [{"item": i, "finish_reason": "stop"} for i in ITEMS]
    rows = {row["id"]: row for row in assemble(Inputs(tuple(cells), judges=("j",)), SETTINGS, found.__getitem__)}
    slope = rows["temperature_slope/m/d/baseline"]
    assert slope["value"] > 0
    assert slope["unit"] == "log odds per unit"
    assert len(slope["sources"]) == 2
    link = rows["association/m/d/baseline/t0.0"]
    assert link["value"] == pytest.approx(3 / 4)
    assert link["sources"][1] == "results/scores/m/d.jsonl"
    assert rows["decoupling/d/t1.0"]["value"] == pytest.approx(1.0)
    assert rows["decoupling/d/t1.0"]["selector"]["over"] == "models"


def test_families_are_adjusted_apart() -> None:
    row = {"quantity": "effect", "p_adjusted": None, "family": None}
    rows = [
        {**row, "id": f"effect/m/d/{name}/t0.0", "p_value": p} for name, p in (("a", 0.01), ("b", 0.04), ("c", 0.03))
    ]
    rows.append({**row, "id": "followup_rate/m", "quantity": "followup_rate", "p_value": None})
    done = {row["id"].split("/")[-2]: row for row in adjusted(rows, ["effect/*/a/*", "effect/*/b/*"])}
    assert [done[name]["p_adjusted"] for name in "abc"] == [0.02, 0.04, 0.03]
    assert done["a"]["family"] == "confirmatory (Holm), 2"
    assert done["c"]["family"] == "effect (Benjamini-Hochberg), 1"
    assert done["followup_rate"]["family"] is None


def test_likelihoods_are_set_against_the_other_role_and_the_other_answer() -> None:
    path = layout.likelihood(MODEL, DATASET)
    rows = [
        {"control": "human_followup", "item": item, "n_tokens": 4, "user": -10.0 - n, "assistant": -14.0 - n,
         "shuffled": -10.0 - n + (2 if n < 5 else -2)}
        for n, item in enumerate(ITEMS)
    ]  # fmt: skip
    rows += [
        {"control": "continued_answer", "item": item, "n_tokens": 2, "user": -9.0, "assistant": -5.0, "shuffled": None}
        for item in ITEMS
    ]
    found = artefacts() | {path: rows}
    numbers = {
        row["id"]: row
        for row in assemble(
            Inputs((BASE, SHUFFLED), scored=((MODEL, DATASET),), judges=("j",)), SETTINGS, found.__getitem__
        )
        if row["quantity"].startswith(("role", "grounding"))
    }
    assert numbers["role_log_odds/m/d/human_followup"]["value"] == 1.0
    assert numbers["role_log_odds/m/d/continued_answer"]["value"] == -2.0
    assert numbers["role_share/m/d/continued_answer"]["value"] == 0.0
    assert numbers["grounding/m/d/human_followup"]["value"] == pytest.approx((15 * 2 - 5 * 2) / 4 / 20)
    assert numbers["grounding_share/m/d/human_followup"]["k"] == 15
    assert not any(id.startswith("grounding") and "continued" in id for id in numbers), "its context has another answer"
    row = numbers["grounding/m/d/human_followup"]
    assert row["low"] < row["value"] < row["high"]
    assert (row["unit"], row["sources"]) == ("nats per token", [path.as_posix()])


def test_determinism_compares_the_texts_of_two_cells() -> None:
    base, again = (CellName(MODEL, DATASET, name, 0.0) for name in ("baseline", "repeated_baseline"))
    found = artefacts() | {cell.judgements("j"): [judgement(i, 0, "generic") for i in ITEMS] for cell in (base, again)}
    for cell, changed in ((base, ""), (again, "!")):
        path = layout.user_turns(MODEL, DATASET, cell.perturbation, "t0.0")
        found[path] = [{"item": i, "text": f"turn {i}{changed if n < 3 else ''}"} for n, i in enumerate(ITEMS)]
    rows = {
        row["id"]: row
        for row in assemble(Inputs((base, again), repeated=(again,), judges=("j",)), SETTINGS, found.__getitem__)
    }
    row = rows["determinism/m/d/repeated_baseline/t0.0"]
    assert (row["value"], row["k"], row["n"]) == (0.85, 17, 20)
    assert rows["effect/m/d/repeated_baseline/t0.0"]["value"] == 0.0


def whole_study() -> tuple[Inputs, dict[Path, list[Row]]]:
    """Two judges, two models, repeats, likelihoods and a gold set: every kind of number."""
    base, again = (CellName(MODEL, DATASET, name, 0.0) for name in ("baseline", "repeated_baseline"))
    other = CellName("n", DATASET, "baseline", 1.0)
    found = artefacts()
    for path in (layout.scores, layout.assistant_turns):
        found[path("n", DATASET)] = found[path(MODEL, DATASET)]
    for cell, changed in ((base, ""), (again, "!")):
        found[cell.user_turns] = [{"item": i, "text": i + changed} for i in ITEMS]
        found[cell.judgements("j")] = [judgement(i, 0, "generic") for i in ITEMS]
    found[other.judgements("j")] = [
        judgement(i, 0, "genuine_followup" if n % 3 else "generic") | {"evidence": {"grounding": "verified"}}
        for n, i in enumerate(ITEMS)
    ]
    cells = (BASE, SHUFFLED, base, again, other)
    for cell in cells:
        found[cell.judgements("k")] = found[cell.judgements("j")][::-1]
    found[layout.likelihood(MODEL, DATASET)] = [
        {"control": "c", "item": i, "n_tokens": 4, "user": -9.0 - n, "assistant": -12.0, "shuffled": -11.0}
        for n, i in enumerate(ITEMS)
    ]
    truth = ["genuine_followup", "generic"] * 10
    found[layout.GOLD_LABELS] = [
        {"id": f"g-{n}", "item": i, "label": truth[n], "first": truth[n], "second": truth[n - 1 if n == 3 else n]}
        for n, i in enumerate(ITEMS)
    ]
    for judge in "jk":
        found[layout.gold(judge)] = [
            {"id": f"g-{n}", "item": i, "label": truth[n] if n else "unrelated"} for n, i in enumerate(ITEMS)
        ]
    found[layout.judge_held_out("k")] = [
        {"group": i, "label": truth[n], "given": {"one": truth[0]}} for n, i in enumerate(ITEMS)
    ]
    variant = CellName("v", DATASET, "baseline", 0.0), CellName("v", DATASET, "shuffled_context", 0.0)
    shuffled = CellName(MODEL, DATASET, "shuffled_context", 0.0)
    for path in (layout.scores, layout.assistant_turns):
        found[path("v", DATASET)] = found[path(MODEL, DATASET)]
    for cell in (*variant, shuffled):
        for judge in "jk":
            found[cell.judgements(judge)] = found[other.judgements("j")]
    for cell in (variant[0], other, BASE):
        found[cell.user_turns] = [{"item": i, "sample": 0, "text": f"and what of {i}?"} for i in ITEMS]
    found[layout.training_curve("v")] = [{"step": 0, "loss": 3.0}, {"step": 1, "loss": 2.0}]
    cells += (*variant, shuffled)
    inputs = Inputs(cells, ((MODEL, DATASET),), (again,), ("j", "k"), ("k",), ("j", "k"), (("v", MODEL),))
    return inputs, found


def test_each_number_alone_is_what_it_is_among_all() -> None:
    """An audit recomputes one number from its own sources; no other artefact may be read for it."""
    inputs, found = whole_study()
    rows = assemble(inputs, SETTINGS, found.__getitem__)
    assert len({row["quantity"] for row in rows}) > 35
    for row in rows:
        sources = [Path(source) for source in row["sources"]]
        only = {path: found[path] for path in sources}
        alone = definition(row["id"], sources, inputs, SETTINGS, only.__getitem__)
        assert alone is not None, row["id"]
        assert alone.row(SETTINGS) == row | {"p_adjusted": None, "family": None}, row["id"]
    assert definition("accuracy/no/such", [layout.scores(MODEL, DATASET)], inputs, SETTINGS, found.__getitem__) is None


def test_processes_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, found = whole_study()
    monkeypatch.chdir(tmp_path)
    for path, rows in found.items():
        write_jsonl(path, rows)
    done: list[int] = []
    together = assemble(inputs, SETTINGS, read_jsonl, processes=2, on_done=done.append)
    assert together == assemble(inputs, SETTINGS, found.__getitem__)
    assert done == [1, 1, 1]


def test_excluded_rows_leave_the_numbers_and_are_counted() -> None:
    inputs, found = whole_study()
    ledger = Ledger(
        (
            Exclusion(dataset=DATASET, item=ITEMS[0], reason="the reference answer is wrong"),
            Exclusion(dataset=DATASET, item=ITEMS[1], perturbation="baseline", temperature=1.0, sample=1, reason="cut"),
            Exclusion(dataset=DATASET, item=ITEMS[2], model="n", reason="leaked"),
        )
    )
    rows = {row["id"]: row for row in assemble(replace(inputs, ledger=ledger), SETTINGS, found.__getitem__)}
    plain = {row["id"]: row for row in assemble(inputs, SETTINGS, found.__getitem__)}
    rate = rows["followup_rate/m/d/baseline/t1.0"]
    assert (rate["n"], rate["n_excluded"], rate["n_items"]) == (36, 3, 19), "one of the excluded turns was unscored"
    assert (rows["accuracy/m/d"]["n"], rows["accuracy/m/d"]["n_excluded"]) == (19, 1)
    assert (rows["accuracy/n/d"]["n"], rows["accuracy/n/d"]["n_excluded"]) == (18, 2)
    assert rows["effect/m/d/shuffled_context/t1.0"]["n_excluded"] == 3 + 2
    assert rows["determinism/m/d/repeated_baseline/t0.0"]["n"] == 19
    assert rows["grounding/m/d/c"]["n"] == 19
    assert rows["sensitivity/j"] == plain["sensitivity/j"], "the gold set is no part of the study's items"
    assert all(row["n_excluded"] == 0 for row in plain.values())


def test_an_exclusion_that_meets_nothing_is_refused() -> None:
    inputs, found = whole_study()
    ledger = Ledger((Exclusion(dataset=DATASET, item="d-99", reason="no such item"),))
    with pytest.raises(LedgerError, match="line 1: dataset d, item d-99"):
        assemble(replace(inputs, ledger=ledger), SETTINGS, found.__getitem__)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"dataset": "d", "item": "i"}', "reason: Field required"),
        ('{"dataset": "d", "item": "i", "reason": "why not", "samples": 1}', "samples: Extra inputs"),
        ('{"dataset": "d", "item": "i", "reason": "why not", "date": "tomorrow"}', "date: "),
        ("[1]", "expected a JSON object"),
        ("not json", "not a JSON line"),
    ],
)
def test_a_ledger_says_what_is_wrong_and_where(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "exclusions.jsonl"
    path.write_text('{"dataset": "d", "item": "i", "reason": "good"}\n' + line + "\n")
    with pytest.raises(
        LedgerError, match=f":2: .*{re.escape(said)}" if "json" not in line and "[1]" not in line else ":2"
    ):
        read_ledger(path)
