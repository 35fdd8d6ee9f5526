"""How far a study is, from its files alone: from any node that sees the folder, while it runs on others.

A job is done when its manifest stands, which it writes last. It is in Snakemake's hands while Snakemake's mark of it
stands: waiting until it has begun its log, running from then on. Marks also outlive a killed run: they count only while
the run that the study's lock names is there, or, where that is on another machine, while something is still written.
"""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from userturn import grid, layout
from userturn.artefacts import ArtefactError, read_json
from userturn.config.study import Study
from userturn.measured import GENERATION, job_names
from userturn.provenance.jobs import marked

State = Literal["done", "running", "waiting", "failed", "left"]
STATES: tuple[State, ...] = ("done", "running", "waiting", "failed", "left")
#: On another machine a run is taken to be there while it wrote anything within this time.
SILENT_SECONDS = 600.0
#: Stages that load the model on its cards.
LOADING = (*GENERATION, "user_turns_part", "likelihood")
#: Of a log, enough for its last line of progress.
_TAIL_BYTES = 4096
_HOLDER = re.compile(r"process (\d+) on (\S+)")
_PROGRESS = re.compile(r"(\d+)/(\d+) in (\d+) s")
# a job of its own, and its log, in Snakemake's words
_FAILED = re.compile(r"^Error in rule \w+:\n(?:    .*\n)*?    log: (\S+)", re.MULTILINE)
# rows have sorted keys, and quotes within a text are escaped: this is found at the top of a row alone
_TOKENS = re.compile(rb'"n_prompt_tokens":(\d+),"n_tokens":(\d+)')


@dataclass(frozen=True)
class JobStatus:
    """One job.

    Attributes:
        name: its stage, then the parts of its shard's name.
        model: the model that it is about; None for jobs about all of them or none.
        state: where it is.
        seconds: how long it took; of a running one, how long it has reported; None where nothing is known.
        done: turns, or other units of its progress, that it has finished.
        total: of how many.
        silent_seconds: time since a running job last wrote to its log.
        log: its log.
        slurm_log: of a failed job, what SLURM has kept of its last attempt; None where there is nothing.
    """

    name: tuple[str, ...]
    model: str | None
    state: State
    seconds: float | None = None
    done: int = 0
    total: int = 0
    silent_seconds: float | None = None
    log: str = ""
    slurm_log: str | None = None

    @property
    def rate(self) -> float:
        """Units a second."""
        return self.done / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Status:
    """A whole study.

    Attributes:
        study: its name.
        simulated: whether a program makes its texts up.
        active: whether a run is there.
        run: who holds the study's lock or held it last; None where nothing has run.
        jobs: every job of a run from nothing, the target's own left out.
        cells_stored: cells, finished or of earlier versions of the study, that no run generates again.
        prompt_tokens: tokens of the prompts of all turns written by finished jobs.
        new_tokens: tokens of those turns.
        accelerator_hours: cards times hours, of finished jobs and of what running ones have reported.
        jobs_per_hour: finished within the last hour, or since the first one if that is less; None where nothing runs.
        seconds_left: estimate at the present number of jobs at once; None where nothing tells, or nothing runs.
    """

    study: str
    simulated: bool
    active: bool
    run: str | None
    jobs: list[JobStatus]
    cells_stored: int
    prompt_tokens: int
    new_tokens: int
    accelerator_hours: float
    jobs_per_hour: float | None
    seconds_left: float | None

    def counts(self) -> dict[State, int]:
        """Jobs by state."""
        found = Counter(job.state for job in self.jobs)
        return {state: found[state] for state in STATES}

    def by_stage(self) -> dict[str, dict[State, int]]:
        """Jobs by stage and state."""
        return self._by(lambda job: job.name[0])

    def by_model(self) -> dict[str, dict[State, int]]:
        """Jobs by model and state; those about no model in particular are left out."""
        return self._by(lambda job: job.model)

    def _by(self, key: Any) -> dict[str, dict[State, int]]:
        found: dict[str, Counter[State]] = {}
        for job in self.jobs:
            name = key(job)
            if name is not None:
                found.setdefault(name, Counter())[job.state] += 1
        return {name: {state: counts[state] for state in STATES} for name, counts in found.items()}


@dataclass
class _Spent:
    """What finished jobs have cost."""

    prompt_tokens: int = 0
    new_tokens: int = 0
    accelerator_seconds: float = 0.0
    ended: list[float] = field(default_factory=list)


def status(study: Study, folder: Path = Path(), now: float | None = None) -> Status:
    """Tells how far a study is.

    Args:
        study: the study.
        folder: its working directory.
        now: seconds since the epoch; the present where it is left out.
    """
    now = time.time() if now is None else now
    marks, failed, spent = marked(folder), _failed(folder), _Spent()
    holder = _holder(folder)
    active = _active(folder, holder, now)
    jobs = [_job(study, name, folder, marks if active else {}, failed, spent, now) for name in job_names(study)]
    for job in jobs:
        if job.state == "running" and job.name[0] in LOADING:
            spent.accelerator_seconds += _cards(study, job.model) * (job.seconds or 0.0)
    return Status(
        study=study.name,
        simulated=study.engine.name == "simulated",
        active=active,
        run=holder and f"process {holder[0]} on {holder[1]}",
        jobs=jobs,
        cells_stored=sum(1 for _ in (folder / layout.cell_store()).glob("*/*.jsonl")),
        prompt_tokens=spent.prompt_tokens,
        new_tokens=spent.new_tokens,
        accelerator_hours=spent.accelerator_seconds / 3600,
        jobs_per_hour=_pace(spent.ended, now) if active else None,
        seconds_left=_left(jobs) if active else None,
    )


