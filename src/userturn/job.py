"""How every stage runs as a job: arguments, log, progress, errors, manifest.

A stage module defines a ``Spec`` (what to do, typed) and ``run(spec, job)``, and ends with `main`. Rules call it as
``python -m userturn.stages.NAME --spec JSON --log FILE``: the same command in the workflow's and in the engine's
environment, locally and on a cluster.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO, TypeVar

from pydantic import BaseModel, ConfigDict

from userturn import code, lifeline, manifest
from userturn.artefacts import write_json
from userturn.environments import Lock
from userturn.progress import Progress


class JobSpec(BaseModel):
    """What a stage is asked to do."""

    model_config = ConfigDict(extra="forbid", frozen=True)


S = TypeVar("S", bound=JobSpec)


class Job:
    """A running job: where it logs, shows progress and collects the facts for its manifest."""

    def __init__(self, stage: str, *, threads: int = 1, terminal: TextIO | None = None, log: TextIO | None = None):
        self.stage = stage
        self.threads = threads
        self.started = dt.datetime.now(dt.UTC)
        self._terminal = terminal
        self._log = log
        self._inputs: set[Path] = set()
        self._outputs: dict[Path, set[Path] | None] = {}
        self.facts: dict[str, Any] = {}

    def reads(self, *paths: Path) -> None:
        """Notes files that the job reads."""
        self._inputs.update(paths)

    @property
    def inputs(self) -> frozenset[Path]:
        """Files that the job has read so far."""
        return frozenset(self._inputs)

    def wrote(self, *paths: Path, made_from: Iterable[Path] | None = None) -> None:
        """Notes files that the job wrote.

        Args:
            paths: the files.
            made_from: what of the job's inputs they come from, where that is not all of them; noted as read.
        """
        origins = None if made_from is None else set(made_from)
        self._inputs.update(origins or ())
        self._outputs.update(dict.fromkeys(paths, origins))

    def say(self, text: str) -> None:
        """Writes one line to the log."""
        print(f"[{dt.datetime.now(dt.UTC):%H:%M:%S}] {text}", file=self._log or sys.stderr, flush=True)

    def progress(self, total: int, label: str) -> Progress:
        """A progress bar on the terminal, lines in the log."""
        return Progress(total, label, terminal=self._terminal, log=self._log)

    def manifest(self, spec: JobSpec, lock: Lock | None) -> dict[str, Any]:
        """The manifest of what was done so far."""
        return manifest.build(
            self.stage,
            spec=spec.model_dump(mode="json"),
            code={
                "digest": code.stage_digest(self.stage),
                "modules": code.modules(f"{code.PACKAGE}.stages.{self.stage}"),
            },
            lock={"file": lock.file, "sha256": lock.sha256} if lock else None,
            inputs=self._inputs,
            outputs=self._outputs,
            facts=self.facts,
            started=self.started,
        )


def main(stage: str, spec_type: type[S], run: Callable[[S, Job], None]) -> None:
    """Runs a stage from the command line; exits with 1 and one clear line when it fails.

    Args:
        stage: the stage's name, for messages and the manifest.
        spec_type: the stage's ``Spec``.
        run: does the work, writes the outputs and notes them with `Job.wrote`.
    """
    parser = argparse.ArgumentParser(prog=f"python -m userturn.stages.{stage}")
    parser.add_argument("--spec", required=True, help="what to do, as JSON")
    parser.add_argument("--lock", help="lock of the environment: FILE:SHA256")
    parser.add_argument("--log", type=Path, help="log file")
    parser.add_argument("--manifest", type=Path, help="where the manifest goes")
    parser.add_argument("--threads", type=int, default=1, help="cores to use")
    arguments = parser.parse_args()
    spec = spec_type.model_validate_json(arguments.spec)
    lock = Lock(*arguments.lock.split(":", 1)) if arguments.lock else None

    lifeline.hold()
    terminal = _log_to(arguments.log) if arguments.log else sys.stderr
    job = Job(stage, threads=arguments.threads, terminal=terminal, log=sys.stderr if arguments.log else None)
    try:
        run(spec, job)
        if arguments.manifest:
            write_json(arguments.manifest, job.manifest(spec, lock))
    except BaseException as error:
        traceback.print_exc()
        if not isinstance(error, SystemExit):
            where = f"; the log is {arguments.log}" if arguments.log else ""
            print(
                f"\nuserturn: {stage} failed: {error or type(error).__name__}{where}",
                file=terminal,
                flush=True,
            )
        sys.exit(1)


def _log_to(path: Path) -> TextIO:
    """Sends stdout and stderr of this process, and of whatever it starts, to a log; returns the old stderr."""
    path.parent.mkdir(parents=True, exist_ok=True)
    terminal = os.fdopen(os.dup(2), "w", buffering=1)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    return terminal
