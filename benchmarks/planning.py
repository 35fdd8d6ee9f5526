"""What it costs to plan the paper's grid and one of ten times the cells, simulated; and to find that nothing is to do.

    .envs/workflow/bin/python benchmarks/planning.py [--times 1 10] [--repeats N]

Run in a checkout that is set up. In scratch folders, for each size: `userturn plan`, `snakemake -n` of a study that has
yet to run, and `snakemake -n` of a finished one. The finished one is a stand-in: every output that the plan names is
there, empty, and known to Snakemake (`--touch --forceall`); nothing is generated. Prints, of the quickest repeat,
wall-clock and processor seconds and peak memory, and how the processor seconds grow.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

CONFIG = "config/study.yaml"
TARGET = "results/report.html"
_SHARED = (".envs", "Snakefile", "rules", "profiles", "gold", "training", "envs", "src", "pyproject.toml")


@contextmanager
def scratch(times: int) -> Iterator[Path]:
    """A folder with the simulated twin of the paper's study, so many times its cells."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for entry in _SHARED:
            (folder / entry).symlink_to(here / entry)
        (folder / "config").mkdir()
        (folder / "config/paper.yaml").symlink_to(here / "config/paper.yaml")
        words = ["config", "simulate", "config/paper.yaml", "--times", str(times), "--output", CONFIG]
        measured([sys.executable, "-m", "userturn.cli", *words], folder)
        yield folder


class Run(NamedTuple):
    """One command: seconds on the clock and of the processor, peak memory in MB, and what it said."""

    seconds: float
    processor: float
    memory: float
    said: str


def measured(command: list[str], folder: Path) -> Run:
    """Runs a command.

    Raises:
        SystemExit: the command failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    with tempfile.TemporaryFile("w+") as said:
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{text[-3000:]}")
    return Run(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text)


def snakemake(folder: Path, *words: str) -> list[str]:
    """The command line of Snakemake for the study in a folder."""
    return [str(folder / ".envs/workflow/bin/snakemake"), TARGET, *words, "--configfile", CONFIG]


def finish(folder: Path) -> None:
    """Puts an empty file in the place of each output, and has Snakemake take them for finished.

    Raises:
        SystemExit: Snakemake fails.
    """
    for line in measured(snakemake(folder, "--summary", "--cores", "1"), folder).said.splitlines():
        name = line.split("\t")[0]
        if name.startswith(("data/", "results/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            # an output without an ending is a folder
            (folder / name).touch() if Path(name).suffix else (folder / name).mkdir(exist_ok=True)
    measured(snakemake(folder, "--touch", "--forceall", "--cores", "1", "--quiet", "all"), folder)


def main() -> int:
    """Measures and prints; returns 1 where the finished study would run anything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    least: dict[str, list[float]] = {}
    for times in options.times:
        with scratch(times) as folder:
            plan = [sys.executable, "-m", "userturn.cli", "plan", "--configfile", CONFIG]
            cells, jobs = (
                re.search(rf"^{what} +([\d,]+)", measured(plan, folder).said, re.MULTILINE)
                for what in ("cells", "jobs")
            )
            assert cells is not None and jobs is not None, "what `userturn plan` prints"
            print(f"\n{times} x the paper's grid: {cells[1]} cells, {jobs[1]} jobs", flush=True)
            for what, command in (
                ("userturn plan", plan),
                ("snakemake -n, nothing done", snakemake(folder, "-n", "--quiet", "all")),
                ("snakemake -n, all done", snakemake(folder, "-n")),
            ):
                if what.endswith("all done"):
                    finish(folder)
                runs = [measured(command, folder) for _ in range(options.repeats)]
                best = min(runs)
                print(
                    f"  {what:28} {best.seconds:7.1f} s  {best.processor:7.1f} s processor  {best.memory:6.0f} MB",
                    flush=True,
                )
                least.setdefault(what, []).append(min(run.processor for run in runs))
            if "Nothing to be done" not in best.said:
                print(f"the finished study would run again:\n{best.said[-3000:]}", file=sys.stderr)
                return 1
    if len(options.times) > 1:
        print("\ngrowth of processor seconds from the first size to the last:")
        print("\n".join(f"  {what:28} {seconds[-1] / seconds[0]:5.1f} x" for what, seconds in least.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
