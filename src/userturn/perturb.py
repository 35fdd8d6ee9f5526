"""Perturbations: pure functions from an item and its assistant turn to the context that the user turn follows.

Each says in ``changes`` what was done, so that a reader of the artefact needs nothing else. The first three
perturbations besides the baseline are this project's, the last two are the paper's (see docs/method.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from userturn.messages import Message
from userturn.seeds import derive


@dataclass(frozen=True)
class Answered:
    """An item with the model's own answer."""

    item: str
    messages: tuple[Message, ...]
    """The conversation up to and including the user query `q`."""
    answer: str
    """The assistant turn `a`."""

    @property
    def query(self) -> Message:
        """The user query `q`: the last message."""
        return self.messages[-1]


@dataclass(frozen=True)
class Context:
    """What precedes a generated user turn."""

    item: str
    messages: tuple[Message, ...]
    changes: Mapping[str, Any]
    """What the perturbation did; empty for the baseline."""


class Truncate(Protocol):
    """Cuts a text at a fraction of its tokens; see `userturn.render.Renderer.truncate`."""

    def __call__(self, text: str, fraction: float) -> tuple[str, int, int]:
        """Returns the text that stays, the tokens kept and the tokens there were."""
        ...


def _assistant(content: str) -> Message:
    return {"role": "assistant", "content": content}


def baseline(one: Answered) -> Context:
    """``[q; a]`` as it is."""
    return Context(one.item, (*one.messages, _assistant(one.answer)), {})


def donors(items: Sequence[str], seed: int, *labels: str | int) -> dict[str, str]:
    """A seeded derangement: for each item the item whose answer it gets, never itself.

    Built as an inside-out Sattolo shuffle (a uniform random cycle): item number ``i`` is inserted into the cycle of
    those before it, so that adding an item changes the donor of one other item only.

    Args:
        items: at least two distinct item ids, in the dataset's order.
        seed: the study's seed.
        labels: what else the draw depends on, for instance the dataset and the number of the draw.

    Raises:
        ValueError: for fewer than two items.
    """
    if len(items) < 2:
        raise ValueError(f"a derangement needs at least two items, given {len(items)}: {list(items)}")
    donor = {items[0]: items[0]}
    for index, item in enumerate(items[1:], start=1):
        host = items[derive(seed, "donor", *labels, item) % index]
        donor[item] = donor[host]
        donor[host] = item
    return donor


def shuffled_context(one: Answered, donor: Answered) -> Context:
    """``[q; a']``: the assistant turn of another item."""
    if donor.item == one.item:
        raise ValueError(f"{one.item}: the donor must be another item")
    return Context(one.item, (*one.messages, _assistant(donor.answer)), {"donor_item": donor.item})


def removed_assistant(one: Answered) -> Context:
    """``[q]`` alone: the user header follows the query."""
    return Context(one.item, one.messages, {"removed_characters": len(one.answer)})


def swapped_roles(one: Answered) -> Context:
    """``q`` under the assistant role and ``a`` under the user role; earlier messages keep theirs."""
    messages = (
        *one.messages[:-1],
        _assistant(one.query["content"]),
        Message(role="user", content=one.answer),
    )
    return Context(one.item, messages, {"swapped_messages": 2})


def truncated_assistant(one: Answered, fraction: float, truncate: Truncate) -> Context:
    """``[q; a]`` with ``a`` cut at a fraction of its tokens."""
    kept, n_kept, n_tokens = truncate(one.answer, fraction)
    changes = {
        "fraction": fraction,
        "kept_tokens": n_kept,
        "of_tokens": n_tokens,
        "cut_at_character": len(kept),
    }
    return Context(one.item, (*one.messages, _assistant(kept)), changes)


def appended_question(one: Answered, question: str) -> Context:
    """``[q; a + question]``, the question after a blank line."""
    answer = f"{one.answer.rstrip()}\n\n{question}"
    return Context(one.item, (*one.messages, _assistant(answer)), {"appended": question})


def perturb(
    kind: str,
    answered: Sequence[Answered],
    *,
    truncate: Truncate,
    seed: int,
    dataset: str,
    draw: int = 0,
    fraction: float | None = None,
    question: str | None = None,
) -> list[Context]:
    """Applies one kind of perturbation to all answered items of a dataset.

    Args:
        kind: one of DESIGN's perturbation names.
        answered: the items with their answers, in the dataset's order.
        truncate: cuts a text at a fraction of its tokens.
        seed: the study's seed; only ``shuffled_context`` uses it.
        dataset: the dataset's name, part of the derangement's seed.
        draw: number of the derangement.
        fraction: for ``truncated_assistant``.
        question: for ``appended_question``.

    Raises:
        ValueError: for an unknown kind or a missing parameter.
    """
    apply: Callable[[Answered], Context]
    if kind == "baseline":
        apply = baseline
    elif kind == "shuffled_context":
        by_item = {one.item: one for one in answered}
        donor = donors(list(by_item), seed, dataset, draw)

        def apply(one: Answered) -> Context:
            return shuffled_context(one, by_item[donor[one.item]])

    elif kind == "removed_assistant":
        apply = removed_assistant
    elif kind == "swapped_roles":
        apply = swapped_roles
    elif kind == "truncated_assistant" and fraction is not None:

        def apply(one: Answered) -> Context:
            return truncated_assistant(one, fraction, truncate)

    elif kind == "appended_question" and question is not None:

        def apply(one: Answered) -> Context:
            return appended_question(one, question)

    else:
        raise ValueError(f"perturbation {kind!r}: unknown, or its parameter is missing")
    return [apply(one) for one in answered]
