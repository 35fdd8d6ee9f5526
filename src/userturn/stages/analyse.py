"""Stage `analyse`: from scores and judgements to numbers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path

from userturn import job, layout
from userturn.artefacts import read_jsonl, write_jsonl
from userturn.config.statistics import Statistics
from userturn.exclusions import read_ledger
from userturn.numbers import CellName, Inputs, Settings, assemble
from userturn.numbers.row import BASELINE


class Spec(job.JobSpec):
    """The reported judge, the grid, and how intervals are computed."""

    judge: str
    models: tuple[str, ...]
    datasets: tuple[str, ...]
    temperatures: Mapping[str, tuple[float, ...]]
    """Of each perturbation."""
    scored: tuple[tuple[str, str], ...]
    """Models and datasets whose known user turns were scored (likelihood)."""
    repeated: tuple[str, ...]
    """Perturbations that generate the baseline at temperature 0 once more."""
    judges: tuple[str, ...]
    trained: tuple[str, ...]
    """Judges that were trained in the workflow."""
    measured: tuple[str, ...]
    """Judges whose labels of the gold set are there."""
    variants: tuple[tuple[str, str], ...] = ()
    """Models that the study trains, each with its base."""
    exclusions: str | None
    """The ledger of exclusions."""
    statistics: Statistics
    seed: int

    def inputs(self) -> Inputs:
        """The parts of the study that numbers are computed from.

        Raises:
            LedgerError: the ledger of exclusions cannot be read.
        """
        cells = tuple(
            CellName(model, dataset, perturbation, temperature)
            for (model, dataset), (perturbation, temperatures) in product(
                product(self.models, self.datasets), self.temperatures.items()
            )
            for temperature in temperatures
        )
        return Inputs(
            cells=cells,
            scored=self.scored,
            repeated=tuple(c for c in cells if c.perturbation in self.repeated and c.temperature == 0),
            judges=self.judges,
            trained=self.trained,
            measured=self.measured,
            variants=self.variants,
            ledger=read_ledger(Path(self.exclusions) if self.exclusions else None),
        )

    def settings(self) -> Settings:
        """How numbers are computed."""
        return Settings(
            judge=self.judge,
            level=self.statistics.level,
            resamples=self.statistics.resamples,
            seed=self.seed,
            confirmatory=tuple(self.statistics.confirmatory),
        )

    def sources(self, inputs: Inputs) -> set[Path]:
        """Every artefact that the numbers are computed from, and the ledger."""
        shards = {cell.shard for cell in inputs.cells}
        found = {path(*shard) for shard in shards for path in (layout.scores, layout.assistant_turns)}
        found |= {cell.judgements(judge) for cell in inputs.cells for judge in inputs.judges}
        found |= {layout.likelihood(*shard) for shard in inputs.scored}
        for cell in inputs.repeated:
            base = CellName(cell.model, cell.dataset, BASELINE, cell.temperature)
            found |= {cell.user_turns, base.user_turns}
        compared = {name for pair in inputs.variants for name in pair}
        found |= {cell.user_turns for cell in inputs.cells if cell.model in compared and cell.perturbation == BASELINE}
        found |= {layout.training_curve(variant) for variant, _ in inputs.variants}
        found |= {layout.judge_held_out(judge) for judge in inputs.trained}
        if inputs.measured:
            found |= {layout.GOLD_LABELS, *map(layout.gold, inputs.measured)}
        return found | ({Path(self.exclusions)} if self.exclusions else set())


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``results/numbers.jsonl``."""
    inputs = spec.inputs()
    job.reads(*spec.sources(inputs))
    progress = job.progress(len(list(inputs.shards())), "models and datasets analysed")
    numbers = assemble(inputs, spec.settings(), read_jsonl, processes=job.threads, on_done=progress.advance)
    progress.close()
    write_jsonl(layout.NUMBERS, numbers)
    job.wrote(layout.NUMBERS)
    job.say(f"{len(numbers)} numbers")
    job.facts = {"judge": spec.judge, "exclusions": [e.model_dump(exclude_none=True) for e in inputs.ledger.entries]}


if __name__ == "__main__":
    job.main("analyse", Spec, run)
