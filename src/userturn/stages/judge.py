"""Stage `judge`: one judge's labels of all cells of a shard."""

from __future__ import annotations

from dataclasses import asdict

from userturn import job, layout
from userturn.artefacts import read_json, read_jsonl, write_jsonl
from userturn.config.judging import JudgeConfig
from userturn.judges.labels import Judge, turn
from userturn.judges.opening import facts, open_judge
from userturn.judges.people import PeopleJudge


class CellSpec(job.JobSpec):
    """One cell of the shard."""

    dataset: str
    perturbation: str
    temperature: float
    samples: int


class Spec(job.JobSpec):
    """One judge and one shard."""

    judge: str
    config: JudgeConfig
    model: str
    cells: tuple[CellSpec, ...]
    seed: int


def _of_cell(judge: Judge, model: str, cell: CellSpec) -> Judge:
    """People label turns, not texts: only the labels of the cell count."""
    if isinstance(judge, PeopleJudge):
        return judge.of_cell(model, cell.dataset, cell.perturbation, cell.temperature)
    return judge


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``results/judgements/{judge}/{model}/{dataset}/{perturbation}/t{T}.jsonl`` for each cell."""
    judge = open_judge(spec.judge, spec.config, spec.seed, job)
    judge_inputs = job.inputs
    progress = job.progress(len(spec.cells), f"{spec.judge}: cells judged")
    for cell in spec.cells:
        temperature = layout.temperature_key(cell.temperature)
        sources = (
            layout.dataset(cell.dataset),
            layout.contexts(spec.model, cell.dataset, cell.perturbation),
            layout.user_turns(spec.model, cell.dataset, cell.perturbation, temperature),
        )
        items, contexts = ({row["item"]: row for row in read_jsonl(path)} for path in sources[:2])
        turns = read_jsonl(sources[2])
        shown = [turn(items[row["item"]], contexts[row["item"]], row) for row in turns]
        labels = _of_cell(judge, spec.model, cell).judge(shown)
        path = layout.judgements(spec.judge, spec.model, cell.dataset, cell.perturbation, temperature)
        write_jsonl(
            path,
            [
                {"item": row["item"], "sample": row["sample"], **asdict(label)}
                for row, label in zip(turns, labels, strict=True)
            ],
        )
        job.wrote(path, made_from=[*sources, *judge_inputs])
        progress.advance(1, f"{cell.dataset}/{cell.perturbation}/{temperature}")
    progress.close()
    model = read_json(layout.judge_model(spec.judge)) if spec.config.weights is not None else None
    job.facts = {"judge": facts(judge, job), "model": model}


if __name__ == "__main__":
    job.main("judge", Spec, run)
