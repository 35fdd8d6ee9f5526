"""`userturn config check`, `userturn config write` and `userturn config simulate`."""

from __future__ import annotations

import argparse
from pathlib import Path

from userturn.commands import options as shared
from userturn.commands.refusal import Refusal

HELP = "check a study's config, write the documented default, or a study's simulated twin"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="check config files and say what is wrong")
    check.add_argument("files", nargs="*", type=Path, default=[shared.DEFAULT_CONFIG])
    write = actions.add_parser("write", help="write config.yaml and config.schema.json from the typed model")
    write.add_argument("folder", nargs="?", type=Path, default=Path("config"))
    simulate = actions.add_parser(
        "simulate", help="write the simulated twin of a study: its whole grid, with texts that a program makes up"
    )
    simulate.add_argument("file", type=Path, help="the study's config; its revisions may be open")
    simulate.add_argument("--items", type=int, default=500, help="items of each dataset (default: 500)")
    simulate.add_argument("--times", type=int, default=1, help="how often each model stands in it (default: once)")
    simulate.add_argument("--output", type=Path, help="the twin's config (default: FILE-simulated.yaml)")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    if options.action == "simulate":
        return _simulate(options.file, options.items, options.times, options.output)
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


def _simulate(file: Path, items: int, times: int, output: Path | None) -> int:
    from userturn.artefacts import write_bytes, write_text
    from userturn.config.load import read_yaml
    from userturn.simulation.study import document, twin

    if items < 2 or times < 1:
        raise Refusal(f"--items is {items} and --times is {times}; allowed: at least 2 items, at least once")
    shared.load([file])
    made = twin(read_yaml(file), items, times)
    path = output or file.with_name(f"{file.stem}-simulated.yaml")
    command = f"userturn config simulate {file.as_posix()}"
    command += "".join(
        f" --{name} {value}" for name, value, usual in (("items", items, 500), ("times", times, 1)) if value != usual
    )
    for source, data in made.files.items():
        write_bytes(source, data)
        print(source)
    write_text(path, document(made.config, file.name, command))
    print(path)
    return 0
