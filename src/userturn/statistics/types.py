"""What goes into every statistic (counts by item) and what comes out (an estimate with its intervals).

All functions of this package work from per-item counts in the order of the sorted item ids, so that the
order of the rows in an artefact cannot change a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A confidence interval, in the unit of the value it belongs to.

    Attributes:
        low: lower limit.
        high: upper limit.
        method: how it was computed, in words fit for a report.
        level: nominal coverage, e.g. 0.95.
    """

    low: float
    high: float
    method: str
    level: float


@dataclass(frozen=True)
class Estimate:
    """One reported value with everything needed to read it.

    Attributes:
        value: the point estimate; None where it is not defined (``notes`` say why).
        interval: the chosen interval; None where none is defined.
        bootstrap: the percentile interval of the bootstrap over items (over models for a rank correlation),
            computed whenever it is defined, also where it is known to fail.
        n: scored rows used.
        n_items: items with at least one scored row (models for a rank correlation).
        k: positives among the ``n`` rows.
        n_unscored: rows that the judge or the scorer left without a label; never counted in ``n``.
        bounds: the value if every unscored row were negative or positive, whichever is worse at either end.
        p_value: raw p-value of ``test``, two-sided.
        test: name of the test.
        notes: what a reader must know, one sentence each.
    """

    value: float | None
    interval: Interval | None
    bootstrap: Interval | None
    n: int
    n_items: int
    k: int
    n_unscored: int
    bounds: tuple[float, float] | None = None
    p_value: float | None = None
    test: str | None = None
    notes: tuple[str, ...] = ()


def _integers(name: str, values: ArrayLike, length: int) -> IntArray:
    given = np.asarray(values)
    if given.shape != (length,):
        raise ValueError(f"{name} has shape {given.shape}; one count for each of the {length} items is needed")
    counts = given.astype(np.int64)
    if given.size and not np.array_equal(counts, given):
        raise ValueError(f"{name} holds values that are not whole numbers")
    if given.size and counts.min() < 0:
        raise ValueError(f"{name} holds the negative count {counts.min()}")
    counts.setflags(write=False)
    return counts


@dataclass(frozen=True, eq=False)
class ItemCounts:
    """Counts by item, in the order of the sorted item ids.

    Attributes:
        items: the item ids, sorted, each once.
        positives: shape (n_items,), scored rows with the positive label.
        scored: shape (n_items,), rows with any label.
        unscored: shape (n_items,), rows without one.
    """

    items: tuple[str, ...]
    positives: IntArray
    scored: IntArray
    unscored: IntArray

    def __post_init__(self) -> None:
        """Checks shapes, order and ranges.

        Raises:
            ValueError: if ids are not sorted and distinct, or a count is impossible.
        """
        if any(a >= b for a, b in zip(self.items, self.items[1:], strict=False)):
            raise ValueError("item ids must be sorted and distinct; use ItemCounts.from_arrays or from_rows")
        for name in ("positives", "scored", "unscored"):
            object.__setattr__(self, name, _integers(name, getattr(self, name), len(self.items)))
        over = np.flatnonzero(self.positives > self.scored)
        if over.size:
            i = int(over[0])
            raise ValueError(
                f"item {self.items[i]!r} has {self.positives[i]} positives among {self.scored[i]} scored rows"
            )

    @classmethod
    def from_arrays(
        cls,
        positives: ArrayLike,
        scored: ArrayLike,
        unscored: ArrayLike | None = None,
        items: Sequence[str] | None = None,
    ) -> ItemCounts:
        """Builds counts from arrays in any item order.

        Args:
            positives: shape (n_items,).
            scored: shape (n_items,).
            unscored: shape (n_items,); zeros if absent.
            items: ids; the padded position if absent.

        Returns:
            The counts in canonical order.

        Raises:
            ValueError: on unequal shapes, repeated ids or impossible counts.
        """
        size = np.asarray(positives).size
        ids = [f"{i:08d}" for i in range(size)] if items is None else list(items)
        k = _integers("positives", positives, len(ids))
        m = _integers("scored", scored, len(ids))
        u = _integers("unscored", np.zeros(len(ids)) if unscored is None else unscored, len(ids))
        order = sorted(range(len(ids)), key=ids.__getitem__)
        return cls(tuple(ids[i] for i in order), k[order], m[order], u[order])

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, bool | None]]) -> ItemCounts:
        """Counts rows of (item id, positive?), where None is an unscored row.

        Args:
            rows: in any order.

        Returns:
            The counts in canonical order.
        """
        table: dict[str, list[int]] = {}
        for item, positive in rows:
            row = table.setdefault(item, [0, 0, 0])
            if positive is None:
                row[2] += 1
            else:
                row[0] += bool(positive)
                row[1] += 1
        ids = sorted(table)
        columns = np.array([table[i] for i in ids], dtype=np.int64).reshape(len(ids), 3)
        return cls(tuple(ids), columns[:, 0], columns[:, 1], columns[:, 2])

    def select(self, items: Sequence[str]) -> ItemCounts:
        """The same counts for exactly these items; an absent item gets zeros.

        Args:
            items: sorted distinct ids.

        Returns:
            Counts with ``items`` in the order given.
        """
        place = {item: i for i, item in enumerate(self.items)}
        index = np.array([place.get(item, -1) for item in items], dtype=np.int64)
        there = index >= 0
        columns = []
        for source in (self.positives, self.scored, self.unscored):
            column = np.zeros(len(items), dtype=np.int64)
            column[there] = source[index[there]]
            columns.append(column)
        return ItemCounts(tuple(items), *columns)

    def scored_only(self) -> ItemCounts:
        """The items that have at least one scored row."""
        if (self.scored > 0).all():
            return self
        keep = np.flatnonzero(self.scored > 0)
        return ItemCounts(
            tuple(self.items[i] for i in keep), self.positives[keep], self.scored[keep], self.unscored[keep]
        )

    @property
    def n_unscored(self) -> int:
        """Unscored rows over all items."""
        return int(self.unscored.sum())
