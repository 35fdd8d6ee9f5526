"""Whether the words that a verdict quotes stand in the assistant turn that the judge was shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from userturn.judges.features import content_words

Grounding = Literal["verified", "unverified", "none"]

#: Share of the quoted words that must stand in the assistant turn, in one place and in this order.
THRESHOLD = 0.8
#: A quotation longer than this, in words, is no span.
MAX_WORDS = 200

# scripts that put no blanks between words are compared letter by letter
_WORD = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|"
    "(?:(?![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])[^\\W_])+"
)


def words(text: str) -> list[str]:
    """Words of a text, without case, punctuation and compatibility forms (NFKC)."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def similarity(span: Sequence[str], text: Sequence[str]) -> float:
    """How much of a span stands in one place of a text.

    One minus the least number of words to insert, drop or exchange that turns the span into any run of words of the
    text, over the span's length: approximate string matching after P. H. Sellers, "The theory and computation of
    evolutionary distances" (J. Algorithms 1, 1980).

    Args:
        span: Words, at least one.
        text: Words.

    Returns:
        A value in [0, 1]; 1.0 where the span stands in the text word for word.
    """
    if f" {' '.join(span)} " in f" {' '.join(text)} ":
        return 1.0  # what is mostly so, without the table
    best = list(range(len(span) + 1))
    least = len(span)
    for word in text:
        diagonal, best[0] = best[0], 0
        for place, wanted in enumerate(span, start=1):
            cost = min(diagonal + (wanted != word), best[place] + 1, best[place - 1] + 1)
            diagonal, best[place] = best[place], cost
        least = min(least, best[-1])
    return 1.0 - least / len(span)


def ground(span: str, answer: Sequence[str]) -> tuple[Grounding, float | None]:
    """Looks for a quoted span in the assistant turn.

    Args:
        span: What the verdict quotes.
        answer: The pieces of the assistant turn as shown; empty where the context shows none.

    Returns:
        ``none`` for a blank span; ``verified`` when the span holds a word of content, or a number, and its similarity
        to one piece is at least `THRESHOLD`; else ``unverified``. And the similarity, rounded to four decimals; None
        where there is nothing to compare.
    """
    if not span.strip():
        return "none", None
    quoted = words(span)
    if not quoted or len(quoted) > MAX_WORDS:
        return "unverified", None
    found = max((similarity(quoted, words(piece)) for piece in answer), default=0.0)
    # single characters of scripts without blanks count as content, single Latin letters do not
    content = bool(content_words(quoted)) or any(w.isdigit() or not w.isascii() for w in quoted)
    return ("verified" if content and found >= THRESHOLD else "unverified"), round(found, 4)
