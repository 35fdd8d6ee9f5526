"""`userturn rebuild CELL`: one cell built again from its recorded inputs, and compared byte by byte.

Runs in a scratch folder: contexts, user turns and judgements of the cell, not of its shard, with one model load; with
`--whole` also the items and the assistant turns of its dataset, from the sources on. Refused where sources, weights,
code or locks are not what the manifests record; `--anyway` goes on and says so. Exit code 0: identical; 1: it differs
(the first differing row is shown) or was refused; 2: no such cell.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from userturn.commands.refusal import Refusal, WrongUsage

if TYPE_CHECKING:
    from userturn.provenance.rebuild import Plan, Rebuilt

HELP = "builds one cell again in a scratch folder from its recorded inputs, and compares"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("cell", metavar="CELL", help="model/dataset/perturbation/t<T>")
    parser.add_argument("--whole", action="store_true", help="also items and assistant turns, from the sources on")
    parser.add_argument("--anyway", action="store_true", help="go on although code, locks, weights or inputs differ")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="keep what is built here (a new or empty folder)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="cores of the engine")
    parser.add_argument("--json", action="store_true", help="for machines")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    from userturn import layout
    from userturn.files import temporary_folder
    from userturn.provenance import ProvenanceError
    from userturn.provenance.rebuild import UnknownCell, plan

    try:
        made = plan(Path(), options.cell, whole=options.whole)
        _check(made, anyway=options.anyway)
        if options.scratch is not None:
            if options.scratch.exists() and any(options.scratch.iterdir()):
                raise WrongUsage(f"--scratch {options.scratch}: is not empty")
            options.scratch.mkdir(parents=True, exist_ok=True)
            return _rebuild(made, options, options.scratch)
        with temporary_folder(layout.STATE / "rebuild", "cell") as scratch:
            return _rebuild(made, options, scratch)
    except UnknownCell as error:
        raise WrongUsage(f"{error}") from error
    except ProvenanceError as error:
        raise Refusal(f"{error}") from error


def _check(made: Plan, *, anyway: bool) -> None:
    if made.faults and not anyway:
        raise Refusal(
            f"{made.cell} cannot be rebuilt as it was:\n  "
            + "\n  ".join(made.faults)
            + "\n--anyway goes on nevertheless"
        )
    for fault in made.faults:
        print(f"userturn: going on although {fault}", file=sys.stderr)


def _rebuild(made: Plan, options: argparse.Namespace, scratch: Path) -> int:
    from userturn.provenance import rebuild

    answers = f"{made.assistant_turns} assistant turns and " if made.assistant_turns else ""
    print(f"userturn: cost: one model load, {answers}{made.turns} user turns to write", file=sys.stderr)
    started = time.monotonic()
    found = rebuild.run(
        Path(), made, scratch, threads=options.threads, say=lambda text: print(f"userturn: {text}", file=sys.stderr)
    )
    seconds = time.monotonic() - started
    identical = all(one.identical for one in found)
    if options.json:
        facts = {"cell": made.cell, "identical": identical, "seconds": round(seconds, 1), "faults": list(made.faults)}
        files = [asdict(one) | {"identical": one.identical} for one in found]
        print(json.dumps(facts | {"files": files}, sort_keys=True))
    else:
        print("\n".join(_page(made, found, seconds)))
    return 0 if identical else 1


def _page(made: Plan, found: list[Rebuilt], seconds: float) -> Iterator[str]:
    from userturn.report.inert import visible_text as safe

    for one in found:
        state = "identical" if one.identical else "missing" if one.found is None else "DIFFERS"
        yield f"{state:9}  {one.recorded[:12]}  {one.path}"
        difference = one.difference
        if difference is None:
            continue
        yield f"           {difference.differing} of {difference.rows_there} rows differ"
        if difference.first is not None:
            first = difference.first
            yield f"           first at {safe(first.where)}" + (f", {safe(first.field)}" if first.field else "")
            yield f"             rebuilt   {safe(str(first.here))}"
            yield f"             recorded  {safe(str(first.there))}"
    for fault in made.faults:
        yield f"note       {fault}"
    same = sum(one.identical for one in found)
    yield f"result     {same} of {len(found)} artefacts of {made.cell} identical, after {seconds:.0f} s"
