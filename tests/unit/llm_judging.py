"""A language model's judge at the server of the tests, and turns to put to it."""

from __future__ import annotations

import re
from pathlib import Path

from chat_server import MODEL, Action, Asked, ChatServer, Say, verdict

from userturn.config.judging import JudgeEndpoint
from userturn.endpoint.client import Client
from userturn.judges.labels import Turn
from userturn.judges.llm.endpoint import EndpointTransport
from userturn.judges.llm.judge import LanguageModelJudge

QUERY = "How do I bake a loaf of sourdough bread at home?"
ANSWER = "Mix flour, water and salt with your starter. Let the dough rest overnight, then bake it for 40 minutes."


def turn(text: str, *, query: str = QUERY, answer: str | None = ANSWER, finish: str = "stop") -> Turn:
    return Turn(query=query, answer=answer, text=text, finish_reason=finish)


def turns(n: int) -> list[Turn]:
    names = ("rye", "oats", "spelt", "salt", "honey", "butter", "seeds", "steam", "stones", "yeast")
    return [turn(f"Could I use {names[i % 10]} for loaf number {i} instead?") for i in range(n)]


def number(asked: Asked) -> int:
    return int(re.findall(r"loaf number (\d+)", asked.user_turn)[0])


def config(server: ChatServer, **changes: object) -> JudgeEndpoint:
    values: dict[str, object] = {
        "base_url": server.base_url,
        "model": MODEL,
        "timeout_seconds": 30.0,
        "max_concurrency": 4,
        "max_attempts": 3,
        "price_prompt": 1.0,
        "price_completion": 2.0,
    }
    return JudgeEndpoint.model_validate(values | changes)


def judge_at(
    server: ChatServer, cache: Path, *, max_tokens: int = 100, give_up_after: int = 20, seed: int = 7, **changes: object
) -> LanguageModelJudge:
    settings = config(server, **changes)
    transport = EndpointTransport(
        settings,
        max_tokens=max_tokens,
        ledger=cache / "spend" / "llm.jsonl",
        client=Client(settings, first_wait_seconds=0.01),
    )
    return LanguageModelJudge(transport, name="llm", cache=cache, seed=seed, give_up_after=give_up_after)


def good(asked: Asked) -> Action:
    return Say(verdict(asked, "genuine_followup", "your starter"))


def kept(cache: Path) -> int:
    return len(list(cache.glob("??/*.jsonl")))
