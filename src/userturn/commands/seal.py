"""`userturn seal`: hands a finished study to DVC, with a record of every file.

To be called after the workflow; refused while a run is active, and for a study that is not complete. Sealing an
unchanged study does nothing. The pointers that are left behind are small: commit them.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from userturn.commands import options as shared
from userturn.commands.refusal import Refusal

if TYPE_CHECKING:
    from userturn.provenance.seal import Sealed

_NAMED = 5
HELP = "hand a finished study to DVC, with a record of every file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    shared.add_configfile(parser)
    parser.add_argument("--push", action="store_true", help="also send everything to DVC's default remote")
    parser.add_argument("--remote", metavar="NAME", help="also send everything to this remote of DVC")
    parser.add_argument("--json", action="store_true", help="for machines")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    from userturn.provenance import ProvenanceError
    from userturn.provenance.seal import TO_COMMIT, push, seal

    study = shared.load(options.configfile)
    root = Path()
    try:
        sealed = seal(root, study, options.configfile)
    except ProvenanceError as error:
        raise Refusal(f"{error}") from error
    pushes = options.push or options.remote is not None
    failed = None
    if pushes:
        try:
            push(root, options.remote)
        except ProvenanceError as error:
            failed = error
    commit = [path.as_posix() for path in TO_COMMIT if path.is_file()]
    if options.json:
        print(json.dumps({**asdict(sealed), "pushed": pushes and failed is None, "commit": commit}, sort_keys=True))
    else:
        print(_page(sealed, commit, (options.remote or "the default remote") if pushes and not failed else None))
    if failed:
        raise Refusal(f"the study is sealed, nothing is lost, but it was not pushed; call again\n{failed}") from failed
    return 0


def _page(sealed: Sealed, commit: list[str], pushed: str | None) -> str:
    from userturn.report.inert import visible_text

    if sealed.unchanged:
        what = "nothing since the last seal"
    elif sealed.first:
        what = "first seal of this study here"
    else:
        what = f"{sealed.changed:,} files changed, {sealed.added:,} new, {sealed.removed:,} gone since the last seal"
        if not sealed.changed + sealed.added + sealed.removed:
            what = "no file; config, code, locks, Snakemake's records or pointers"
    lines = [
        f"study    {sealed.study}",
        f"files    {sealed.files:,} ({sealed.bytes / 1e6:,.1f} MB)",
        f"changed  {what}",
        f"cost     {sealed.seconds:.1f} s: {sealed.hashed:,} files read, {sealed.dvc_seconds:.1f} s in DVC",
        f"pushed   {f'to {pushed}' if pushed else 'no (userturn seal --push)'}",
    ]
    lines += [f"warning  {visible_text(fault)}" for fault in sealed.unaccounted[:_NAMED]]
    if len(sealed.unaccounted) > _NAMED:
        lines.append(f"         and {len(sealed.unaccounted) - _NAMED:,} more files that no job wrote as they are")
    if not sealed.unchanged:
        lines.append(f"commit   git add {' '.join(commit)}")
    return "\n".join(lines)
