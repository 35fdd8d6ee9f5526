"""What a server says, made fit for people and for waiting: its complaints, and how long it asks to wait."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus

_SHOWN = 300


def plain(text: str, length: int = _SHOWN) -> str:
    """One line of printable characters, cut: a server's words may come from a model, or from somebody hostile."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= length else line[: length - 1] + "…"


def status_text(status: int) -> str:
    """``HTTP 503 Service Unavailable``."""
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


def complaint(body: bytes, secret: str | None) -> str:
    """What an answer with an error status says, without the key that it may repeat.

    Args:
        body: the answer's bytes: OpenAI's ``{"error": {"message"}}``, another JSON object's ``message`` or ``detail``,
            or any text.
        secret: the key, if there is one.

    Returns:
        One printable line, maybe empty.
    """
    text = body.decode("utf-8", errors="replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    for name in ("error", "message", "detail"):
        if isinstance(value, dict) and value.get(name):
            value = value[name]
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    said = said.replace(secret, "***") if secret else said
    return plain(said)


def seconds_to_wait(headers: Mapping[str, str], now: dt.datetime) -> float | None:
    """The wait that an answer asks for in ``Retry-After``, as seconds or as a date.

    Args:
        headers: of the answer; a date is compared with the server's own ``Date`` where there is one, since its clock
            may differ from ours.
        now: our time, with its zone.

    Returns:
        Seconds, never negative; None where nothing, or nothing legible, is asked for.
    """
    asked = headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdecimal():
        return float(asked[:9])
    until = _date(asked)
    if until is None:
        return None
    return max(0.0, (until - (_date(headers.get("date", "")) or now)).total_seconds())


def _date(text: str) -> dt.datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)
