"""The rows of one model and dataset, each artefact read once, and what the study's other numbers need of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from userturn import layout
from userturn.artefacts import Row
from userturn.judges.labels import GENUINE
from userturn.numbers.inputs import Inputs
from userturn.numbers.row import BASELINE, CellName, ReadRows, Settings
from userturn.numbers.tables import LabelTable, pair_table
from userturn.statistics import ItemCounts, ItemTables

Pairs = Mapping[tuple[str, str], ItemTables]
"""Labels of each pair of judges by item."""


def joined_pairs(parts: Sequence[Pairs]) -> Pairs:
    """The pairs of several shards."""
    pairs = dict.fromkeys(pair for part in parts for pair in part)
    return {pair: ItemTables.joined([part[pair] for part in parts if pair in part]) for pair in pairs}


@dataclass(frozen=True)
class Summary:
    """What shards tell the numbers that span models.

    Attributes:
        accuracy: share of correct answers by (model, dataset); None where nothing was scored.
        followups: positive and scored turns of each baseline cell.
    """

    accuracy: Mapping[tuple[str, str], float | None]
    followups: Mapping[CellName, tuple[int, int]]

    @classmethod
    def joined(cls, parts: Sequence[Summary]) -> Summary:
        """The summary of several shards."""
        return cls(
            {shard: value for part in parts for shard, value in part.accuracy.items()},
            {cell: counts for part in parts for cell, counts in part.followups.items()},
        )


class Shard:
    """One model and dataset of a study."""

    def __init__(self, inputs: Inputs, settings: Settings, read: ReadRows, *, paired: bool) -> None:
        """Reads nothing yet.

        Args:
            inputs: of one shard, as `Inputs.shards` gives them.
            settings: the reported judge, and how numbers are computed.
            read: reads the rows of an artefact.
            paired: whether other judges' labels are read too, for the agreement of judges.
        """
        self.inputs = inputs
        self._paired = inputs.judges if paired else ()
        self.settings = settings
        self.read = read
        self.name: tuple[str, str] = inputs.cells[0].shard if inputs.cells else inputs.scored[0]

    def kept(self, rows: Sequence[Row]) -> tuple[list[Row], int]:
        """Rows about the items themselves that are not excluded, and how many are."""
        keep = self.inputs.ledger.keep(*self.name)
        found = [row for row in rows if keep(row)]
        return found, len(rows) - len(found)

    @cached_property
    def scores(self) -> tuple[list[Row], int]:
        """Task scores, and how many are excluded."""
        return self.kept(self.read(layout.scores(*self.name)))

    @cached_property
    def _scanned(self) -> tuple[dict[CellName, LabelTable], dict[tuple[str, str], ItemTables]]:
        """Labels of the reported judge by cell, and pairs of labels by item: each artefact is read once."""
        tables, parts = {}, dict[tuple[str, str], list[ItemTables]]()
        for cell in self.inputs.cells:
            judges = dict.fromkeys((self.settings.judge, *self._paired))
            rows = {judge: self.read(cell.judgements(judge)) for judge in judges}
            keep = self.inputs.ledger.keep(*cell.shard, (cell.perturbation, cell.temperature))
            # a control has no turns in a dataset without human follow-ups
            if rows[self.settings.judge]:
                tables[cell] = LabelTable.of(rows[self.settings.judge], keep)
            for one, other in combinations(self._paired, 2):
                table = pair_table(rows[one], rows[other], keep, "/".join(self.name))
                parts.setdefault((one, other), []).append(table)
        return tables, {pair: ItemTables.joined(found) for pair, found in parts.items()}

    @property
    def tables(self) -> dict[CellName, LabelTable]:
        """The reported judge's labels by cell."""
        return self._scanned[0]

    @property
    def pairs(self) -> Pairs:
        """Labels of each pair of judges by item."""
        return self._scanned[1]

    @cached_property
    def counts(self) -> dict[CellName, ItemCounts]:
        """Genuine follow-ups by cell."""
        return {cell: table.label(GENUINE) for cell, table in self.tables.items()}

    def excluded(self, *cells: CellName) -> int:
        """Excluded turns of these cells."""
        return sum(self.tables[cell].excluded for cell in cells)

    def summary(self) -> Summary:
        """What the numbers that span models need."""
        known = [row["correct"] for row in self.scores[0] if row["correct"] is not None]
        followups = {
            cell: (int(counts.positives.sum()), int(counts.scored.sum()))
            for cell, counts in self.counts.items()
            if cell.perturbation == BASELINE
        }
        return Summary({self.name: sum(known) / len(known) if known else None}, followups)
