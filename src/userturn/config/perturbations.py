"""The perturbations of a study and the temperatures at which each is sampled."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from userturn.config.sampling import Temperature
from userturn.config.section import Section


class _Sampled(Section):
    temperatures: list[Temperature] = Field(min_length=1)
    """Temperatures of the user turns; 0.0 is deterministic decoding (one sample an item)."""

    @field_validator("temperatures")
    @classmethod
    def _distinct(cls, value: list[float]) -> list[float]:
        repeated = sorted({t for t in value if value.count(t) > 1})
        if repeated:
            raise ValueError(f"each temperature makes one cell, so it may stand once; given twice: {repeated}")
        return value


class Baseline(_Sampled):
    """The context as it is: `[q; a]`."""

    kind: Literal["baseline"] = "baseline"


class ShuffledContext(_Sampled):
    """The assistant turn of another item of the same dataset."""

    kind: Literal["shuffled_context"] = "shuffled_context"
    draw: int = Field(default=0, ge=0)
    """Which seeded derangement: another number pairs the items anew."""


class RemovedAssistant(_Sampled):
    """`q` alone, then the user header."""

    kind: Literal["removed_assistant"] = "removed_assistant"


class SwappedRoles(_Sampled):
    """`q` under the assistant role and `a` under the user role."""

    kind: Literal["swapped_roles"] = "swapped_roles"


class TruncatedAssistant(_Sampled):
    """`a` cut at a fraction of its tokens."""

    kind: Literal["truncated_assistant"] = "truncated_assistant"
    fraction: float = Field(default=0.5, gt=0.0, lt=1.0)
    """Share of the assistant turn's tokens that stays."""


class AppendedQuestion(_Sampled):
    """`a` plus a closing question."""

    kind: Literal["appended_question"] = "appended_question"
    question: str = Field(default="Is there anything else you would like to know about this?", min_length=1)
    """The closing question, set after a blank line."""


Perturbation = Annotated[
    Baseline | ShuffledContext | RemovedAssistant | SwappedRoles | TruncatedAssistant | AppendedQuestion,
    Field(discriminator="kind"),
]
