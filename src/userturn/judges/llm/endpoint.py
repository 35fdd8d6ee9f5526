"""A model behind an OpenAI-compatible chat endpoint, asked within a limit of money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from userturn.config.judging import JudgeEndpoint
from userturn.endpoint.client import Answer, Body, Client
from userturn.endpoint.wording import plain
from userturn.judges.llm.spending import Ledger
from userturn.judges.llm.transport import Conversation, JudgeStopped, OnReply, Reply
from userturn.judges.llm.verdict import Cause, schema

_MILLION = 1_000_000
#: Tokens of roles and headers that no text shows, generously.
_OVERHEAD_TOKENS = 64


class EndpointTransport:
    """Chat completions with a strict JSON schema.

    The server, and the key, are looked for when the first question is put.

    Args:
        config: The transport's section of the study.
        max_tokens: Most tokens of an answer, those of its reasoning included.
        ledger: Where money is accounted for.
        client: Asks the server; made from the config when it is needed.
    """

    marked = True

    def __init__(self, config: JudgeEndpoint, *, max_tokens: int, ledger: Path, client: Client | None = None) -> None:
        self._config = config
        self._max_tokens = max_tokens
        self._ledger = Ledger(ledger)
        self._client = client
        self._requests = self._prompt_tokens = self._completion_tokens = 0
        self._spent = 0.0

    @property
    def identity(self) -> Mapping[str, Any]:
        """The model's name and every parameter; not the address, which can change while the model stays."""
        return {"transport": "endpoint", "model": self._config.model, "request": self._parameters()}

    def facts(self) -> dict[str, Any]:
        """Requests, tokens and spend of this job, and of all jobs."""
        return {
            "base_url": self._config.base_url,
            "requests": self._requests,
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": self._completion_tokens,
            "spent": round(self._spent, 6),
            "spent_or_reserved_by_all_jobs": round(self._ledger.total(), 6),
        }

    def ask(self, conversations: Sequence[Conversation], on_reply: OnReply) -> None:
        """See `userturn.judges.llm.transport.Transport.ask`.

        Raises:
            userturn.endpoint.client.EndpointError: The key is not set.
            JudgeStopped: The next request could exceed `max_spend`.
        """
        if not conversations:
            return
        if self._client is None:
            self._client = Client(self._config)
        size = max(64, 8 * self._config.max_concurrency)
        start = 0
        while start < len(conversations):
            amounts = [self._most(one) for one in conversations[start : start + size]]
            fitting = self._ledger.reserve(amounts, self._config.max_spend)
            if not fitting:
                raise JudgeStopped(self._too_dear(amounts[0], len(conversations) - start))
            self._ask_batch(self._client, conversations, start, amounts[:fitting], on_reply)
            start += fitting

    def _ask_batch(
        self,
        client: Client,
        conversations: Sequence[Conversation],
        start: int,
        amounts: Sequence[float],
        on_reply: OnReply,
    ) -> None:
        bodies = [self._body(conversations[start + index]) for index in range(len(amounts))]
        open_ = dict(enumerate(amounts))

        def done(index: int, answer: Answer) -> None:
            spent = self._cost(answer, amounts[index])
            self._requests += 1
            self._prompt_tokens += answer.prompt_tokens or 0
            self._completion_tokens += answer.completion_tokens or 0
            self._spent += spent
            open_.pop(index)
            try:
                # kept first: what a kill leaves between the two is a reservation too many, not a verdict too few
                on_reply(start + index, reply_of(answer))
            finally:
                self._ledger.settle(amounts[index], spent, answer.prompt_tokens, answer.completion_tokens)

        try:
            client.map("chat/completions", bodies, done)
        except BaseException:
            # of those without an answer only as many as were in flight can have been paid
            unsent = sorted(open_.values())[: max(len(open_) - self._config.max_concurrency, 0)]
            self._ledger.settle(sum(unsent), 0.0, None, None)
            raise

    def _parameters(self) -> dict[str, Any]:
        return {
            **self._config.parameters,
            self._config.limit_field: self._max_tokens,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "strict": True, "schema": schema(marked=True)},
            },
        }

    def _body(self, conversation: Conversation) -> Body:
        return {"messages": [dict(message) for message in conversation], **self._parameters()}

    def _price(self, prompt_tokens: int, completion_tokens: int) -> float:
        config = self._config
        return (prompt_tokens * config.price_prompt + completion_tokens * config.price_completion) / _MILLION

    def _most(self, conversation: Conversation) -> float:
        # a token of a byte-level vocabulary is at least one byte
        sent = sum(len(message["content"].encode("utf-8")) + _OVERHEAD_TOKENS for message in conversation)
        return self._price(sent, self._max_tokens)

    def _cost(self, answer: Answer, most: float) -> float:
        if answer.failure is not None and answer.failure.kind == "status":
            return 0.0  # refused
        if answer.prompt_tokens is None or answer.completion_tokens is None:
            return most  # a lost answer may have been paid
        return self._price(answer.prompt_tokens, answer.completion_tokens)

    def _too_dear(self, next_amount: float, left: int) -> str:
        return (
            f"max_spend is {self._config.max_spend}: {self._ledger.total():.4f} is spent or reserved "
            f"({self._ledger.path}), the next request can cost up to {next_amount:.4f}, and {left} are left. Verdicts "
            "so far are kept; raise judges.*.transport.max_spend and run again"
        )


def reply_of(answer: Answer) -> Reply:
    """Reads an answer of the chat protocol, whatever the server put into it."""
    if answer.failure is not None:
        malformed = answer.failure.kind == "malformed"
        return Reply(None, "malformed_response" if malformed else "request_failed", answer.failure.message)
    text, cause, detail = _content((answer.body or {}).get("choices"))
    return Reply(text, cause, detail, answer.prompt_tokens, answer.completion_tokens)


def _content(choices: Any) -> tuple[str | None, Cause | None, str]:
    if choices == []:
        return None, "empty", "no choices"
    choice = choices[0] if isinstance(choices, list) else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return None, "malformed_response", "no choices[0].message"
    finish, refusal, content = choice.get("finish_reason"), message.get("refusal"), message.get("content")
    if finish == "content_filter" or (isinstance(refusal, str) and refusal.strip()):
        return None, "refusal", plain(str(refusal or finish), 200)
    if finish == "length":
        return None, "truncated", "finish_reason length"
    if finish != "stop" or not isinstance(content, str | None):
        return None, "malformed_response", plain(f"finish_reason {finish!r}, content {type(content).__name__}", 200)
    if content is None or not content.strip():
        return None, "empty", "no content"
    return content, None, ""
