"""The judge-free contrast: how probable known user turns are, word by word, after a context."""

from __future__ import annotations

from pydantic import Field

from userturn.config.section import Name, Section


class Likelihood(Section):
    """Teacher forcing: the log-probability of texts that are known, under the user role and under the assistant's."""

    controls: list[Name] = Field(min_length=1)
    """Controls whose user turns are scored: after their own context under the user role and under the assistant
    role, and, where that context is the unperturbed one, after another answer."""
    against: Name = "shuffled_context"
    """The perturbation whose contexts show another answer."""
