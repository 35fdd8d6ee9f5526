"""Training examples whose label is known by construction, from conversations."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from userturn.judges.embedded.conversations import Conversation
from userturn.judges.embedded.phrases import GENERIC, META
from userturn.judges.features import content_words, sentences, tokens
from userturn.judges.labels import Label, Turn
from userturn.seeds import derive

#: Words of a text that an assistant goes on with.
SHOWN_WORDS = 45
#: Most restated queries, and most continued answers, of one conversation.
AT_MOST = 4


@dataclass(frozen=True)
class Example:
    """A turn with its label.

    Attributes:
        turn: What is judged.
        label: What it is.
        kind: How it was made.
        group: The conversation; all examples of one stand on the same side of a split.
    """

    turn: Turn
    label: Label
    kind: str
    group: str


def construct(conversations: Sequence[Conversation], seed: int) -> list[Example]:
    """All examples, in the order of the conversations.

    Args:
        conversations: Of at least three ids.
        seed: Of the study; each conversation draws from a generator of its own.

    Returns:
        Examples of all labels. Some contexts lose their answer or show another one, and some texts are cut, as they
        are under the perturbations and the token limit of a study.

    Raises:
        ValueError: With fewer than three ids nothing can be taken from another conversation.
    """
    ids = [one.id for one in conversations]
    if len(set(ids)) < 3:
        raise ValueError(f"{len(set(ids))} conversations: at least 3 are needed to take texts from others")
    found = []
    for place, one in enumerate(conversations):
        rng = random.Random(derive(seed, "judge examples", one.id, place, bits=48))
        others = [conversations[i] for i in _others(place, ids, rng)]
        found += [_in_some_context(example, others[0], rng) for example in _examples(one, others, rng)]
    return found


def _others(place: int, ids: Sequence[str], rng: random.Random) -> list[int]:
    """Up to three places of other ids: what comes from the same conversation is not unrelated."""
    others = [i for i in rng.sample(range(len(ids)), min(len(ids), 4)) if ids[i] != ids[place]][:3]
    return others or [next(i for i, id in enumerate(ids) if id != ids[place])]


def _examples(one: Conversation, others: Sequence[Conversation], rng: random.Random) -> Iterator[Example]:
    def made(text: str, label: Label, kind: str) -> Example:
        return Example(Turn(one.query, one.answer, text, "stop"), label, kind, one.id)

    for text in one.followups:
        yield made(text, "genuine_followup", "followup")
    for kind, text in _some(list(_restated(one, rng)), rng):
        yield made(text, "restates_prompt", kind)
    rest, *continued = _continued(one, others, rng)
    for kind, text in (rest, *_some(continued, rng)):
        yield made(text, "continues_as_assistant", kind)
    for other in others[:2]:
        yield made(rng.choice(other.followups), "unrelated", "followup of another")
    yield made(others[-1].query, "unrelated", "query of another")
    for text in one.new_tasks:
        yield made(text, "unrelated", "new task")
    yield made(rng.choice(GENERIC), "generic", "stock phrase")
    yield made(" ".join(rng.sample(GENERIC, 2)), "generic", "stock phrases")
    for text in one.meta:
        yield made(text, "meta_reasoning", "written")
    topic = sorted(content_words(tokens(one.query)))
    words = " ".join(rng.sample(topic, min(len(topic), 2))) or "this"
    yield made(rng.choice(META).format(words), "meta_reasoning", "from outside")
    for kind, text in _broken(one, others, rng):
        yield made(text, "degenerate", kind)


def _some(made: Sequence[tuple[str, str]], rng: random.Random) -> Sequence[tuple[str, str]]:
    """At most `AT_MOST` of the texts that are easy to make, so that they do not outnumber the others."""
    return made if len(made) <= AT_MOST else rng.sample(made, AT_MOST)


def _restated(one: Conversation, rng: random.Random) -> Iterator[tuple[str, str]]:
    words = one.query.split()
    parts = sentences(one.query)
    yield "query", one.query
    yield "query, words dropped", " ".join(w for w in words if rng.random() > 0.12) or one.query
    if len(parts) > 1:
        yield "last sentence of the query", parts[-1]
        yield "first sentences of the query", " ".join(parts[: max(1, len(parts) // 2)])
    opener = rng.choice(("Can you tell me: ", "Please answer this: ", "I want to know: ", "My question is: "))
    yield "query, introduced", opener + one.query
    for text in one.paraphrases:
        yield "paraphrase", text


def _continued(one: Conversation, others: Sequence[Conversation], rng: random.Random) -> Iterator[tuple[str, str]]:
    words, parts = one.answer.split(), sentences(one.answer)
    yield "second half of the answer", " ".join(words[len(words) // 2 :][:SHOWN_WORDS])
    yield "opening of the answer", " ".join(words[: rng.randint(12, SHOWN_WORDS)])
    if len(parts) > 2:
        yield "a sentence of the answer", rng.choice(parts)
    other = others[0].answer.split()
    yield "opening of another answer", " ".join(other[: rng.randint(12, SHOWN_WORDS)])
    if len(parts) > 1:
        again = rng.choice(parts)
        yield "a sentence of the answer, twice and more", " ".join([again, again, rng.choice(parts), again])
    for text in one.assistant_voice:
        yield "assistant's next words", " ".join(text.split()[:SHOWN_WORDS])


def _broken(one: Conversation, others: Sequence[Conversation], rng: random.Random) -> Iterator[tuple[str, str]]:
    text = rng.choice(one.followups).split()
    yield "words shuffled", " ".join(rng.sample(text, len(text))) if len(text) > 5 else _spliced(others, rng)
    yield "fragments of many texts", _spliced(others, rng)
    head = text[: rng.randint(2, 5)]
    yield "a beginning, then fragments", " ".join(head) + " " + _spliced(others, rng)


def _spliced(conversations: Sequence[Conversation], rng: random.Random) -> str:
    """Fragments of one to four words from texts of several conversations: fluent nearby, senseless as a whole."""
    pool = [text for one in conversations for text in (one.query, one.answer, *one.followups, *one.new_tasks)]
    pieces: list[str] = []
    for _ in range(rng.randint(4, 12)):
        words = rng.choice(pool).split()
        start = rng.randrange(len(words))
        pieces += words[start : start + rng.randint(1, 4)]
    return " ".join(pieces)


def _in_some_context(example: Example, other: Conversation, rng: random.Random) -> Example:
    """The example under a context that a study may show: with the answer, a part of it, another one, or none."""
    turn, draw = example.turn, rng.random()
    words = (turn.answer or "").split(" ")
    if example.kind == "second half of the answer" and draw < 0.75:
        # what an assistant goes on with, seldom stands before it
        turn = replace(turn, answer=" ".join(words[: len(words) // 2]))
    elif draw < 0.12:
        turn = replace(turn, answer=None)
    elif draw < 0.24 and example.kind != "a sentence of the answer":
        turn = replace(turn, answer=" ".join(words[: max(1, len(words) // 2)]))
    elif draw < 0.34 and example.label in {"restates_prompt", "generic", "meta_reasoning", "degenerate"}:
        turn = replace(turn, answer=other.answer)
    if rng.random() < 0.15 and example.label != "restates_prompt":
        kept = turn.text.split(" ")
        turn = replace(
            turn, text=" ".join(kept[: max(3, int(len(kept) * rng.uniform(0.5, 0.95)))]), finish_reason="length"
        )
    return replace(example, turn=turn)
