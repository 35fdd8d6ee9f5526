"""The rows of a study's grid: perturbations, the instructed contrast, and controls for the judge."""

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


class RepeatedBaseline(_Sampled):
    """The baseline once more in a cell of its own: at temperature 0 every text must repeat, above it only the rate."""

    kind: Literal["repeated_baseline"] = "repeated_baseline"


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


class Instructed(_Sampled):
    """A contrast: the model, as the assistant, is asked to write the user's next message."""

    kind: Literal["instructed"] = "instructed"
    instruction: str = Field(
        default="Write the message that I, the user, would most likely send you next. Write only that message.",
        min_length=1,
    )
    """What the model is told, as a further user message."""


class _Control(Section):
    """User turns that are known, not generated: judged like any other cell, they validate the probe and its judge."""

    temperatures: list[Temperature] = Field(default=[0.0])
    """Always [0.0]: a control is known, so it stands where deterministic turns stand."""

    @field_validator("temperatures")
    @classmethod
    def _fixed(cls, value: list[float]) -> list[float]:
        if value != [0.0]:
            raise ValueError("a control's user turns are known, not sampled: leave temperatures out, or give [0.0]")
        return value


class HumanFollowup(_Control):
    """Ceiling: the follow-up that a person wrote, for items that have one."""

    kind: Literal["human_followup"] = "human_followup"


class EchoedQuery(_Control):
    """Floor: the query again."""

    kind: Literal["echoed_query"] = "echoed_query"


class ContinuedAnswer(_Control):
    """Floor: the context ends at a fraction of the answer, the user turn is the rest of it."""

    kind: Literal["continued_answer"] = "continued_answer"
    fraction: float = Field(default=0.5, gt=0.0, lt=1.0)
    """Share of the assistant turn's tokens that stays in the context."""


class OtherFollowup(_Control):
    """Floor: the human follow-up of another item."""

    kind: Literal["other_followup"] = "other_followup"
    draw: int = Field(default=0, ge=0)
    """Which seeded derangement."""


Perturbation = Annotated[
    Baseline
    | RepeatedBaseline
    | ShuffledContext
    | RemovedAssistant
    | SwappedRoles
    | TruncatedAssistant
    | AppendedQuestion
    | Instructed
    | HumanFollowup
    | EchoedQuery
    | ContinuedAnswer
    | OtherFollowup,
    Field(discriminator="kind"),
]
#: Kinds whose user turns are known by construction.
CONTROLS = frozenset({"human_followup", "echoed_query", "continued_answer", "other_followup"})