def _job(
    study: Study,
    name: tuple[str, ...],
    folder: Path,
    marks: Mapping[str, float],
    failed: frozenset[str],
    spent: _Spent,
    now: float,
) -> JobStatus:
    model = _model(study, name)
    manifest, log = layout.manifest(*name), layout.log(*name)
    known = partial(JobStatus, name=name, model=model, log=log.as_posix())
    handed_over = marks.get(manifest.as_posix())
    if handed_over is not None:
        written = _written(folder / log)
        if written is None or written < handed_over:
            return known(state="waiting")
        done, total, seconds = _progress(folder / log)
        return known(state="running", seconds=seconds, done=done, total=total, silent_seconds=max(0.0, now - written))
    try:
        record = read_json(folder / manifest)
    except ArtefactError:
        if log.as_posix() in failed:
            return known(state="failed", slurm_log=_slurm_log(folder, name))
        return known(state="left")
    started, ended = (dt.datetime.fromisoformat(record["run"][key]).timestamp() for key in ("started", "ended"))
    spent.ended.append(ended)
    if name[0] in LOADING:
        spent.accelerator_seconds += _cards(study, model) * (ended - started)
    for prompt, new in _tokens(record, folder):
        spent.prompt_tokens += prompt
        spent.new_tokens += new
    return known(state="done", seconds=ended - started)


def _model(study: Study, name: tuple[str, ...]) -> str | None:
    stage, *parts = name
    if stage in {"dataset", "judge_model", "judge_training", "gold"}:
        return None
    names = parts[1:] if stage == "judge" else parts
    return names[0] if names and names[0] in study.models else None


def _cards(study: Study, model: str | None) -> int:
    return 0 if model is None else int(grid.resources(study, model)["gpu"] or 0)


def _tokens(manifest: Mapping[str, Any], folder: Path) -> Iterator[tuple[int, int]]:
    """Tokens of prompts and turns that a job wrote."""
    if manifest["stage"] == "user_turns":
        for cell in manifest["facts"]["cells"].values():
            # what is not sampled is known: a control
            if cell["sampling"] is not None:
                yield cell["n_prompt_tokens"], cell["n_tokens"]
    elif manifest["stage"] == "assistant_turns":
        for output in manifest["outputs"]:
            path = folder / output["path"]
            for found in _TOKENS.finditer(path.read_bytes() if path.is_file() else b""):
                yield int(found[1]), int(found[2])


def _holder(folder: Path) -> tuple[int, str] | None:
    """Process and machine of the last run."""
    try:
        found = _HOLDER.match((folder / layout.RUN_LOCK).read_text())
    except FileNotFoundError:
        return None
    return (int(found[1]), found[2]) if found else None


def _active(folder: Path, holder: tuple[int, str] | None, now: float) -> bool:
    if holder is None:
        return False
    process, machine = holder
    if machine == platform.node():
        try:
            return b"snakemake" in Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            return False
    # the newest of Snakemake's own log and of the logs of all jobs
    newest = max((_written(path) or 0.0 for path in _logs(folder)), default=0.0)
    return now - newest < SILENT_SECONDS


def _logs(folder: Path) -> Iterator[Path]:
    yield from (folder / layout.WORKFLOW_LOGS).glob("*.snakemake.log")
    yield from (folder / layout.LOGS).rglob("*.log")


def _failed(folder: Path) -> frozenset[str]:
    """Logs of the jobs that failed in the last run, by Snakemake's own log."""
    logs = sorted((folder / layout.WORKFLOW_LOGS).glob("*.snakemake.log"), key=lambda path: path.name)
    return frozenset(_FAILED.findall(logs[-1].read_text("utf-8", errors="replace"))) if logs else frozenset()


def _slurm_log(folder: Path, name: tuple[str, ...]) -> str | None:
    """The newest of the logs that `slurm-logdir` in profiles/slurm has of a job."""
    stage, *parts = name
    logs = (folder / layout.SLURM_LOGS / f"rule_{stage}" / "_".join(parts)).glob("*.log")
    newest = max(logs, key=lambda path: path.stat().st_mtime, default=None)
    return None if newest is None else newest.relative_to(folder).as_posix()


def _written(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None


def _progress(log: Path) -> tuple[int, int, float | None]:
    """Units done, of how many, in how many seconds: by the last line of progress."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _TAIL_BYTES))
            found = _PROGRESS.findall(stream.read().decode("utf-8", errors="replace"))
    except FileNotFoundError:
        return 0, 0, None
    if not found:
        return 0, 0, None
    done, total, seconds = map(int, found[-1])
    return done, total, float(seconds)


def _pace(ended: list[float], now: float) -> float | None:
    """Jobs an hour."""
    if not ended:
        return None
    since = max(now - 3600, min(ended))
    hours = max(now - since, 60.0) / 3600
    return sum(end >= since for end in ended) / hours


def _left(jobs: list[JobStatus]) -> float | None:
    """Seconds until the study is finished, with as many jobs at once as now, each as long as finished ones of its kind.

    None where a kind is not known yet.
    """
    means: dict[tuple[str, str | None], list[float]] = {}
    for job in jobs:
        if job.state == "done" and job.seconds is not None:
            for key in ((job.name[0], job.model), (job.name[0], None)):
                means.setdefault(key, []).append(job.seconds)
    work, longest, at_once = 0.0, 0.0, 0
    for job in jobs:
        if job.state in {"done", "failed"}:
            continue
        at_once += job.state == "running"
        if job.state == "running" and job.done and job.seconds:
            expected = job.seconds * (job.total - job.done) / job.done
        else:
            of_kind = means.get((job.name[0], job.model)) or means.get((job.name[0], None))
            if of_kind is None:
                return None
            expected = sum(of_kind) / len(of_kind)
        work, longest = work + expected, max(longest, expected)
    return max(longest, work / max(at_once, 1))
