"""A user's own conversations, checked line by line."""

import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from userturn.datasets.gsm8k import canonical_number
from userturn.datasets.ifeval import arguments
from userturn.datasets.items import Item, Row
from userturn.messages import Message

DATASET = "own"

KEYS = ("id", "messages", "next_user", "reference", "scorer")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def _number(row: Row, _: str) -> dict[str, Any]:
    answer = _answer(row)
    number = canonical_number(answer)
    if number is None:
        raise row.fail("a number in 'reference' for the scorer 'gsm8k', such as 1450000 or -3.5", answer)
    return {"answer": number}


def _latex(row: Row, _: str) -> dict[str, Any]:
    return {"answer": _answer(row)}


def _answer(row: Row) -> str:
    """The answer, given as a text or as ``{"answer": text}``."""
    if isinstance(row.optional("reference"), str):
        return row.text("reference")
    return row.inner("reference").text("answer")


def _choice(row: Row, _: str) -> dict[str, Any]:
    reference = row.inner("reference")
    answer, choices = reference.text("answer"), reference.texts("choices")
    if not 2 <= len(choices) <= 26:
        raise row.fail("2 to 26 texts in reference.choices", len(choices))
    letters = string.ascii_uppercase[: len(choices)]
    if len(answer) != 1 or answer not in letters:
        raise row.fail(f"a letter from {letters[0]} to {letters[-1]} in reference.answer", answer)
    return {"answer": answer, "choices": choices}


def _instructions(row: Row, query: str) -> dict[str, Any]:
    reference = row.inner("reference")
    ids = reference.texts("instruction_id_list")
    return {"instruction_id_list": ids, "kwargs": arguments(reference, ids), "prompt": query}


def _anything(row: Row, _: str) -> dict[str, Any] | None:
    value = row.optional("reference")
    if isinstance(value, str):
        return {"answer": value}
    if value is not None and not isinstance(value, dict):
        raise row.fail("a text or an object in 'reference'", value)
    return value


#: What each scorer needs in ``reference``.
REFERENCES: Mapping[str, Callable[[Row, str], dict[str, Any] | None]] = MappingProxyType(
    {
        "gsm8k": _number,
        "math": _latex,
        "choice": _choice,
        "ifeval": _instructions,
        "ifbench": _instructions,
        "none": _anything,
    }
)


def _native(row: Row) -> str:
    """The id of a line: its own, or its place in the file."""
    value = row.optional("id")
    if value is None:
        return f"{row.index:04d}"
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise row.fail("up to 100 letters, digits, '.', '_' and '-' in 'id', starting with a letter or digit", value)
    return value


def _messages(row: Row) -> list[Message]:
    messages = row.conversation("messages")
    spoken = messages[1:] if messages[0]["role"] == "system" else messages
    for place, message in enumerate(spoken):
        expected = "user" if place % 2 == 0 else "assistant"
        if message["role"] != expected:
            roles = ", ".join(one["role"] for one in messages)
            raise row.fail("'messages' of user and assistant in turn, after at most one system message", roles)
    return messages


def items(rows: Iterable[Row], _seed: int) -> Iterator[tuple[Row, Item]]:
    """Reads rows ``{"messages", "id", "reference", "scorer", "next_user"}``; only ``messages`` must be there.

    ``messages`` are ``{"role", "content"}``: at most one system message, then user and assistant in turn, ending with
    the user turn that the model answers. ``scorer`` names how its answer is scored and so what ``reference`` must
    hold (`REFERENCES`); without it the answer is not scored. ``next_user`` is what a person really wrote next.

    Args:
        rows: the rows in file order.
        _seed: not needed.

    Yields:
        Items ``own-<id>``, numbered from ``own-0000`` where there is no id; ``meta.scorer`` and
        ``meta.human_followup`` where they were given.

    Raises:
        DatasetError: naming the line and what was expected.
    """
    for row in rows:
        unknown = [name for name in row.names if name not in KEYS]
        if unknown:
            raise row.fail(f"no other keys than {', '.join(KEYS)}", ", ".join(unknown))
        messages = _messages(row)
        scorer = row.text("scorer") if row.has("scorer") else "none"
        if scorer not in REFERENCES:
            raise row.fail(f"one of {', '.join(REFERENCES)} in 'scorer'", scorer)
        meta: dict[str, Any] = {"scorer": scorer, "source_index": row.index}
        if row.has("next_user"):
            meta["human_followup"] = row.text("next_user")
        yield (
            row,
            {
                "item": f"{DATASET}-{_native(row)}",
                "messages": messages,
                "reference": REFERENCES[scorer](row, messages[-1]["content"]),
                "meta": meta,
            },
        )
