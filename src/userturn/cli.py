"""The command line: `userturn COMMAND`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from userturn import __version__


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="userturn", description="User turn generation as a reproducible study.")
    parser.add_argument("--version", action="version", version=f"userturn {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    config = commands.add_parser("config", help="check a study's config, or write the documented default")
    actions = config.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="check config files and say what is wrong")
    check.add_argument("files", nargs="*", type=Path, default=[Path("config/config.yaml")])
    write = actions.add_parser("write", help="write config.yaml and config.schema.json from the typed model")
    write.add_argument("folder", nargs="?", type=Path, default=Path("config"))

    options = parser.parse_args(arguments)
    return _check(options.files) if options.action == "check" else _write(options.folder)


def _check(files: list[Path]) -> int:
    from userturn import grid
    from userturn.config.load import ConfigError, check_sources, load_study
    from userturn.sources import SourceCache

    try:
        study = load_study(files)
        check_sources(study, SourceCache.default())
    except ConfigError as error:
        print(f"userturn: error: {error}", file=sys.stderr)
        return 1
    print(f"{study.name}: {len(grid.cells(study))} cells in {len(grid.shards(study))} shards")
    return 0


def _write(folder: Path) -> int:
    from userturn.config import document

    for path in document.write(folder):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
