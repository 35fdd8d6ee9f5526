"""How a judge reaches its model: what every transport takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from userturn.judges.llm.verdict import Cause
from userturn.messages import Message

Conversation = Sequence[Message]


@dataclass(frozen=True)
class Reply:
    """How one question ended: exactly one of `text` and `cause` is there.

    Attributes:
        text: All that the model wrote, when it ended by itself.
        cause: Why there is nothing to parse.
        detail: One printable line about the cause for a person; volatile, for logs alone.
        prompt_tokens: Tokens read, where known.
        completion_tokens: Tokens written, where known.
    """

    text: str | None
    cause: Cause | None = None
    detail: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


OnReply = Callable[[int, Reply], None]


class JudgeStopped(RuntimeError):
    """Judging cannot go on: says why, and what can be changed. Every verdict so far is kept."""


class Transport(Protocol):
    """Puts conversations to a model, each by itself."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What of model and parameters could change an answer: part of every request's key. Plain JSON."""
        ...

    @property
    def marked(self) -> bool:
        """Whether a verdict must repeat the case's mark: where decoding is not bound to the schema here."""
        ...

    def ask(self, conversations: Sequence[Conversation], on_reply: OnReply) -> None:
        """Puts every conversation.

        Args:
            conversations: The questions.
            on_reply: Called once for each, with its index, as soon as its answer is there, in any order.

        Raises:
            JudgeStopped: It cannot go on; what was answered was handed over before.
        """
        ...

    def facts(self) -> dict[str, Any]:
        """What a manifest should hold of the work done: counts, tokens, spend. Volatile."""
        ...
