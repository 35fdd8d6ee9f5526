"""What a judge by a language model may spend, over jobs, kills and failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chat_server import COMPLETION_TOKENS, PROMPT_TOKENS, Cut, Plan, Say, Status, chat_server, verdict
from llm_judging import good, judge_at, kept, turns

from userturn.judges.llm.spending import Ledger
from userturn.judges.llm.transport import JudgeStopped

COST = (PROMPT_TOKENS * 1.0 + COMPLETION_TOKENS * 2.0) / 1e6


def test_the_spend_limit_stops_and_keeps(tmp_path: Path) -> None:
    with chat_server(good) as server:
        probe = judge_at(server, tmp_path / "probe", max_concurrency=1)
        probe.judge(turns(1))
        reserved = json.loads((tmp_path / "probe/spend/llm.jsonl").read_text().splitlines()[0])["change"]
        assert reserved > 3 * COST  # an upper estimate
        server.requests.clear()
        limit = 3.5 * reserved
        judge = judge_at(server, tmp_path, max_spend=limit)
        with pytest.raises(JudgeStopped, match=r"max_spend is .* kept; raise"):
            judge.judge(turns(60))
        n = len(server.requests)
        spent = Ledger(tmp_path / "spend" / "llm.jsonl").total()
        assert kept(tmp_path) == n and spent == pytest.approx(n * COST)
        assert judge.facts()["transport"]["spent"] == pytest.approx(n * COST, abs=1e-6)
        # it went on as long as the next request could fit, and no further
        assert limit - 1.02 * reserved < spent <= limit
        # the limit holds over jobs
        with pytest.raises(JudgeStopped):
            judge_at(server, tmp_path, max_spend=limit).judge(turns(60))
        assert len(server.requests) == n
        found = judge_at(server, tmp_path, max_spend=10.0).judge(turns(60))
        assert len(server.requests) == len(found) == 60


def test_what_may_have_been_paid_counts(tmp_path: Path) -> None:
    plans: list[Plan] = [
        lambda asked: Status(400),
        lambda asked: Cut(),
        lambda asked: Say(verdict(asked), usage=False),
        lambda asked: Say("", finish="length"),
    ]
    totals = []
    for i, plan in enumerate(plans):
        with chat_server(plan) as server:
            judge_at(server, tmp_path / str(i), max_attempts=1).judge(turns(1))
        lines = (tmp_path / str(i) / "spend" / "llm.jsonl").read_text().splitlines()
        totals.append(Ledger(tmp_path / str(i) / "spend" / "llm.jsonl").total() / json.loads(lines[0])["change"])
    assert totals[0] == 0.0 and totals[1] == totals[2] == 1.0 and 0.0 < totals[3] < 0.5


def test_what_was_never_sent_is_not_counted(tmp_path: Path) -> None:
    with chat_server(lambda asked: Status(401)) as server:
        with pytest.raises(JudgeStopped):
            judge_at(server, tmp_path, give_up_after=3, max_concurrency=1, max_spend=10.0).judge(turns(60))
        assert Ledger(tmp_path / "spend" / "llm.jsonl").total() < 0.02  # at most the one in flight
        assert len(server.requests) <= 4


def test_ledgers_see_each_other_and_refuse_damage(tmp_path: Path) -> None:
    one, other = Ledger(tmp_path / "a" / "l.jsonl"), Ledger(tmp_path / "a" / "l.jsonl")
    assert one.total() == 0.0 and one.reserve([2.0, 2.0, 2.0], 5.0) == 2
    assert other.reserve([2.0], 5.0) == 0 and other.reserve([1.0], 5.0) == 1
    one.settle(2.0, 0.5, 10, 5)
    assert one.total() == other.total() == 3.5 and other.reserve([1.0, 1.0], None) == 2
    with one.path.open("a") as stream:
        stream.write("{}\n")
    with pytest.raises(JudgeStopped, match="damaged"):
        Ledger(one.path).total()
