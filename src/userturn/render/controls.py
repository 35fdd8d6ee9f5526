"""Control tokens, and a tokenisation in which message content cannot spell one.

A fast tokenizer first splits text at its added tokens, then tokenises each part on its own. So a text in
which only the template's own control tokens are split, and content that spells one is cut inside it, has
exactly the ids of the ordinary path wherever content is clean, and inert ids where it is not.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from userturn.render.types import ChatTokenizer, HostileContentError


@dataclass(frozen=True)
class ControlTokens:
    """The spellings that this tokenizer and template treat as control.

    Attributes:
        ids: Spelling to token id.
    """

    ids: Mapping[str, int]
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _overlapping: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _id_set: frozenset[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Longest first: tokenizers match leftmost-longest. An empty set must match nowhere.
        longest_first = sorted(self.ids, key=lambda spelling: (-len(spelling), spelling))
        pattern = "|".join(map(re.escape, longest_first)) or r"(?!)"
        object.__setattr__(self, "_pattern", re.compile(pattern))
        object.__setattr__(self, "_overlapping", re.compile(f"(?=({pattern}))"))
        object.__setattr__(self, "_id_set", frozenset(self.ids.values()))

    @classmethod
    def of(cls, tokenizer: ChatTokenizer, template: str) -> "ControlTokens":
        """Collect the control tokens.

        These are the added tokens that are declared special, and those the template's source names (`<think>`
        is not special for Qwen and GLM, and yet it steers). Other added tokens, such as runs of whitespace or
        HTML tags in Gemma's vocabulary, are plain text, and so is a token that only says "unknown".

        Args:
            tokenizer: The tokenizer.
            template: Its Jinja source.
        """
        return cls(
            {
                token.content: token_id
                for token_id, token in tokenizer.added_tokens_decoder.items()
                if token.content.strip()
                and (token.special or token.content in template)
                and not (token_id == tokenizer.unk_token_id and "unk" in token.content.lower())
            }
        )

    def find(self, text: str) -> list[re.Match[str]]:
        """All control tokens in `text`, leftmost-longest, not overlapping."""
        return list(self._pattern.finditer(text))

    def first_id(self, text: str) -> int | None:
        """Id of the first control token in `text`, if there is one."""
        found = self._pattern.search(text)
        return self.ids[found.group()] if found else None

    def within(self, token_ids: Iterable[int]) -> tuple[int, ...]:
        """The subsequence of `token_ids` that are control tokens."""
        return tuple(token_id for token_id in token_ids if token_id in self._id_set)

    def broken(self, text: str) -> list[str]:
        """Cut `text` inside every spelling of a control token, so that no piece contains one.

        Args:
            text: Any text.

        Returns:
            Pieces that join to `text`; `[text]` if it is clean. One-character spellings cannot be cut.
        """
        cuts = [found.start() + 1 for found in self._overlapping.finditer(text)]
        edges = [0, *cuts, len(text)]
        return [text[start:end] for start, end in pairwise(edges) if end > start] or [text]

    def hide(self, text: str, stem: str, hidden: dict[str, str]) -> str:
        """Replace every spelling of a control token by a placeholder that no template treats specially.

        Args:
            text: Message content.
            stem: A string that occurs in no content.
            hidden: Placeholder to original spelling; extended in place.
        """

        def placeholder(found: re.Match[str]) -> str:
            name = f"{stem}H{len(hidden):06d}E"
            hidden[name] = found.group()
            return name

        return self._pattern.sub(placeholder, text)


@dataclass(frozen=True)
class Encoder:
    """Tokenises rendered text."""

    tokenizer: ChatTokenizer
    controls: ControlTokens

    def plain(self, text: str) -> list[int]:
        """Token ids of `text`, control spellings matched, no special token added."""
        return [int(token_id) for token_id in self._encoding(text)["input_ids"]]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Character spans, one for each token of `text` as message content (control spellings inert)."""
        spans: list[tuple[int, int]] = []
        base = 0
        for piece in self.controls.broken(text):
            encoding = self._encoding(piece, return_offsets_mapping=True)
            spans += [(base + int(start), base + int(end)) for start, end in encoding["offset_mapping"]]
            base += len(piece)
        return spans

    def guarded(self, text: str, hidden: Mapping[str, str]) -> list[int]:
        """Token ids of rendered `text` in which `hidden` placeholders stand for inert control spellings.

        Args:
            text: Rendered text; every control spelling in it is the template's own.
            hidden: Placeholder to the text it stands for.

        Returns:
            The ids; equal to `plain` of the restored text if the placeholders stand for harmless text.
        """
        ids: list[int] = []
        clean = ""  # text not yet tokenised, up to and including the last control token
        anchor = ""
        edges = [(found.start(), found.end()) for found in self.controls.find(text)]
        start = 0
        for control_start, control_end in [*edges, (len(text), len(text))]:
            segment = text[start:control_start]
            restored = restore(segment, hidden)
            if restored == segment:
                clean += segment
            else:
                ids += self.plain(clean) if clean else []
                for piece in self.controls.broken(restored):
                    ids += self._after(anchor, piece)
                clean = ""
            anchor = text[control_start:control_end]
            clean += anchor
            start = control_end
        return ids + (self.plain(clean) if clean else [])

    def _after(self, anchor: str, piece: str) -> list[int]:
        # Tokenised behind its control token, because some tokenizers treat the start of a text differently.
        ids = self.plain(anchor + piece)
        if not anchor:
            return ids
        if ids[0] != self.controls.ids[anchor]:
            raise HostileContentError(
                f"cannot tokenise content safely: {anchor!r} is not one token in front of {piece[:40]!r}"
            )
        return ids[1:]

    def _encoding(self, text: str, **options: bool) -> Mapping[str, Any]:
        encoding: Mapping[str, Any] = self.tokenizer(text, add_special_tokens=False, verbose=False, **options)
        return encoding


def restore(text: str, hidden: Mapping[str, str]) -> str:
    """Put the hidden spellings back into `text`."""
    if not hidden:
        return text
    return re.sub("|".join(map(re.escape, hidden)), lambda found: hidden[found.group()], text)
