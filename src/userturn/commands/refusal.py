"""How a command says no."""

from __future__ import annotations


class Refusal(Exception):
    """A command cannot do what was asked; the message says what was given and what can be done."""
