from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from userturn.perturb import (
    Answered,
    appended_question,
    baseline,
    continued_answer,
    donors,
    echoed_query,
    human_followup,
    instructed,
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


def test_the_answer_that_a_context_shows() -> None:
    """What a judge is shown as the assistant turn, whatever stands where in the messages."""
    assert baseline(ONE).shown_answer == ONE.answer
    assert shuffled_context(ONE, TWO).shown_answer == TWO.answer
    assert removed_assistant(ONE).shown_answer is None
    assert swapped_roles(ONE).shown_answer == ONE.answer
    assert truncated_assistant(ONE, 0.6, words).shown_answer == "There are four"
    assert appended_question(ONE, "More?").shown_answer == f"{ONE.answer}\n\nMore?"
    assert instructed(ONE, "Write.").shown_answer == ONE.answer


def test_instructed_asks_the_assistant() -> None:
    context = instructed(ONE, "Write.")
    assert spoken(context)[-1] == ("user", "Write.")
    assert context.instructed
    assert context.user_turn is None
    assert not baseline(ONE).instructed


def test_controls_bring_their_user_turn() -> None:
    asked = [Answered(f"d-{n}", ONE.messages, "One two three four.", f"And {n}?" if n < 3 else None) for n in range(5)]
    assert human_followup(asked[0]).user_turn == "And 0?"
    assert spoken(human_followup(asked[0])) == spoken(baseline(asked[0]))
    assert echoed_query(asked[0]).user_turn == "How many?"
    rest = continued_answer(asked[0], 0.5, words)
    assert (spoken(rest)[-1], rest.user_turn) == (("assistant", "One two"), "three four.")

    def apply(kind: str, **settings: float) -> list:
        return perturb(kind, asked, truncate=words, seed=3, dataset="d", **settings)  # type: ignore[arg-type]

    assert [c.item for c in apply("human_followup")] == ["d-0", "d-1", "d-2"], "items without a follow-up are left out"
    others = apply("other_followup")
    assert sorted(c.user_turn for c in others) == ["And 0?", "And 1?", "And 2?"]
    assert all(c.user_turn != f"And {c.item[-1]}?" for c in others)
    assert [c.changes["donor_item"][-1] for c in others] == [c.user_turn[4] for c in others]
    assert perturb("other_followup", [ONE, TWO], truncate=words, seed=3, dataset="d") == []


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
        "instructed": {"instruction": "Go on."},
        "echoed_query": {},
        "continued_answer": {"fraction": 0.5},
    }.items():
        contexts = perturb(kind, answered, truncate=words, seed=3, dataset="d", **settings)  # type: ignore[arg-type]
        assert [context.item for context in contexts] == ["a", "b"]
        assert any(message["content"] == query for message in contexts[0].messages)
        assert answered[0].messages == ({"role": "user", "content": query},)


def test_unknown_kinds_and_missing_parameters_are_refused() -> None:
    for kind in ("scrambled", "truncated_assistant", "appended_question"):
        with pytest.raises(ValueError, match=kind):
            perturb(kind, [ONE, TWO], truncate=words, seed=1, dataset="d")
