"""A tokenizer's chat template as a function from messages to text, with every choice fixed."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from userturn.messages import Message, Role
from userturn.render.types import ChatTokenizer, TemplateNotProbeable

DEFAULT_DATE = "2026-01-01"
"""The day that a template which prints today's date gets, unless `template_kwargs["date"]` says another."""

_OWN_KWARGS = frozenset(
    (
        "messages",
        "conversation",
        "tools",
        "documents",
        "chat_template",
        "tokenize",
        "add_generation_prompt",
        "continue_final_message",
        "padding",
        "truncation",
        "max_length",
        "return_dict",
        "return_tensors",
        "return_assistant_tokens_mask",
        "tokenizer_kwargs",
        "enable_thinking",
        "strftime_now",
    )
)


@dataclass(frozen=True)
class Template:
    """A chat template with its variables bound.

    Attributes:
        tokenizer: Whose `apply_chat_template` renders.
        source: The Jinja source.
        variables: Keyword arguments of every rendering.
        stem: A string of letters and digits that is in neither the source nor the variables.
        notes: What was fixed on the way.
    """

    tokenizer: ChatTokenizer
    source: str
    variables: Mapping[str, Any]
    stem: str
    notes: tuple[str, ...]

    @classmethod
    def bind(cls, tokenizer: ChatTokenizer, thinking: bool | None, variables: Mapping[str, Any]) -> "Template":
        """Bind a tokenizer's template.

        Args:
            tokenizer: The tokenizer.
            thinking: Passed as `enable_thinking`; required where the template reads that.
            variables: Further template variables. `date` (ISO) also fixes the clock of templates that print
                it.

        Raises:
            TemplateNotProbeable: There is no template, or `thinking` is needed and missing.
            ValueError: A variable is not for the caller to set.
        """
        source = template_source(tokenizer)
        if reserved := sorted(_OWN_KWARGS & set(variables)):
            raise ValueError(
                f"template_kwargs: {', '.join(map(repr, reserved))} cannot be set here (thinking has its own "
                "key, the rest belongs to the renderer); allowed: any other variable that the template reads"
            )
        bound: dict[str, Any] = dict(variables)
        notes: list[str] = []
        reads_thinking = re.search(r"\benable_thinking\b", source) is not None
        if reads_thinking and thinking is None:
            raise TemplateNotProbeable(
                "the template reads enable_thinking, and models of one family differ in its default: "
                "set thinking to true or false"
            )
        if thinking is not None:
            bound["enable_thinking"] = thinking
            if not reads_thinking:
                notes.append("the template does not read enable_thinking: the thinking flag has no effect")
        if re.search(r"\bstrftime_now\b", source):
            bound["strftime_now"] = _clock(str(variables.get("date", DEFAULT_DATE)))
            notes.append(f"the template prints the date: fixed at {variables.get('date', DEFAULT_DATE)}")
        stem = unused_stem([source, *(str(value) for value in variables.values())])
        return cls(tokenizer=tokenizer, source=source, variables=bound, stem=stem, notes=tuple(notes))

    @property
    def sha256(self) -> str:
        """Digest of the source."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    def render(self, messages: Sequence[Message], *, open_assistant: bool = False) -> str:
        """Render messages, optionally with the generation prompt.

        Raises:
            TemplateNotProbeable: The template refuses these messages; its own reason is given.
        """
        from jinja2 import TemplateError

        try:
            text = self.tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                tokenize=False,
                add_generation_prompt=open_assistant,
                **self.variables,
            )
        except (TemplateError, TypeError) as error:
            roles = ", ".join(message["role"] for message in messages)
            raise TemplateNotProbeable(f"the template refuses the roles [{roles}]: {error}") from error
        return str(text)

    def cut(self, messages: Sequence[Message], role: Role, sentinel: str) -> str:
        """Text up to where the content of one more turn of `role` would begin.

        Raises:
            TemplateNotProbeable: The template refuses that turn, drops it, alters its content or repeats it.
        """
        text = self.render([*messages, Message(role=role, content=sentinel)])
        return text[: position(text, sentinel, f"the content of a last {role} message")]


def template_source(tokenizer: ChatTokenizer) -> str:
    """The Jinja source of the template that a conversation without tools uses.

    Raises:
        TemplateNotProbeable: The tokenizer has none.
    """
    template = tokenizer.chat_template
    if isinstance(template, Mapping):
        template = template.get("default")
    if not isinstance(template, str) or not template.strip():
        raise TemplateNotProbeable("the tokenizer has no chat template: a base model cannot be given a user turn")
    return template


def position(text: str, sentinel: str, what: str) -> int:
    """Where the one `sentinel` stands in `text`.

    Raises:
        TemplateNotProbeable: It is not there exactly once; `what` names it in the message.
    """
    count = text.count(sentinel)
    if count == 1:
        return text.index(sentinel)
    if count > 1:
        raise TemplateNotProbeable(f"the template writes {what} {count} times")
    letters = re.sub(r"\W", "", text).lower()
    done = "alters" if sentinel.lower() in letters else "drops"
    raise TemplateNotProbeable(f"the template {done} {what}")


def unused_stem(texts: Sequence[str]) -> str:
    """The first of a fixed series of marks, letters and digits only, that occurs in none of `texts`."""
    number = 0
    while any(f"UserTurnMark{number}X" in text for text in texts):
        number += 1
    return f"UserTurnMark{number}X"


def _clock(date: str) -> Callable[[str], str]:
    try:
        fixed = datetime.fromisoformat(date)
    except ValueError as error:
        raise ValueError(f"template_kwargs.date: {date!r} is not an ISO date such as {DEFAULT_DATE}") from error
    return fixed.strftime
