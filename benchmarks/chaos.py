"""Random `kill -9` of workflow and job processes over one small simulated study, run again until it is complete.

    .envs/workflow/bin/python benchmarks/chaos.py [--kills N] [--seed S] [--folder F]

Runs the study once undisturbed, then as often as it takes to use up the kills, in copies of this checkout. Prints what
was killed and what followed, and exits with 1 where the study did not complete, an artefact differs in a byte, a
process outlived its workflow, or a cell that was finished was generated again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from userturn import layout
from userturn.artefacts import write_bytes, write_text
from userturn.config.default_study import DEFAULT_STUDY
from userturn.simulation.study import document, twin

ROOT = Path(__file__).resolve().parents[1]
CONFIG = "config/chaos.yaml"
#: What a copy of the checkout needs to run a study.
_COPIED = ("Snakefile", "rules", "src", "config", "envs", "profiles", "gold", "training")
#: A job whose workflow is gone looks for it once a second; the rest is for a busy machine.
GRACE_SECONDS = 8.0
#: Runs of one round before it counts as one that never completes.
_MOST_RUNS = 60


def study(seconds_per_call: float, items: int = 4) -> tuple[dict[str, Any], Mapping[Path, bytes]]:
    """A small simulated study that takes its time: the default study's cells, one judge, two models.

    Returns:
        The config, and the files of its datasets.
    """
    config: dict[str, Any] = deepcopy(dict(DEFAULT_STUDY))
    config["judges"] = {config["reported_judge"]: config["judges"][config["reported_judge"]]}
    config.pop("gold", None)
    config["statistics"] = {"resamples": 200}
    made = twin(config, items=items, times=2)
    engine = {**made.config["engine"], "batch_invariant": True, "max_sequences": 8, "shard_by": "model"}
    return {**made.config, "engine": {**engine, "simulated": {"seconds_per_call": seconds_per_call}}}, made.files


def checkout(folder: Path, config: Mapping[str, Any], files: Mapping[Path, bytes], name: str = CONFIG) -> Path:
    """A copy of this checkout with a study in it; its environments are this one's."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in _COPIED:
        if (ROOT / entry).is_dir():
            shutil.copytree(ROOT / entry, folder / entry, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(ROOT / entry, folder / entry)
    (folder / ".envs").symlink_to(ROOT / ".envs")
    write_text(folder / name, document(dict(config), "config.yaml", "benchmarks/chaos.py"))
    for path, data in files.items():
        write_bytes(folder / path, data)
    return folder


def digests(folder: Path) -> dict[str, str]:
    """The sha256 of every artefact but manifests, which tell times and hosts.

    What a killed job left half-written is no artefact: it has a name of its own, and is removed a day later.
    """
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for top in (layout.DATA, layout.RESULTS)
        for path in sorted((folder / top).rglob("*"))
        if path.is_file() and layout.MANIFESTS not in path.relative_to(folder).parents
        if not any(part.endswith(".part") for part in path.parts)
    }


@dataclass
class Outcome:
    """What the kills led to.

    Attributes:
        kills: how many of what.
        rounds: studies that were completed.
        runs: starts of Snakemake.
        orphans: processes that were there `GRACE_SECONDS` after their workflow had been killed.
        regenerated: finished cells whose entry in the store was written again.
        differing: artefacts that differ from those of the undisturbed run, over all rounds.
        cells: finished cells at the end of each round.
        undisturbed_cells: of the run without kills.
        undisturbed_seconds: of the run without kills.
        seconds: of all rounds together.
    """

    kills: dict[str, int] = field(default_factory=dict)
    rounds: int = 0
    runs: int = 0
    orphans: int = 0
    regenerated: int = 0
    differing: list[str] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)
    undisturbed_cells: int = 0
    undisturbed_seconds: float = 0.0
    seconds: float = 0.0

    @property
    def fine(self) -> bool:
        """Whether nothing was lost, repeated or left behind."""
        same = all(cells == self.undisturbed_cells for cells in self.cells)
        return same and not (self.orphans or self.regenerated or self.differing)


def bombard(folder: Path, config: Mapping[str, Any], files: Mapping[Path, bytes], kills: int, seed: int) -> Outcome:
    """Runs a study undisturbed, then with kills until they are used up.

    Args:
        folder: where the copies go.
        config: the study, as `study` gives it.
        files: the files of its datasets.
        kills: how many.
        seed: of their times and victims.

    Raises:
        RuntimeError: a run fails although nothing was killed, or a round does not complete.
    """
    chance, outcome = random.Random(seed), Outcome()
    started = time.monotonic()
    quiet = checkout(folder / "undisturbed", config, files)
    if _Run(quiet).wait() != 0:
        raise RuntimeError(f"the undisturbed run failed: {quiet / 'run.log'}")
    outcome.undisturbed_seconds = time.monotonic() - started
    outcome.undisturbed_cells = len(_entries(quiet))
    wanted = digests(quiet)
    while sum(outcome.kills.values()) < kills:
        copy = checkout(folder / f"round{outcome.rounds + 1}", config, files)
        _round(copy, kills, chance, outcome)
        found = digests(copy)
        outcome.differing += [
            f"{copy.name}/{path}" for path in sorted({*wanted, *found}) if wanted.get(path) != found.get(path)
        ]
        outcome.cells.append(len(_entries(copy)))
        outcome.rounds += 1
    outcome.seconds = time.monotonic() - started - outcome.undisturbed_seconds
    return outcome


