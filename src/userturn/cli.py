"""The command line: `userturn COMMAND`. What each command does is in `userturn.commands`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Protocol

from userturn import __version__
from userturn.commands import config, label, pin, plan, power, render
from userturn.commands.refusal import Refusal


class Command(Protocol):
    """What a module of `userturn.commands` offers."""

    HELP: str
    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares the arguments."""

    def run(self, options: argparse.Namespace) -> int:
        """Runs the command; returns its exit code."""
        ...


COMMANDS: Mapping[str, Command] = {
    "config": config,
    "label": label,
    "plan": plan,
    "pin": pin,
    "power": power,
    "render": render,
}


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns its exit code: 0 fine, 1 refused (the reason is on stderr), 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="userturn", description="User turn generation as a reproducible study.")
    parser.add_argument("--version", action="version", version=f"userturn {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        command.add_arguments(commands.add_parser(name, help=command.HELP, description=command.__doc__))
    options = parser.parse_args(arguments)
    try:
        return COMMANDS[options.command].run(options)
    except Refusal as error:
        print(f"userturn: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
