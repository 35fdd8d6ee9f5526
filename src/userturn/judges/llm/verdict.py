"""What a language model must answer: a JSON object, whole and exact, or there is no verdict."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from userturn.judges.labels import JSON
from userturn.judges.llm.shown import visible

#: `degenerate` is missing: a program decides it, and such turns are not put to a model.
AskedLabel = Literal[
    "genuine_followup",
    "restates_prompt",
    "continues_as_assistant",
    "meta_reasoning",
    "generic",
    "unrelated",
]
ASKED_LABELS: tuple[AskedLabel, ...] = get_args(AskedLabel)

Cause = Literal[
    "empty",
    "hostile_prompt",
    "malformed_json",
    "malformed_response",
    "prompt_too_long",
    "refusal",
    "request_failed",
    "truncated",
    "unknown_label",
    "wrong_mark",
    "wrong_shape",
]
CAUSES: tuple[Cause, ...] = get_args(Cause)

#: No verdict is longer than this, in characters.
_MAX_OUTPUT = 50_000


class NoVerdict(ValueError):
    """The output is no verdict.

    Attributes:
        cause: Why.
    """

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause)
        self.cause = cause


class Verdict(BaseModel):
    """A verdict as the model gave it; the strings are visible text."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    reacts_to: str
    """Words of the assistant turn that the user turn reacts to, as claimed; blank where there are none."""
    reason: str
    """The model's own words."""
    label: AskedLabel
    """The label."""


def schema(*, marked: bool) -> dict[str, Any]:
    """The JSON schema of the answer: evidence before reason before label, since models write in this order.

    The strings' lengths are not limited: servers of OpenAI's protocol need not take a limit, and a local grammar with
    one takes 3.6 ms a token for its mask instead of 0.02 ms (xgrammar 0.2.8, vocabulary of 49,152, a limit of 100).

    Args:
        marked: Whether the answer must repeat the case's mark. A text that holds a whole verdict cannot hold the mark,
            so a model that copies it out is found out. Of no use where decoding itself follows the schema.
    """
    text = {"type": "string"}
    properties: dict[str, Any] = {
        **({"mark": text} if marked else {}),
        "reacts_to": text,
        "reason": text,
        "label": {"type": "string", "enum": list(ASKED_LABELS)},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NoVerdict("malformed_json")
    return found


def _constant(name: str) -> None:
    raise NoVerdict("malformed_json")


def parse(output: str, mark: str | None) -> Verdict:
    """Reads the whole output as a verdict: nothing is searched for, nothing repaired.

    Args:
        output: All that the model wrote.
        mark: The mark that the verdict must repeat; None where it must have none.

    Raises:
        NoVerdict: It is anything else.
    """
    if not output.strip():
        raise NoVerdict("empty")
    if len(output) > _MAX_OUTPUT:
        raise NoVerdict("malformed_json")
    try:
        found = json.loads(output, object_pairs_hook=_object, parse_constant=_constant)
    except NoVerdict:
        raise
    except (ValueError, RecursionError) as error:
        raise NoVerdict("malformed_json") from error
    if not isinstance(found, dict):
        raise NoVerdict("wrong_shape")
    if mark is not None and found.pop("mark", None) != mark:
        raise NoVerdict("wrong_mark")
    return validated(found)


def validated(found: dict[str, JSON]) -> Verdict:
    """Checks the fields of a verdict.

    Raises:
        NoVerdict: A field is missing, unknown, of another type, or the label is not one of `ASKED_LABELS`.
    """
    try:
        verdict = Verdict.model_validate(
            {key: visible(value) if isinstance(value, str) else value for key, value in found.items()}
        )
    except ValidationError as error:
        unknown = [one["type"] for one in error.errors()] == ["literal_error"] and isinstance(found["label"], str)
        raise NoVerdict("unknown_label" if unknown else "wrong_shape") from error
    return verdict
