"""What the renderer takes and gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Prefix = Literal["stripped", "retained"]
"""How the context stands before the user header: `stripped` as earlier turns of a longer conversation
(templates drop thinking there), `retained` as the conversation's last turns, user header appended."""


class TemplateNotProbeable(ValueError):
    """A chat template, or one context under it, cannot be probed; the message says why."""


class HostileContentError(ValueError):
    """Message content would have become a control token in spite of every guard; nothing was rendered."""


class AddedTokenLike(Protocol):
    """The two properties of `tokenizers.AddedToken` that matter here."""

    @property
    def content(self) -> str:
        """The token's spelling."""

    @property
    def special(self) -> bool:
        """Whether the tokenizer declares it special."""


class ChatTokenizer(Protocol):
    """The part of transformers' `PreTrainedTokenizerBase` (a fast tokenizer) that the renderer uses."""

    @property
    def chat_template(self) -> Any:
        """Jinja source, a mapping of named sources, or None."""

    @property
    def added_tokens_decoder(self) -> Mapping[int, AddedTokenLike]:
        """Token id to added token."""

    @property
    def bos_token_id(self) -> int | None:
        """Id of the beginning-of-sequence token."""

    @property
    def eos_token_id(self) -> int | None:
        """Id of the end-of-sequence token."""

    @property
    def unk_token_id(self) -> int | None:
        """Id of the token for what the vocabulary lacks."""

    def apply_chat_template(self, conversation: Any, **kwargs: Any) -> Any:
        """Render a conversation."""

    def __call__(self, text: str, **kwargs: Any) -> Any:
        """Tokenise a text."""

    def convert_ids_to_tokens(self, ids: Sequence[int]) -> Any:
        """Spellings of token ids."""


@dataclass(frozen=True)
class Prompt:
    """A prompt, ready for the engine.

    Attributes:
        token_ids: What the model reads. Tokenised once, with no special token added.
        text: The same, with the template's control tokens visible. Where content spells a control token the
            text cannot show that it is inert; the ids are what counts.
    """

    token_ids: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class TurnFormat:
    """What a chat template was found to do, by probing it.

    Attributes:
        family: A name for people, derived from the control tokens seen; nothing depends on it.
        user_header: Text between the end of an assistant turn and the content of a user turn.
        user_header_token_ids: Its ids, tokenised on its own.
        user_end: Text between a user turn's content and the next turn's header.
        stop_token_ids: Sorted ids that end a generated user turn.
        stop_strings: Strings that end it, only where no single token can.
        assistant_header: What opens an assistant turn (the generation prompt where the template has one).
        assistant_turn_header: Text between the end of a user turn and the content of an earlier assistant turn.
        assistant_stop_token_ids: Sorted ids that end a generated assistant turn.
        template_sha256: Digest of the Jinja source, UTF-8.
        bos_token_id: The tokenizer's BOS, if any. Some tokenizers name a turn opener here (SmolLM2).
        notes: Findings that a person should know.
    """

    family: str
    user_header: str
    user_header_token_ids: tuple[int, ...]
    user_end: str
    stop_token_ids: tuple[int, ...]
    stop_strings: tuple[str, ...]
    assistant_header: str
    assistant_turn_header: str
    assistant_stop_token_ids: tuple[int, ...]
    template_sha256: str
    bos_token_id: int | None
    notes: tuple[str, ...]
