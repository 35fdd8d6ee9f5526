"""The section on post-training: which numbers stand where, and curves that cannot be broken by what they show."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from html import unescape

from userturn.numbers import Settings
from userturn.numbers.posttrain import trainings
from userturn.report.data import Numbers
from userturn.report.training import learning_curve, training

SETTINGS = Settings(judge="j", level=0.95, resamples=100, seed=1)
CURVE = [
    {"step": 0, "held_out_loss": 3.5},
    {"step": 1, "loss": 3.0, "learning_rate": 0.1},
    {"step": 2, "loss": 2.0, "held_out_loss": 2.5},
]
STUDY = {
    "models": {"base": {"source": {}}, "v": {"posttrain": {"base": "base", "method": "sft", "data": {}}}},
    "datasets": {"d": {}},
    "probe": {
        "perturbations": {
            "baseline": {"kind": "baseline", "temperatures": [0.0]},
            "mixed": {"kind": "shuffled_context", "temperatures": [0.0]},
        }
    },
}


def row(id: str, value: float):
    return {
        "id": id, "quantity": id.partition("/")[0], "labels": {}, "value": value, "low": value - 0.1,
        "high": value + 0.1, "unit": "difference of proportions", "decimals": 3, "n": 8, "k": 2, "n_items": 8,
        "p_value": 0.01, "p_adjusted": None, "notes": [],
    }  # fmt: skip


def test_what_a_training_logged_are_numbers_with_its_curve_as_source():
    found = {one.id: one.row(SETTINGS) for one in trainings(["v"], lambda path: CURVE)}
    assert set(found) == {
        f"training_{which}/v/{measure}"
        for which in ("first", "last")
        for measure in ("loss", "held_out_loss", "learning_rate")
    }
    last = found["training_last/v/loss"]
    assert (last["value"], last["labels"]["step"]) == (2.0, 2)
    assert last["sources"] == ["results/posttrain/v/curve.jsonl"]
    assert (last["low"], last["p_value"]) == (None, None)


def test_every_number_of_a_variant_stands_in_its_section():
    ids = [
        "effect_posttrain/v/d/baseline/t0.0",
        "effect_posttrain/v/d/mixed/t0.0",
        "posttrain_grounding/v/d/mixed/t0.0",
        "accuracy_posttrain/v/d",
        "training_first/v/loss",
        "training_last/v/loss",
        "question_rate/v/d/baseline/t0.0",
        "question_rate/base/d/baseline/t0.0",
    ]
    numbers = Numbers([row(id, 0.25) for id in ids])
    trained = {"v": {"summary": {"flags": ["a warning"], "data": {}}, "curve": CURVE}}
    view = training(STUDY, numbers, trained)
    assert [one["id"] for one in numbers.rest()] == []
    (variant,) = view["variants"]
    assert (variant["flags"], variant["is_control"]) == (["a warning"], False)
    assert [title for title, _ in variant["curves"]] == ["Loss"]
    assert "effect_posttrain/v/d/baseline/t0.0" in variant["table"][0]["effect"]


def test_a_study_without_variants_has_an_empty_section():
    assert training({**STUDY, "models": {"base": {"source": {}}}}, Numbers([]), {})["variants"] == []


def test_a_curve_is_well_formed_with_one_point_flat_lines_and_hostile_names():
    for lines in ({"loss": [(1.0, 2.0)]}, {"loss": [(1.0, 2.0), (2.0, 2.0)]}, {"<b>&": [(0.0, -1.0), (9.0, 4.0)]}):
        svg = str(learning_curve(lines, 'a "label" <x>'))
        tree = ET.fromstring(svg)
        drawn = [line for line in tree.findall(".//polyline") if "data-series" in line.attrib]
        assert [line.attrib["data-points"] for line in drawn] == [
            " ".join(f"{step:g},{value!r}" for step, value in points) for points in lines.values()
        ]
        assert "<b>" not in svg
        assert unescape(tree.attrib["aria-label"]) == 'a "label" <x>'


def test_names_at_the_ends_of_curves_do_not_cover_each_other():
    lines = {"reward": [(1.0, 0.5)], "accuracy": [(1.0, 0.5)], "tokens": [(1.0, 0.51)], "far": [(1.0, 9.0)]}
    tree = ET.fromstring(str(learning_curve(lines, "x")))
    places = sorted(float(text.attrib["y"]) for text in tree.findall(".//g/text"))
    assert len(places) == 4
    assert min(b - a for a, b in itertools.pairwise(places)) >= 11.9
