"""The command line: `userturn COMMAND`. What each command does is in `userturn.commands`."""

from __future__ import annotations

import argparse
import os
import select
import sys
from collections.abc import Mapping
from typing import Protocol

from userturn import __version__
from userturn.commands import (
    audit,
    config,
    diff,
    export,
    label,
    pin,
    plan,
    power,
    rebuild,
    render,
    restore,
    seal,
    status,
    verify,
)
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
    "audit": audit,
    "config": config,
    "diff": diff,
    "export": export,
    "label": label,
    "plan": plan,
    "pin": pin,
    "power": power,
    "rebuild": rebuild,
    "render": render,
    "restore": restore,
    "seal": seal,
    "status": status,
    "verify": verify,
}


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns its exit code.

    0 fine; 1 refused, or what was asked for is not so (the reason is on stderr); 2 wrong usage; 141, as of a program
    that SIGPIPE ended, where whoever read the output has left (``userturn plan | head``).
    """
    try:
        try:
            code = _run(arguments)
        except SystemExit:
            sys.stdout.flush()
            raise
        # here, not when Python exits: then nobody could tell this error from others any more
        sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_left():
            raise
        # what is still buffered goes nowhere, so that Python's own flush at exit finds nothing to complain of
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code


def _run(arguments: list[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="userturn", description="User turn generation as a reproducible study.")
    parser.add_argument("--version", action="version", version=f"userturn {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        command.add_arguments(commands.add_parser(name, help=command.HELP, description=command.__doc__))
    options = parser.parse_args(arguments)
    try:
        return COMMANDS[options.command].run(options)
    except Refusal as error:
        _complain(f"{error}")
        return error.exit_code
    except BrokenPipeError:
        raise
    except OSError as error:
        # a full disk, a file that is too large, a folder that may not be written: whatever was written before stands
        _complain(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        return 1


def _complain(text: str) -> None:
    from userturn.report.inert import visible_text

    # names that were given are repeated here: they may hold what a terminal obeys
    print(f"userturn: error: {visible_text(text)}", file=sys.stderr)


def _reader_left() -> bool:
    """Whether stdout is a pipe that nobody reads any more: another pipe or connection may have broken instead."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


if __name__ == "__main__":
    sys.exit(main())
