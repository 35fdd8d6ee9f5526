"""`userturn restore`: brings a sealed study back, so that Snakemake finds nothing to do.

In a clone, or in an unpacked archive without git, after `make setup`. Every file is checked against the record.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from userturn.commands.options import DEFAULT_CONFIG
from userturn.commands.refusal import Refusal

if TYPE_CHECKING:
    from userturn.provenance.restore import Restored

HELP = "bring a sealed study back from DVC"
_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("--remote", metavar="NAME", help="the remote of DVC to fetch from (default: DVC's default)")
    parser.add_argument(
        "--force", action="store_true", help="overwrite files that are not the sealed ones, remove files not sealed"
    )
    parser.add_argument("--json", action="store_true", help="for machines")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    from userturn.provenance import ProvenanceError
    from userturn.provenance.difference import shown
    from userturn.provenance.restore import WouldOverwrite, restore

    try:
        restored = restore(Path(), remote=options.remote, force=options.force)
    except WouldOverwrite as error:
        paths = [f"  {shown(path)}" for path in error.paths[:_SHOWN]]
        paths += [f"  and {len(error.paths) - _SHOWN} more"] if len(error.paths) > _SHOWN else []
        raise Refusal("\n".join([f"{error}:", *paths, "--force does so"])) from error
    except ProvenanceError as error:
        raise Refusal(f"{error}") from error
    print(json.dumps(asdict(restored), sort_keys=True) if options.json else _page(restored))
    return 0


def _page(restored: Restored) -> str:
    from userturn.provenance.difference import shown

    config = [] if restored.config_files == [DEFAULT_CONFIG.as_posix()] else ["--configfile", *restored.config_files]
    lines = [
        f"study    {shown(restored.study)}",
        f"files    {restored.files:,} ({restored.bytes / 1e6:,.1f} MB), each as in the record",
        f"jobs     {restored.job_records:,} of Snakemake's records",
        f"cost     {restored.seconds:.1f} s",
        *(f"note     {shown(note)}: Snakemake will run again what depends on it" for note in restored.notes),
        f"check    snakemake -n {shown(' '.join(config))}".rstrip(),
    ]
    return "\n".join(lines)
