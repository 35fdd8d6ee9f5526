"""Conversations to train on: read from their sources, and left out where they cannot serve."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from userturn.datasets.english import is_english
from userturn.judges.embedded.conversations import written
from userturn.messages import Message, Role

#: Longest message kept, in characters: beyond it stand pasted documents.
MAX_CHARS = 8000
#: What other projects call the two speakers.
_ROLES: Mapping[str, Role] = {
    "user": "user",
    "human": "user",
    "prompter": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "system": "system",
}


class TrainingDataError(ValueError):
    """Training data cannot be read or is not enough: says where and what is needed."""


@dataclass(frozen=True)
class Conversation:
    """A conversation to train on.

    Attributes:
        id: ``<source>/<place or native id>``.
        messages: as they were written, blanks at both ends cut off.
    """

    id: str
    messages: tuple[Message, ...]

    @property
    def opening(self) -> str:
        """The first user message; empty where there is none."""
        return next((one["content"] for one in self.messages if one["role"] == "user"), "")


def _message(row: Mapping[str, Any], where: str) -> Message:
    role = row.get("role", row.get("from"))
    content = next((row[key] for key in ("content", "value", "text") if isinstance(row.get(key), str)), None)
    if role not in _ROLES or content is None:
        raise TrainingDataError(
            f"{where}: expected a message with a role ({', '.join(_ROLES)}) and a text, got the keys "
            f"{', '.join(sorted(row))} and the role {str(role)[:40]!r}"
        )
    return Message(role=_ROLES[role], content=content.strip())


def _messages(rows: object, where: str) -> tuple[Message, ...]:
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not all(isinstance(row, Mapping) for row in rows):
        raise TrainingDataError(f"{where}: expected a list of messages")
    return tuple(_message(row, f"{where}, message {place}") for place, row in enumerate(rows, 1))


def chats(rows: Iterable[Mapping[str, Any]], name: str) -> Iterator[Conversation]:
    """Reads rows with ``messages`` or ``conversation``, or with ``prompt`` (messages) and ``completion`` (a text).

    Args:
        rows: parsed lines, or the rows of a table.
        name: of the source.

    Raises:
        TrainingDataError: naming the row and what was expected.
    """
    for number, row in enumerate(rows, 1):
        where = f"{name}, row {number}"
        found = next((row[key] for key in ("messages", "conversation", "conversations") if row.get(key)), None)
        if found is None and row.get("prompt") is not None and isinstance(row.get("completion"), str):
            found = [*row["prompt"], {"role": "assistant", "content": row["completion"]}]
        if found is None:
            raise TrainingDataError(
                f"{where}: expected 'messages', 'conversation', or 'prompt' with 'completion'; got "
                f"{', '.join(sorted(row)) or 'no keys'}"
            )
        yield Conversation(f"{name}/{number - 1:06d}", _messages(found, where))


def tooltalk(documents: Iterable[tuple[str, bytes]], name: str) -> Iterator[Conversation]:
    """Reads ToolTalk (Farn and Shin 2023, arXiv 2311.10775): one JSON document a conversation, calls left out.

    Args:
        documents: file name and bytes.
        name: of the source.

    Raises:
        TrainingDataError: naming the document and what was expected.
    """
    for file, data in documents:
        where = f"{name}, {file}"
        try:
            document = json.loads(data.decode("utf-8"))
        except ValueError as error:
            raise TrainingDataError(f"{where}: not JSON: {error}") from error
        if not isinstance(document, dict) or "conversation" not in document:
            raise TrainingDataError(f"{where}: expected an object with 'conversation'")
        yield Conversation(f"{name}/{file.removesuffix('.json')}", _messages(document["conversation"], where))


def own(rows: Iterable[Mapping[str, Any]], name: str) -> Iterator[Conversation]:
    """Reads rows like ``training/conversations.jsonl``: one conversation of two exchanges for each follow-up."""
    for one in written(rows, name):
        for place, followup in enumerate(one.followups):
            texts: tuple[tuple[Role, str], ...] = (
                ("user", one.query),
                ("assistant", one.answer),
                ("user", followup),
            )
            messages = tuple(Message(role=role, content=text.strip()) for role, text in texts)
            yield Conversation(f"{name}/{one.id}-{place}", messages)


def from_items(items: Iterable[Mapping[str, Any]], name: str) -> Iterator[Conversation]:
    """Items of a dataset with earlier turns, or with a person's answer and follow-up, as conversations."""
    for item in items:
        messages = [*item["messages"]]
        meta = item["meta"]
        if meta.get("human_answer") and meta.get("human_followup"):
            messages.append(Message(role="assistant", content=meta["human_answer"]))
            messages.append(Message(role="user", content=meta["human_followup"]))
        cut = tuple(Message(role=one["role"], content=one["content"].strip()) for one in messages)
        yield Conversation(f"{name}/{item['item']}", cut)


def fault(one: Conversation, *, english: bool) -> str | None:
    """Why a conversation cannot be trained on; None where it can."""
    spoken = one.messages[1:] if one.messages and one.messages[0]["role"] == "system" else one.messages
    if any(message["role"] != ("user", "assistant")[place % 2] for place, message in enumerate(spoken)):
        return "user and assistant do not take turns"
    if len(spoken) < 3:
        return "no user turn after an answer"
    if not all(message["content"] for message in one.messages):
        return "an empty message"
    if any(len(message["content"]) > MAX_CHARS for message in one.messages):
        return f"a message over {MAX_CHARS} characters"
    if english and not is_english(one.opening):
        return "not English"
    return None


def usable(found: Iterable[Conversation], *, english: bool) -> tuple[list[Conversation], Counter[str]]:
    """Conversations that can be trained on, each opening and wording once, and how many were left out for what."""
    kept: dict[tuple[str, ...], Conversation] = {}
    dropped: Counter[str] = Counter()
    for one in found:
        why = fault(one, english=english)
        words = tuple(message["content"] for message in one.messages)
        if why is None and words in kept:
            why = "the same as another"
        if why is None:
            kept[words] = one
        else:
            dropped[why] += 1
    return list(kept.values()), dropped
