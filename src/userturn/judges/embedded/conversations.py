"""What the embedded judge is trained on: conversations in which it is known what a text is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from userturn.messages import Message


@dataclass(frozen=True)
class Conversation:
    """A query, an answer to it, and texts of known origin.

    Attributes:
        id: Of the conversation; examples of one id never stand on both sides of a split.
        query: The user query.
        answer: The assistant turn after it.
        followups: What a user wrote, or would write, after that answer.
        paraphrases: The query in other words.
        new_tasks: Queries about something else.
        assistant_voice: What an assistant wrote, or would write, after that answer.
        meta: Talk about the conversation from outside.
    """

    id: str
    query: str
    answer: str
    followups: tuple[str, ...]
    paraphrases: tuple[str, ...] = ()
    new_tasks: tuple[str, ...] = ()
    assistant_voice: tuple[str, ...] = ()
    meta: tuple[str, ...] = ()


#: A text that holds more than blanks.
Text = Annotated[str, Field(pattern=r"\S")]


class WrittenConversation(BaseModel):
    """A row of ``training/*.jsonl``: written for this project."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1)
    kind: str
    query: Text
    answer: Text
    followups: tuple[Text, ...] = Field(min_length=1)
    paraphrases: tuple[Text, ...]
    new_tasks: tuple[Text, ...]
    assistant_voice: tuple[Text, ...]
    meta: Text


class TrainingError(ValueError):
    """The judge cannot be trained on what was given: says which row and what is wrong with it."""


def written(rows: Iterable[Mapping[str, Any]], name: str) -> list[Conversation]:
    """Reads rows of the project's own training conversations.

    Args:
        rows: parsed lines.
        name: of the file, for messages.

    Raises:
        TrainingError: naming the line and the key.
    """
    found = []
    for number, row in enumerate(rows, 1):
        try:
            one = WrittenConversation.model_validate(row)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise TrainingError(f"{name}, line {number}: {where}: {first['msg']}") from None
        found.append(Conversation(**one.model_dump(exclude={"kind", "meta"}), meta=(one.meta,)))
    return found


def human(items: Iterable[tuple[str, Sequence[Message], Mapping[str, Any]]]) -> Iterator[Conversation]:
    """Real exchanges of query, answer and next user turn, from the earlier turns of items and their follow-ups.

    Args:
        items: id, messages up to the last user query, and meta, which may hold what a person wrote next
            (``human_followup``) and the answer that they had read (``human_answer``).
    """
    for id, given, meta in items:
        messages = [(message["role"], message["content"]) for message in given]
        if meta.get("human_answer") and meta.get("human_followup"):
            messages += [("assistant", meta["human_answer"]), ("user", meta["human_followup"])]
        for place in range(len(messages) - 2):
            roles = tuple(role for role, _ in messages[place : place + 3])
            (_, query), (_, answer), (_, followup) = messages[place : place + 3]
            if roles != ("user", "assistant", "user") or not all(t.strip() for t in (query, answer, followup)):
                continue
            after = tuple(
                text for role, text in messages[place + 3 : place + 4] if role == "assistant" and text.strip()
            )
            yield Conversation(id, query, answer, (followup,), assistant_voice=after)
