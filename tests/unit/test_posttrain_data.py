"""What is trained on: reading, filters, contamination, the split, exchanged turns."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("transformers")

from render_tokenizers import FAMILIES, assistant, user

from posttrain_fixture import conversations as own_talks
from userturn.posttrain.contamination import Evaluated, texts_of, words
from userturn.posttrain.conversations import (
    Conversation,
    TrainingDataError,
    chats,
    fault,
    from_items,
    own,
    tooltalk,
    usable,
)
from userturn.posttrain.masks import Masker
from userturn.posttrain.rows import Report, chosen, clean, context_rows, is_held_out, problem_rows, turn_rows
from userturn.posttrain.training import ordered
from userturn.render import Renderer

TALK = (user("one two three"), assistant("four five six"), user("seven eight nine"))


def masker(most: int = 400) -> Masker:
    tokenizer = FAMILIES["chatml"].tokenizer()
    return Masker(lambda prefix: Renderer(tokenizer, prefix=prefix), "stripped", most, 100)


def rows_of(found, **more):
    settings = {"loss_on": "user", "held_out": 0.0, "shuffled_pairs": False, "seed": 5} | more
    report = settings.setdefault("report", Report())
    return turn_rows(found, masker(), **settings), report


def test_rows_with_messages_a_conversation_or_a_prompt_are_conversations():
    spoken = [{"role": "user", "content": " hello "}, {"role": "assistant", "content": "hi"}]
    rows = [
        {"messages": spoken},
        {"conversation": spoken},
        {"conversations": [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]},
        {"prompt": spoken[:1], "completion": "hi", "conv_id": 3},
    ]
    found = list(chats(rows, "s"))
    assert [one.messages for one in found] == [(user("hello"), assistant("hi"))] * 4
    assert [one.id for one in found] == ["s/000000", "s/000001", "s/000002", "s/000003"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"text": "no"}, "s, row 1: expected 'messages'"),
        ({"messages": "no"}, "s, row 1: expected a list of messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "s, row 1, message 1: expected a message with a role"),
        ({"messages": [{"role": "user", "content": 3}]}, "s, row 1, message 1"),
    ],
)
def test_what_is_no_conversation_is_named(row, said):
    with pytest.raises(TrainingDataError, match=said):
        list(chats([row], "s"))


def test_tooltalk_leaves_out_the_calls():
    document = {
        "conversation": [
            {"index": 0, "role": "user", "text": "wake me at six"},
            {"index": 1, "role": "assistant", "text": "done", "apis": [{"request": {}}]},
        ]
    }
    (one,) = tooltalk([("a.json", json.dumps(document).encode())], "t")
    assert one == Conversation("t/a", (user("wake me at six"), assistant("done")))
    with pytest.raises(TrainingDataError, match=r"t, b\.json: not JSON"):
        list(tooltalk([("b.json", b"{")], "t"))


def test_items_with_a_persons_answer_and_own_conversations_end_with_a_user_turn():
    item = {"item": "i", "messages": [user("q")], "meta": {"human_answer": "a", "human_followup": "f"}}
    (one,) = from_items([item], "d")
    assert one.messages == (user("q"), assistant("a"), user("f"))
    row = {
        "id": "x", "kind": "k", "query": "q", "answer": "a", "followups": ["f", "g"],
        "paraphrases": ["p"], "new_tasks": ["n"], "assistant_voice": ["v"], "meta": "m",
    }  # fmt: skip
    assert [one.messages[-1]["content"] for one in own([row], "w")] == ["f", "g"]


def test_conversations_that_cannot_serve_are_counted_by_reason():
    found = [
        Conversation("a", TALK),
        Conversation("b", TALK),
        Conversation("c", TALK[:2]),
        Conversation("d", (TALK[0], TALK[2], TALK[1])),
        Conversation("e", (TALK[0], assistant(""), TALK[2])),
        Conversation("f", (user("wie geht es dir heute und was machst du mit der zeit"), *TALK[1:])),
        Conversation("g", (TALK[0], assistant("x" * 9000), TALK[2])),
    ]
    kept, dropped = usable(found, english=True)
    assert [one.id for one in kept] == ["a"]
    assert dropped == {
        "the same as another": 1,
        "no user turn after an answer": 1,
        "user and assistant do not take turns": 1,
        "an empty message": 1,
        "not English": 1,
        "a message over 8000 characters": 1,
    }
    assert fault(found[5], english=False) is None


def test_words_in_a_row_of_an_item_make_a_conversation_contaminated():
    item = {"messages": [user("Count: one, two, THREE four five six seven eight nine.")], "meta": {}}
    evaluated = Evaluated.of(texts_of([item]), 8)
    assert evaluated.meets(["well, one two three four five six seven eight"])
    assert evaluated.meets(["one two three four five six seven. EIGHT? no, nine"])
    assert not evaluated.meets(["one two three four five six seven"])
    assert not evaluated.meets([])


def test_short_texts_count_whole_and_very_short_ones_not_at_all():
    evaluated = Evaluated.of(["Can you explain that?", "Thanks a lot"], 8)
    assert evaluated.meets(["can you explain that"])
    assert not evaluated.meets(["can you explain that again"])
    assert not evaluated.meets(["thanks a lot"])


def test_what_people_wrote_after_an_item_is_evaluated_too():
    item = {"messages": [user("q")], "meta": {"human_followup": "what would the fourth step be", "category": "x"}}
    assert Evaluated.of(texts_of([item]), 4).meets(["so what would the fourth step be then"])


@given(st.lists(st.sampled_from("abcdef"), min_size=0, max_size=30), st.integers(3, 9))
def test_a_text_meets_itself_whenever_it_is_long_enough(letters, n):
    text = " ".join(letters)
    assert Evaluated.of([text], n).meets([text]) == (len(letters) >= min(n, 4))


def test_words_do_not_depend_on_case_or_the_encoding_of_accents():
    assert words("Café, NAÏVE!") == words("cafe\u0301 nai\u0308ve")


def test_contaminated_conversations_are_dropped_and_counted():
    report = Report()
    evaluated = Evaluated.of(["zero one two three zero"], 3)
    kept = clean([Conversation("a", TALK), Conversation("b", (user("x"), *TALK[1:]))], evaluated, report)
    assert [one.id for one in kept] == ["b"]
    assert list(report.dropped.values()) == [1]


def test_the_split_is_by_opening_and_stays_when_conversations_are_added():
    shares = [is_held_out(f"question {n}", 0.3, 9) for n in range(2000)]
    assert 0.25 < sum(shares) / len(shares) < 0.35
    assert is_held_out("Question, 7!", 0.3, 9) == shares[7]
    assert not any(is_held_out(f"question {n}", 0.0, 9) for n in range(50))


def test_one_row_a_trained_turn_and_every_token_counted():
    found = list(chats(own_talks(), "own"))
    rows, report = rows_of(found)
    assert [row["row"] for row in rows[:2]] == ["own/000000/2", "own/000000/4"]
    assert len(rows) == 16
    assert report.counts["trained tokens, train"] == sum(sum(label >= 0 for label in row["labels"]) for row in rows)
    answers, _ = rows_of(found, loss_on="assistant")
    both, _ = rows_of(found, loss_on="all")
    assert sorted(row["row"] for row in both) == sorted(row["row"] for row in rows + answers)


def test_a_turn_that_two_conversations_share_is_trained_once():
    longer = (*TALK, assistant("ten"), user("eleven twelve"))
    rows, report = rows_of([Conversation("a", TALK), Conversation("b", longer)])
    assert [row["row"] for row in rows] == ["a/2", "b/4"]
    assert report.dropped["turn: the same after the same context as another"] == 1


def test_exchanged_turns_keep_their_contexts_and_come_from_another_conversation():
    found = list(chats(own_talks(), "own"))
    plain, _ = rows_of(found)
    mixed, _ = rows_of(found, shuffled_pairs=True)
    prompts = [[i for i, label in zip(row["input_ids"], row["labels"], strict=True) if label < 0] for row in plain]
    assert [
        [i for i, label in zip(row["input_ids"], row["labels"], strict=True) if label < 0] for row in mixed
    ] == prompts
    assert all(row["donor"] not in {None, row["conversation"]} for row in mixed)

    def turns(rows):
        return sorted(tuple(label for label in row["labels"] if label >= 0) for row in rows)

    assert turns(mixed) == turns(plain)
    with pytest.raises(TrainingDataError, match="at least 2"):
        rows_of(found[:1], shuffled_pairs=True)


def test_a_smaller_set_is_part_of_a_larger_one():
    rows, _ = rows_of(list(chats(own_talks(), "own")))
    few, more = chosen(rows, 4, 1), chosen(rows, 9, 1)
    assert len(few) == 4
    assert {row["row"] for row in few} < {row["row"] for row in more}
    assert chosen(rows, None, 1) == rows


def test_problems_and_contexts_are_prompts_of_the_probe():
    renderer = Renderer(FAMILIES["chatml"].tokenizer())
    item = {"item": "i", "messages": [user("2+2?")], "reference": {"answer": "4"}, "meta": {}}
    report = Report()
    long = {**item, "item": "j", "messages": [user("x" * 500)]}
    rows = problem_rows(
        [("s", item, "gsm8k"), ("s", long, "gsm8k")], renderer, Evaluated.of([], 8), max_prompt_tokens=60, report=report
    )
    assert [row["row"] for row in rows] == ["s/i"]
    assert rows[0]["prompt_token_ids"] == list(renderer.assistant_prompt(item["messages"]).token_ids)
    assert report.dropped["query: over 60 tokens"] == 1
    (context,) = context_rows([Conversation("c", TALK)], masker(), report=report)
    assert context["prompt_token_ids"] == list(renderer.user_prompt(TALK[:2]).token_ids)
    assert (context["messages"], context["answer"]) == ([TALK[0]], TALK[1]["content"])


def test_the_order_of_training_shows_every_row_once_before_any_twice():
    rows = [{"row": str(n)} for n in range(5)]
    order = [row["row"] for row in ordered(rows, 12, 3)]
    assert sorted(order[:5]) == sorted(order[5:10]) == ["0", "1", "2", "3", "4"]
    assert order[:5] != order[5:10]
    assert ordered(rows, 12, 3) == ordered(list(reversed(rows)), 12, 3)
