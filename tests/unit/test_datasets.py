"""Readers and the seeded choice, on made-up texts; and on the real files."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from userturn.datasets import READERS, DatasetError, choose
from userturn.datasets.gsm8k import canonical_number
from userturn.datasets.own import REFERENCES
from userturn.scoring.registry import SCORER_NAMES
from userturn.sources import SourceCache, read_member

PROBLEMS = [
    {"doc": {"question": "One and one?", "answer": "It is\n#### 2"}, "label": "ignored"},
    {"doc": {"question": "A line\u2028end inside?", "answer": "So #### is\n#### -1,450,000"}},
]
PROMPT = {
    "key": 1000,
    "prompt": "Write no commas. ",
    "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
    "kwargs": [{"relation": None}, {"relation": "at least", "num_words": 3}],
}
QUESTION = {"question_id": 81, "category": "writing", "turns": ["Write.", "Again."], "reference": ["r", "s"]}


def lines(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def read(name, *rows):
    return READERS[name].read(lines(*rows))


def test_gsm8k_items():
    expected = [
        {
            "item": "gsm8k-0000",
            "messages": [{"role": "user", "content": "One and one?"}],
            "reference": {"answer": "2"},
            "meta": {"source_index": 0},
        },
        {
            "item": "gsm8k-0001",
            "messages": [{"role": "user", "content": "A line\u2028end inside?"}],
            "reference": {"answer": "-1450000"},
            "meta": {"source_index": 1},
        },
    ]
    assert read("gsm8k", *PROBLEMS) == expected
    assert READERS["gsm8k"].read(gzip.compress(lines(*PROBLEMS))) == expected
    assert READERS["gsm8k"].read(lines(*PROBLEMS).removesuffix(b"\n")) == expected


def test_ifeval_items():
    assert read("ifeval", PROMPT) == [
        {
            "item": "ifeval-1000",
            "messages": [{"role": "user", "content": "Write no commas. "}],
            "reference": {
                "key": 1000,
                "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
                "kwargs": [{}, {"relation": "at least", "num_words": 3}],
                "prompt": "Write no commas. ",
            },
            "meta": {"source_index": 0},
        }
    ]


def test_mt_bench_items():
    assert read("mt_bench", QUESTION) == [
        {
            "item": "mt_bench-81",
            "messages": [{"role": "user", "content": "Write."}],
            "reference": None,
            "meta": {
                "category": "writing",
                "second_turn": "Again.",
                "human_followup": "Again.",
                "source_index": 0,
            },
        }
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("18", "18"),
        (" 2,125 ", "2125"),
        ("$1,450,000", "1450000"),
        ("-10", "-10"),
        ("-$3.50", "-3.5"),
        ("007", "7"),
        ("0.0", "0"),
        ("-0", "0"),
        ("10.00", "10"),
        ("0.25", "0.25"),
        ("1,2", None),
        ("1,2345", None),
        ("1e3", None),
        ("٣", None),
        ("3 apples", None),
        ("", None),
        (".", None),
    ],
)
def test_canonical_numbers(text, number):
    assert canonical_number(text) == number


def without(row, name):
    return {key: value for key, value in row.items() if key != name}


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        ("gsm8k", {}, "a field 'doc' (an object)"),
        ("gsm8k", {"doc": "x"}, "an object in 'doc'"),
        ("gsm8k", {"doc": {"question": " ", "answer": "#### 1"}}, "a non-empty text in 'question'"),
        ("gsm8k", {"doc": {"question": "q", "answer": "is 1"}}, "a number after '####'"),
        ("gsm8k", {"doc": {"question": "q", "answer": "#### many"}}, "a number after '####'"),
        ("ifeval", without(PROMPT, "kwargs"), "a field 'kwargs' (a list of objects)"),
        ("ifeval", {**PROMPT, "kwargs": [{}]}, "2 objects in 'kwargs'"),
        ("ifeval", {**PROMPT, "kwargs": [{}, None]}, "a list of objects in 'kwargs'"),
        ("ifeval", {**PROMPT, "key": True}, "an integer of at least 0 in 'key'"),
        ("ifeval", {**PROMPT, "key": -1}, "an integer of at least 0 in 'key'"),
        (
            "ifeval",
            {**PROMPT, "instruction_id_list": []},
            "a list of non-empty texts in 'instruction_id_list'",
        ),
        ("mt_bench", {**QUESTION, "turns": ["one"]}, "two user turns in 'turns'"),
        ("mt_bench", {**QUESTION, "turns": ["one", ""]}, "a list of non-empty texts in 'turns'"),
        ("mt_bench", {**QUESTION, "question_id": "81"}, "an integer of at least 0 in 'question_id'"),
        ("mt_bench", without(QUESTION, "category"), "a field 'category' (a text)"),
    ],
)
def test_a_malformed_row_names_line_and_expectation(name, row, said):
    good = {"gsm8k": PROBLEMS[0], "ifeval": {**PROMPT, "key": 1}, "mt_bench": {**QUESTION, "question_id": 1}}[name]
    with pytest.raises(DatasetError) as caught:
        read(name, good, row)
    assert str(caught.value).startswith(f"{name}, line 2: expected {said}")


LINE_READERS = [name for name in READERS if name != "math500"]


@pytest.mark.parametrize("name", LINE_READERS)
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "expected JSON Lines, got an empty file"),
        (b"\n", "line 1: expected one JSON object"),
        (b"{", "line 1: expected one JSON object"),
        (b"[1]\n", "line 1: expected one JSON object, got list"),
        (b'{"key": NaN}\n', "line 1: expected one JSON object"),
        (b'\xff{"a": 1}\n', "line 1: expected one JSON object"),
        (b"[" * 100_000, "line 1: expected one JSON object"),
        (b"\x1f\x8bnothing", "the gzip data is damaged"),
        (gzip.compress(b"x" * 1000)[:-9], "the gzip data is damaged"),
    ],
)
def test_bytes_that_are_no_json_lines(name, data, said):
    with pytest.raises(DatasetError, match=name) as caught:
        READERS[name].read(data)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


def test_an_empty_line_in_the_middle_is_no_row():
    with pytest.raises(DatasetError, match="line 2"):
        READERS["gsm8k"].read(lines(PROBLEMS[0]) + b"\n" + lines(PROBLEMS[1]))


@pytest.mark.parametrize(("name", "row"), [("ifeval", PROMPT), ("mt_bench", QUESTION)])
def test_an_id_used_twice_is_refused(name, row):
    with pytest.raises(DatasetError, match=rf"{name}, line 2: expected an id not used before \(line 1 has it\)"):
        read(name, row, row)


def test_the_registry_is_complete():
    assert {name: reader.scorer for name, reader in READERS.items()} == {
        "gsm8k": "gsm8k",
        "math500": "math",
        "gpqa": "choice",
        "ifeval": "ifeval",
        "ifbench": "ifbench",
        "healthbench": "none",
        "coval": "none",
        "mt_bench": "none",
        "oasst1": "none",
        "own": "none",
    }
    assert [name for name, reader in READERS.items() if not reader.publish_items] == ["gpqa"]
    assert {reader.scorer for reader in READERS.values()} | set(REFERENCES) <= set(SCORER_NAMES)
    for name, reader in READERS.items():
        assert reader.name == name
        assert reader.description.endswith(".")
        assert reader.licence in ("MIT", "Apache-2.0", "CC-BY-4.0", "ODC-By-1.0", "LicenseRef-own")
    with pytest.raises(TypeError):
        READERS["new"] = READERS["gsm8k"]


# the choice


def made(n):
    return [{"item": f"d-{i:04d}", "messages": [], "reference": None, "meta": {}} for i in range(n)]


def ids(items):
    return [item["item"] for item in items]


GOLDEN_CHOICE = ["d-0039", "d-0038", "d-0007", "d-0019", "d-0073"]


def test_the_choice_is_golden():
    assert ids(choose(made(100), 5, 20260401, "d")) == GOLDEN_CHOICE


@settings(max_examples=40)
@given(st.integers(2, 60), st.integers(0, 2**40), st.data())
def test_a_larger_choice_starts_with_the_smaller(total, seed, data):
    larger = data.draw(st.integers(1, total))
    smaller = data.draw(st.integers(1, larger))
    items = made(total)
    shuffled = data.draw(st.permutations(items))
    chosen = ids(choose(items, larger, seed, "d"))
    assert ids(choose(shuffled, smaller, seed, "d")) == chosen[:smaller]
    assert len(set(chosen)) == larger
    assert ids(choose(items, None, seed, "d"))[:larger] == chosen


def test_the_choice_depends_on_seed_and_dataset_and_spares_the_others():
    items = made(100)
    chosen = ids(choose(items, 10, 1, "d"))
    assert chosen != ids(choose(items, 10, 2, "d"))
    assert chosen != ids(choose(items, 10, 1, "e"))
    assert chosen != ids(items)[:10]
    left_out = next(item for item in items if item["item"] not in chosen)
    assert ids(choose([item for item in items if item != left_out], 10, 1, "d")) == chosen


def test_every_item_is_as_likely_as_any():
    counts = dict.fromkeys(ids(made(10)), 0)
    for seed in range(400):
        for name in ids(choose(made(10), 3, seed, "d")):
            counts[name] += 1
    # 400 draws of 3 in 10: mean 120, standard deviation 9.2
    assert all(80 < count < 160 for count in counts.values())


def test_impossible_choices_name_both_numbers():
    with pytest.raises(DatasetError, match="n_items is 11, but there are only 10 items"):
        choose(made(10), 11, 1, "d")
    for n in (0, -1):
        with pytest.raises(DatasetError, match=f"at least 1, or null for all 10 items, got {n}"):
            choose(made(10), n, 1, "d")
    with pytest.raises(DatasetError, match="not unique"):
        choose(made(2) + made(1), 1, 1, "d")


# the real files


@pytest.mark.parametrize(("name", "count"), [("gsm8k", 1319), ("ifeval", 541), ("mt_bench", 80)])
def test_the_real_files(wheel_of, name, count):
    items = READERS[name].read(read_member(wheel_of(name), SourceCache.default()))
    assert len(items) == len({item["item"] for item in items}) == count
    if name == "gsm8k":
        assert sum(item["reference"]["answer"].startswith("-") for item in items) == 2
        assert items[0]["reference"] == {"answer": "18"}
    if name == "mt_bench":
        assert len({item["meta"]["category"] for item in items}) == 8
        assert items[0]["item"] == "mt_bench-81"
