"""The sample that people label: shares, the draw, the weights."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from userturn.judges.labels import LABELS
from userturn.judges.people import Place
from userturn.labelling.sample import Stratum, draw, shares, temperature_group

SIZES = {"genuine_followup": 200, "restates_prompt": 30, "unrelated": 90, "generic": 2, "unscored": 5}
TEMPERATURES = (0.0, 0.7, 1.0)


def strata(sizes: dict[str, int] = SIZES) -> dict[Stratum, list[Place]]:
    found: dict[Stratum, list[Place]] = {}
    for label, size in sizes.items():
        for k in range(size):
            model, temperature = ("alpha", "beta")[k % 2], TEMPERATURES[k % 3]
            place = Place(model, "gsm8k", "baseline", temperature, f"{label}-{k // 2}", k % 2)
            found.setdefault(Stratum(label, model, "baseline", temperature_group(temperature)), []).append(place)
    return found


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(0, 300))
def test_shares_are_whole_within_bounds_and_as_equal_as_can_be(available: list[int], n: int) -> None:
    given_out = shares(available, n)
    assert sum(given_out) == min(n, sum(available))
    assert all(0 <= share <= most for share, most in zip(given_out, available, strict=True))
    wanting = [share for share, most in zip(given_out, available, strict=True) if share < most]
    # nobody who could take more has less than another by more than the remainder
    assert not wanting or max(given_out) - min(wanting) <= 1


def test_shares_golden() -> None:
    assert shares([370, 311, 208, 42, 26, 2, 1], 300) == [77, 76, 76, 42, 26, 2, 1]
    assert shares([3, 3, 3], 4) == [2, 1, 1]
    assert shares([], 5) == []


def test_negatives_are_well_represented() -> None:
    sample = draw(strata(), 1, n=100)
    by_label = dict.fromkeys(SIZES, 0)
    for stratum, (_, drawn) in sample.strata.items():
        by_label[stratum.label] += drawn
    assert by_label == {
        "genuine_followup": 32,
        "restates_prompt": 30,
        "unrelated": 31,
        "generic": 2,
        "unscored": 5,
    }
    # and within a label over models and temperatures
    genuine = [drawn for stratum, (_, drawn) in sample.strata.items() if stratum.label == "genuine_followup"]
    assert max(genuine) - min(genuine) <= 1


def test_the_draw_does_not_depend_on_the_order_of_turns() -> None:
    turns = strata()
    shuffled = list(turns.items())
    random.Random(5).shuffle(shuffled)
    mixed = {stratum: random.Random(6).sample(places, len(places)) for stratum, places in shuffled}
    assert draw(turns, 1, n=60) == draw(mixed, 1, n=60)
    assert draw(turns, 1, n=60).turns != draw(turns, 2, n=60).turns


def test_weights_stand_for_every_turn_of_a_stratum_that_gave_one() -> None:
    sample = draw(strata(), 3, n=100)
    assert len(sample.turns) == len({place for place, _ in sample.turns}) == 100
    reached = sum(size for size, drawn in sample.strata.values() if drawn)
    assert sum(weight for _, weight in sample.turns) == pytest.approx(reached, abs=1e-3)


def test_per_stratum_and_more_than_there_is() -> None:
    sample = draw(strata(), 1, n=300, per_stratum=3)
    assert all(drawn == min(size, 3) for size, drawn in sample.strata.values())
    everything = draw(strata(), 1, n=10_000)
    assert len(everything.turns) == sum(SIZES.values())
    assert {weight for _, weight in everything.turns} == {1.0}


def test_a_turn_stays_when_turns_of_other_strata_are_added() -> None:
    few = draw({s: p for s, p in strata().items() if s.label == "unrelated"}, 1, n=1000, per_stratum=4)
    many = draw(strata(), 1, n=1000, per_stratum=4)
    assert set(few.turns) <= set(many.turns)


def test_groups_of_temperatures() -> None:
    assert [temperature_group(t) for t in (0.0, 0.3, 0.99, 1.0, 1.5)] == ["T = 0", *["0 < T < 1"] * 2, *["T >= 1"] * 2]


def test_every_label_has_a_stratum_of_its_own() -> None:
    sample = draw(strata(dict.fromkeys((*LABELS, "unscored"), 10)), 1, n=16)
    assert {stratum.label for stratum, (_, drawn) in sample.strata.items() if drawn} == {*LABELS, "unscored"}
