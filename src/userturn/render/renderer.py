"""Messages to prompts."""

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from userturn.messages import Message
from userturn.render.contents import checked, guarded_contents, inert_contents
from userturn.render.controls import ControlTokens, Encoder, restore
from userturn.render.probe import probe, retained
from userturn.render.template import Template, position, unused_stem
from userturn.render.types import (
    ChatTokenizer,
    HostileContentError,
    Prefix,
    Prompt,
    TemplateNotProbeable,
    TurnFormat,
)

_NO_KWARGS: Mapping[str, Any] = MappingProxyType({})

_Turn = Literal["assistant", "user"]


class Renderer:
    """Writes prompts for one tokenizer and its chat template.

    Attributes:
        format: What the template was found to do.
        prefix: How a context stands before the user header.
    """

    format: TurnFormat
    prefix: Prefix

    def __init__(
        self,
        tokenizer: ChatTokenizer,
        *,
        prefix: Prefix = "stripped",
        thinking: bool | None = None,
        template_kwargs: Mapping[str, Any] = _NO_KWARGS,
        extra_stop_token_ids: tuple[int, ...] = (),
    ) -> None:
        """Probe the template.

        Args:
            tokenizer: A fast tokenizer with a chat template.
            prefix: `stripped` or `retained` (PROTOCOL.md, "Generating under the user role").
            thinking: The `enable_thinking` flag; required where the template reads it.
            template_kwargs: Further template variables, such as `reasoning_effort` and `date` for harmony.
            extra_stop_token_ids: Ids that end any turn beyond those found.

        Raises:
            TemplateNotProbeable: No user turn can be written under this template; the message says why.
            ValueError: An argument is out of range.
        """
        if prefix not in get_args(Prefix):
            raise ValueError(f"prefix: {prefix!r}; allowed: {', '.join(get_args(Prefix))}")
        self.prefix = prefix
        self._template = Template.bind(tokenizer, thinking, template_kwargs)
        self._controls = ControlTokens.of(tokenizer, self._template.source)
        self._encoder = Encoder(tokenizer, self._controls)
        self._probe = probe(self._template, self._encoder, extra_stop_token_ids)
        self._expected: dict[tuple[Any, ...], tuple[int, ...]] = {}
        self.format = self._probe.format

    def assistant_prompt(self, messages: Sequence[Message]) -> Prompt:
        """The prompt after which the model writes the assistant's turn.

        Args:
            messages: The conversation so far.

        Raises:
            TemplateNotProbeable: The template does not take these messages.
            HostileContentError: A content would have become a control token.
        """
        return self._prompt(messages, "assistant")

    def user_prompt(self, messages: Sequence[Message]) -> Prompt:
        """The prompt after which the model writes the user's next turn: the context, then the user header.

        Args:
            messages: The context; its last message may be a user's own.

        Raises:
            TemplateNotProbeable: The template does not take these messages, or no user turn after them.
            HostileContentError: A content would have become a control token.
        """
        return self._prompt(messages, "user")

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` as message content (a control token's spelling counts as the text it is)."""
        return len(self._encoder.offsets(text))

    def content_token_ids(self, text: str) -> tuple[int, ...]:
        """Token ids of `text` as message content, tokenised on its own, control spellings inert."""
        return tuple(id for piece in self._controls.broken(text) for id in self._encoder.plain(piece))

    def as_assistant(self, user_prompt: Sequence[int]) -> tuple[int, ...]:
        """A user prompt with the header of an assistant turn of the history in place of the user header.

        Args:
            user_prompt: Token ids as `user_prompt` gives them.

        Raises:
            TemplateNotProbeable: The two roles' headers cannot be exchanged in this template.
        """
        header, other = self.format.user_header_token_ids, self.format.assistant_turn_header
        if not other.strip() or tuple(user_prompt[len(user_prompt) - len(header) :]) != header:
            raise TemplateNotProbeable(
                f"the prompt does not end with the user header {self.format.user_header!r}, or the template opens no "
                f"assistant turn ({other!r}): the roles cannot be set against each other, so that for this model "
                "probe.likelihood must be null"
            )
        return (*user_prompt[: len(user_prompt) - len(header)], *self._encoder.plain(other))

    def truncate(self, text: str, fraction: float) -> tuple[str, int, int]:
        """Cut `text` at a fraction of its tokens, never inside a character.

        Args:
            text: Any text.
            fraction: Share of tokens to keep, in [0, 1], taken as the decimal it is written as; the count is
                rounded down.

        Returns:
            A prefix of `text`, the number of tokens wholly in it, and the number of tokens of `text`.

        Raises:
            ValueError: `fraction` is out of range.
        """
        if not 0 <= fraction <= 1:
            raise ValueError(f"fraction: {fraction!r}; allowed: 0 to 1")
        spans = self._encoder.offsets(text)
        kept = int(Fraction(str(float(fraction))) * len(spans))
        if kept == len(spans):
            return text, kept, kept
        # Several byte tokens of one character share its span: a cut among them moves before the character.
        limit = spans[kept][0]
        while kept and spans[kept - 1][1] > limit:
            kept -= 1
            limit = min(limit, spans[kept][0])
        end = max((stop for _, stop in spans[:kept]), default=0)
        return text[:end], kept, len(spans)

    def _prompt(self, messages: Sequence[Message], turn: _Turn) -> Prompt:
        messages = checked(messages)
        stem = unused_stem([self._template.source, *(message["content"] for message in messages)])
        guarded, hidden = guarded_contents(messages, self._controls, stem)
        rendered = self._compose(guarded, turn, f"{stem}S")
        ids = self._encoder.guarded(rendered, hidden) if hidden else self._encoder.plain(rendered)
        found, expected = self._controls.within(ids), self._control_sequence(messages, turn)
        if found != expected:
            concerned = sorted(set(found) ^ set(expected)) or sorted(set(found))
            raise HostileContentError(
                f"the prompt has {len(found)} control tokens, the same turns with harmless content have "
                f"{len(expected)} (concerned: {self._encoder.tokenizer.convert_ids_to_tokens(concerned)}): "
                "some content acts as a control token in a way that cannot be made inert"
            )
        self._assert_one_bos(ids)
        return Prompt(token_ids=tuple(ids), text=restore(rendered, hidden))

    def _control_sequence(self, messages: Sequence[Message], turn: _Turn) -> tuple[int, ...]:
        # Those of the same conversation with inert contents; checks also that no message is lost on the way.
        stem = self._template.stem
        inert, marks = inert_contents(messages, self._controls, stem)
        key = (turn, *((message["role"], message["content"]) for message in inert))
        if key not in self._expected:
            rendered = self._compose(inert, turn, f"{stem}S")
            for index, mark in marks.items():
                position(rendered, mark, f"the content of message {index} ({messages[index]['role']})")
            self._expected[key] = self._controls.within(self._encoder.plain(rendered))
        return self._expected[key]

    def _compose(self, messages: Sequence[Message], turn: _Turn, sentinel: str) -> str:
        template, found = self._template, self._probe
        if turn == "assistant":
            if not found.cut_assistant:
                return template.render(messages, open_assistant=True)
            text = template.cut(messages, "assistant", sentinel)
            return _without_slack(text, found.assistant_slack)
        # For `retained` too: a context after which the template allows no user turn is refused.
        text = template.cut(messages, "user", sentinel)
        if self.prefix == "stripped":
            return _without_slack(text, found.user_slack)
        return retained(template, messages, found.generation_prompt) + self.format.user_header

    def _assert_one_bos(self, ids: Sequence[int]) -> None:
        bos = self.format.bos_token_id
        if bos is not None and list(ids[:2]) == [bos, bos]:
            raise TemplateNotProbeable(f"the prompt begins with two BOS tokens (id {bos})")


def _without_slack(text: str, spaces: int) -> str:
    # A header may end otherwise in a given context: Mistral's last query is led by the system message.
    return text.removesuffix(" " * spaces)


def load_renderer(
    model_folder: Path,
    *,
    prefix: Prefix = "stripped",
    thinking: bool | None = None,
    template_kwargs: Mapping[str, Any] = _NO_KWARGS,
    extra_stop_token_ids: tuple[int, ...] = (),
) -> Renderer:
    """Load the tokenizer of a local model folder and probe its template.

    The end-of-sequence ids of the folder's generation config stop every turn too, the rest is ignored.

    Args:
        model_folder: A folder as transformers writes it. Nothing is fetched and no code in it is run.
        prefix: See `Renderer`.
        thinking: See `Renderer`.
        template_kwargs: See `Renderer`.
        extra_stop_token_ids: See `Renderer`.

    Raises:
        FileNotFoundError: There is no such folder.
        TemplateNotProbeable: No user turn can be written with this tokenizer; the message says why.
    """
    if not model_folder.is_dir():
        raise FileNotFoundError(f"model folder not found: {model_folder}")
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(model_folder, local_files_only=True, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise TemplateNotProbeable(f"{model_folder}: only a fast tokenizer (tokenizer.json) gives character offsets")
    return Renderer(
        tokenizer,
        prefix=prefix,
        thinking=thinking,
        template_kwargs=template_kwargs,
        extra_stop_token_ids=(
            *extra_stop_token_ids,
            *_generation_eos(model_folder / "generation_config.json"),
        ),
    )


def _generation_eos(path: Path) -> tuple[int, ...]:
    if not path.is_file():
        return ()
    eos = json.loads(path.read_text(encoding="utf-8")).get("eos_token_id")
    return tuple(eos) if isinstance(eos, list) else () if eos is None else (int(eos),)
