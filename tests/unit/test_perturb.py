from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from userturn.perturb import (
    Answered,
    appended_question,
    baseline,
    donors,
    perturb,
    removed_assistant,
    shuffled_context,
    swapped_roles,
    truncated_assistant,
)

TEXT = st.text(max_size=40)
ITEMS = st.lists(st.text(min_size=1, max_size=6), min_size=2, max_size=30, unique=True)


def words(text: str, fraction: float) -> tuple[str, int, int]:
    """A tokenizer of words for the tests: cuts after the share of words, keeps a prefix."""
    n = len(text.split())
    kept = max(1, int(n * fraction)) if n else 0
    end = 0
    for word in text.split()[:kept]:
        end = text.index(word, end) + len(word)
    return text[:end], kept, n


ONE = Answered("d-1", ({"role": "user", "content": "How many?"},), "There are four of them.")
TWO = Answered("d-2", ({"role": "user", "content": "Who?"},), "Nobody.")
LONG = Answered(
    "d-3",
    (
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "reply"},
        {"role": "user", "content": "second"},
    ),
    "answer",
)


def spoken(context: object) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in context.messages]  # type: ignore[attr-defined]


def test_baseline() -> None:
    context = baseline(ONE)
    assert spoken(context) == [("user", "How many?"), ("assistant", "There are four of them.")]
    assert context.changes == {}


def test_shuffled_context_names_the_donor() -> None:
    context = shuffled_context(ONE, TWO)
    assert spoken(context) == [("user", "How many?"), ("assistant", "Nobody.")]
    assert context.changes == {"donor_item": "d-2"}
    with pytest.raises(ValueError, match="must be another item"):
        shuffled_context(ONE, ONE)


def test_removed_assistant() -> None:
    context = removed_assistant(ONE)
    assert spoken(context) == [("user", "How many?")]
    assert context.changes == {"removed_characters": 23}


def test_swapped_roles_keeps_earlier_messages() -> None:
    assert spoken(swapped_roles(ONE)) == [("assistant", "How many?"), ("user", "There are four of them.")]
    assert spoken(swapped_roles(LONG)) == [
        ("user", "first"),
        ("assistant", "reply"),
        ("assistant", "second"),
        ("user", "answer"),
    ]


def test_truncated_assistant_says_where_it_cut() -> None:
    context = truncated_assistant(ONE, 0.6, words)
    assert spoken(context)[-1] == ("assistant", "There are four")
    assert context.changes == {"fraction": 0.6, "kept_tokens": 3, "of_tokens": 5, "cut_at_character": 14}


def test_appended_question() -> None:
    context = appended_question(Answered("x", ONE.messages, "Four.\n"), "Anything else?")
    assert spoken(context)[-1] == ("assistant", "Four.\n\nAnything else?")
    assert context.changes == {"appended": "Anything else?"}


@given(items=ITEMS, seed=st.integers(0, 2**40))
def test_donors_are_a_derangement_and_one_cycle(items: list[str], seed: int) -> None:
    donor = donors(items, seed, "d", 0)
    assert sorted(donor) == sorted(donor.values()) == sorted(items)
    assert all(giver != item for item, giver in donor.items())
    seen, at = {items[0]}, donor[items[0]]
    while at not in seen:
        seen.add(at)
        at = donor[at]
    assert len(seen) == len(items)


@given(
    items=st.lists(st.text(min_size=1, max_size=6), min_size=3, max_size=30, unique=True),
    seed=st.integers(0, 99),
)
def test_one_more_item_changes_one_other_donor(items: list[str], seed: int) -> None:
    before, after = donors(items[:-1], seed, "d"), donors(items, seed, "d")
    assert sum(after[item] != giver for item, giver in before.items()) == 1


def test_another_draw_pairs_anew() -> None:
    items = [f"i{n}" for n in range(30)]
    assert donors(items, 1, "d", 0) == donors(items, 1, "d", 0)
    assert donors(items, 1, "d", 0) != donors(items, 1, "d", 1)
    assert donors(items, 1, "d", 0) != donors(items, 2, "d", 0)
    with pytest.raises(ValueError, match="at least two items"):
        donors(["a"], 1)


@given(query=TEXT, answer=TEXT, other=TEXT)
def test_nothing_but_the_context_changes(query: str, answer: str, other: str) -> None:
    answered = [
        Answered("a", ({"role": "user", "content": query},), answer),
        Answered("b", ({"role": "user", "content": "q"},), other),
    ]
    for kind, settings in {
        "baseline": {},
        "shuffled_context": {"draw": 2},
        "removed_assistant": {},
        "swapped_roles": {},
        "truncated_assistant": {"fraction": 0.5},
        "appended_question": {"question": "?"},
    }.items():
        contexts = perturb(kind, answered, truncate=words, seed=3, dataset="d", **settings)  # type: ignore[arg-type]
        assert [context.item for context in contexts] == ["a", "b"]
        assert any(message["content"] == query for message in contexts[0].messages)
        assert answered[0].messages == ({"role": "user", "content": query},)


def test_unknown_kinds_and_missing_parameters_are_refused() -> None:
    for kind in ("scrambled", "truncated_assistant", "appended_question"):
        with pytest.raises(ValueError, match=kind):
            perturb(kind, [ONE, TWO], truncate=words, seed=1, dataset="d")
