"""`userturn export`: a sealed study in a form that other programs read.

`userturn export crate DIR_OR_ZIP` writes a Workflow Run RO-Crate (profile Provenance Run Crate 0.5): Snakefile, rules,
config, locks, manifests, numbers, report and the sealed record, with a description of every job and file as linked
data. Everything is checked against the record first; the same study exported again gives the same bytes.
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
    from userturn.provenance.crate import Exported

HELP = "a sealed study as a Workflow Run RO-Crate"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    formats = parser.add_subparsers(dest="format", required=True, metavar="FORMAT")
    crate = formats.add_parser("crate", help="a Workflow Run RO-Crate: a folder, or a zip file", description=__doc__)
    crate.add_argument("target", type=Path, metavar="DIR_OR_ZIP", help="what to write; it must not exist yet")
    crate.add_argument(
        "--with-data",
        action="store_true",
        help="also carry everything under results/, the items and the contexts; weights are only ever described",
    )
    crate.add_argument("--json", action="store_true", help="for machines")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    from userturn.provenance import ProvenanceError
    from userturn.provenance.crate import export

    try:
        exported = export(Path(), options.target, with_data=options.with_data)
    except ProvenanceError as error:
        raise Refusal(f"{error}") from error
    print(json.dumps(asdict(exported), sort_keys=True) if options.json else "\n".join(_page(exported)))
    return 0


def _page(exported: Exported) -> Iterator[str]:
    from userturn.provenance.difference import shown

    yield f"study     {exported.study}"
    yield f"crate     {shown(exported.path)}"
    yield f"carries   {exported.carried:,} files ({exported.bytes / 1e6:,.1f} MB)"
    yield f"describes {exported.jobs:,} jobs and {exported.described:,} further files by their digests"
    yield from (f"note      {shown(note)}" for note in exported.notes)
