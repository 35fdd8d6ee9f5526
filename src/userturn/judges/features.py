"""Text features of one user turn: pure, bounded, independent of any model.

Every feature is a count, a share or a flag of the first `MAX_CHARS` characters and `MAX_TOKENS` words, so
that a hostile text of a megabyte costs what a long one costs. Regular expressions are single classes or
fixed alternatives without nested repetition. A trained classifier takes `as_vector`; the provisional judge
reads the fields.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from userturn.judges import lexicon
from userturn.judges.labels import Turn

MAX_CHARS = 20_000
MAX_TOKENS = 3_000

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_NO_CONTENT = lexicon.STOP_WORDS | lexicon.IMPERATIVE_VERBS | lexicon.COMMISSION_VERBS
_SENTENCE_END = re.compile(r"[.!?\n]+")
_MARKDOWN_LINE = re.compile(r"^[ \t]{0,8}(?:#{1,6} |[-*+•] |\d{1,2}[.)] |```|\|)", re.MULTILINE)
_BOLD = re.compile(r"\*\*[^*\n]{1,200}\*\*")
_STEP = re.compile(r"\bstep \d{1,2}\b", re.IGNORECASE)
_EQUATION = re.compile(r"\d[\d.,]{0,20} ?[%$]? ?=|= ?\$?\d|<<|\\boxed|\\frac")
_NUMBER = re.compile(r"\d[\d,]{0,30}(?:\.\d{1,30})?")


@dataclass(frozen=True)
class Overlap:
    """How much of a user turn is taken from a reference text (query or assistant turn).

    Attributes:
        words: Share of the turn's distinct content words that occur in the reference.
        trigrams: Share of the turn's word trigrams that occur in the reference (shorter n-grams when the
            turn has fewer than three words).
        covered: Share of the reference's word trigrams that occur in the turn.
        run: Longest run of words that both have, in words.
        run_share: That run over the turn's number of words.
    """

    words: float = 0.0
    trigrams: float = 0.0
    covered: float = 0.0
    run: int = 0
    run_share: float = 0.0


@dataclass(frozen=True)
class Surface:
    """Cues of voice in a user turn; flags as bool, counts as int.

    Attributes:
        words: Number of words (at most `MAX_TOKENS`).
        content_words: Number of distinct words that are neither stop words nor numbers.
        sentences: Number of sentences.
        stock: Every sentence is made of stock words only (thanks, greetings, empty prompts).
        asks: One of the first two or the last sentence ends with a question mark or opens like a question.
        directs: One of the first two or the last sentence opens with a request to an assistant, or says
            please.
        commissions: The first sentence asks for a new piece of work (write, create, design).
        advises: A sentence tells the reader what they can, should or need to do.
        first_person: Number of first-person words.
        second_person: Number of second-person words.
        reacts: The first sentence passes a verdict (wrong, great, thanks) on something it points back to.
        midway: It starts in lower case where the assistant turn shown broke off in a sentence.
        back_reference: Number of words that point back (it, that, your answer).
        assistant_phrases: Number of sentences that open with an assistant's offer or disclaimer.
        answer_opening: The text opens as an answer or a worked solution does.
        meta_opening: The text opens with talk about the conversation from outside.
        markdown_lines: Lines that are a heading, list item, table row or code fence.
        bold: Number of bold spans.
        steps: Number of "Step 1" marks.
        equations: Number of equation marks.
        numbers: Number of distinct numbers.
        new_numbers: Distinct numbers that occur neither in query nor assistant turn.
    """

    words: int
    content_words: int
    sentences: int
    stock: bool
    asks: bool
    directs: bool
    commissions: bool
    advises: bool
    first_person: int
    second_person: int
    reacts: bool
    midway: bool
    back_reference: int
    assistant_phrases: int
    answer_opening: bool
    meta_opening: bool
    markdown_lines: int
    bold: int
    steps: int
    equations: int
    numbers: int
    new_numbers: int


@dataclass(frozen=True)
class Features:
    """All text features of one turn.

    Attributes:
        surface: Cues in the text itself.
        query: Overlap with the query.
        answer: Overlap with the assistant turn shown; all zero when it was removed.
        has_answer: Whether the context shows an assistant turn.
    """

    surface: Surface
    query: Overlap
    answer: Overlap
    has_answer: bool


def tokens(text: str) -> list[str]:
    """Lower-case words of the first `MAX_CHARS` characters, at most `MAX_TOKENS`.

    Args:
        text: Any text.

    Returns:
        Words with typographic apostrophes made plain.
    """
    return WORD.findall(text[:MAX_CHARS].replace("’", "'").lower())[:MAX_TOKENS]


def sentences(text: str) -> list[str]:
    """Non-empty sentences of the first `MAX_CHARS` characters, with their end mark, stripped.

    Args:
        text: Any text.

    Returns:
        Pieces between sentence marks and line breaks.
    """
    head = text[:MAX_CHARS].replace("’", "'")
    pieces, start = [], 0
    for end in _SENTENCE_END.finditer(head):
        pieces.append(head[start : end.end()].strip())
        start = end.end()
    pieces.append(head[start:].strip())
    return [piece for piece in pieces if any(ch.isalnum() for ch in piece)]


def ngrams(words: Sequence[str], n: int) -> set[tuple[str, ...]]:
    """Distinct word n-grams.

    Args:
        words: Words in order.
        n: Length, at least 1.

    Returns:
        The set; empty when there are fewer than n words.
    """
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}


def content_words(words: Sequence[str]) -> set[str]:
    """Distinct words that are neither stop words, requests nor single letters, plural 's' dropped.

    Args:
        words: Lower-case words.

    Returns:
        The set.
    """
    kept = (w.removesuffix("'s") for w in words if w not in _NO_CONTENT and len(w) > 1)
    return {w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in kept}


def longest_common_run(left: Sequence[str], right: Sequence[str]) -> int:
    """Length of the longest run of words that both have.

    Args:
        left: Words.
        right: Words.

    Returns:
        Number of words; at most `MAX_TOKENS` squared comparisons, done a row at a time.
    """
    if not left or not right:
        return 0
    ids: dict[str, int] = {}
    a = [ids.setdefault(w, len(ids)) for w in left]
    b = np.array([ids.setdefault(w, len(ids)) for w in right])
    runs = np.zeros(len(b) + 1, dtype=np.int64)
    best = 0
    for word in a:
        runs[1:] = np.where(b == word, runs[:-1] + 1, 0)
        best = max(best, int(runs.max()))
    return best


def overlap(turn: Sequence[str], reference: Sequence[str]) -> Overlap:
    """What a user turn shares with a reference.

    Args:
        turn: Words of the user turn.
        reference: Words of the query or of the assistant turn.

    Returns:
        The overlap; all zero when either is empty.
    """
    if not turn or not reference:
        return Overlap()
    n = min(3, len(turn), len(reference))
    own, other = ngrams(turn, n), ngrams(reference, n)
    own_content, other_content = content_words(turn), content_words(reference)
    run = longest_common_run(turn, reference)
    return Overlap(
        words=len(own_content & other_content) / len(own_content) if own_content else 0.0,
        trigrams=len(own & other) / len(own),
        covered=len(own & other) / len(other),
        run=run,
        run_share=run / len(turn),
    )


def _numbers(text: str | None) -> set[str]:
    found = _NUMBER.findall((text or "")[:MAX_CHARS])
    return {n.replace(",", "").rstrip("0").rstrip(".") if "." in n else n.replace(",", "") for n in found}


def _after_softeners(words: Sequence[str]) -> Sequence[str]:
    for i, word in enumerate(words):
        thanked = word == "you" and i > 0 and words[i - 1] == "thank"
        if word not in lexicon.SOFTENERS and not thanked:
            return words[i:]
    return ()


def _asks(sentence: str) -> bool:
    if sentence.rstrip("\"')*”").endswith("?"):
        return True
    words = _after_softeners(tokens(sentence))
    if not words or words[0] not in lexicon.QUESTION_OPENERS or len(words) > 40:
        return False
    # Without a question mark: "is it ..." and "how much is ..." ask, whatever ends the sentence; "when it is
    # ..." and "do not ..." may go either way, and the end decides.
    first, after = words[0], words[1:4]
    if first in lexicon.AUXILIARIES:
        inverted = first not in {"do", "don't", "have", "may"} or after[:1] in (["i"], ["you"], ["u"])
    else:
        inverted = first in {"what", "how", "why", "who"} and any(w in lexicon.AUXILIARIES for w in after)
    return inverted or not sentence.endswith((".", "!", ":", ","))


def _commissions(sentence: str) -> bool:
    words = _after_softeners(tokens(sentence))
    # "write it", "create another": work on what is at hand.
    return bool(words) and words[0] in lexicon.COMMISSION_VERBS and not set(words[1:3]) & lexicon.ANAPHORA


def _directs(sentence: str) -> bool:
    words = tokens(sentence)
    return "please" in words[:6] or any(w in lexicon.IMPERATIVE_VERBS for w in _after_softeners(words)[:1])


def _advises(sentence: str) -> bool:
    words = tokens(sentence)
    pairs = itertools.pairwise(words)
    return not _asks(sentence) and any(a == "you" and b in lexicon.ADVICE_VERBS for a, b in pairs)


def _reacts(sentence: str) -> bool:
    words = set(tokens(sentence))
    return bool(words & lexicon.REACTION_WORDS and words & (lexicon.ANAPHORA | lexicon.ANSWER_WORDS))


def _is_stock(sentence: str) -> bool:
    return all(word in lexicon.STOCK_WORDS for word in tokens(sentence))


def _opens(sentence: str, openers: Sequence[str]) -> bool:
    return sentence.lower().lstrip("*#-_\"' ").startswith(tuple(openers))


def surface(turn: Turn) -> Surface:
    """Cues of voice in the user turn.

    Args:
        turn: The turn; query and answer serve only to tell which numbers are new.

    Returns:
        The cues.
    """
    text = turn.text[:MAX_CHARS].replace("’", "'")
    words, parts = tokens(text), sentences(text)
    counts = Counter(words)
    known = _numbers(turn.query) | _numbers(turn.answer)
    own = _numbers(text)
    return Surface(
        words=len(words),
        content_words=len({w for w in content_words(words) if not w.isdigit()}),
        sentences=len(parts),
        stock=bool(parts) and all(_is_stock(part) for part in parts),
        asks=any(_asks(part) for part in parts[:2] + parts[-1:]),
        directs=any(_directs(part) for part in parts[:2] + parts[-1:]),
        commissions=bool(parts) and _commissions(parts[0]),
        advises=any(_advises(part) for part in parts),
        first_person=sum(counts[w] for w in lexicon.FIRST_PERSON),
        second_person=sum(counts[w] for w in lexicon.SECOND_PERSON),
        reacts=bool(parts) and _reacts(parts[0]),
        midway=text.lstrip()[:1].islower() and (turn.answer or "").rstrip()[-1:].isalnum(),
        back_reference=sum(counts[w] for w in lexicon.ANAPHORA | lexicon.ANSWER_WORDS),
        assistant_phrases=sum(_opens(part, lexicon.ASSISTANT_PHRASES) for part in parts),
        answer_opening=_opens(text.strip(), lexicon.ANSWER_OPENERS),
        meta_opening=_opens(text.strip(), lexicon.META_OPENERS),
        markdown_lines=len(_MARKDOWN_LINE.findall(text)),
        bold=len(_BOLD.findall(text)),
        steps=len(_STEP.findall(text)),
        equations=len(_EQUATION.findall(text)),
        numbers=len(own),
        new_numbers=len(own - known),
    )


def extract(turn: Turn) -> Features:
    """All text features of one turn.

    Args:
        turn: Query, assistant turn shown and user turn.

    Returns:
        The features; equal turns give equal features.
    """
    words = tokens(turn.text)
    return Features(
        surface=surface(turn),
        query=overlap(words, tokens(turn.query)),
        answer=overlap(words, tokens(turn.answer or "")),
        has_answer=turn.answer is not None,
    )


def as_vector(features: Features) -> dict[str, float]:
    """Named numbers for a trained classifier, in a fixed order.

    Args:
        features: What `extract` gave.

    Returns:
        ``surface.*``, ``query.*``, ``answer.*`` and ``has_answer`` as floats.
    """
    named: dict[str, float] = {}
    for group in ("surface", "query", "answer"):
        named.update({f"{group}.{name}": float(v) for name, v in asdict(getattr(features, group)).items()})
    named["has_answer"] = float(features.has_answer)
    return named
