"""Stage `report`: the page, from numbers, a few transcripts of each cell, and the stable facts of the manifests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from userturn import grid, job, layout
from userturn.artefacts import Row, read_json, read_jsonl, write_text
from userturn.config.study import Study
from userturn.report.build import build_report
from userturn.report.data import ReportData
from userturn.seeds import derive

#: What a page shows of a dataset whose owners ask that no item be published as plain text.
WITHHELD: Row = {"prompt": "", "messages": [], "changes": {}, "text": ""}


class Spec(job.JobSpec, Study):
    """The whole study: the page shows all of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def transcripts(study: Study, cell: grid.Cell, job: job.Job) -> Iterator[Row]:
    """A few user turns of a cell, chosen by the study's seed, with everything that led to them."""
    paths = (
        layout.contexts(cell.model, cell.dataset, cell.perturbation),
        cell.user_turns,
        cell.judgements(study.reported_judge),
    )
    job.reads(*paths)
    contexts = {row["item"]: row for row in read_jsonl(paths[0])}
    turns = {(row["item"], row["sample"]): row for row in read_jsonl(paths[1])}
    labels = {(row["item"], row["sample"]): row for row in read_jsonl(paths[2])}
    ranked = sorted(turns, key=lambda turn: derive(study.seed, "transcript", cell.key, *turn))
    shown = study.datasets[cell.dataset].shows_items
    for item, sample in ranked[: study.report.transcripts_per_cell]:
        context, label = contexts[item], labels[item, sample]
        texts = {
            "prompt": context["prompt"],
            "messages": context["messages"],
            "changes": context["changes"],
            "text": turns[item, sample]["text"],
        }
        # a user turn may restate its item
        yield (texts if shown else WITHHELD) | {
            "withheld": not shown,
            "cell": cell.key,
            "model": cell.model,
            "dataset": cell.dataset,
            "perturbation": cell.perturbation,
            "temperature": cell.temperature,
            "item": item,
            "sample": sample,
            "finish_reason": turns[item, sample]["finish_reason"],
            "label": label["label"],
            "state": label["state"],
            "rationale": label["rationale"],
            "evidence": label["evidence"],
        }


def facts(study: Study, job: job.Job) -> dict[str, Any]:
    """What the manifests say that is the same in every rebuild: nothing under ``run``."""

    def manifest(*name: str) -> Row:
        path: Path = layout.manifest(*name)
        job.reads(path)
        found: Row = read_json(path)
        return found

    shards = grid.shards(study)
    generation = {shard: manifest("user_turns", *shard.name) for shard in shards}
    first = generation[shards[0]]
    judging = {judge: manifest("judge", judge, *shards[0].name) for judge in study.judges}
    analysis = manifest("analyse")
    datasets = {}
    for dataset in study.datasets:
        found = manifest("dataset", dataset)["facts"]
        datasets[dataset] = {
            "source": found["source"],
            "n_items": found["n_items"],
            "n_available": found["n_available"],
            "licence": found["reader"]["licence"],
            "description": found["reader"]["description"],
            "scorer": found["reader"]["scorer"],
        }
    models = {}
    for shard, manifested in generation.items():
        described = read_json(layout.model(shard.model))
        models[shard.model] = {
            "source": described["origin"],
            "weights_sha256": described["weights_sha256"],
            "template": manifested["facts"]["template"],
        }
        job.reads(layout.model(shard.model))
    return {
        "versions": analysis["packages"] | first["packages"],
        "models": models,
        "datasets": datasets,
        "judges": {name: found["facts"]["judge"] for name, found in judging.items()},
        "engine": first["facts"]["engine"],
        "lock": {"engine": first["lock"], "workflow": analysis["lock"]},
        "code": {
            "user_turns": first["code"]["digest"],
            "analyse": analysis["code"]["digest"],
            **{f"judge {name}": found["code"]["digest"] for name, found in judging.items()},
        },
    }


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``results/report.html``."""
    job.reads(layout.NUMBERS)
    page = build_report(
        ReportData(
            study=spec.model_dump(mode="json"),
            numbers=read_jsonl(layout.NUMBERS),
            transcripts=[row for cell in grid.cells(spec) for row in transcripts(spec, cell, job)],
            facts=facts(spec, job),
        )
    )
    write_text(layout.REPORT, page)
    job.wrote(layout.REPORT)
    job.say(f"{layout.REPORT}: {len(page.encode()) / 1e6:.2f} MB")


if __name__ == "__main__":
    job.main("report", Spec, run)
