"""The numbers that the classifier sees of a turn: similarity, taken words, cues of voice, fluency."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from userturn.judges.embedded.fluency import Fluency
from userturn.judges.embedding import Embedder, FloatArray, encode_unique, similarity
from userturn.judges.features import as_vector, content_words, extract, sentences, tokens
from userturn.judges.labels import LABELS, Turn
from userturn.judges.provisional import ProvisionalJudge

#: Sentences of an answer that a turn is compared with, spread over its length.
SENTENCES = 8
#: Counts grow slowly: the tenth equation tells less than the first.
_COUNTS = (
    *("words", "content_words", "sentences", "first_person", "second_person", "back_reference", "markdown_lines"),
    *("bold", "steps", "equations", "numbers", "new_numbers"),
)


def pieces(answer: str) -> list[str]:
    """Up to `SENTENCES` sentences of an answer, evenly spread."""
    parts = sentences(answer)
    step = max(1, -(-len(parts) // SENTENCES))
    return parts[::step]


def texts(turns: Sequence[Turn]) -> list[str]:
    """All texts that are embedded for some turns, repeats included."""
    return [text for turn in turns for text in (turn.query, turn.answer or "", turn.text, *pieces(turn.answer or ""))]


def vectors(turns: Sequence[Turn], embedder: Embedder, fluency: Fluency) -> tuple[list[str], npt.NDArray[np.float64]]:
    """Names and values of all features.

    Args:
        turns: The turns; the row of one does not depend on the others.
        embedder: The sentence model.
        fluency: The trigram model of the training conversations.

    Returns:
        Names in alphabetical order, and an array of shape (n_turns, n_features) rounded to four decimals.
    """
    vector = encode_unique(embedder, texts(turns))
    votes = ProvisionalJudge(embedder).judge(turns)
    rows = [
        _named(turn, vector, fluency) | _pieces_of_words(turn.text, embedder) | _vote(vote.label)
        for turn, vote in zip(turns, votes, strict=True)
    ]
    names = sorted(rows[0]) if rows else []
    return names, np.round(
        np.array([[row[name] for name in names] for row in rows], dtype=np.float64).reshape(len(rows), len(names)), 4
    )


def _pieces_of_words(text: str, embedder: Embedder) -> dict[str, float]:
    """How far the sentence model's tokenizer has to break words up: words that it never saw are in many pieces."""
    words = tokens(text)
    counts = np.array(embedder.pieces(words) or [1], dtype=np.float64)
    return {
        "fluency.pieces": float(counts.mean()),
        "fluency.broken_words": float((counts >= 3).mean()),
    }


def _vote(label: str | None) -> dict[str, float]:
    """The label that the program rules give, one feature a label."""
    votes = {f"vote.{name}": float(name == label) for name in LABELS}
    return votes | {"degenerate.rule": votes["vote.degenerate"]}


def _shared(turn: Turn, fluency: Fluency) -> dict[str, float]:
    """Content words that the turn shares with its context, rare ones counting more."""
    own = content_words(tokens(turn.text))
    known = content_words(tokens(turn.query)) | content_words(tokens(turn.answer or ""))
    weights = {word: fluency.rarity(word) for word in own}
    total = sum(weights.values())
    shared = sum(weight for word, weight in weights.items() if word in known)
    return {
        "shared.rarest": max((weights[word] for word in own & known), default=0.0),
        "shared.weight": float(np.log1p(shared)),
        "shared.share": shared / total if total else 0.0,
        "shared.new_words": float(np.log1p(len(own - known))),
    }


def _named(turn: Turn, vector: Callable[[str], FloatArray], fluency: Fluency) -> dict[str, float]:
    of_text, answer = vector(turn.text), turn.answer or ""
    to_query = similarity(of_text, vector(turn.query))
    to_answer = similarity(of_text, vector(answer)) if answer else 0.0
    to_pieces = [similarity(of_text, vector(piece)) for piece in pieces(answer)]
    # numpy's maximum keeps what is no number
    to_sentence = float(np.max(to_pieces)) if to_pieces else 0.0
    surprise, worst = fluency.surprise(turn.text)
    found = as_vector(extract(turn))
    for name in _COUNTS:
        found[f"surface.{name}"] = float(np.log1p(found[f"surface.{name}"]))
    for group in ("query", "answer"):
        found[f"{group}.run"] = float(np.log1p(found[f"{group}.run"]))
    opening, end = turn.text.strip()[:1], turn.text.strip()[-1:]
    return (
        found
        | _shared(turn, fluency)
        | {
            "similarity.query": to_query,
            "similarity.answer": to_answer,
            "similarity.sentence": to_sentence,
            "similarity.most": max(to_query, to_answer, to_sentence),
            "similarity.query_ahead": to_query - to_answer,
            "similarity.query_squared": max(to_query, 0.0) ** 2,
            "fluency.surprise": surprise,
            "fluency.worst": worst,
            "surface.capital": float(opening.isupper()),
            "surface.question_mark": float(end == "?"),
            "surface.full_stop": float(end == "."),
            "surface.question_marks": float(np.log1p(turn.text.count("?"))),
            "surface.cut": float(turn.finish_reason == "length"),
            "surface.lines": float(np.log1p(turn.text.strip().count("\n"))),
            "surface.upper_inside": _upper_inside(turn.text),
        }
    )


def _upper_inside(text: str) -> float:
    """Share of words with a capital inside or a letter beside a digit, as broken sampling leaves them."""
    words = text.split()
    odd = sum(any(ch.isupper() for ch in word[1:]) and not word.isupper() for word in words)
    return odd / len(words) if words else 0.0
