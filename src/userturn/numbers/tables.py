"""Labels by item: the one pass over a cell's judgements that all its numbers are computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from userturn.artefacts import Row
from userturn.judges.labels import GENUINE, LABELS
from userturn.statistics import ItemCounts, ItemTables
from userturn.statistics.types import IntArray

_PLACE: Mapping[str | None, int] = {label: place for place, label in enumerate(LABELS)}
_UNSCORED = len(LABELS)
_CLAIMED, _VERIFIED = _UNSCORED + 1, _UNSCORED + 2

Keep = Callable[[Row], bool]


@dataclass(frozen=True)
class LabelTable:
    """What one judge said of one cell.

    Attributes:
        items: sorted ids.
        columns: shape (n_items, n_labels + 3): turns with each label, unscored turns, genuine turns whose ground the
            judge named, and those of them where the named words were found.
        excluded: rows that the ledger leaves out.
    """

    items: tuple[str, ...]
    columns: IntArray
    excluded: int

    @classmethod
    def of(cls, judgements: Iterable[Row], keep: Keep) -> LabelTable:
        """Counts the rows of a cell, in any order.

        Args:
            judgements: rows of ``results/judgements/…``.
            keep: False for rows that are excluded.
        """
        lines: dict[str, list[int]] = {}
        excluded = 0
        for row in judgements:
            if not keep(row):
                excluded += 1
                continue
            line = lines.get(row["item"])
            if line is None:
                line = lines[row["item"]] = [0] * (_VERIFIED + 1)
            if row["state"] != "scored":
                line[_UNSCORED] += 1
                continue
            line[_PLACE[row["label"]]] += 1
            if row["label"] == GENUINE and "grounding" in row.get("evidence", ()):
                line[_CLAIMED] += 1
                line[_VERIFIED] += row["evidence"]["grounding"] == "verified"
        items = sorted(lines)
        columns = np.array([lines[item] for item in items], dtype=np.int64).reshape(len(items), _VERIFIED + 1)
        return cls(tuple(items), columns, excluded)

    def label(self, label: str) -> ItemCounts:
        """Turns with a label among scored ones."""
        scored = self.columns[:, :_UNSCORED].sum(axis=1)
        return ItemCounts(self.items, self.columns[:, _PLACE[label]], scored, self.columns[:, _UNSCORED])

    def unscored(self) -> ItemCounts:
        """Turns that the judge could not label, among all."""
        return self._share(self.columns[:, _UNSCORED], self.columns[:, : _UNSCORED + 1].sum(axis=1))

    def grounded(self) -> ItemCounts | None:
        """Genuine turns whose named ground was verified, among those with one; None where the judge names none."""
        if not self.columns[:, _CLAIMED].any():
            return None
        some = np.flatnonzero(self.columns[:, _CLAIMED])
        counts = self._share(self.columns[:, _VERIFIED], self.columns[:, _CLAIMED])
        return counts.select([self.items[i] for i in some])

    def _share(self, positives: IntArray, rows: IntArray) -> ItemCounts:
        return ItemCounts(self.items, positives, rows, np.zeros_like(rows))


def pair_table(first: Sequence[Row], second: Sequence[Row], keep: Keep, prefix: str) -> ItemTables:
    """How often two judges gave each pair of labels to the turns of each item of a cell.

    Args:
        first: judgements of the first judge.
        second: judgements of the second.
        keep: False for rows that are excluded.
        prefix: what makes the item's id unique in the study.
    """
    other = {(row["item"], row["sample"]): row["label"] for row in second}
    rows = [row for row in first if keep(row)]
    return ItemTables.of(
        [row["label"] for row in rows],
        [other.get((row["item"], row["sample"])) for row in rows],
        items=[f"{prefix}/{row['item']}" for row in rows],
        categories=LABELS,
    )
