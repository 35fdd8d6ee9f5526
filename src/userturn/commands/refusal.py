"""How a command says no."""

from __future__ import annotations


class Refusal(Exception):
    """A command cannot do what was asked; the message says what was given and what can be done."""

    exit_code = 1


class WrongUsage(Refusal):
    """What was given is not there or means nothing: a path, a pattern, an id."""

    exit_code = 2
