"""Labels, turns and judgements: what every judge takes and gives.

The labels are those of ``docs/labels.md``, which also holds the rubric and the boundary cases. ``unscored``
is a state of a judgement and never a label: it says that this judge could not decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

Label = Literal[
    "genuine_followup",
    "restates_prompt",
    "continues_as_assistant",
    "meta_reasoning",
    "generic",
    "unrelated",
    "degenerate",
]
LABELS: tuple[Label, ...] = get_args(Label)
#: The label whose share is the study's main quantity.
GENUINE: Label = "genuine_followup"

State = Literal["scored", "unscored"]

DEFINITIONS: Mapping[Label, str] = MappingProxyType(
    {
        "genuine_followup": "In the voice of a user, and grounded: it reacts to the assistant turn shown, or "
        "asks on about the matter of query and assistant turn.",
        "restates_prompt": "The user query again: copied, shortened, lightly edited or paraphrased.",
        "continues_as_assistant": "The voice of an assistant: an answer, a worked solution, an offer of "
        "help, or the assistant turn copied or carried on.",
        "meta_reasoning": "Talks about the conversation from outside: what the user wants, what to reply, "
        "how the roles are cast.",
        "generic": "A user could say it, but it fits any conversation: thanks, greetings, 'what else?'.",
        "unrelated": "It concerns neither the query nor the assistant turn shown: a new problem or topic.",
        "degenerate": "No usable text: empty, a loop, gibberish, words that form no message, template tokens. "
        "Rules of a program decide first.",
    }
)


@dataclass(frozen=True)
class Turn:
    """One generated user turn with what it is judged against.

    Attributes:
        query: The last user query ``q`` of the item.
        answer: The assistant turn that the context *shows*, perturbed as it is; None when it was removed.
        text: The generated user turn ``u``, without the end marker.
        finish_reason: Why generation ended, as the engine reports it (``stop``, ``length``, ...).
    """

    query: str
    answer: str | None
    text: str
    finish_reason: str


def turn(item: Mapping[str, Any], context: Mapping[str, Any], user_turn: Mapping[str, Any]) -> Turn:
    """What a judge sees of a user turn, from the rows of its item, its context and itself."""
    return Turn(
        query=item["messages"][-1]["content"],
        answer=context["shown_answer"],
        text=user_turn["text"],
        finish_reason=user_turn["finish_reason"],
    )


@dataclass(frozen=True)
class Judgement:
    """A judge's decision about one user turn.

    Attributes:
        state: ``scored``, or ``unscored`` when the judge could not decide.
        label: One of `LABELS` when scored, None when unscored.
        evidence: What decided it: the rule's name under ``rule`` and the features it looked at, rounded to 4
            decimals so that the row is byte-stable.
        rationale: One sentence for a reader. It quotes nothing of the text judged.

    Raises:
        ValueError: If label and state contradict each other, or the label is not one of `LABELS`.
    """

    state: State
    label: Label | None
    evidence: dict[str, JSON]
    rationale: str

    def __post_init__(self) -> None:
        if self.state not in get_args(State):
            raise ValueError(f"judgement state {self.state!r}: allowed are {', '.join(get_args(State))}")
        if self.state == "scored" and self.label not in LABELS:
            raise ValueError(f"judgement label {self.label!r}: allowed are {', '.join(LABELS)}")
        if self.state == "unscored" and self.label is not None:
            raise ValueError(f"an unscored judgement carries no label, got {self.label!r}")


@runtime_checkable
class Judge(Protocol):
    """Anything that labels user turns: rules, a trained classifier, a language model.

    Attributes:
        name: Stable name, part of the path of its judgements.
        version: Changes whenever the same turn may get another label.
        provisional: True while the judge has not been validated against people; shown with every number.
    """

    @property
    def name(self) -> str:
        """Stable name."""
        ...

    @property
    def version(self) -> str:
        """Version of rules, weights or rubric."""
        ...

    @property
    def provisional(self) -> bool:
        """Whether it awaits validation."""
        ...

    def judge(self, turns: Sequence[Turn]) -> list[Judgement]:
        """Judge each turn by itself.

        Args:
            turns: Turns in any order; the judgement of one must not depend on the others.

        Returns:
            One judgement a turn, in the same order.
        """
        ...
