"""The gold set: how turns and labels are joined, and what the committed files hold."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from userturn.artefacts import Row
from userturn.config.default_study import DEFAULT_STUDY
from userturn.judges.labels import LABELS
from userturn.sources import FileSource
from userturn.stages import gold_set
from userturn.stages.gold_set import GoldError, joined, shown

ROOT = Path(__file__).parents[2]


def rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (ROOT / name).read_text(encoding="utf-8").split("\n") if line]


# joined


def turn(id: str) -> Row:
    return {"id": id, "item": f"item of {id}", "messages": [], "shown_answer": None, "text": "text"}


def label(id: str, **more: Any) -> Row:
    given = {"id": id, "label": "generic", "first": "generic", "second": "generic", "reacts_to": None, "reason": ""}
    return given | {"first_note": "not kept"} | more


def test_labels_come_with_their_item_sorted_by_turn() -> None:
    decided = label("a", second="unrelated", label="unrelated", reason="a reason")
    assert joined([turn("b"), turn("a")], [label("b"), decided]) == [
        {
            "id": "a",
            "item": "item of a",
            "label": "unrelated",
            "first": "generic",
            "second": "unrelated",
            "reacts_to": None,
            "reason": "a reason",
        },
        {
            "id": "b",
            "item": "item of b",
            "label": "generic",
            "first": "generic",
            "second": "generic",
            "reacts_to": None,
            "reason": "",
        },
    ]


TWICE = "turns and labels do not belong together: an id stands twice"


@pytest.mark.parametrize(
    ("turns", "labels", "message"),
    [
        (["a", "b"], [label("a")], "turns and labels do not belong together: b"),
        (["a"], [label("a"), label("c"), label("b")], "turns and labels do not belong together: b, c"),
        (["a", "a"], [label("a")], TWICE),
        (["a"], [label("a"), label("a")], TWICE),
        (["a", "a"], [label("a"), label("a")], TWICE),
        (["a"], [label("a", label="Generic")], f"a: label 'Generic'; allowed are {', '.join(LABELS)}"),
        (["a"], [label("a", first="unscored")], "a: label 'unscored'; allowed are"),
        (["a"], [label("a", second=None)], "a: label None; allowed are"),
        (["a"], [label("a", second="unrelated")], "a: the two labellings differ and no reason of the final one"),
    ],
)
def test_what_does_not_fit_together_is_refused(turns: list[str], labels: list[Row], message: str) -> None:
    with pytest.raises(GoldError, match=f"^{re.escape(message)}"):
        joined([turn(id) for id in turns], labels)


def test_at_most_five_ids_are_named() -> None:
    with pytest.raises(GoldError, match=r"together: t0, t1, t2, t3, t4$"):
        joined([turn(f"t{n}") for n in range(9)], [])


# shown


def full(id: str, **more: Any) -> Row:
    query = [{"role": "user", "content": "q"}]
    given = {"id": id, "item": "i", "messages": query, "shown_answer": None, "text": "", "finish_reason": "stop"}
    return given | {"model": "m", "perturbation": "baseline", "temperature": 0.0, "sample": 0} | more


def test_judges_see_neither_model_nor_condition_and_turns_are_sorted() -> None:
    rows = shown([full("b", shown_answer="a"), full("a")])
    assert [row["id"] for row in rows] == ["a", "b"]
    assert set(rows[0]) == {"id", "item", "messages", "shown_answer", "text", "finish_reason"}
    assert rows[1]["shown_answer"] == "a"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("messages", [], "a: messages: List should have at least 1 item"),
        ("messages", [{"role": "user", "content": 7}], "a: messages.0.content: Input should be a valid string"),
        ("messages", [{"role": "User", "content": "q"}], "a: messages.0.role: Input should be 'system', 'user'"),
        ("messages", [{"role": "assistant", "content": "q"}], "a: messages: the last one is the user's query, not of"),
        ("text", None, "a: text: Input should be a valid string"),
        ("shown_answer", 3, "a: shown_answer: Input should be a valid string"),
    ],
)
def test_a_turn_that_no_judge_could_read_is_refused(field: str, value: Any, message: str) -> None:
    with pytest.raises(GoldError, match=f"^{re.escape(message)}"):
        shown([full("a", **{field: value})])


class Quiet:
    """What reading rows needs of a job."""

    def say(self, text: str) -> None:
        pass


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json", "gold.turns, line 3: no JSON: "),
        ('{"id": "a"}', "gold.turns, line 3: item missing; each row has id, item"),
        ("{}", "gold.turns, line 3: id, item missing; each row has id, item"),
        ("7", "gold.turns, line 3: no object; each row has id, item"),
        ('"id, item"', "gold.turns, line 3: no object; each row has id, item"),
        ('["id", "item"]', "gold.turns, line 3: no object; each row has id, item"),
    ],
)
def test_a_bad_line_is_refused_by_file_and_line(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = f'{{"id": "x", "item": "y"}}\n\n{line}\n'.encode()
    Path("turns.jsonl").write_bytes(data)
    source = FileSource(kind="file", path="turns.jsonl", sha256=hashlib.sha256(data).hexdigest())
    with pytest.raises(GoldError, match=f"^{re.escape(message)}"):
        list(gold_set._rows(source, "gold.turns", ("id", "item"), Quiet()))  # type: ignore[arg-type]


# The committed files


@pytest.fixture(scope="module")
def turns() -> list[Row]:
    return rows("gold/turns.jsonl")


@pytest.fixture(scope="module")
def gold(turns: list[Row]) -> list[Row]:
    """Joined as the workflow joins them: ids match, labels are known, every disagreement has a reason."""
    return joined(turns, rows("gold/labels.jsonl"))


@pytest.mark.parametrize("part", ["turns", "labels"])
def test_the_default_study_names_the_committed_files(part: str) -> None:
    source = DEFAULT_STUDY["gold"][part]
    assert hashlib.sha256((ROOT / source["path"]).read_bytes()).hexdigest() == source["sha256"]


def test_the_training_file_is_the_one_that_the_default_study_names() -> None:
    source = DEFAULT_STUDY["judges"]["embedded"]["training"]["written"]["source"]
    assert hashlib.sha256((ROOT / source["path"]).read_bytes()).hexdigest() == source["sha256"]


def test_there_are_enough_turns_of_every_label(gold: list[Row]) -> None:
    labels = Counter(row["label"] for row in gold)
    assert len(gold) >= 300
    assert set(labels) == set(LABELS)
    assert 50 <= labels["genuine_followup"] <= len(gold) / 2


def test_turns_come_from_several_conditions(turns: list[Row]) -> None:
    assert len({row["temperature"] for row in turns}) >= 3
    assert len({row["perturbation"] for row in turns}) >= 5
    assert {row["shown_answer"] is None for row in turns} == {True, False}
    assert {row["finish_reason"] for row in turns} == {"stop", "length"}
    drawn = Counter((row["item"], row["perturbation"], row["temperature"], row["sample"]) for row in turns)
    assert max(drawn.values()) == 1


def test_items_are_the_questions_and_turns_show_them(turns: list[Row]) -> None:
    questions = {f"own-{row['id']}": row["messages"] for row in rows("gold/questions.jsonl")}
    assert {row["item"] for row in turns} <= set(questions)
    assert len({row["item"] for row in turns}) >= 50
    for row in turns:
        assert row["messages"][-1]["role"] == "user"
        assert row["messages"] == questions[row["item"]]


def test_labellings_differ_now_and_then_and_each_time_with_a_reason(gold: list[Row]) -> None:
    apart = [row for row in gold if row["first"] != row["second"]]
    assert 0 < len(apart) < len(gold) / 4, "no difference at all would not be two labellings"
    assert all(row["reason"].strip() for row in apart)
    agreed = [row for row in gold if row["first"] == row["second"]]
    assert all(row["label"] == row["first"] or row["reason"].strip() for row in agreed)


def test_genuine_turns_and_no_others_say_what_they_react_to(gold: list[Row], turns: list[Row]) -> None:
    shown = {row["id"]: row["shown_answer"] for row in turns}
    for row in gold:
        if row["label"] == "genuine_followup":
            assert row["reacts_to"] in {"query", "answer", "both"}, row["id"]
            assert shown[row["id"]] or row["reacts_to"] == "query", row["id"]
        else:
            assert row["reacts_to"] is None, row["id"]


def normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts(one)]
    return [text for one in value for text in texts(one)] if isinstance(value, list) else []


def test_nothing_of_the_gold_set_is_training_data(turns: list[Row]) -> None:
    """No text is one of the training file, and no longer one is a part of it or the other way round."""
    training = {normal(text) for row in rows("training/conversations.jsonl") for text in texts(row)}
    questions = [
        text for row in rows("gold/questions.jsonl") for text in texts(row["messages"]) + texts(row.get("next_user"))
    ]
    gold = {normal(text) for row in turns for text in (row["text"], row["shown_answer"] or "")}
    gold |= {normal(text) for text in questions if text not in {"user", "assistant", "system"}}
    assert not (gold - {""}) & training
    everything = "\n".join(sorted(training))
    assert not [text for text in gold if len(text.split()) >= 6 and text in everything]
    other = "\n".join(sorted(gold))
    assert not [text for text in training if len(text.split()) >= 6 and text in other]


def test_every_committed_turn_can_be_shown_as_it_is(turns: list[Row]) -> None:
    kept = ("id", "item", "messages", "shown_answer", "text", "finish_reason")
    assert shown(turns) == sorted(({key: row[key] for key in kept} for row in turns), key=lambda row: row["id"])


def test_turns_hold_no_text_that_json_or_utf8_cannot_carry(turns: list[Row]) -> None:
    for row in turns:
        row["text"].encode("utf-8")
        (row["shown_answer"] or "").encode("utf-8")
