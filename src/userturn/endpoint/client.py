"""A batch of requests to a server that speaks the OpenAI protocol: bounded, patient, one answer a request.

A request never raises: it ends as an `Answer` with the parsed body or with a typed `Failure`. Requests are made again
when the server is busy (429), broken (500, 502, 503, 504), late, cut off, or answers what is no JSON object.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import httpx2 as httpx

from userturn.config.endpoint import EndpointConfig
from userturn.endpoint.wording import complaint, plain, seconds_to_wait, status_text

Body: TypeAlias = Mapping[str, Any]
FailureKind = Literal["status", "timeout", "connection", "malformed"]

RETRIED = frozenset({429, 500, 502, 503, 504})

#: A first wait doubles with each attempt up to this, in seconds; `Retry-After` goes beyond.
_LONGEST_BACKOFF = 30.0
#: More than this, in bytes, is no answer to a request of ours.
_LONGEST_BODY = 64 << 20


class EndpointError(RuntimeError):
    """A server cannot be used: says what it answered, and what can be changed."""


@dataclass(frozen=True)
class Failure:
    """Why a request has no answer.

    Attributes:
        kind: ``status``: the server refused; ``timeout``, ``connection``: nothing whole arrived; ``malformed``: what
            arrived is no JSON object, or none that the caller can use.
        status: the HTTP status, where one arrived.
        message: one printable line for a person, the server's own words among it; never the key.
    """

    kind: FailureKind
    status: int | None
    message: str


@dataclass(frozen=True)
class Answer:
    """How one request ended: exactly one of `body` and `failure` is there.

    Attributes:
        body: the parsed JSON object.
        failure: why there is none.
        attempts: how often the request was made.
        prompt_tokens: tokens read, where the server tells.
        completion_tokens: tokens written, where the server tells.
    """

    body: Body | None
    failure: Failure | None
    attempts: int
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class Served:
    """What a server tells of itself and of the model asked for.

    Attributes:
        model: the model's name.
        facts: what it tells beside: owner, root (of a path only the last part), max_model_len, version.
    """

    model: str
    facts: Mapping[str, str | int] = field(default_factory=lambda: MappingProxyType({}))


def _ignored(index: int, answer: Answer) -> None:
    """Does nothing with an answer."""


def _usable(body: Body) -> str | None:
    """Finds nothing wrong."""
    return None


class Client:
    """Asks one server for one model.

    Args:
        config: where the server is and how it is asked.
        environ: where the key is looked up.
        first_wait_seconds: wait before the second attempt; it doubles from there, and half of it is drawn.

    Raises:
        EndpointError: the environment variable that should hold the key is not set.
    """

    def __init__(
        self, config: EndpointConfig, *, environ: Mapping[str, str] = os.environ, first_wait_seconds: float = 0.5
    ) -> None:
        self.config = config
        self._first_wait = first_wait_seconds
        # waits are no part of any result; the system's generator has no state that others could share
        self._random = random.SystemRandom()
        self._key = None
        if config.api_key_env is not None:
            self._key = environ.get(config.api_key_env, "").strip()
            if not self._key or not self._key.isascii() or not self._key.isprintable():
                raise EndpointError(
                    f"the environment variable {config.api_key_env} (api_key_env) should hold the key for "
                    f"{config.base_url}: it is not set, empty or no key; export it where the job runs"
                )

    def map(
        self,
        path: str,
        bodies: Sequence[Body],
        on_done: Callable[[int, Answer], None] = _ignored,
        *,
        accept: Callable[[Body], str | None] = _usable,
    ) -> list[Answer]:
        """Posts every body and waits for all answers.

        Args:
            path: below the base address, such as ``completions`` or ``chat/completions``.
            bodies: the requests; ``model`` is filled in where it is not given.
            on_done: called in this thread with the index and answer of each request as soon as it has ended, in no
                particular order. What it raises ends the batch: requests in flight are dropped, the rest is not made.
            accept: says what is wrong with a parsed body that is of no use (no choices, say), or None; what is wrong
                counts as malformed and is asked for again.

        Returns:
            The answers in the order of the bodies.
        """
        if not bodies:
            return []
        made: list[Body] = [{"model": self.config.model, **body} for body in bodies]
        return asyncio.run(self._all("POST", path, made, on_done, accept))

    def get(self, path: str) -> Answer:
        """Gets one thing below the base address."""
        return asyncio.run(self._all("GET", path, [{}], _ignored, _usable))[0]

    def check(self) -> Served:
        """Asks what the server serves.

        Raises:
            EndpointError: the server is not there, asks for a key, or does not serve the model.
        """
        answer = self.get("models")
        where = self.config.base_url
        if answer.failure is not None:
            raise EndpointError(self._why_not(answer.failure))
        listed = (answer.body or {}).get("data")
        named = listed if isinstance(listed, list) else []
        entries = [one for one in named if isinstance(one, dict) and isinstance(one.get("id"), str)]
        mine = next((one for one in entries if one["id"] == self.config.model), None)
        if mine is None:
            served = ", ".join(plain(one["id"], 100) for one in entries[:20]) or "no model"
            raise EndpointError(f"{where} does not serve the model {self.config.model!r}; it serves: {served}")
        facts: dict[str, str | int] = {}
        for name in ("owned_by", "root", "max_model_len"):
            value = mine.get(name)
            if isinstance(value, str):
                facts[name] = plain(value.rstrip("/").rsplit("/", 1)[-1] if value.startswith("/") else value, 200)
            elif isinstance(value, int):
                facts[name] = value
        version = self._version()
        return Served(self.config.model, {**facts, **({"version": version} if version else {})})

    def _version(self) -> str | None:
        """The version that vLLM and its kin tell beside the API; others have no such page."""
        base = self.config.base_url
        if not base.endswith("/v1"):
            return None
        answer = asyncio.run(self._all("GET", base.removesuffix("/v1") + "/version", [{}], _ignored, _usable))[0]
        version = (answer.body or {}).get("version")
        return plain(version, 100) if isinstance(version, str) else None

    def _why_not(self, failure: Failure) -> str:
        where, variable = self.config.base_url, self.config.api_key_env
        if failure.kind in {"connection", "timeout"}:
            return f"no server answers at {where} ({failure.message}): start it, or correct base_url"
        if failure.status in {401, 403}:
            remedy = (
                f"the key in {variable} is not accepted"
                if variable
                else "it asks for a key: name the environment variable that holds one in api_key_env"
            )
            return f"{where} refuses to list its models: {remedy} ({failure.message})"
        if failure.status == 404:
            return f"{where} has no /models ({failure.message}): does base_url end with the API's version, such as /v1?"
        return f"{where} does not list its models: {failure.message}"

    async def _all(
        self,
        method: str,
        path: str,
        bodies: Sequence[Body],
        on_done: Callable[[int, Answer], None],
        accept: Callable[[Body], str | None],
    ) -> list[Answer]:
        answers: list[Answer | None] = [None] * len(bodies)
        waiting = iter(enumerate(bodies))
        gate = _Gate()

        async def work(http: httpx.AsyncClient) -> None:
            for index, body in waiting:
                answers[index] = answer = await self._ask(http, gate, method, path, body, accept)
                on_done(index, answer)

        async with self._http() as http:
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self.config.max_concurrency, len(bodies))):
                        group.create_task(work(http))
            except BaseExceptionGroup as several:
                # nobody who calls this knows of groups: the first to fail has ended the others
                raise several.exceptions[0] from None
        assert all(answer is not None for answer in answers), "every request has ended"
        return [answer for answer in answers if answer is not None]

    def _http(self) -> httpx.AsyncClient:
        config = self.config
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        return httpx.AsyncClient(
            base_url=config.base_url + "/",
            headers=headers,
            # the whole attempt has a deadline of its own
            timeout=httpx.Timeout(config.timeout_seconds, connect=min(10.0, config.timeout_seconds), pool=None),
            limits=httpx.Limits(
                max_connections=config.max_concurrency, max_keepalive_connections=config.max_concurrency
            ),
            follow_redirects=False,
        )

    async def _ask(
        self,
        http: httpx.AsyncClient,
        gate: _Gate,
        method: str,
        path: str,
        body: Body,
        accept: Callable[[Body], str | None],
    ) -> Answer:
        content = json.dumps(body).encode("ascii") if method == "POST" else None
        longest = self.config.max_wait_seconds
        attempt = 1
        while True:
            await gate.passed()
            outcome = await self._attempt(http, method, path, content, accept)
            if isinstance(outcome, dict):
                return _answered(outcome, attempt)
            failure, asked = outcome
            again = failure.kind != "status" or failure.status in RETRIED
            if not again or attempt == self.config.max_attempts:
                return Answer(None, _after(failure, attempt), attempt)
            if asked is not None and asked > longest:
                told = f"{failure.message}; it asks to wait {asked:.0f} s, more than max_wait_seconds = {longest:g}"
                return Answer(None, _after(Failure(failure.kind, failure.status, told), attempt), attempt)
            if asked is not None:
                gate.close(asked)
            backoff = min(self._first_wait * 2.0 ** (attempt - 1), _LONGEST_BACKOFF) * self._random.uniform(0.5, 1.0)
            await asyncio.sleep(min(longest, max(backoff, asked or 0.0)))
            attempt += 1

    async def _attempt(
        self,
        http: httpx.AsyncClient,
        method: str,
        path: str,
        content: bytes | None,
        accept: Callable[[Body], str | None],
    ) -> dict[str, Any] | tuple[Failure, float | None]:
        """Makes a request once: the parsed body, or why there is none and the wait that is asked for."""
        headers = {"Content-Type": "application/json"} if content is not None else None
        status = None
        try:
            async with (
                asyncio.timeout(self.config.timeout_seconds),
                http.stream(method, path, content=content, headers=headers) as response,
            ):
                status = response.status_code
                received = bytearray()
                async for chunk in response.aiter_bytes():
                    received += chunk
                    if len(received) > _LONGEST_BODY:
                        return Failure("malformed", status, f"an answer of more than {_LONGEST_BODY >> 20} MiB"), None
        except (httpx.TimeoutException, TimeoutError):
            limit = self.config.timeout_seconds
            return Failure("timeout", status, f"no whole answer within timeout_seconds = {limit:g}"), None
        except httpx.DecodingError as error:
            return Failure("malformed", status, self._worded(error)), None
        except (httpx.TransportError, httpx.InvalidURL) as error:
            return Failure("connection", status, self._worded(error)), None
        if status != 200:
            said = complaint(bytes(received), self._key)
            message = status_text(status) + (f": {said}" if said else "")
            return Failure("status", status, message), seconds_to_wait(response.headers, dt.datetime.now(dt.UTC))
        body = _parsed(bytes(received))
        wrong = "an answer that is no JSON object" if body is None else accept(body)
        if body is None or wrong is not None:
            return Failure("malformed", status, f"{status_text(status)}, but {wrong}"), None
        return body

    def _worded(self, error: Exception) -> str:
        said = plain(str(error))
        said = said.replace(self._key, "***") if self._key else said
        return f"{type(error).__name__}: {said}" if said else type(error).__name__


class _Gate:
    """Holds all requests of a batch back for as long as the server has asked one of them to wait."""

    def __init__(self) -> None:
        self._until = 0.0

    def close(self, seconds: float) -> None:
        """Lets nothing pass for some seconds from now."""
        self._until = max(self._until, time.monotonic() + seconds)

    async def passed(self) -> None:
        """Returns when the gate is open."""
        while (left := self._until - time.monotonic()) > 0:
            await asyncio.sleep(left)


def _parsed(received: bytes) -> dict[str, Any] | None:
    """The JSON object in some bytes; None where there is none, or one with half characters that no file could hold."""
    try:
        body = json.loads(received)
        if b"\\ud" in received.lower():
            json.dumps(body, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _answered(body: dict[str, Any], attempts: int) -> Answer:
    usage = body.get("usage")
    told = usage if isinstance(usage, dict) else {}
    read, written = (_count(told.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    return Answer(body, None, attempts, read, written)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _after(failure: Failure, attempts: int) -> Failure:
    if attempts == 1:
        return failure
    return replace(failure, message=f"{failure.message} (after {attempts} attempts)")
