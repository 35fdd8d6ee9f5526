"""A server on loopback that speaks the completions protocol, with faults on a schedule."""

from __future__ import annotations

import email.utils
import http.server
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

SERVED = "tiny"
KEY = "sk-madeUpSecretOfTheTests"


def prompt_key(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else " ".join(map(str, prompt))


@dataclass
class Server:
    """What the server is like, what goes wrong, and what it was asked.

    `faults` are by prompt: each is used up by one request. They are `429:S` (Retry-After S seconds), `429@S` (as a
    date), a status, `slow`, `cut` (half an answer), `gone` (none), `garbage`, `array`, `half`, `empty`, `odd` (another
    finish reason), `uncounted`, or `flood` (more than anybody reads).
    """

    faults: dict[str, list[str]] = field(default_factory=dict)
    models: tuple[str, ...] = (SERVED, "other/model")
    key: str | None = None
    takes: tuple[str, ...] = ("ids", "text")
    refused: int = 400
    chat_only: int | None = None
    added_tokens: int = 0
    heeds_max_tokens: bool = True
    heeded_stops: frozenset[int] | None = None
    forced: dict[int, str] = field(default_factory=dict)
    base_url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def turns(self) -> list[dict[str, Any]]:
        """Requests for turns, without those that force a token."""
        return [body for body in self.asked if "logit_bias" not in body and body["max_tokens"] > 2]

    def count(self) -> Counter[str]:
        """Requests for turns by prompt."""
        return Counter(prompt_key(body["prompt"]) for body in self.turns)


def written(prompt: Any, seed: int | None) -> str:
    """What the model of this server writes."""
    return f"after {prompt_key(prompt)} with {seed}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_state: Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _json(self, status: int, value: object, **headers: str) -> None:
        self._answer(status, json.dumps(value).encode(), **headers)

    def _error(self, status: int, message: str, **headers: str) -> None:
        self._json(status, {"error": {"message": message, "code": status}}, **headers)

    def _authorised(self) -> bool:
        given = self.headers.get("Authorization", "")
        if self.server_state.key is None or given == f"Bearer {self.server_state.key}":
            return True
        self._error(401, f"Incorrect API key provided: {given}\x1b[31m")
        return False

    def do_GET(self) -> None:
        state = self.server_state
        if not self._authorised():
            return
        if self.path == "/v1/models":
            entries = [
                {"id": name, "created": time.time_ns(), "owned_by": "tests", "root": f"/somewhere/{name}"}
                for name in state.models
            ]
            self._json(200, {"object": "list", "data": entries})
        elif self.path == "/version":
            self._json(200, {"version": "1.2.3"})
        else:
            self._error(404, "Not Found")

    def do_POST(self) -> None:
        state = self.server_state
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._authorised():
            return
        if state.chat_only is not None:
            self._error(state.chat_only, "This is a chat model")
            return
        body = json.loads(raw)
        with state.lock:
            state.asked.append(body)
            state.times.append(time.monotonic())
            state.in_flight += 1
            state.most_in_flight = max(state.most_in_flight, state.in_flight)
            is_turn = "logit_bias" not in body and body["max_tokens"] > 2
            planned = state.faults.get(prompt_key(body["prompt"])) if is_turn else None
            fault = planned.pop(0) if planned else None
        try:
            self._complete(body, fault)
        finally:
            with state.lock:
                state.in_flight -= 1

    def _complete(self, body: dict[str, Any], fault: str | None) -> None:
        state, prompt = self.server_state, body["prompt"]
        if ("text" if isinstance(prompt, str) else "ids") not in state.takes:
            self._error(state.refused, "prompt: Input should be another type")
            return
        answer = json.dumps(self._choice(body)).encode()
        if fault is None:
            time.sleep(0.002)
            self._answer(200, answer)
        elif fault.startswith("429:"):
            self._error(429, "slow down", Retry_After=fault.removeprefix("429:"))
        elif fault.startswith("429@"):
            now = time.time()
            date, later = (email.utils.formatdate(at, usegmt=True) for at in (now, now + float(fault[4:])))
            self._error(429, "slow down", Retry_After=later, Date=date)
        elif fault.isdecimal():
            self._error(int(fault), f"status {fault} for {self.headers.get('Authorization')}")
        elif fault in {"slow", "cut", "gone"}:
            self._broken(fault, answer)
        elif fault == "flood":
            self.send_response(200)
            self.end_headers()
            for _ in range(80):
                self.wfile.write(b" " * (1 << 20))
            self.close_connection = True
        else:
            self._answer(200, _UNUSABLE[fault])

    def _broken(self, fault: str, answer: bytes) -> None:
        if fault == "slow":
            # some bytes now and then: no read is late, the whole answer is
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            for _ in range(20):
                self.wfile.write(b" ")
                time.sleep(0.1)
        elif fault == "cut":
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer[: len(answer) // 2])
        self.close_connection = True

    def _choice(self, body: dict[str, Any]) -> dict[str, Any]:
        state, prompt = self.server_state, body["prompt"]
        text = written(prompt, body.get("seed"))
        n, reason = len(text.split()), "stop"
        if "logit_bias" in body:
            stop = int(next(iter(body["logit_bias"])))
            heeded = state.heeded_stops is None or stop in state.heeded_stops
            named = stop in body.get("stop_token_ids", []) or state.forced.get(stop) in body.get("stop", [])
            text, n, reason = ("", 1, "stop") if heeded and named else ("<again><again>", 2, "length")
        elif body["max_tokens"] < n and state.heeds_max_tokens:
            n, reason = body["max_tokens"], "length"
            text = " ".join(text.split()[:n])
        read = (len(prompt.split()) if isinstance(prompt, str) else len(prompt)) + state.added_tokens
        return {
            "choices": [{"index": 0, "text": text, "finish_reason": reason, "logprobs": None}],
            "usage": {"prompt_tokens": read, "completion_tokens": n, "total_tokens": read + n},
        }


_UNUSABLE = {
    "garbage": b'{"choices": [',
    "array": b"[1, 2]",
    "half": b'{"choices": [{"text": "\\ud800", "finish_reason": "stop"}], "usage": {}}',
    "empty": b'{"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 0}}',
    "odd": b'{"choices": [{"text": "x", "finish_reason": "abort"}], "usage": {}}',
    "uncounted": b'{"choices": [{"text": "x", "finish_reason": "stop"}]}',
}


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no fault of the server."""


@contextmanager
def serving(state: Server) -> Iterator[Server]:
    """Serves until the block ends."""
    handler = type("Handler", (_Handler,), {"server_state": state})
    with _Listener(("127.0.0.1", 0), handler) as listener:
        state.base_url = f"http://127.0.0.1:{listener.server_address[1]}/v1"
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            listener.shutdown()
            thread.join()