def _round(folder: Path, kills: int, chance: random.Random, outcome: Outcome) -> None:
    """One study from nothing to its report."""
    finished: dict[str, tuple[int, int]] = {}
    for _ in range(_MOST_RUNS):
        run = _Run(folder)
        outcome.runs += 1
        killed = 0
        # two kills may hit one run: a job's, then that of the workflow which is dealing with it
        while sum(outcome.kills.values()) < kills and killed < 2:
            if run.ended_within(chance.uniform(1.0, 1.0 + 0.25 * outcome.undisturbed_seconds)):
                break
            victim, what = run.victim(chance)
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
            outcome.kills[what] = outcome.kills.get(what, 0) + 1
            killed += 1
            print(f"kill {sum(outcome.kills.values())}: {what} {victim}", flush=True)
            if what == "workflow":
                break
        code = run.wait()
        outcome.orphans += len(run.left_after(GRACE_SECONDS))
        now = _entries(folder)
        outcome.regenerated += sum(now.get(key) != entry for key, entry in finished.items())
        finished = now
        if code == 0:
            return
        if not killed:
            raise RuntimeError(f"a run failed although nothing was killed: {folder / 'run.log'}")
    raise RuntimeError(f"not complete after {_MOST_RUNS} runs: {folder / 'run.log'}")


def _entries(folder: Path) -> dict[str, tuple[int, int]]:
    """Finished cells: an entry that was written again is another file, with another time."""
    return {
        path.name: (stat.st_ino, stat.st_mtime_ns)
        for path in (folder / layout.cell_store()).glob("*/*.jsonl")
        for stat in (path.stat(),)
    }


class _Run:
    """A running Snakemake; everything that it starts carries a mark of its own."""

    def __init__(self, folder: Path) -> None:
        self._mark = uuid.uuid4().hex
        command = [folder / ".envs/workflow/bin/snakemake", layout.REPORT, "--cores", "2", "--configfile", CONFIG]
        environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "USERTURN_CHAOS": self._mark}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with (folder / "run.log").open("a") as log:
            self._process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def wait(self) -> int:
        return self._process.wait()

    def ended_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def victim(self, chance: random.Random) -> tuple[int, str]:
        """Every other time the workflow, else one of the processes below it, where there are any."""
        others = [pid for pid in self._marked() if pid != self._process.pid]
        if not others or chance.random() < 0.5:
            return self._process.pid, "workflow"
        pid = chance.choice(others)
        return pid, _kind(pid)

    def left_after(self, seconds: float) -> list[int]:
        """Processes that are still there; ends them, so that they do not disturb what follows."""
        limit = time.monotonic() + seconds
        while (left := list(self._marked())) and time.monotonic() < limit:
            time.sleep(0.2)
        for pid in left:
            print(f"left behind: {pid} {_command(pid)}", flush=True)
            os.kill(pid, signal.SIGKILL)
        return left

    def _marked(self) -> Iterator[int]:
        wanted = f"USERTURN_CHAOS={self._mark}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if wanted in (entry / "environ").read_bytes().split(b"\0"):
                        yield int(entry.name)
                except OSError:
                    continue  # it has ended, or is another user's


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:120]
    except OSError:
        return ""


def _kind(pid: int) -> str:
    words = _command(pid).split()
    if not words or "userturn.stages." not in " ".join(words):
        return "helper"
    return "job" if Path(words[0]).name.startswith("python") else "shell"


def main() -> int:
    """Runs and prints; returns 1 where anything was lost, repeated or left behind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds-per-call", type=float, default=0.4)
    parser.add_argument("--folder", type=Path, help="kept; a temporary one where it is left out")
    options = parser.parse_args()
    config, files = study(options.seconds_per_call)
    with tempfile.TemporaryDirectory() as name:
        folder = (options.folder or Path(name)).resolve()
        outcome = bombard(folder, config, files, options.kills, options.seed)
    print(json.dumps({**asdict(outcome), "fine": outcome.fine}, indent=2, sort_keys=True))
    return 0 if outcome.fine else 1


if __name__ == "__main__":
    sys.exit(main())
