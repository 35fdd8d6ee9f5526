"""Stage `report`: the page, from numbers, transcripts, and the stable facts of the manifests."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from userturn import grid, job, layout
from userturn.artefacts import Row, read_json, read_jsonl, write_bytes, write_json, write_text
from userturn.config.study import Study
from userturn.report.build import build_report
from userturn.report.chunks import Chunks
from userturn.report.data import ReportData
from userturn.report.packing import catalogue, shards, sources
from userturn.report.table import csv_bytes, metadata


class Spec(job.JobSpec, Study):
    """The whole study: the page shows all of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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
        "exclusions": analysis["facts"]["exclusions"],
        "lock": {"engine": first["lock"], "workflow": analysis["lock"]},
        "code": {
            "user_turns": first["code"]["digest"],
            "analyse": analysis["code"]["digest"],
            **{f"judge {name}": found["code"]["digest"] for name, found in judging.items()},
        },
    }


def trained(study: Study, job: job.Job) -> dict[str, dict[str, Any]]:
    """What the trainings of the study's variants came to."""
    found = {}
    for variant in grid.variants(study):
        paths = layout.training_summary(variant), layout.training_curve(variant)
        job.reads(*paths)
        found[variant] = {"summary": read_json(paths[0]), "curve": read_jsonl(paths[1])}
    return found


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``results/report.html``, the files beside it where the page would be too large, and the table."""
    job.reads(layout.NUMBERS)
    numbers = read_jsonl(layout.NUMBERS)
    layout.REPORT.parent.mkdir(parents=True, exist_ok=True)
    earlier = None
    if spec.report.before is not None:
        job.reads(Path(spec.report.before))
        earlier = read_jsonl(Path(spec.report.before))
    places = shards(spec)
    job.reads(*(path for place in places for path in sources(spec, *place)))
    # what other processes are given must not be of this module, which is the program here
    study = Study.model_validate(spec.model_dump())
    progress = job.progress(len(places), "transcripts")
    with tempfile.TemporaryDirectory(dir=layout.REPORT.parent, prefix=".report_files.") as scratch:
        chunks = Chunks(Path(scratch))
        page = build_report(
            ReportData(
                study=spec.model_dump(mode="json"),
                numbers=numbers,
                catalogue=catalogue(study, chunks, processes=job.threads, on_done=progress.advance),
                facts=facts(spec, job),
                trained=trained(study, job),
                before=earlier,
            ),
            chunks,
        )
        progress.close()
        files = _beside(chunks, layout.REPORT_FILES)
    write_text(layout.REPORT, page)
    write_bytes(layout.NUMBERS_TABLE, csv_bytes(numbers, simulated=study.engine.name == "simulated"))
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
