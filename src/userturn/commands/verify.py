"""`userturn verify`: every file of a study against its sealed record, or against another study.

Says of each file whether it is identical, rebuilt, changed, tampered, missing or extra, and of what differs first in
the data flow: which row, which value, and how far the numbers moved. Exit code 0 where nothing differs but times,
hosts and commits in manifests; 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from userturn.commands.refusal import Refusal

if TYPE_CHECKING:
    from userturn.provenance.difference import Difference
    from userturn.provenance.verify import Verification

HELP = "every file against the sealed record, or against another study"
_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "--against",
        type=Path,
        metavar="PATH",
        help="another study's folder, its sealed folder, or its record.jsonl (default: the record sealed here)",
    )
    parser.add_argument("--json", action="store_true", help="for machines")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    from userturn.provenance import ProvenanceError
    from userturn.provenance.verify import verify, verify_against

    try:
        found = verify(Path()) if options.against is None else verify_against(Path(), options.against)
    except ProvenanceError as error:
        raise Refusal(f"{error}") from error
    if options.json:
        print(json.dumps({**asdict(found), "same": found.same}, sort_keys=True))
    else:
        print("\n".join(_page(found)))
    return 0 if found.same else 1


def _page(found: Verification) -> Iterator[str]:
    from userturn.provenance.difference import shown
    from userturn.provenance.verify import SAME

    yield f"against   {shown(found.against)}"
    yield f"files     {found.files:,}: " + ", ".join(f"{n:,} {status}" for status, n in found.counts.items() if n)
    told = [finding for finding in found.findings if finding.status not in SAME]
    for finding in told[:_SHOWN]:
        yield f"{finding.status:<9} {shown(finding.path)} ({shown(finding.reason)})"
    if len(told) > _SHOWN:
        yield f"          and {len(told) - _SHOWN:,} more (--json lists all)"
    for number, difference in enumerate(found.differences[:_SHOWN]):
        yield from _difference(difference, "first" if number == 0 else "then")
    yield from (f"note      {shown(note)}" for note in found.notes)
    yield "result    " + ("the same" if found.same else "not the same")


def _difference(difference: Difference, word: str) -> Iterator[str]:
    from userturn.provenance.difference import shown

    said = []
    if difference.rows_here is not None:
        said.append(f"{difference.differing:,} of {difference.rows_here:,} rows differ")
        said += [f"{difference.only_here:,} rows only here"] if difference.only_here else []
        said += [f"{difference.only_there:,} rows only there"] if difference.only_there else []
    said += [difference.note] if difference.note else []
    shift = difference.shift
    if shift is not None:
        said.append(f"{shift.moved:,} of {shift.compared:,} values moved")
        said += [f"by {shift.largest:.3g} at most ({shift.largest_id})"] if shift.largest is not None else []
        said.append(f"{shift.outside:,} beyond an interval")
    yield f"{word:<9} {shown(difference.path)}: {'; '.join(said)}" if said else f"{word:<9} {shown(difference.path)}"
    if difference.first:
        first = difference.first
        yield f"          {first.where}{f', {first.field}' if first.field else ''}".rstrip().replace("  , ", "  ")
        yield f"            here   {'(nothing)' if first.here is None else first.here}"
        yield f"            there  {'(nothing)' if first.there is None else first.there}"
