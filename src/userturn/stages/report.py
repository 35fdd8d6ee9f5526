"""Stage `report`: the page, from numbers, transcripts, and the stable facts of the manifests."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from userturn import grid, job, layout
from userturn.artefacts import Row, iter_jsonl, read_json, read_jsonl, write_bytes, write_json, write_text
from userturn.config.study import Study
from userturn.report.build import build_report
from userturn.report.chunks import Chunks
from userturn.report.data import ReportData
from userturn.report.table import csv_bytes, metadata
from userturn.report.transcripts import Words, add_cell, add_contexts, add_scores, chosen
from userturn.seeds import derive


class Spec(job.JobSpec, Study):
    """The whole study: the page shows all of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def catalogue(study: Study, chunks: Chunks, job: job.Job) -> dict[str, Any]:
    """Packs the transcripts, a cell at a time.

    Args:
        study: the study.
        chunks: where the pieces go.
        job: notes what is read.

    Returns:
        By what the page finds them: ``judges`` (the reported one first), ``cells``, ``contexts``, ``scores``,
        ``words`` and ``tokens`` (calls, prompt tokens and generated tokens of each model).
    """
    judges = [study.reported_judge, *(judge for judge in study.judges if judge != study.reported_judge)]
    words = Words()
    cells: list[dict[str, Any]] = []
    contexts: dict[str, list[str]] = {}
    scores: dict[str, str] = {}
    tokens = {model: {"assistant turns": Counter[str](), "user turns": Counter[str]()} for model in study.models}
    progress = job.progress(len(grid.cells(study)), "transcripts")
    for model in study.models:
        for dataset in study.datasets:
            shown = study.datasets[dataset].shows_items
            answers = layout.assistant_turns(model, dataset)
            scored = layout.scores(model, dataset)
            job.reads(answers, scored)
            for row in iter_jsonl(answers):
                _count(tokens[model]["assistant turns"], row)
            scores[f"{model}/{dataset}"] = add_scores(iter_jsonl(scored), chunks, shown=shown)
            blocks: dict[str, dict[str, int]] = {}
            for cell in grid.cells_of(study, grid.Shard(model, (dataset,), (model, dataset))):
                if cell.perturbation not in blocks:
                    path = layout.contexts(model, dataset, cell.perturbation)
                    job.reads(path)
                    names, blocks[cell.perturbation] = add_contexts(read_jsonl(path), chunks, shown=shown)
                    contexts[f"{model}/{dataset}/{cell.perturbation}"] = names
                paths = [cell.judgements(judge) for judge in judges]
                job.reads(cell.user_turns, *paths)
                turns = read_jsonl(cell.user_turns)
                for row in turns:
                    _count(tokens[model]["user turns"], row)
                entry = add_cell(
                    list(chosen(turns, study.report.transcripts_per_cell, _rank(study, cell))),
                    [{(row["item"], row["sample"]): row for row in iter_jsonl(path)} for path in paths],
                    blocks[cell.perturbation],
                    chunks,
                    words,
                    shown=shown,
                )
                cells.append(
                    {
                        "key": cell.key,
                        "model": model,
                        "dataset": dataset,
                        "perturbation": cell.perturbation,
                        "temperature": cell.temperature,
                        "n": len(turns),
                        **entry,
                    }
                )
                progress.advance()
    return {
        "judges": judges,
        "cells": cells,
        "contexts": contexts,
        "scores": scores,
        "withheld": [name for name, dataset in study.datasets.items() if not dataset.shows_items],
        "words": words,
        "tokens": {
            model: {part: dict(sorted(counts.items())) for part, counts in parts.items()}
            for model, parts in tokens.items()
        },
    }


def _rank(study: Study, cell: grid.Cell) -> Any:
    def rank(item: str, sample: int) -> int:
        return derive(study.seed, "transcript", cell.key, item, sample)

    return rank


def _count(counts: Counter[str], row: Row) -> None:
    # a control's text was not generated
    if row["finish_reason"] != "control":
        counts["calls"] += 1
        counts["prompt tokens"] += row["n_prompt_tokens"]
        counts["generated tokens"] += row["n_tokens"]


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
    """Writes ``results/report.html``, the files beside it where the page would be too large, and the table."""
    job.reads(layout.NUMBERS)
    numbers = read_jsonl(layout.NUMBERS)
    layout.REPORT.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=layout.REPORT.parent, prefix=".report_files.") as scratch:
        chunks = Chunks(Path(scratch))
        page = build_report(
            ReportData(
                study=spec.model_dump(mode="json"),
                numbers=numbers,
                catalogue=catalogue(spec, chunks, job),
                facts=facts(spec, job),
            ),
            chunks,
        )
        files = _beside(chunks, layout.REPORT_FILES)
    write_text(layout.REPORT, page)
    write_bytes(layout.NUMBERS_TABLE, csv_bytes(numbers))
    write_json(layout.NUMBERS_TABLE_METADATA, metadata(layout.NUMBERS_TABLE.name))
    job.wrote(layout.REPORT, layout.NUMBERS_TABLE, layout.NUMBERS_TABLE_METADATA, *files)
    beside = sum(file.stat().st_size for file in files)
    job.say(f"{layout.REPORT}: {len(page.encode()) / 1e6:.2f} MB, and {beside / 1e6:.2f} MB in {len(files)} files")


def _beside(chunks: Chunks, folder: Path) -> list[Path]:
    """Moves the pieces that are not in the page to their folder, which says what it is."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    about = folder / "README.txt"
    write_text(
        about,
        "Data of report.html that is too large for the page itself: keep this folder beside it.\n"
        if chunks.beside
        else "Everything is in report.html itself: this study needs no files beside it.\n",
    )
    return [about, *(chunks.path(name).rename(folder / f"{name}.js") for name in chunks.beside)]


if __name__ == "__main__":
    job.main("report", Spec, run)
