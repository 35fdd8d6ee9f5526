"""A variant against its base: paired by item, and guards that see what a hollow gain looks like."""

from __future__ import annotations

import pytest

from userturn import layout
from userturn.numbers import Inputs, Settings
from userturn.numbers.guards import asks, closes, guards
from userturn.numbers.posttrain import OF_SHARD, accuracy_of, effects_of
from userturn.numbers.row import CellName
from userturn.numbers.shard import Shard

SETTINGS = Settings(judge="j", level=0.95, resamples=200, seed=1)
ITEMS = [f"i{n}" for n in range(8)]


def judged(positive: set[str]):
    return [
        {"item": item, "sample": 0, "state": "scored", "label": "genuine_followup" if item in positive else "generic"}
        for item in ITEMS
    ]


def cell(model: str, perturbation: str) -> CellName:
    return CellName(model, "d", perturbation, 0.0)


def shard(genuine: dict[tuple[str, str], set[str]], correct=None, texts=None) -> Shard:
    """Two models, base and variant; follow-ups by model and perturbation."""
    rows = {cell(*key).judgements("j"): judged(found) for key, found in genuine.items()}
    for model in ("base", "variant"):
        right = (correct or {}).get(model)
        rows[layout.scores(model, "d")] = [
            {"item": item, "correct": None if right is None else item in right} for item in ITEMS
        ]
    rows[cell("variant", "baseline").user_turns] = [
        {"item": item, "sample": 0, "text": text} for item, text in zip(ITEMS, texts or ["x"] * 8, strict=False)
    ]
    cells = tuple(cell("variant", perturbation) for model, perturbation in genuine if model == "variant")
    return Shard(Inputs(cells=cells, judges=("j",)), SETTINGS, rows.__getitem__, paired=False)


def numbers(builder):
    return {one.id: one.row(SETTINGS) for one in builder}


def test_an_effect_is_the_variant_minus_its_base_on_the_same_items():
    found = numbers(effects_of(shard({("variant", "baseline"): set(ITEMS[:6]), ("base", "baseline"): {"i0"}}), "base"))
    row = found["effect_posttrain/variant/d/baseline/t0.0"]
    assert row["value"] == pytest.approx(5 / 8)
    assert row["low"] < row["value"] < row["high"]
    assert row["labels"]["base"] == "base"
    assert row["sources"] == [cell(m, "baseline").judgements("j").as_posix() for m in ("variant", "base")]


def test_accuracy_is_paired_too_and_nothing_where_nothing_is_scored():
    cells = {("variant", "baseline"): set[str]()}
    right = {"variant": {"i0", "i1"}, "base": {"i0", "i1", "i2", "i3"}}
    found = numbers(accuracy_of(shard(cells, correct=right), "base"))
    assert found["accuracy_posttrain/variant/d"]["value"] == pytest.approx(-0.25)
    assert numbers(accuracy_of(shard(cells), "base")) == {}


def test_each_builder_gives_its_quantities_from_the_sources_that_it_names():
    genuine = {(model, name): {"i0"} for model in ("variant", "base") for name in ("baseline", "shuffled_context")}
    whole = shard(genuine, correct={"variant": {"i0"}, "base": {"i1"}})
    for build, quantities in OF_SHARD:
        rows = numbers(build(whole, {"variant": "base"}))
        assert {row["quantity"] for row in rows.values()} == set(quantities)
        assert list(build(whole, {})) == []
        for id, row in rows.items():
            sources = {*row["sources"]}

            def read(path, sources=sources):
                assert path.as_posix() in sources, f"{path} is not among the sources"
                return whole.read(path)

            needed = tuple(
                one for one in whole.inputs.cells
                if {one.judgements("j").as_posix(), one.user_turns.as_posix()} & sources
            ) or whole.inputs.cells[:1]  # fmt: skip
            alone = Shard(Inputs(cells=needed, judges=("j",)), SETTINGS, read, paired=False)
            found = next(one for one in build(alone, {"variant": "base"}) if one.id == id)
            assert found.row(SETTINGS) == row


def test_a_style_gains_as_much_where_the_answer_is_anothers_and_a_reaction_does_not():
    everywhere = {
        ("variant", "baseline"): set(ITEMS[:6]),
        ("variant", "shuffled_context"): set(ITEMS[:6]),
        ("base", "baseline"): set(),
        ("base", "shuffled_context"): set(),
    }
    style = numbers(effects_of(shard(everywhere), "base"))["posttrain_grounding/variant/d/shuffled_context/t0.0"]
    real = {**everywhere, ("variant", "shuffled_context"): set()}
    tied = numbers(effects_of(shard(real), "base"))["posttrain_grounding/variant/d/shuffled_context/t0.0"]
    assert style["value"] == 0.0
    assert tied["value"] == pytest.approx(0.75)
    assert tied["p_value"] < 0.05 < style["p_value"]


@pytest.mark.parametrize(
    ("text", "question", "closing"),
    [
        ("What about the second step?", True, False),
        ("Thanks. Is there anything else?", True, True),
        ("is there anything else I should know about this?", True, True),
        ("Why? Because I said so.", False, False),
        ('He asked: "Why?"', True, False),
        ("", False, False),
        ("Does that make sense?", True, True),
        ("there is nothing else", False, False),
    ],
)
def test_questions_and_questions_that_fit_anywhere(text, question, closing):
    assert (asks(text), closes(text)) == (question, closing)


def test_guards_see_a_model_that_says_one_thing_everywhere():
    def of(texts):
        made = shard({("variant", "baseline"): set(), ("base", "baseline"): set()}, texts=texts)
        return {id.partition("/")[0]: row for id, row in numbers(guards(made)).items()}

    spam, varied = of(["Is there anything else?"] * 8), of([f"word{n} other{n} third{n}" for n in range(8)])
    assert spam["closing_question_rate"]["value"] == spam["question_rate"]["value"] == 1.0
    assert varied["question_rate"]["value"] == 0.0
    assert spam["distinct_bigrams"]["value"] == pytest.approx(3 / 24)
    assert varied["distinct_bigrams"]["value"] == 1.0
    assert (spam["turn_words"]["value"], varied["turn_words"]["value"]) == (4.0, 3.0)
    assert spam["turn_words"]["p_value"] is None
