"""Numbers of two studies matched by id: `compare` is a pure function of the rows of two ``numbers.jsonl``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import gammaln, ndtr, ndtri

from userturn.artefacts import Row
from userturn.statistics.intervals import mover_difference
from userturn.statistics.multiplicity import benjamini_hochberg

Status = Literal["beyond", "within", "interval", "undecided", "identical"]

#: What became of a number, in the order in which a reader wants to see it.
STATUSES: Mapping[Status, str] = {
    "beyond": "moved beyond an interval",
    "within": "moved within both intervals",
    "interval": "same value, other interval or counts",
    "undecided": "cannot be set against each other",
    "identical": "identical",
}
assert tuple(STATUSES) == get_args(Status)

#: Largest share of false claims that is accepted among the moves called significant.
FALSE_SHARE = 0.05

INTERVAL = "MOVER from the limits of each (Newcombe's hybrid score for rates), correlation 0"
FISHER = "Fisher's exact"
FROM_LIMITS = "normal, from the limits of each"

_KEPT = ("value", "low", "high", "level", "method", "n", "n_items", "k", "n_unscored")

#: Twelve decimals stand in a row; what differs by less was rounded.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Side:
    """One study's row of a number: what stands in ``numbers.jsonl`` under the same names."""

    value: float | None
    low: float | None
    high: float | None
    level: float
    method: str | None
    n: int
    n_items: int
    k: int
    n_unscored: int

    @property
    def limits(self) -> tuple[float, float] | None:
        """The interval, stretched to hold the value where a bootstrap interval leaves it out; None without one."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return min(self.low, self.value), max(self.high, self.value)

    @property
    def independent_rows(self) -> bool:
        """Whether the value is a plain share of rows of which each has an item of its own."""
        return self.n == self.n_items > 0 and self.value == round(self.k / self.n, 12)


@dataclass(frozen=True)
class Pair:
    """A number in both studies.

    Attributes:
        id: of the number.
        quantity: the part of the id before the first slash; tests of one quantity are one family.
        labels: what the number is about, as A has it.
        unit: of value, shift and limits, as A has it.
        decimals: with which the value is shown.
        a: the number in A.
        b: the number in B.
        status: one of `STATUSES`.
        shift: value in B minus value in A; None where either is not defined.
        low: lower limit of the shift.
        high: upper limit of the shift.
        half_widths: size of the shift over the half-width of its interval on the side of zero: above 1, the interval
            leaves zero out. None where the shift has no interval, or one without width.
        p_value: two-sided, of no difference.
        test: how ``p_value`` was computed.
        p_adjusted: Benjamini and Hochberg's, over all numbers of the quantity that were tested.
        notes: what a reader must know.
    """

    id: str
    quantity: str
    labels: Mapping[str, Any]
    unit: str
    decimals: int
    a: Side
    b: Side
    status: Status
    shift: float | None = None
    low: float | None = None
    high: float | None = None
    half_widths: float | None = None
    p_value: float | None = None
    test: str | None = None
    p_adjusted: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def significant(self) -> bool:
        """Whether the adjusted p-value is at most `FALSE_SHARE`."""
        return self.p_adjusted is not None and self.p_adjusted <= FALSE_SHARE


@dataclass(frozen=True)
class Comparison:
    """Two studies' numbers.

    Attributes:
        pairs: numbers in both, those that moved furthest (in half-widths) first.
        only_a: ids that only A has, sorted.
        only_b: ids that only B has, sorted.
        families: how many tests the adjustment of each quantity counted.
    """

    pairs: tuple[Pair, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    families: Mapping[str, int]

    @property
    def counts(self) -> dict[Status, int]:
        """How many pairs have each status."""
        found = Counter(pair.status for pair in self.pairs)
        return {status: found[status] for status in STATUSES}

    def of(self, *statuses: Status) -> tuple[Pair, ...]:
        """The pairs of these statuses, in order."""
        return tuple(pair for pair in self.pairs if pair.status in statuses)

    def only(self, pattern: str) -> Comparison:
        """The numbers whose id fits a pattern (``*`` stands for anything).

        Adjusted p-values stay as they are: a choice made after the tests does not make a family smaller.
        """
        return replace(
            self,
            pairs=tuple(pair for pair in self.pairs if fnmatchcase(pair.id, pattern)),
            only_a=tuple(id for id in self.only_a if fnmatchcase(id, pattern)),
            only_b=tuple(id for id in self.only_b if fnmatchcase(id, pattern)),
        )


def compare(numbers_a: Iterable[Row], numbers_b: Iterable[Row]) -> Comparison:
    """Matches the numbers of two studies by id and says what became of each.

    The two studies are taken as independent. Where they share items, or are one study run again, their errors go
    together, and intervals and tests of the shift are wider than they need be.

    Args:
        numbers_a: rows of one ``numbers.jsonl``.
        numbers_b: rows of another.

    Raises:
        ValueError: an id stands twice in one of them.
        KeyError: a row lacks a field that a comparison needs (`userturn.compare.study.FIELDS`).
    """
    rows_a, rows_b = _by_id(numbers_a, "A"), _by_id(numbers_b, "B")
    pairs = _adjusted([_pair(rows_a[id], rows_b[id]) for id in sorted(rows_a.keys() & rows_b.keys())])
    return Comparison(
        pairs=tuple(sorted(pairs, key=_rank)),
        only_a=tuple(sorted(rows_a.keys() - rows_b.keys())),
        only_b=tuple(sorted(rows_b.keys() - rows_a.keys())),
        families=dict(sorted(Counter(pair.quantity for pair in pairs if pair.p_value is not None).items())),
    )


def _by_id(rows: Iterable[Row], name: str) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in rows:
        if row["id"] in found:
            raise ValueError(f"{name} has the number {row['id']!r} twice")
        found[row["id"]] = row
    return found


def _rank(pair: Pair) -> tuple[int, float, str]:
    """Shifts in half-widths, largest first; a shift between values without width before all, no shift last."""
    if pair.half_widths is not None:
        return 1, -pair.half_widths, pair.id
    return (0 if pair.status == "beyond" else 2), 0.0, pair.id


def _pair(row_a: Row, row_b: Row) -> Pair:
    a, b = (Side(**{name: row[name] for name in _KEPT}) for row in (row_a, row_b))
    pair = Pair(
        id=row_a["id"],
        quantity=row_a["quantity"],
        labels=row_a["labels"],
        unit=row_a["unit"],
        decimals=max(row_a["decimals"], row_b["decimals"]),
        a=a,
        b=b,
        status="undecided",
    )
    if row_a["unit"] != row_b["unit"]:
        return replace(pair, notes=(f"the unit is {row_a['unit']} in A and {row_b['unit']} in B",))
    if a == b:
        pair = replace(pair, status="identical")
    elif a.value == b.value:
        pair = replace(pair, status="interval")
    if a.value is None or b.value is None:
        where = "both" if a.value == b.value else "A" if a.value is None else "B"
        return replace(pair, notes=(f"not defined in {where}",))
    shift = round(b.value - a.value, 12)
    pair = replace(pair, shift=shift)
    if shift != 0:
        pair = replace(pair, status=_moved(a, b))
    if a.level != b.level:
        return replace(pair, notes=(f"intervals of {a.level:g} and {b.level:g}: the shift has none of its own",))
    if a.limits is None or b.limits is None:
        where = "both" if a.limits is b.limits else "A" if a.limits is None else "B"
        return replace(pair, notes=(f"no interval in {where}",))
    return _tested(pair, a.limits, b.limits)


def _moved(a: Side, b: Side) -> Status:
    """Where a value that is not the same lies, as far as there are intervals."""
    inside = [
        limits[0] - _ROUNDING <= other <= limits[1] + _ROUNDING
        for limits, other in ((a.limits, b.value), (b.limits, a.value))
        if limits is not None and other is not None
    ]
    if not all(inside):
        return "beyond"
    return "within" if len(inside) == 2 else "undecided"


def _tested(pair: Pair, limits_a: tuple[float, float], limits_b: tuple[float, float]) -> Pair:
    """Adds the interval of the shift and the test. Both numbers have values and limits at one level."""
    a, b, shift = pair.a, pair.b, pair.shift
    assert a.value is not None and b.value is not None and shift is not None
    low, high = mover_difference(b.value, limits_b, a.value, limits_a, correlation=0.0)
    pair = replace(pair, low=round(low, 12), high=round(high, 12))
    if shift == 0:
        z = 0.0
    elif (reach := shift - low if shift > 0 else high - shift) > _ROUNDING:
        z = abs(shift) / reach
    else:
        return replace(pair, notes=("neither interval has a width on the side of the other: there is no test",))
    if pair.unit == "proportion" and a.independent_rows and b.independent_rows:
        p, test = fisher(a.k, a.n, b.k, b.n), FISHER
    else:
        p, test = float(2 * ndtr(-z * ndtri((1 + a.level) / 2))), FROM_LIMITS
    return replace(pair, half_widths=round(z, 6), p_value=round(min(1.0, p), 12), test=test)


#: Tables are equally likely up to this relative difference, as in R's fisher.test.
_TIE = 1e-7


def fisher(k_a: int, n_a: int, k_b: int, n_b: int) -> float:
    """Two-sided p-value of equal rates: the chance of all tables of these margins that are no likelier.

    The same as ``scipy.stats.fisher_exact``, whose 2 ms a table are a minute at the size of the paper's grid.

    Args:
        k_a: positives in A, at most ``n_a``.
        n_a: rows in A.
        k_b: positives in B, at most ``n_b``.
        n_b: rows in B.
    """
    k = k_a + k_b
    x = np.arange(max(0, k - n_b), min(k, n_a) + 1)
    log = -(gammaln(x + 1) + gammaln(n_a - x + 1) + gammaln(k - x + 1) + gammaln(n_b - k + x + 1))
    weights = np.exp(log - log.max())
    as_rare = weights <= weights[k_a - x[0]] * (1 + _TIE)
    return float(weights[as_rare].sum() / weights.sum())


def _adjusted(pairs: Sequence[Pair]) -> list[Pair]:
    families: dict[str, list[int]] = defaultdict(list)
    for index, pair in enumerate(pairs):
        families[pair.quantity].append(index)
    result = list(pairs)
    for members in families.values():
        adjusted = benjamini_hochberg([pairs[index].p_value for index in members])
        for index, value in zip(members, adjusted, strict=True):
            result[index] = replace(pairs[index], p_adjusted=None if value is None else round(value, 12))
    return result
