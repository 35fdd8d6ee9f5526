"""What earlier runs tell about the cost of the next: turn lengths and durations, from manifests and artefacts alone."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from userturn import grid, layout, specs
from userturn.artefacts import read_json
from userturn.config.perturbations import CONTROLS
from userturn.config.study import Study

#: Rows of an artefact of assistant turns that are read to learn its lengths: enough for a mean, and soon read.
SAMPLED_ROWS = 200

#: Stages that load the model.
GENERATION = ("assistant_turns", "user_turns")

#: Stages that train a variant.
TRAINING = ("posttrain", "posttrain_rl")

_RESUMED = re.compile(r"generated (\d+) cells, took (\d+) from the store")


@dataclass(frozen=True)
class Lengths:
    """Mean tokens of one prompt and of the turn written after it."""

    prompt: float
    new: float


@dataclass(frozen=True)
class Timing:
    """How long one finished job took.

    Attributes:
        seconds: from its start to its manifest, model load included.
        turns: turns that it generated with the limits of the study at hand; 0 for jobs that generate none.
    """

    seconds: float
    turns: int = 0

    @property
    def tells_speed(self) -> bool:
        """Whether the job tells how fast turns are generated."""
        return self.turns > 0


@dataclass(frozen=True)
class Measured:
    """What was found; empty where nothing has run.

    Attributes:
        items: items of a dataset.
        answers: lengths of assistant turns by (model, dataset).
        cells: lengths of user turns by cell key.
        jobs: durations by job: the stage, then the parts of its shard's name.
    """

    items: Mapping[str, int] = field(default_factory=dict)
    answers: Mapping[tuple[str, str], Lengths] = field(default_factory=dict)
    cells: Mapping[str, Lengths] = field(default_factory=dict)
    jobs: Mapping[tuple[str, ...], Timing] = field(default_factory=dict)


def measure(study: Study, folder: Path = Path()) -> Measured:
    """Reads what runs of this study, or of one that shares cells with it, have left behind.

    Only what was generated with the same limits counts: a cell with another ``max_tokens`` is no measurement.

    Args:
        study: the study to be planned.
        folder: the working directory of the runs.
    """
    return Measured(
        items=dict(_items(study, folder)),
        answers=dict(_answers(study, folder)),
        cells=dict(_cells(study, folder)),
        jobs=dict(_jobs(study, folder)),
    )


def job_names(study: Study) -> Iterator[tuple[str, ...]]:
    """Every job that writes a manifest: its stage, then the parts of its shard's name."""
    yield from (("dataset", name) for name in study.datasets)
    yield from (("model", name) for name in study.models if name not in grid.variants(study))
    yield from (("posttrain_data", name) for name in grid.variants(study))
    yield from (("posttrain", name) for name in grid.variants(study, "sft"))
    yield from (("posttrain_rl", name) for name in grid.variants(study, "rl"))
    yield from (("judge_model", name) for name in grid.judges_with(study, model=True))
    yield from (("judge_training", name) for name in grid.judges_with(study, trained=True))
    yield from (("gold", name) for name in grid.judges_with(study, gold=True))
    if study.gold is not None:
        yield ("gold_set",)
    for shard in grid.shards(study):
        yield from ((stage, *shard.name) for stage in ("assistant_turns", "scores", "contexts", "user_turns"))
        yield from (("user_turns_part", *shard.name, part) for part in grid.parts(study, shard))
        if grid.scored_rows(study):
            yield ("likelihood", *shard.name)
        yield from (("judge", judge, *shard.name) for judge in study.judges)
    yield from (("analyse",), ("report",))


def generated(study: Study, key: str) -> bool:
    """Whether a cell's turns are generated: a control's are known, and cells of other studies are not counted."""
    perturbation = study.probe.perturbations.get(key.split("/")[2])
    return perturbation is not None and perturbation.kind not in CONTROLS


def _items(study: Study, folder: Path) -> Iterator[tuple[str, int]]:
    for name in study.datasets:
        manifest = _manifest(folder / layout.manifest("dataset", name))
        n = _lines(folder / layout.dataset(name))
        if manifest is not None and n and manifest["spec"] == json.loads(specs.dataset(study, name)):
            yield name, n


