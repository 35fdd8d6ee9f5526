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


def duration(seconds: float | None) -> str:
    """A time in words: minutes, hours, or days."""
    if seconds is None:
        return "not known"
    minutes = round(seconds / 60)
    if minutes >= 48 * 60:
        return f"{seconds / 86400:.1f} days"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{max(minutes, 1)} min"


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
