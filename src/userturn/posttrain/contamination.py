"""Whether training data holds what the study measures: words in a row that stand in an item, too."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Shorter texts ("thanks", "go on please") prove nothing.
MIN_WORDS = 4

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """Words without case, accents' encodings and punctuation."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def texts_of(items: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Every text of items that could be learnt by heart: messages, and what people wrote after them."""
    for item in items:
        yield from (message["content"] for message in item["messages"])
        yield from (item["meta"][key] for key in ("human_answer", "human_followup") if item["meta"].get(key))


@dataclass(frozen=True)
class Evaluated:
    """Words in a row of everything that is evaluated.

    Attributes:
        n: how many in a row.
        runs: those of texts with at least so many words.
        whole: shorter texts of at least `MIN_WORDS` words, whole.
    """

    n: int
    runs: frozenset[tuple[str, ...]]
    whole: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, texts: Iterable[str], n: int) -> Evaluated:
        """Collects the runs of texts.

        Args:
            texts: of the items.
            n: words in a row.
        """
        runs: set[tuple[str, ...]] = set()
        whole: set[tuple[str, ...]] = set()
        for text in texts:
            found = words(text)
            runs.update(_runs(found, n))
            if MIN_WORDS <= len(found) < n:
                whole.add(tuple(found))
        return cls(n, frozenset(runs), frozenset(whole))

    def meets(self, texts: Iterable[str]) -> bool:
        """Whether one of the texts shares a run with an item, or is a short one."""
        for text in texts:
            found = words(text)
            if tuple(found) in self.whole or any(run in self.runs for run in _runs(found, self.n)):
                return True
        return False


def _runs(found: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    return (tuple(found[place : place + n]) for place in range(len(found) - n + 1))
