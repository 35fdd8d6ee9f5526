"""`userturn config check` and `userturn config write`."""

from __future__ import annotations

import argparse
from pathlib import Path

from userturn.commands import options as shared
from userturn.commands.refusal import Refusal

HELP = "check a study's config, or write the documented default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="check config files and say what is wrong")
    check.add_argument("files", nargs="*", type=Path, default=[shared.DEFAULT_CONFIG])
    write = actions.add_parser("write", help="write config.yaml and config.schema.json from the typed model")
    write.add_argument("folder", nargs="?", type=Path, default=Path("config"))


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    return _check(options.files) if options.action == "check" else _write(options.folder)


def _check(files: list[Path]) -> int:
    from userturn import grid
    from userturn.config.load import ConfigError, check_sources
    from userturn.sources import SourceCache

    study = shared.load(files)
    try:
        check_sources(study, SourceCache.default())
    except ConfigError as error:
        raise Refusal(f"{error}") from error
    print(f"{study.name}: {len(grid.cells(study))} cells in {len(grid.shards(study))} shards")
    return 0


def _write(folder: Path) -> int:
    from userturn.config import document

    for path in document.write(folder):
        print(path)
    return 0
