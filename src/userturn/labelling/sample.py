"""The sample that people label: strata, a stated allocation, a seeded draw. Pure functions.

Labels are rare and unequal, so a simple sample would show people little of what a judge gets wrong. The sample is
shared out twice as equally as the turns at hand allow: over the judge's labels, and within a label over model,
perturbation and group of temperatures. Each turn drawn carries its weight (turns of its stratum over turns drawn from
it), so that estimates for all turns remain possible.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from userturn import layout
from userturn.judges.labels import LABELS
from userturn.judges.people import Place
from userturn.seeds import derive

UNSCORED = "unscored"
#: Names of the groups of temperatures.
DETERMINISTIC, LOW, HIGH = "T = 0", "0 < T < 1", "T >= 1"

EQUALLY = (
    "turns are shared out as equally as the turns at hand allow, first over the judge's labels (unscored counts as "
    "one), then within a label over model x perturbation x group of temperatures; within a stratum every turn has the "
    "same chance"
)
PER_STRATUM = "the same number from every stratum (label x model x perturbation x group of temperatures), or all of it"


class Stratum(NamedTuple):
    """Turns that one share of the sample is drawn from."""

    label: str
    model: str
    perturbation: str
    temperatures: str


class Drawn(NamedTuple):
    """A turn of the sample; ``weight``: how many turns of its stratum it stands for."""

    place: Place
    weight: float


@dataclass(frozen=True)
class Sample:
    """A sample, with what each stratum holds and gave.

    Attributes:
        turns: the turns drawn, by place.
        strata: every stratum with the turns at hand and the turns drawn.
        rule: the allocation in words.
    """

    turns: tuple[Drawn, ...]
    strata: Mapping[Stratum, tuple[int, int]]
    rule: str


def temperature_group(temperature: float) -> str:
    """The group of a temperature."""
    return DETERMINISTIC if temperature == 0 else LOW if temperature < 1 else HIGH


def shares(available: Sequence[int], n: int) -> list[int]:
    """Shares ``n`` out as equally as ``available`` allows; what cannot be shared equally goes to the first.

    Args:
        available: how much each can take, shape (k,).
        n: how much there is.

    Returns:
        Shares of shape (k,), none above what is available, with a sum of ``min(n, sum(available))``.
    """
    given = [0] * len(available)
    left = min(n, sum(available))
    while left:
        wanting = [i for i, most in enumerate(available) if given[i] < most]
        each = max(1, left // len(wanting))
        for i in wanting:
            more = min(each, available[i] - given[i], left)
            given[i] += more
            left -= more
    return given


def draw(strata: Mapping[Stratum, Sequence[Place]], seed: int, *, n: int, per_stratum: int | None = None) -> Sample:
    """Draws the sample.

    Args:
        strata: all turns by stratum, in any order.
        seed: of the draw.
        n: turns in all, where ``per_stratum`` is None.
        per_stratum: turns of each stratum instead.

    Returns:
        The sample; the same whatever the order of the turns.
    """
    sizes = {stratum: len(places) for stratum, places in strata.items() if places}
    if per_stratum is not None:
        wanted = {stratum: min(size, per_stratum) for stratum, size in sizes.items()}
    else:
        wanted = _equally(sizes, seed, n)
    turns = [
        Drawn(place, round(sizes[stratum] / k, 6))
        for stratum, k in wanted.items()
        for place in heapq.nsmallest(k, strata[stratum], key=lambda place: (_rank(seed, place), place))
    ]
    return Sample(
        tuple(sorted(turns)),
        {stratum: (sizes[stratum], wanted[stratum]) for stratum in sorted(sizes)},
        EQUALLY if per_stratum is None else PER_STRATUM,
    )


def _rank(seed: int, place: Place) -> int:
    temperature = layout.temperature_key(place.temperature)
    return derive(seed, "label", *place[:3], temperature, place.item, place.sample)


def _equally(sizes: Mapping[Stratum, int], seed: int, n: int) -> dict[Stratum, int]:
    labels = [label for label in (*LABELS, UNSCORED) if any(stratum.label == label for stratum in sizes)]
    by_label = {label: [stratum for stratum in sizes if stratum.label == label] for label in labels}
    totals = shares([sum(sizes[stratum] for stratum in by_label[label]) for label in labels], n)
    wanted: dict[Stratum, int] = {}
    for label, total in zip(labels, totals, strict=True):
        # by chance, or the first model would get every remainder
        order = sorted(by_label[label], key=lambda stratum: (derive(seed, "label stratum", *stratum), stratum))
        wanted |= dict(zip(order, shares([sizes[stratum] for stratum in order], total), strict=True))
    return wanted
