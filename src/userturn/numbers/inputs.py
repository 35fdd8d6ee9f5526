"""What the numbers of a study are made from: its cells, and which optional parts it has."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from userturn import layout
from userturn.exclusions import Ledger
from userturn.numbers.row import CellName


@dataclass(frozen=True)
class Inputs:
    """The parts of a study that numbers are computed from.

    Attributes:
        cells: the study's cells.
        scored: models and datasets with log-probabilities of known user turns.
        repeated: cells that generate the baseline at temperature 0 once more.
        judges: all judges, whose agreement is measured.
        trained: those that were trained in the workflow.
        measured: those whose labels of the gold set are there.
        variants: models that the study trains, each with its base.
        ledger: items and user turns that a person has excluded.
    """

    cells: tuple[CellName, ...]
    scored: tuple[tuple[str, str], ...] = ()
    repeated: tuple[CellName, ...] = ()
    judges: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    variants: tuple[tuple[str, str], ...] = ()
    ledger: Ledger = field(default_factory=Ledger)

    def shards(self) -> Iterator[Inputs]:
        """The same, for each model and dataset; what lies across shards is left out."""
        names = {cell.shard: None for cell in sorted(self.cells)} | dict.fromkeys(self.scored)
        for shard in sorted(names):
            yield replace(
                self,
                cells=tuple(sorted(cell for cell in self.cells if cell.shard == shard)),
                scored=tuple(one for one in self.scored if one == shard),
                repeated=tuple(sorted(cell for cell in self.repeated if cell.shard == shard)),
            )

    def behind(self, sources: Collection[Path]) -> Inputs:
        """Only the parts that these artefacts belong to: what one number needs."""
        shards = {
            (model, dataset)
            for model, dataset in {cell.shard for cell in self.cells}
            if layout.scores(model, dataset) in sources or layout.assistant_turns(model, dataset) in sources
        }

        def needed(cell: CellName) -> bool:
            return cell.user_turns in sources or any(cell.judgements(judge) in sources for judge in self.judges)

        found = tuple(cell for cell in self.cells if needed(cell))
        covered = {cell.shard for cell in found}
        # an accuracy has no cell among its sources; any cell of its shard stands for it
        found += tuple(
            next(cell for cell in self.cells if cell.shard == shard) for shard in sorted(shards) if shard not in covered
        )
        curves = {variant for variant, _ in self.variants if layout.training_curve(variant) in sources}
        return replace(
            self,
            cells=found,
            variants=tuple(one for one in self.variants if not curves or one[0] in curves),
            scored=tuple(one for one in self.scored if layout.likelihood(*one) in sources),
            repeated=tuple(cell for cell in self.repeated if cell.user_turns in sources),
            trained=tuple(judge for judge in self.trained if layout.judge_held_out(judge) in sources),
            measured=tuple(judge for judge in self.measured if layout.gold(judge) in sources),
        )
