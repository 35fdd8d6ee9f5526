"""Message contents as the template is to see them: guarded, or replaced by inert marks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from userturn.messages import ROLES, Message
from userturn.render.controls import ControlTokens

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"

_SURROGATE = re.compile("[\ud800-\udfff]")


def checked(messages: Sequence[Message]) -> list[Message]:
    """Copy `messages`, refusing what no template can be expected to take.

    Args:
        messages: The conversation.

    Raises:
        ValueError: It is empty, or a role or a content is not what DESIGN.md allows.
    """
    if not messages:
        raise ValueError("the conversation is empty: at least one message is needed")
    for index, message in enumerate(messages):
        if message["role"] not in ROLES:
            raise ValueError(f"message {index}: role {message['role']!r}; allowed: {', '.join(ROLES)}")
        if not isinstance(message["content"], str):
            raise ValueError(f"message {index}: content is {type(message['content']).__name__}, a string is needed")
        if _SURROGATE.search(message["content"]):
            raise ValueError(f"message {index}: content has a lone surrogate, which is not Unicode text")
    return [Message(role=message["role"], content=message["content"]) for message in messages]


@dataclass(frozen=True)
class Content:
    """One message's content, taken apart.

    Attributes:
        opened: Whether a leading `<think>` stands before the reasoning.
        lead: Whitespace before that `<think>`.
        reasoning: Text before `</think>`; None without a think block.
        answer: The rest.
    """

    opened: bool
    lead: str
    reasoning: str | None
    answer: str

    @classmethod
    def of(cls, message: Message, controls: ControlTokens) -> "Content":
        """Take a message apart.

        One leading think block in an *assistant* message is what a thinking model itself writes and its
        template parses: it is structure. Anywhere else, think markers are text like any other.
        """
        content = message["content"]
        plain = cls(opened=False, lead="", reasoning=None, answer=content)
        if message["role"] != "assistant" or not {THINK_OPEN, THINK_CLOSE} <= set(controls.ids):
            return plain
        head, close, answer = content.partition(THINK_CLOSE)
        if not close:
            return plain
        before, opening, inside = head.partition(THINK_OPEN)
        opened = bool(opening)
        if opened and before.strip():
            return plain
        reasoning = inside if opened else head
        if any(mark in part for mark in (THINK_OPEN, THINK_CLOSE) for part in (reasoning, answer)):
            return plain
        return cls(opened=opened, lead=before if opened else "", reasoning=reasoning, answer=answer)

    def join(self, reasoning: str, answer: str) -> str:
        """The content with its texts replaced and its structure kept."""
        if self.reasoning is None:
            return answer
        return f"{self.lead}{THINK_OPEN if self.opened else ''}{reasoning}{THINK_CLOSE}{answer}"


def guarded_contents(
    messages: Sequence[Message], controls: ControlTokens, stem: str
) -> tuple[list[Message], dict[str, str]]:
    """Hide every control spelling in the contents.

    Args:
        messages: The conversation.
        controls: The control tokens.
        stem: A string that occurs in no content.

    Returns:
        The messages for the template, and placeholder to original spelling (empty if the contents are clean).
    """
    hidden: dict[str, str] = {}
    guarded: list[Message] = []
    for message in messages:
        content = Content.of(message, controls)
        reasoning = controls.hide(content.reasoning or "", stem, hidden)
        answer = controls.hide(content.answer, stem, hidden)
        guarded.append(Message(role=message["role"], content=content.join(reasoning, answer)))
    return guarded, hidden


def inert_contents(
    messages: Sequence[Message], controls: ControlTokens, stem: str
) -> tuple[list[Message], dict[int, str]]:
    """Replace every text by an inert mark: the same conversation, as the template's own parts see it.

    Args:
        messages: The conversation.
        controls: The control tokens.
        stem: A string that occurs nowhere else.

    Returns:
        The messages, and message index to the mark of its (not blank) answer.
    """
    inert: list[Message] = []
    marks: dict[int, str] = {}
    for index, message in enumerate(messages):
        content = Content.of(message, controls)
        reasoning = content.reasoning or ""
        answer = content.answer
        if reasoning.strip():
            reasoning = f"\n{stem}R{index:06d}E\n"
        if answer.strip():
            answer = marks[index] = f"{stem}A{index:06d}E"
        inert.append(Message(role=message["role"], content=content.join(reasoning, answer)))
    return inert, marks
