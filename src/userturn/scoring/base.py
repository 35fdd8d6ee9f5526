"""What every scorer shares: the score, the interface and the reading of an item's reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"

_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class Score:
    """The verdict on one assistant turn.

    Attributes:
        state: ``scored``, or ``unscored`` when the response could not be parsed or verified. An unscored
            turn is neither right nor wrong; accuracy states its bounds.
        correct: The verdict that accuracy is computed from; None when unscored. Each scorer documents which
            of ``strict`` and ``loose`` it is.
        strict: The verdict under the benchmark's strict reading; None when unscored or not defined.
        loose: The verdict under the benchmark's lenient reading; None when unscored or not defined.
        extracted: The part of the response that was judged (cut to 200 characters); None when there is none.
        reason: Why it is unscored, or what decided.
        details: JSON facts of the scorer, for example results per instruction.
    """

    state: Literal["scored", "unscored"]
    correct: bool | None = None
    strict: bool | None = None
    loose: bool | None = None
    extracted: str | None = None
    reason: str | None = None
    details: dict[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.state == "unscored" and (self.correct, self.strict, self.loose) != (None, None, None):
            raise ValueError("an unscored turn has no verdict: correct, strict and loose must be None")
        if self.state == "unscored" and not self.reason:
            raise ValueError("an unscored turn must say why: reason is missing")
        if self.state == "scored" and self.correct is None:
            raise ValueError("a scored turn must say whether it is correct")


class Scorer(Protocol):
    """Judges one response against its item."""

    @property
    def name(self) -> str:
        """The name under which a config asks for this scorer."""
        ...

    def score(self, response: str, item: Mapping[str, Any]) -> Score:
        """Judges ``response``.

        Args:
            response: The assistant turn as the model wrote it (hostile text).
            item: A dataset row: ``{"item", "messages", "reference"}``.

        Returns:
            The score; ``unscored`` when the response cannot be judged.

        Raises:
            ValueError: If the item's reference is malformed, which is an error of the dataset, not of the
                model.
        """
        ...


def unscored(reason: str, *, extracted: str | None = None, details: dict[str, JSON] | None = None) -> Score:
    """A score that withholds judgement and says why."""
    return Score(state="unscored", reason=reason, extracted=shown(extracted), details=details or {})


def shown(text: str | None) -> str | None:
    """``text`` cut to 200 characters, with an ellipsis where it was cut."""
    if text is None or len(text) <= _SHOWN_CHARACTERS:
        return text
    return text[: _SHOWN_CHARACTERS - 1] + "…"


def reference_field(item: Mapping[str, Any], key: str, kind: type[Any], scorer: str) -> Any:
    """One field of the item's reference.

    Args:
        item: A dataset row.
        key: The field's name.
        kind: The type that it must have.
        scorer: Who asks, for the message.

    Returns:
        The field's value, of type ``kind``.

    Raises:
        ValueError: If the reference or the field is missing or has another type.
    """
    where = f"item {item.get('item')!r}"
    reference = item.get("reference")
    if not isinstance(reference, Mapping):
        raise ValueError(
            f"{where}: scorer {scorer!r} needs a reference with {key!r}, got {type(reference).__name__}; "
            "a dataset without references takes the scorer 'none'"
        )
    value = reference.get(key)
    if not isinstance(value, kind):
        raise ValueError(
            f"{where}: reference[{key!r}] must be {kind.__name__} for scorer {scorer!r}, got {shown(repr(value))}"
        )
    return value
