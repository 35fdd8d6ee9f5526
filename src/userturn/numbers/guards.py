"""What the user turns of a cell look like: the guards that tell a real gain of post-training from one of style."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from userturn.artefacts import Row
from userturn.judges.features import sentences, tokens
from userturn.numbers.row import BASELINE, Definition
from userturn.numbers.shard import Shard
from userturn.statistics import Estimate, ItemCounts, mean, rate

#: A question that fits after any answer: what a model learns to append when questions are rewarded.
_CLOSING = re.compile(
    r"\b(?:anything|something|what) else\b|\bany (?:other|more|further) questions?\b"
    r"|\bcan you (?:tell|help) me(?: more)?\?"
    r"|\bdoes (?:that|this) (?:help|make sense)\b|\bwhat do you think\b|\bis there (?:more|any other)\b",
    re.IGNORECASE,
)


def guards(shard: Shard) -> Iterator[Definition]:
    """What the user turns of each baseline cell look like: questions, stock questions, length, variety."""
    for cell in shard.inputs.cells:
        if cell.perturbation != BASELINE:
            continue
        keep = shard.inputs.ledger.keep(*cell.shard, (cell.perturbation, cell.temperature))
        every = shard.read(cell.user_turns)
        rows = [row for row in every if keep(row)]
        shared: dict[str, Any] = {
            "labels": {key: value for key, value in cell.labels("").items() if key != "judge"},
            "sources": [cell.user_turns],
            "excluded": len(every) - len(rows),
        }
        tests: tuple[tuple[str, Callable[[str], bool], str], ...] = (
            ("question_rate", asks, "its last sentence ends with a question mark"),
            ("closing_question_rate", closes, "its last sentence is a question that fits after any answer"),
        )
        for quantity, test, positive in tests:
            counts = ItemCounts.from_rows((row["item"], test(row["text"])) for row in rows)
            selector = {"column": "text", "positive": positive}
            yield Definition(
                f"{quantity}/{cell.key}", estimate=partial(rate, counts), unit="proportion", selector=selector, **shared
            )
        yield Definition(
            f"turn_words/{cell.key}",
            estimate=partial(_length, _mean_words(rows)),
            unit="words",
            selector={"column": "text", "per": "item"},
            **shared,
        )
        yield Definition(
            f"distinct_bigrams/{cell.key}",
            estimate=partial(_distinct, [row["text"] for row in rows]),
            unit="proportion",
            selector={"column": "text", "positive": "pairs of words not seen before in the cell"},
            **shared,
        )


def asks(text: str) -> bool:
    """Whether a turn's last sentence ends with a question mark."""
    found = sentences(text)
    return bool(found) and found[-1].rstrip("\"')]*_ ").endswith("?")


def closes(text: str) -> bool:
    """Whether a turn's last sentence is a question that fits after any answer."""
    return asks(text) and _CLOSING.search(sentences(text)[-1]) is not None


def _mean_words(rows: Sequence[Row]) -> dict[str, float]:
    lengths: dict[str, list[int]] = {}
    for row in rows:
        lengths.setdefault(row["item"], []).append(len(tokens(row["text"])))
    return {item: sum(found) / len(found) for item, found in lengths.items()}


def _length(values: Mapping[str, float], **how: Any) -> Estimate:
    # whether a length differs from 0 is no question
    return replace(mean(values, **how), p_value=None, test=None)


def _distinct(texts: Sequence[str], **_: Any) -> Estimate:
    pairs = [pair for text in texts for words in (tokens(text),) for pair in pairwise(words)]
    notes = ("falls with the amount of text: compare cells of about the same size; no interval",)
    if not pairs:
        return Estimate(None, None, None, 0, len(texts), 0, 0, notes=("no turn has two words",))
    k = len(set(pairs))
    return Estimate(k / len(pairs), None, None, len(pairs), len(texts), k, 0, notes=notes)
