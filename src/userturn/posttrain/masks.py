"""Which tokens of a conversation are trained: rows of token ids whose prompts are those that the probe sees.

A row is a prompt, exactly as the renderer gives it to the engine, and the turn that a model would have to write after
it, with the token that ends it. So training and probing share one template code, and nothing else of a conversation
is ever trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from userturn.messages import Message
from userturn.render import HostileContentError, Prefix, Renderer, TemplateNotProbeable, TurnFormat

TurnRole = Literal["user", "assistant"]

#: A token with this label is read, not trained: the convention of PyTorch's cross entropy.
UNTRAINED = -100

#: Tokens of a header that a turn's first word may change.
_NEAR = 4


class NotTrainable(ValueError):
    """A turn cannot become a row; the message says why, in words that are counted."""


@dataclass(frozen=True)
class TrainingRow:
    """One turn to be trained.

    Attributes:
        prompt: token ids that precede it: those of the probe, or of the assistant's prompt.
        turn: its token ids, the end token among them.
        ended: whether the end token is trained: not where the turn was cut.
        left_out: messages that were left out at the front for length.
    """

    prompt: tuple[int, ...]
    turn: tuple[int, ...]
    ended: bool
    left_out: int = 0

    @property
    def input_ids(self) -> list[int]:
        """All tokens, in order."""
        return [*self.prompt, *self.turn]

    @property
    def labels(self) -> list[int]:
        """The trained tokens, `UNTRAINED` in place of the others."""
        return [UNTRAINED] * len(self.prompt) + list(self.turn)


class Masker:
    """Makes rows for one model.

    Args:
        open_renderer: a renderer of the model for a prefix.
        prefix: that of the study's probe.
        max_tokens: longest row.
        max_turn_tokens: longest trained turn.
    """

    def __init__(
        self, open_renderer: Callable[[Prefix], Renderer], prefix: Prefix, max_tokens: int, max_turn_tokens: int
    ) -> None:
        self._stripped, self._retained = open_renderer("stripped"), open_renderer("retained")
        self._probe = self._stripped if prefix == "stripped" else self._retained
        self._max_tokens, self._max_turn_tokens = max_tokens, max_turn_tokens

    @property
    def format(self) -> TurnFormat:
        """What the template was found to do."""
        return self._probe.format

    def row(self, messages: Sequence[Message], place: int) -> TrainingRow:
        """The row of one turn of a conversation.

        Args:
            messages: the conversation.
            place: of the turn in it; a user turn must stand after an answer, an assistant turn after a query.

        Raises:
            NotTrainable: the turn has no row; the message is the same for all turns of a kind.
        """
        turn = messages[place]
        role: TurnRole = "user" if turn["role"] == "user" else "assistant"
        keep_first = int(messages[0]["role"] == "system")
        least = 2 if role == "user" else 1
        for left_out in range(0, max(place - keep_first - least, 0) + 1, 2):
            context = [*messages[:keep_first], *messages[keep_first + left_out : place]]
            try:
                made = self._row(context, turn, role, left_out)
            except (TemplateNotProbeable, HostileContentError) as error:
                raise NotTrainable("the template does not take it") from error
            if len(made.prompt) + len(made.turn) <= self._max_tokens:
                return made
        raise NotTrainable(f"over {self._max_tokens} tokens without any earlier exchange")

    def _row(self, context: Sequence[Message], turn: Message, role: TurnRole, left_out: int) -> TrainingRow:
        if role == "user":
            prompt = self._probe.user_prompt(context).token_ids
            opened = self._stripped.user_prompt(context).token_ids
            whole = self._stripped.assistant_prompt([*context, turn]).token_ids
            stops = self.format.stop_token_ids
        else:
            # an answer is trained as the model writes it: as the conversation's last turn, think block included
            prompt = opened = self._retained.assistant_prompt(context).token_ids
            whole = self._retained.user_prompt([*context, turn]).token_ids
            stops = self.format.assistant_stop_token_ids
        start = self._start(whole, opened, turn["content"])
        ids, ended = self._ended(whole[start:], turn["content"], role, stops)
        if len(ids) - ended > self._max_turn_tokens:
            return TrainingRow(prompt, ids[: self._max_turn_tokens], False, left_out)
        return TrainingRow(prompt, ids, ended, left_out)

    def _start(self, whole: tuple[int, ...], opened: tuple[int, ...], content: str) -> int:
        """Where the turn begins in the whole conversation: after its header, whose last tokens the text may change.

        Some tokenizers join line breaks differently before a word than at the end: the prompt is the probe's all the
        same, and the turn is found by its own tokens.
        """
        if whole[: len(opened)] == opened:
            return len(opened)
        own = self._probe.content_token_ids(content)
        near = range(max(len(opened) - _NEAR, 0), len(opened) + _NEAR)
        start = next((place for place in near if whole[place : place + len(own)] == own), None)
        if start is None:
            raise NotTrainable("its first word changes the tokens of the header")
        return start

    def _ended(
        self, rest: tuple[int, ...], content: str, role: TurnRole, stops: Sequence[int]
    ) -> tuple[tuple[int, ...], bool]:
        """A turn's own tokens with the one that ends it, from all that follows its header."""
        every = {*self.format.stop_token_ids, *self.format.assistant_stop_token_ids}
        end = next((place for place, token in enumerate(rest) if token in every), None)
        own = self._own(rest, content)
        if end is None:
            # markers in plain words: the turn ends with its own text, and no token says so
            if own is None:
                raise NotTrainable("the template changes its words")
            return own, False
        if role == "user" and own is not None and end > len(own) and self.format.user_end.strip():
            # what a template itself appends to a query is no user's word
            return (*own, rest[end]), True
        if rest[end] in stops:
            return rest[: end + 1], True
        # harmony closes an earlier answer in another way than the model closes its own
        return rest[:end], False

    def _own(self, rest: tuple[int, ...], content: str) -> tuple[int, ...] | None:
        """The tokens of the turn's text alone, where the rest begins with them; a header may leave a space to them."""
        for text in (content, " " + content):
            own = self._probe.content_token_ids(text)
            if rest[: len(own)] == own:
                return own
        return None
