"""Perturbations, contrasts and controls: pure functions from an answered item to the context of its user turn.

Each says in ``changes`` what was done, so that a reader of the artefact needs nothing else. Shuffled context, removed
assistant turn and swapped roles are this project's, truncation and the appended question the paper's; controls come
with their user turn (see docs/method.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    followup: str | None = None
    """What a person wrote next, for items that have it."""

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
    shown_answer: str | None
    """The assistant turn as the context shows it; None where it shows none."""
    user_turn: str | None = None
    """The user turn itself, for controls; None where the model is to write it."""
    instructed: bool = False
    """Whether the model is to write as the assistant, following an instruction."""


class Truncate(Protocol):
    """Cuts a text at a fraction of its tokens; see `userturn.render.Renderer.truncate`."""

    def __call__(self, text: str, fraction: float) -> tuple[str, int, int]:
        """Returns the text that stays, the tokens kept and the tokens there were."""
        ...


def _assistant(content: str) -> Message:
    return {"role": "assistant", "content": content}


def _followed(one: Answered, answer: str, **changes: Any) -> Context:
    """The item's messages followed by an answer."""
    return Context(one.item, (*one.messages, _assistant(answer)), changes, shown_answer=answer)


def baseline(one: Answered) -> Context:
    """``[q; a]`` as it is."""
    return _followed(one, one.answer)


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
    return _followed(one, donor.answer, donor_item=donor.item)


def removed_assistant(one: Answered) -> Context:
    """``[q]`` alone: the user header follows the query."""
    return Context(one.item, one.messages, {"removed_characters": len(one.answer)}, shown_answer=None)


def swapped_roles(one: Answered) -> Context:
    """``q`` under the assistant role and ``a`` under the user role; earlier messages keep theirs."""
    messages = (
        *one.messages[:-1],
        _assistant(one.query["content"]),
        Message(role="user", content=one.answer),
    )
    return Context(one.item, messages, {"swapped_messages": 2}, shown_answer=one.answer)


def truncated_assistant(one: Answered, fraction: float, truncate: Truncate) -> Context:
    """``[q; a]`` with ``a`` cut at a fraction of its tokens."""
    kept, n_kept, n_tokens = truncate(one.answer, fraction)
    return _followed(one, kept, fraction=fraction, kept_tokens=n_kept, of_tokens=n_tokens, cut_at_character=len(kept))


def appended_question(one: Answered, question: str) -> Context:
    """``[q; a + question]``, the question after a blank line."""
    answer = f"{one.answer.rstrip()}\n\n{question}"
    return _followed(one, answer, appended=question)


def instructed(one: Answered, instruction: str) -> Context:
    """``[q; a; instruction]``: the model answers as the assistant, with what the user would write next."""
    messages = (*one.messages, _assistant(one.answer), Message(role="user", content=instruction))
    return Context(one.item, messages, {"instruction": instruction}, shown_answer=one.answer, instructed=True)


def human_followup(one: Answered) -> Context:
    """Ceiling control: ``[q; a]`` and what a person wrote next."""
    return replace(baseline(one), user_turn=one.followup)


def echoed_query(one: Answered) -> Context:
    """Floor control: ``[q; a]`` and ``q`` again."""
    return replace(baseline(one), user_turn=one.query["content"])


def continued_answer(one: Answered, fraction: float, truncate: Truncate) -> Context:
    """Floor control: ``a`` cut at a fraction of its tokens, and the rest of it under the user role."""
    cut = truncated_assistant(one, fraction, truncate)
    return replace(cut, user_turn=one.answer[cut.changes["cut_at_character"] :].strip())


def other_followup(one: Answered, donor: Answered) -> Context:
    """Floor control: ``[q; a]`` and what a person wrote after another item."""
    context = baseline(one)
    return replace(context, user_turn=donor.followup, changes={"donor_item": donor.item})


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
    instruction: str | None = None,
) -> list[Context]:
    """Applies one kind of perturbation, contrast or control to all answered items of a dataset.

    Controls that need a human follow-up leave out the items that have none.

    Args:
        kind: one of the kinds of `userturn.config.perturbations`.
        answered: the items with their answers, in the dataset's order.
        truncate: cuts a text at a fraction of its tokens.
        seed: the study's seed; only ``shuffled_context`` and ``other_followup`` use it.
        dataset: the dataset's name, part of the derangement's seed.
        draw: number of the derangement.
        fraction: for ``truncated_assistant`` and ``continued_answer``.
        question: for ``appended_question``.
        instruction: for ``instructed``.

    Raises:
        ValueError: for an unknown kind or a missing parameter.
    """
    with_followup = [one for one in answered if one.followup is not None]

    def paired(items: Sequence[Answered], label: str) -> Iterator[tuple[Answered, Answered]]:
        by_item = {one.item: one for one in items}
        donor = donors(list(by_item), seed, dataset, draw, *([label] if label else []))
        return ((one, by_item[donor[one.item]]) for one in items)

    match kind, fraction, question, instruction:
        case "baseline" | "repeated_baseline", _, _, _:
            return [baseline(one) for one in answered]
        case "shuffled_context", _, _, _:
            return [shuffled_context(one, donor) for one, donor in paired(answered, "")]
        case "removed_assistant", _, _, _:
            return [removed_assistant(one) for one in answered]
        case "swapped_roles", _, _, _:
            return [swapped_roles(one) for one in answered]
        case "truncated_assistant", float(), _, _:
            return [truncated_assistant(one, fraction, truncate) for one in answered]
        case "appended_question", _, str(), _:
            return [appended_question(one, question) for one in answered]
        case "instructed", _, _, str():
            return [instructed(one, instruction) for one in answered]
        case "human_followup", _, _, _:
            return [human_followup(one) for one in with_followup]
        case "echoed_query", _, _, _:
            return [echoed_query(one) for one in answered]
        case "continued_answer", float(), _, _:
            return [continued_answer(one, fraction, truncate) for one in answered]
        case "other_followup", _, _, _:
            return (
                [other_followup(one, donor) for one, donor in paired(with_followup, "followup")]
                if len(with_followup) > 1
                else []
            )
    raise ValueError(f"perturbation {kind!r}: unknown, or its parameter is missing")
