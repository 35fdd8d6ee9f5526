"""Untrusted texts as a prompt shows them: nothing unseen in them, bounded, and behind delimiters they cannot close."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from userturn.seeds import derive

#: Besides controls, formats, private use, surrogates and unassigned: marks and blanks that no reader sees. Variation
#: selectors, the combining grapheme joiner, Hangul fillers, the empty Braille cell.
_UNSEEN_MARKS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_KEPT = frozenset("\n\t")

_MARK_BITS = 64


def _unseen(character: str) -> bool:
    if character in _KEPT:
        return False
    return unicodedata.category(character) in _UNSEEN_CATEGORIES or _UNSEEN_MARKS.match(character) is not None


def visible(text: str) -> str:
    """The text with every character that is not seen, or that reorders others, spelled out as ``⟦U+202E⟧``.

    Newlines and tabs stay; a carriage return before a newline is dropped. The result is valid Unicode.

    Args:
        text: Any string, lone surrogates included.
    """
    text = text.replace("\r\n", "\n")
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"⟦U+{ord(ch):04X}⟧" if _unseen(ch) else ch for ch in text)


@dataclass(frozen=True)
class Shown:
    """A text as the judge sees it.

    Attributes:
        text: What stands between the delimiters.
        pieces: The parts of it that are the text's own: two where its middle was left out.
        left_out: Characters left out.
    """

    text: str
    pieces: tuple[str, ...]
    left_out: int = 0


def show(text: str, max_chars: int) -> Shown:
    """Makes a text visible, and cuts its middle out where it is too long.

    Args:
        text: Any string.
        max_chars: Most characters kept, counted after `visible`: half from the beginning, half from the end.
    """
    whole = visible(text)
    if len(whole) <= max_chars:
        return Shown(whole, (whole,))
    end = max_chars // 2
    head, tail = whole[: max_chars - end], whole[len(whole) - end :]
    left_out = len(whole) - max_chars
    return Shown(f"{head}\n⟦{left_out} characters left out⟧\n{tail}", (head, tail), left_out)


def fresh_mark(seed: int, texts: Sequence[str]) -> str:
    """The mark that the delimiters of these texts carry: 16 hexadecimal digits that occur in none of them.

    It is a keyed hash of the texts themselves, so the same request is the same bytes, and a text that knew its own mark
    would have to hold its own digest.

    Args:
        seed: The study's seed.
        texts: The texts as they are shown, in order; valid Unicode.
    """
    folded = [text.lower() for text in texts]
    attempt = 0
    while True:
        mark = f"{derive(seed, 'judge delimiter', attempt, *texts, bits=_MARK_BITS):016x}"
        if not any(mark in text for text in folded):
            return mark
        attempt += 1


def opening(name: str, mark: str) -> str:
    """The line before a text."""
    return f"<<<{name} {mark}>>>"


def closing(name: str, mark: str) -> str:
    """The line after a text."""
    return f"<<<end of {name} {mark}>>>"


def delimited(name: str, mark: str, text: str) -> str:
    """A text between its two lines."""
    return f"{opening(name, mark)}\n{text}\n{closing(name, mark)}"
