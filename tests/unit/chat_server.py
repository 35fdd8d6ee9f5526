"""An OpenAI-compatible chat server on loopback that answers, or fails, as a test plans it."""

from __future__ import annotations

import http.server
import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

MODEL = "made-up-judge"
PROMPT_TOKENS, COMPLETION_TOKENS = 1000, 100


@dataclass(frozen=True)
class Asked:
    """One request: what was sent, and the how-manieth time the same was asked for."""

    body: dict[str, Any]
    attempt: int

    @property
    def content(self) -> str:
        """The case, as the user message puts it."""
        return self.body["messages"][-1]["content"]

    @property
    def mark(self) -> str:
        """The mark of the case's delimiters, found as the messages tell it."""
        (mark,) = re.findall(r"^The mark of this case is ([0-9a-f]{16})\.", self.content)
        return mark

    @property
    def user_turn(self) -> str:
        """The text between the delimiters of the user turn."""
        return between(self.content, "user_turn", self.mark)


def between(content: str, name: str, mark: str) -> str:
    """The text between the two delimiters of one text, which must stand there exactly once."""
    opening, closing = f"<<<{name} {mark}>>>\n", f"\n<<<end of {name} {mark}>>>"
    assert content.count(opening) == content.count(closing) == 1, name
    return content.partition(opening)[2].partition(closing)[0]


@dataclass(frozen=True)
class Say:
    """A choice with this content."""

    content: Any
    finish: Any = "stop"
    refusal: str | None = None
    usage: bool = True


@dataclass(frozen=True)
class Body:
    """A 200 with these bytes."""

    data: bytes


@dataclass(frozen=True)
class Status:
    """An error status."""

    code: int
    headers: tuple[tuple[str, str], ...] = ()
    message: str = "made-up failure"


@dataclass(frozen=True)
class Cut:
    """Half an answer, then a reset connection."""


@dataclass(frozen=True)
class Slow:
    """The answer comes after so many seconds."""

    seconds: float
    then: Say


Action = Say | Body | Status | Cut | Slow
Plan = Callable[[Asked], Action]


def verdict(asked: Asked, label: str = "generic", reacts_to: str = "", **other: object) -> str:
    """A valid verdict for what was asked."""
    return json.dumps({"mark": asked.mark, "reacts_to": reacts_to, "reason": "made up", "label": label} | other)


@dataclass
class ChatServer:
    """The server's state: how it answers, and what it was asked."""

    plan: Plan
    port: int = 0
    requests: list[Asked] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    _attempts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def note(self, body: dict[str, Any], key: str | None) -> Asked:
        text = json.dumps(body, sort_keys=True)
        with self._lock:
            self._attempts[text] += 1
            asked = Asked(body, self._attempts[text])
            self.requests.append(asked)
            self.keys.append(key)
        return asked


def _completion(say: Say) -> bytes:
    message = {"role": "assistant", "content": say.content, "refusal": say.refusal}
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": say.finish}],
    }
    if say.usage:
        body["usage"] = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS}
    return json.dumps(body).encode()


@contextmanager
def chat_server(plan: Plan) -> Iterator[ChatServer]:
    """Runs a server as long as the block does."""
    state = ChatServer(plan)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            assert self.path == "/v1/chat/completions", self.path
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            action = state.plan(state.note(body, self.headers.get("Authorization")))
            if isinstance(action, Slow):
                time.sleep(action.seconds)
                action = action.then
            if isinstance(action, Cut):
                self._cut()
            elif isinstance(action, Status):
                self._send(action.code, json.dumps({"error": {"message": action.message}}).encode(), action.headers)
            else:
                self._send(200, action.data if isinstance(action, Body) else _completion(action))

        def _send(self, code: int, data: bytes, headers: tuple[tuple[str, str], ...] = ()) -> None:
            self.send_response(code)
            for name, value in (*headers, ("Content-Type", "application/json"), ("Content-Length", str(len(data)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def _cut(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.wfile.flush()
            # zero linger: the socket is reset, not closed in order
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True

        def log_message(self, format: str, *values: object) -> None:
            """Says nothing."""

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Clients that have gone away, or were cut off, are part of the plan."""

    with Server(("127.0.0.1", 0), Handler) as server:
        state.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield state
        finally:
            server.shutdown()
