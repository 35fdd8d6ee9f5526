"""How much a text reads like language: a small trigram model over frequent words and shapes of the others.

Real words in a senseless order are not gibberish to a spelling check. Frequent words, which carry the grammar, and the
shapes of the rest are enough to tell most of it, and no text of the training conversations can be read back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from userturn.judges.features import content_words, tokens

FREQUENT = 400
SUFFIXES = ("ing", "ed", "ly", "tion", "ness", "ment", "ous", "ful", "able", "al", "er", "est", "ity", "es", "s")
START, END = "<s>", "</s>"
#: Weights of trigram, bigram and unigram; what is left is spread evenly.
WEIGHTS = (0.6, 0.28, 0.11)


def shape(word: str) -> str:
    """What is kept of a word that is not frequent: number, ending, or length."""
    if any(ch.isdigit() for ch in word):
        return "<number>"
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) > len(suffix) + 2:
            return f"<-{suffix}>"
    return "<short>" if len(word) <= 4 else "<long>"


@dataclass(frozen=True)
class Fluency:
    """Counts of one, two and three classes in a row.

    Attributes:
        frequent: The words that stand for themselves.
        grams: Counts by n-gram, classes joined by blanks.
        documents: Texts that hold a content word.
        n_documents: Texts in all.
    """

    frequent: frozenset[str]
    grams: Mapping[str, int]
    documents: Mapping[str, int]
    n_documents: int

    @classmethod
    def of(cls, texts: Iterable[str]) -> Fluency:
        """Counts texts."""
        sequences = [tokens(text) for text in texts]
        documents = Counter(word for words in sequences for word in content_words(words))
        counted = Counter(word for words in sequences for word in words if not any(ch.isdigit() for ch in word))
        frequent = frozenset(sorted(counted, key=lambda word: (-counted[word], word))[:FREQUENT])
        empty = cls(frequent, {}, {}, 0)
        grams: Counter[str] = Counter()
        for words in sequences:
            classes = empty.classes(words)
            for n in (1, 2, 3):
                grams.update(" ".join(classes[i : i + n]) for i in range(len(classes) - n + 1))
        # what was seen once tells little and takes most of the room
        kept = {gram: count for gram, count in grams.items() if count > 1 or " " not in gram}
        common = {word: count for word, count in sorted(documents.items()) if count > 1}
        return cls(frequent, dict(sorted(kept.items())), common, len(sequences))

    def rarity(self, word: str) -> float:
        """Inverse document frequency of a content word, in nats."""
        return math.log((self.n_documents + 1) / (self.documents.get(word, 0) + 1))

    @cached_property
    def total(self) -> int:
        """Words that were counted, starts and ends among them."""
        return sum(count for gram, count in self.grams.items() if " " not in gram) or 1

    def classes(self, words: Sequence[str]) -> list[str]:
        """Words as the model sees them, with a start and an end."""
        return [START, *(word if word in self.frequent else shape(word) for word in words), END]

    def surprise(self, text: str) -> tuple[float, float]:
        """Mean and worst-stretch surprise of a text, in nats a word.

        Args:
            text: Any text.

        Returns:
            The mean over words, and the highest mean over six words in a row; both 0 for a text without words.
        """
        words = tokens(text)
        if not words:
            return 0.0, 0.0
        classes = self.classes(words)
        total = self.total
        values = []
        for i in range(1, len(classes)):
            history, word = classes[max(0, i - 2) : i], classes[i]
            values.append(-math.log(self._probability(history, word, total)))
        window = min(6, len(values))
        worst = max(sum(values[i : i + window]) / window for i in range(len(values) - window + 1))
        return sum(values) / len(values), worst

    def _probability(self, history: Sequence[str], word: str, total: int) -> float:
        rest = 1.0 - sum(WEIGHTS)
        found = rest / (FREQUENT + len(SUFFIXES) + 5)
        found += WEIGHTS[2] * self.grams.get(word, 0) / total
        for weight, n in zip(WEIGHTS[:2], (2, 1), strict=True):
            if len(history) >= n:
                seen = self.grams.get(" ".join(history[-n:]), 0)
                if seen:
                    found += weight * self.grams.get(" ".join((*history[-n:], word)), 0) / seen
        return found
