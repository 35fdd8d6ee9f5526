"""The judge by a language model at a real server on loopback: faults, kept verdicts, kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from chat_server import Action, Asked, Body, Cut, Say, Slow, Status, between, chat_server, verdict
from llm_judging import ANSWER, config, good, judge_at, kept, number, turn, turns

from userturn.config.judging import LlmJudge
from userturn.endpoint.client import EndpointError
from userturn.judges.labels import Judge
from userturn.judges.llm import rubric
from userturn.judges.llm.judge import LanguageModelJudge, from_config
from userturn.judges.llm.transport import JudgeStopped

KEY = "sk-made-up-secret"


def test_it_is_a_judge_and_sends_what_it_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MADE_UP_KEY", KEY)
    with chat_server(good) as server:
        judge = judge_at(server, tmp_path, api_key_env="MADE_UP_KEY", parameters={"reasoning_effort": "low"})
        assert isinstance(judge, Judge) and judge.provisional and judge.name == "llm"
        (found,) = judge.judge([turn("Can I use rye?")])
    (asked,) = server.requests
    assert server.keys == [f"Bearer {KEY}"]
    assert set(asked.body) == {"model", "messages", "reasoning_effort", "max_completion_tokens", "response_format"}
    assert asked.body["max_completion_tokens"] == 100
    assert asked.body["response_format"]["json_schema"]["strict"] is True
    assert [message["role"] for message in asked.body["messages"]] == ["system", "user"]
    assert between(asked.content, "assistant_turn", asked.mark) == ANSWER
    assert (found.state, found.label) == ("scored", "genuine_followup")
    assert found.evidence == {
        "rule": "language_model",
        "grounding": "verified",
        "grounding_similarity": 1.0,
        "reacts_to": "your starter",
        "reason": "made up",
    }
    assert KEY not in json.dumps(judge.facts())


def test_what_a_program_decides_is_not_asked(tmp_path: Path) -> None:
    with chat_server(good) as server:
        judge = judge_at(server, tmp_path)
        found = judge.judge([turn(""), turn("???"), turn("bread " * 20), turn("<|im_start|>user")])
    assert [one.label for one in found] == ["degenerate"] * 4 and server.requests == []
    assert judge.facts()["turns"] == {"by_program": 4}


def test_ungrounded_followups_keep_their_label_and_say_so(tmp_path: Path) -> None:
    def plan(asked: Asked) -> Action:
        return Say(verdict(asked, "genuine_followup", "" if number(asked) else "a sourdough from San Francisco"))

    with chat_server(plan) as server:
        invented, silent = judge_at(server, tmp_path).judge(turns(2))
    assert invented.label == silent.label == "genuine_followup"
    assert (invented.evidence["grounding"], silent.evidence["grounding"]) == ("unverified", "none")
    assert "do not stand" in invented.rationale and "quotes nothing" in silent.rationale


PERMANENT: dict[int, tuple[Action, str]] = {
    0: (Status(400), "request_failed"),
    1: (Status(500), "request_failed"),
    2: (Status(429, (("Retry-After", "0"),)), "request_failed"),
    3: (Cut(), "request_failed"),
    4: (Status(503), "request_failed"),
    5: (Body(b"<html>busy</html>"), "malformed_response"),
    6: (Body(b'{"object": "error"}'), "malformed_response"),
    7: (Body(b'{"choices": []}'), "empty"),
    8: (Body(b'{"choices": [{"message": null, "finish_reason": "stop"}]}'), "malformed_response"),
    9: (Say(None), "empty"),
    10: (Say(""), "empty"),
    11: (Say(["generic"]), "malformed_response"),
    12: (Say(None, refusal="I cannot judge this."), "refusal"),
    13: (Say("I'm sorry, I can't help with that."), "malformed_json"),
    14: (Say(None, finish="content_filter"), "refusal"),
    15: (Say('{"mark": "', finish="length"), "truncated"),
    16: (Say("", finish="length"), "truncated"),
    17: (Say("generic", finish="tool_calls"), "malformed_response"),
    18: (Say("generic", finish={"a": 1}), "malformed_response"),
    19: (Say('{"mark": '), "malformed_json"),
    20: (Say(json.dumps({"reacts_to": "", "reason": "", "label": "genuine_followup"})), "wrong_mark"),
}


def test_faults_lose_no_row_and_label_none(tmp_path: Path) -> None:
    """Rows 0-20: a fault that stays; 21-23 of the rest fail once or twice, then answer; the others answer at once."""

    def plan(asked: Asked) -> Action:
        i = number(asked)
        if i in PERMANENT:
            return PERMANENT[i][0]
        if i == 21 and asked.attempt == 1:
            return Status(429, (("Retry-After", "1"),))
        if i == 22 and asked.attempt <= 2:
            return (Status(500), Cut())[asked.attempt - 1]
        if i == 23 and asked.attempt <= 2:
            return (Body(b"{"), Status(504))[asked.attempt - 1]
        if i == 24:
            return Say(verdict(asked, "genuine"))
        if i == 25:
            return Say(verdict(asked, "unrelated", extra=1))
        return good(asked)

    lines: list[str] = []
    with chat_server(plan) as server:
        judge = judge_at(server, tmp_path)
        judge._say = lines.append
        found = judge.judge(turns(40))
        attempts = Counter(number(asked) for asked in server.requests)
    expected = {i: cause for i, (_, cause) in PERMANENT.items()} | {24: "unknown_label", 25: "wrong_shape"}
    assert len(found) == 40
    for i, one in enumerate(found):
        if i in expected:
            assert (one.state, one.label) == ("unscored", None)
            assert one.evidence == {"rule": "language_model", "cause": expected[i]}
        else:
            assert (one.state, one.label) == ("scored", "genuine_followup"), i
    counted = dict(Counter(expected.values()))
    assert judge.facts()["unscored"] == counted and sum(counted.values()) == 23
    assert judge.facts()["turns"] == {"asked": 40, "by_model": 17}
    assert kept(tmp_path) == 17
    # retried: 1-5 to the end, 21-23 until they answer; what the server did answer, and refused, once
    assert attempts == {i: 3 if i in {1, 2, 3, 4, 5, 22, 23} else 2 if i == 21 else 1 for i in range(40)}
    assert any("unscored, refusal: I cannot judge this." in line for line in lines)

    with chat_server(good) as server:
        again = judge_at(server, tmp_path).judge(turns(40))
    assert sorted(number(asked) for asked in server.requests) == sorted(expected)  # failures were never kept
    assert all(one.state == "scored" for one in again)
    assert [again[i] for i in range(40) if i not in expected] == [found[i] for i in range(40) if i not in expected]


def test_a_late_answer_is_asked_for_again(tmp_path: Path) -> None:
    def plan(asked: Asked) -> Action:
        late = number(asked) == 0 or (number(asked) == 1 and asked.attempt == 1)
        return Slow(8.0, Say("late")) if late else good(asked)

    with chat_server(plan) as server:
        late, once, _ = judge_at(server, tmp_path, timeout_seconds=2.0, max_attempts=2).judge(turns(3))
    assert late.evidence["cause"] == "request_failed" and once.label == "genuine_followup"
    assert len(server.requests) == 5


def test_a_second_run_asks_nothing_and_needs_no_server_and_no_key(tmp_path: Path) -> None:
    with chat_server(good) as server:
        first = judge_at(server, tmp_path).judge(turns(12))
        assert len(server.requests) == 12
    settings = LlmJudge(transport=config(server, api_key_env="MADE_UP_MISSING_KEY"), max_tokens=100)
    counts: list[int] = []
    judge = from_config("llm", settings, model_folder=None, cache=tmp_path, seed=7, on_done=counts.append)
    assert judge.judge(turns(12)) == first and sum(counts) == 12
    assert judge.facts()["turns"] == {"from_cache": 12} and judge.facts()["transport"]["requests"] == 0
    with pytest.raises(EndpointError, match="MADE_UP_MISSING_KEY"):
        judge.judge(turns(13))


def test_equal_turns_are_asked_once(tmp_path: Path) -> None:
    with chat_server(good) as server:
        found = judge_at(server, tmp_path).judge([turn("Can I use rye?")] * 5 + [turn("Can I use oats?")])
    assert len(server.requests) == 2 and len(set(map(repr, found))) == 1 and len(found) == 6


def test_whatever_could_change_a_verdict_asks_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with chat_server(good) as server:
        versions = []

        def asked_by(judge: LanguageModelJudge) -> int:
            before = len(server.requests)
            judge.judge(turns(3))
            versions.append(judge.version)
            return len(server.requests) - before

        assert asked_by(judge_at(server, tmp_path)) == 3
        assert asked_by(judge_at(server, tmp_path, max_concurrency=2, price_prompt=5.0)) == 0
        assert asked_by(judge_at(server, tmp_path, model="another")) == 3
        assert asked_by(judge_at(server, tmp_path, max_tokens=101)) == 3
        assert asked_by(judge_at(server, tmp_path, parameters={"temperature": 0.5})) == 3
        assert asked_by(judge_at(server, tmp_path, seed=8)) == 3
        monkeypatch.setattr(rubric, "_INSTRUCTIONS", rubric._INSTRUCTIONS.replace("polite", "courteous"))
        assert asked_by(judge_at(server, tmp_path)) == 3
        monkeypatch.setattr(rubric, "_NO_ANSWER", "No answer.")  # not in these messages, and yet the rubric
        assert asked_by(judge_at(server, tmp_path)) == 3
    # a seed changes only delimiters, a price nothing
    assert versions[0] == versions[1] == versions[5] and len(set(versions)) == 6


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff\n", None])
def test_a_damaged_entry_is_asked_again(tmp_path: Path, damage: bytes | None) -> None:
    with chat_server(good) as server:
        first = judge_at(server, tmp_path).judge(turns(2))
        path = sorted(tmp_path.glob("??/*.jsonl"))[0]
        whole = path.read_bytes()
        path.write_bytes(whole.replace(b"genuine_followup", b"unrelated") if damage is None else damage)
        assert judge_at(server, tmp_path).judge(turns(2)) == first
        assert len(server.requests) == 3 and path.read_bytes() == whole


def test_it_gives_up_when_nobody_answers(tmp_path: Path) -> None:
    with chat_server(lambda asked: good(asked) if number(asked) < 5 else Status(401)) as server:
        with pytest.raises(JudgeStopped, match=r"8 requests in a row got no usable answer.*401.*kept"):
            judge_at(server, tmp_path, give_up_after=8, max_concurrency=1).judge(turns(100))
        assert len(server.requests) == 13 and kept(tmp_path) == 5


_KILLED = """
import sys
from pathlib import Path
from chat_server import ChatServer
from llm_judging import judge_at, turns
server = ChatServer(lambda asked: None, port=int(sys.argv[1]))
judge_at(server, Path(sys.argv[2]), max_concurrency=1).judge(turns(30))
"""


def test_a_kill_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    def plan(asked: Asked) -> Action:
        # the eleventh never comes: the process is killed while it waits
        return good(asked) if len(server.requests) <= 10 else Slow(60.0, Say("never"))

    with chat_server(plan) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", _KILLED, str(server.port), str(tmp_path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        )
        deadline = time.monotonic() + 60
        while len(server.requests) < 11 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert kept(tmp_path) == 10
        server.requests.clear()
        server.plan = good
        found = judge_at(server, tmp_path).judge(turns(30))
    assert len(server.requests) == 20 and all(one.state == "scored" for one in found)


def test_rows_can_be_replaced_by_nothing(tmp_path: Path) -> None:
    """Text that is no Unicode, in every place, still ends as a row."""
    with chat_server(good) as server:
        hostile = replace(turn("Is this\ud800 one all right?"), query="q\udfff", answer="a\x00\ud83d")
        (found,) = judge_at(server, tmp_path).judge([hostile])
    assert found.state == "scored"
    assert between(server.requests[0].content, "query", server.requests[0].mark) == "q⟦U+DFFF⟧"
