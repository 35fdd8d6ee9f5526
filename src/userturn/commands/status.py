"""`userturn status`: how far a study is, from its files alone.

Works from any node that sees the folder, while the study runs on others: what is done, running, waiting, failed and
left, by stage and by model; rate, time to finish, tokens and accelerator-hours so far. Exits with 1 where a job of the
last run has failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from userturn.commands import options as shared

if TYPE_CHECKING:
    from userturn.config.study import Study
    from userturn.status import State, Status

HELP = "how far a study is: done, running, failed and left, rate, time to finish, accelerator-hours so far"
#: Jobs of one state that are told one by one.
_NAMED = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    shared.add_configfile(parser)
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=10.0,
        metavar="SECONDS",
        help="again and again until nothing is left or no run is there (default: every 10 seconds)",
    )


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    from userturn.status import status

    study = shared.load(options.configfile)
    while True:
        found = status(study)
        _print(study, found, options.json, again=options.watch is not None)
        counts = found.counts()
        if options.watch is None or not found.active or counts["done"] == len(found.jobs):
            return 1 if counts["failed"] else 0
        try:
            time.sleep(max(options.watch, 1.0))
        except KeyboardInterrupt:
            return 0


def _print(study: Study, found: Status, as_json: bool, again: bool) -> None:
    if as_json:
        told = {**asdict(found), "counts": found.counts(), "by_stage": found.by_stage(), "by_model": found.by_model()}
        print(json.dumps(told, sort_keys=True), flush=True)
        return
    clear = "\x1b[H\x1b[2J" if again and sys.stdout.isatty() else ""
    print(clear + _page(found), flush=True)


def _page(found: Status) -> str:
    counts = found.counts()
    lines = [
        f"study    {found.study}" + (" (SIMULATED: a program makes the texts up)" if found.simulated else ""),
        f"run      {_run(found)}",
        f"jobs     {len(found.jobs):,}: " + ", ".join(f"{counts[state]:,} {state}" for state in counts),
        "",
        *_table("stage", found.by_stage()),
        "",
        *_table("model", found.by_model()),
        "",
        f"kept               {found.cells_stored:,} cells of user turns and of answers, earlier ones too",
        f"tokens             {found.prompt_tokens:,} in prompts, {found.new_tokens:,} written by finished jobs",
        f"accelerator-hours  {found.accelerator_hours:,.1f}",
    ]
    if found.jobs_per_hour is not None:
        lines.append(f"rate               {found.jobs_per_hour:,.0f} jobs an hour")
    if found.active and counts["done"] < len(found.jobs):
        left = "not known yet" if found.seconds_left is None else f"about {shared.duration(found.seconds_left)}"
        lines.append(f"left               {left}")
    running = [
        f"running  {'/'.join(job.name)}"
        + (f": {job.done:,} of {job.total:,}, {job.rate:,.1f} a second" if job.total else "")
        + (f"; silent for {shared.duration(job.silent_seconds)}" if (job.silent_seconds or 0) > 60 else "")
        for job in found.jobs
        if job.state == "running"
    ]
    failed = [
        f"failed   {'/'.join(job.name)}: {job.log}" + (f", {job.slurm_log}" if job.slurm_log else "")
        for job in found.jobs
        if job.state == "failed"
    ]
    for some in (running, failed):
        lines += ["", *some[:_NAMED]] if some else []
        lines += [f"         and {len(some) - _NAMED:,} more"] if len(some) > _NAMED else []
    return "\n".join(lines)


def _run(found: Status) -> str:
    if found.run is None:
        return "none"
    return f"{found.run}" if found.active else f"none; the last was {found.run}"


def _table(what: str, rows: Mapping[str, Mapping[State, int]]) -> list[str]:
    if not rows:
        return []
    states = next(iter(rows.values()))
    width = max(len(what), *map(len, rows))
    head = f"{what:{width}}  " + "  ".join(f"{state:>7}" for state in states)
    return [head] + [
        f"{name:{width}}  " + "  ".join(f"{n or '·':>7}" for n in counts.values()) for name, counts in rows.items()
    ]
