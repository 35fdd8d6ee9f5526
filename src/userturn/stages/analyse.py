"""Stage `analyse`: from scores and judgements to numbers."""

from __future__ import annotations

from pathlib import Path

from userturn import job, layout
from userturn.artefacts import Row, read_jsonl, write_jsonl
from userturn.config.statistics import Statistics
from userturn.numbers import CellName, Settings, assemble


class CellSpec(job.JobSpec):
    """One cell of the study."""

    model: str
    dataset: str
    perturbation: str
    temperature: float
    samples: int


class Spec(job.JobSpec):
    """The reported judge, the cells, and how intervals are computed."""

    judge: str
    cells: tuple[CellSpec, ...]
    scored: tuple[tuple[str, str], ...]
    """Models and datasets whose known user turns were scored (likelihood)."""
    repeated: tuple[str, ...]
    """Keys of cells that generate the baseline at temperature 0 once more."""
    judges: tuple[str, ...]
    trained: tuple[str, ...]
    """Judges that were trained in the workflow."""
    measured: tuple[str, ...]
    """Judges whose labels of the gold set are there."""
    statistics: Statistics
    seed: int


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``results/numbers.jsonl``."""

    def read(path: Path) -> list[Row]:
        job.reads(path)
        return read_jsonl(path)

    cells = [CellName(c.model, c.dataset, c.perturbation, c.temperature) for c in spec.cells]
    settings = Settings(
        judge=spec.judge,
        level=spec.statistics.level,
        resamples=spec.statistics.resamples,
        seed=spec.seed,
        confirmatory=tuple(spec.statistics.confirmatory),
    )
    numbers = assemble(
        cells,
        settings,
        read,
        scored=spec.scored,
        repeated=[cell for cell in cells if cell.key in spec.repeated],
        judges=spec.judges,
        trained=spec.trained,
        measured=spec.measured,
    )
    write_jsonl(layout.NUMBERS, numbers)
    job.wrote(layout.NUMBERS)
    job.say(f"{len(numbers)} numbers")
    job.facts = {"judge": spec.judge}


if __name__ == "__main__":
    job.main("analyse", Spec, run)
