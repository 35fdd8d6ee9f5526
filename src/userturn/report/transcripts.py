"""The page's transcripts: what each piece of data holds, and the catalogue by which the page finds it.

The catalogue stands in the page and is small: cells with their counts and the names of their pieces. Texts, contexts
and judgements are in the pieces, which the page opens one at a time.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from userturn.judges.labels import LABELS
from userturn.report.chunks import Chunks
from userturn.report.data import Row
from userturn.report.inert import plain

#: User turns and contexts in one piece: small enough to open at once, large enough to compress well.
TURNS_A_CHUNK = 2_000
CONTEXTS_A_CHUNK = 200
#: Files that the index of words is cut into.
BUCKETS = 256
#: A place in a cell's counts for each label and one for what the judge left unscored.
COUNTED: tuple[str, ...] = (*LABELS, "unscored")

_WORD = re.compile(r"[^\W_]+")


@lru_cache(maxsize=200_000)
def word_hash(word: str) -> int:
    """CRC-32 of a word's UTF-8 bytes, as the page's script computes it."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=200_000)
def _words_in(piece: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(piece))


def words_of(text: str) -> set[str]:
    """The words of a text in lower case: runs of letters and digits of any script."""
    # most pieces between spaces come again and again: each is looked at once
    return {word for piece in set(text.lower().split()) for word in _words_in(piece)}


class Words:
    """Which pieces hold which words, so that a search opens only those."""

    def __init__(self) -> None:
        """Starts empty."""
        self._pieces: list[str] = []
        self._hashes: list[npt.NDArray[np.uint32]] = []

    def add(self, piece: str, words: Iterable[str], items: Iterable[str]) -> None:
        """Notes the words and the items of a piece."""
        hashes = {word_hash(word) for word in words} | {word_hash(f"item {item}") for item in items}
        self._pieces.append(piece)
        self._hashes.append(np.fromiter(hashes, dtype=np.uint32, count=len(hashes)))

    def extend(self, other: Words) -> None:
        """Takes over what another part of the study noted."""
        self._pieces += other._pieces
        self._hashes += other._hashes

    def write(self, chunks: Chunks) -> dict[str, Any]:
        """Adds the index to the pieces; returns what the page needs to use it: numbered pieces and bucket files."""
        if not self._hashes:
            return {"pieces": [], "buckets": [chunks.add({})] * BUCKETS}
        hashes = np.concatenate(self._hashes)
        places = np.repeat(np.arange(len(self._pieces)), [len(one) for one in self._hashes])
        order = np.lexsort((places, hashes))
        hashes, places = hashes[order], places[order]
        bounds = np.flatnonzero(np.diff(hashes, prepend=hashes[:1] ^ 1))
        buckets: list[dict[str, list[int]]] = [{} for _ in range(BUCKETS)]
        for start, end in zip(bounds, [*bounds[1:], len(hashes)], strict=True):
            word = int(hashes[start])
            buckets[word % BUCKETS][str(word)] = places[start:end].tolist()
        return {"pieces": self._pieces, "buckets": [chunks.add(bucket) for bucket in buckets]}


def add_contexts(rows: Sequence[Row], chunks: Chunks, *, shown: bool) -> tuple[list[str], dict[str, int]]:
    """Adds the contexts of one model, dataset and perturbation.

    Args:
        rows: rows of the contexts' artefact.
        chunks: where they go.
        shown: whether the dataset's texts may be published.

    Returns:
        The names of the pieces, and for each item the position of its piece.
    """
    names, blocks = [], {}
    for block, start in enumerate(range(0, len(rows), CONTEXTS_A_CHUNK)):
        part = rows[start : start + CONTEXTS_A_CHUNK]
        blocks.update({str(row["item"]): block for row in part})
        if shown:
            names.append(
                chunks.add(
                    {
                        row["item"]: [
                            row["prompt"],
                            [[m["role"], m["content"]] for m in row["messages"]],
                            row["changes"],
                        ]
                        for row in part
                    }
                )
            )
    return names, blocks


def add_cell(
    turns: Sequence[Row],
    judgements: Sequence[Mapping[tuple[str, int], Row]],
    blocks: Mapping[str, int],
    chunks: Chunks,
    words: Words,
    *,
    shown: bool,
) -> dict[str, Any]:
    """Adds the user turns of a cell with every judge's label.

    Args:
        turns: rows of the user turns' artefact that the page shows, in its order.
        judgements: for each judge of the study, the reported one first, its rows by item and sample.
        blocks: for each item the position of its context's piece.
        chunks: where they go.
        words: the index of words to extend.
        shown: whether the dataset's texts may be published.

    Returns:
        The cell's part of the catalogue: ``counts`` by label of the reported judge, ``differ`` (turns that two
        judges label differently), ``chunks`` as (name, number of turns).
    """
    counts: Counter[str] = Counter()
    differ = 0
    pieces = []
    for start in range(0, len(turns), TURNS_A_CHUNK):
        rows = []
        for turn in turns[start : start + TURNS_A_CHUNK]:
            key = (turn["item"], turn["sample"])
            given = [_judgement(judge.get(key)) for judge in judgements]
            labels = {one[0] for one in given if one is not None and one[0] != "unscored"}
            differ += len(labels) > 1
            counts[given[0][0] if given and given[0] else "unscored"] += 1
            text = turn["text"] if shown else ""
            rows.append([key[0], key[1], text, turn["finish_reason"], blocks[str(key[0])], given])
        name = chunks.add(rows)
        words.add(name, words_of("\n".join(row[2] for row in rows)), {str(row[0]) for row in rows})
        pieces.append([name, len(rows)])
    return {"counts": [counts[label] for label in COUNTED], "differ": differ, "chunks": pieces}


def _judgement(row: Row | None) -> list[Any] | None:
    if row is None:
        return None
    label = row["label"] if row["state"] == "scored" else "unscored"
    return [label, row["rationale"] or "", row["evidence"] or {}]


def add_scores(rows: Iterable[Row], chunks: Chunks, *, shown: bool) -> str:
    """Adds the scores of one model's answers to one dataset: item → correct, what was read from the answer, why."""
    return chunks.add(
        {
            row["item"]: [
                None if row["state"] != "scored" else bool(row["correct"]),
                plain(row["extracted"]) if shown and row["extracted"] is not None else "",
                str(row["reason"] or ""),
            ]
            for row in rows
        }
    )


def chosen(turns: Iterable[Row], limit: int | None, rank: Any) -> Iterator[Row]:
    """The turns that a page shows: all, or ``limit`` of them by rank (of item and sample), in their own order."""
    rows = list(turns)
    if limit is not None:
        kept = {
            (row["item"], row["sample"])
            for row in sorted(rows, key=lambda row: rank(row["item"], row["sample"]))[:limit]
        }
        rows = [row for row in rows if (row["item"], row["sample"]) in kept]
    yield from rows
