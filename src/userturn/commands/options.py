"""Options that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from userturn.commands.refusal import Refusal

if TYPE_CHECKING:
    from userturn.config.study import Study

DEFAULT_CONFIG = Path("config/config.yaml")


def add_configfile(parser: argparse.ArgumentParser) -> None:
    """Adds ``--configfile F ...``, as Snakemake has it."""
    parser.add_argument(
        "--configfile",
        nargs="+",
        type=Path,
        default=[DEFAULT_CONFIG],
        metavar="F",
        help="config files of the study; later ones override single keys (default: config/config.yaml)",
    )


def load(files: list[Path]) -> Study:
    """The study of the config files.

    Raises:
        Refusal: the config is refused.
    """
    from userturn.config.load import ConfigError, load_study

    try:
        return load_study(files)
    except ConfigError as error:
        raise Refusal(f"{error}") from error
