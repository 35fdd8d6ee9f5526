"""`userturn pin`: fills in revisions that a config leaves open.

A hub source may say ``revision: pin me`` until it is pinned. This command asks the hub (HF_ENDPOINT is honoured) for
the commit that each repository's default branch has now, and writes it into the file; comments and layout stay.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from userturn.commands.refusal import Refusal

HELP = "resolve 'pin me' revisions of hub sources and write them into the config"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("files", nargs="*", type=Path, metavar="F", help="config files to pin")
    parser.add_argument("--configfile", nargs="+", type=Path, default=[], metavar="F", help="the same")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    from userturn.pinning import PinningError, pin

    files = [*options.files, *options.configfile]
    if not files:
        raise Refusal("nothing to pin: give a config file")
    for path in files:
        try:
            pinned = pin(path)
        except PinningError as error:
            raise Refusal(f"{error}") from error
        for one in pinned:
            print(f"{path}:{one.line}: {one.key}: {one.repo} ({one.repo_type}) pinned to {one.revision}")
        if not pinned:
            print(f"{path}: nothing to pin")
    return 0