def _same_work(study: Study, job: tuple[str, ...], manifest: dict[str, Any]) -> bool:
    """Whether a job of the same name did what this study asks for; generation is compared turn by turn instead."""
    stage, *names = job
    if stage in {*GENERATION, "user_turns_part", "likelihood"}:
        return bool(manifest["spec"]["engine"] == study.engine_of(names[0]).model_dump(mode="json"))
    if stage in TRAINING:
        asked = getattr(specs, stage)(study, *names, manifest["spec"]["lock_sha256"])
    elif stage in {"dataset", "model", "posttrain_data", "judge_model", "judge_training", "gold"}:
        asked = getattr(specs, stage)(study, *names)
    elif stage in {"analyse", "report", "gold_set"}:
        asked = getattr(specs, stage)(study)
    else:
        shard = {one.name: one for one in grid.shards(study)}[tuple(names[1:] if stage == "judge" else names)]
        asked = specs.judge(study, names[0], shard) if stage == "judge" else getattr(specs, stage)(study, shard)
    return bool(manifest["spec"] == json.loads(asked))


def _jobs(study: Study, folder: Path) -> Iterator[tuple[tuple[str, ...], Timing]]:
    for job in job_names(study):
        manifest = _manifest(folder / layout.manifest(*job))
        if manifest is None or not _same_work(study, job, manifest):
            continue
        run = manifest["run"]
        seconds = (dt.datetime.fromisoformat(run["ended"]) - dt.datetime.fromisoformat(run["started"])).total_seconds()
        yield job, Timing(max(seconds, 1.0), _turns(study, job, manifest, folder))


def _turns(study: Study, job: tuple[str, ...], manifest: dict[str, Any], folder: Path) -> int:
    """Turns that a job generated, if it generated all of them: one that took cells from the store tells no speed."""
    if job[0] not in GENERATION:
        return 0
    log = folder / layout.log(*job)
    found = _RESUMED.findall(log.read_text("utf-8", errors="replace")) if log.is_file() else []
    if not found or found[-1][1] != "0":
        return 0
    if job[0] == "user_turns":
        cells = [cell for key, cell in manifest["facts"]["cells"].items() if generated(study, key)]
        same = all(_same_limit(study, cell) for cell in cells)
        return sum(cell["n_turns"] for cell in cells) if same else 0
    if manifest["facts"]["sampling"]["max_tokens"] != study.assistant_turns.max_tokens:
        return 0
    written = [folder / output["path"] for output in manifest["outputs"]]
    return sum(_lines(path) for path in written)


def _answers(study: Study, folder: Path) -> Iterator[tuple[tuple[str, str], Lengths]]:
    for shard in grid.shards(study):
        manifest = _manifest(folder / layout.manifest("assistant_turns", *shard.name))
        if manifest is None or manifest["facts"]["sampling"]["max_tokens"] != study.assistant_turns.max_tokens:
            continue
        for dataset in shard.datasets:
            path = folder / layout.assistant_turns(shard.model, dataset)
            if not path.is_file():
                continue
            with path.open(encoding="utf-8") as lines:
                rows = [json.loads(line) for line in islice(lines, SAMPLED_ROWS)]
            if rows:
                yield (shard.model, dataset), _mean(rows)


def _cells(study: Study, folder: Path) -> Iterator[tuple[str, Lengths]]:
    for shard in grid.shards(study):
        manifest = _manifest(folder / layout.manifest("user_turns", *shard.name))
        if manifest is None:
            continue
        for key, facts in manifest["facts"]["cells"].items():
            if not generated(study, key) or not facts["n_turns"]:
                continue
            if _same_limit(study, facts):
                yield key, Lengths(facts["n_prompt_tokens"] / facts["n_turns"], facts["n_tokens"] / facts["n_turns"])


def _same_limit(study: Study, cell: Mapping[str, Any]) -> bool:
    sampling = cell["sampling"]
    return bool(sampling["max_tokens"] == study.probe.sampling_at(sampling["temperature"]).max_tokens)


def _mean(rows: list[dict[str, Any]]) -> Lengths:
    return Lengths(
        sum(row["n_prompt_tokens"] for row in rows) / len(rows), sum(row["n_tokens"] for row in rows) / len(rows)
    )


def _manifest(path: Path) -> dict[str, Any] | None:
    return dict(read_json(path)) if path.is_file() else None


def _lines(path: Path) -> int:
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
