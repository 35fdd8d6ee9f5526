"""Text that a model or a dataset wrote, made harmless: it is shown, never run, and hides nothing.

Escaping for HTML is markupsafe's. What it leaves alone are characters that no reader sees but that reorder or
hide text (see Unicode Technical Report 36 and CVE-2021-42574), so those become ``⟦U+202E⟧``.
"""

from __future__ import annotations

import json
import re
from typing import Any

from markupsafe import Markup

#: Longest text shown whole, in characters; what is left out is said.
SHOWN_CHARACTERS = 20_000

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def _name(match: re.Match[str]) -> str:
    return f"⟦U+{ord(match[0]):04X}⟧"


def visible_text(text: str) -> str:
    """The text with every invisible control but newline and tab spelled out. Still to be escaped for HTML."""
    return _UNSEEN.sub(_name, text)


def visible(text: str) -> Markup:
    """The text as HTML: escaped, controls spelled out; cut, with a note, after `SHOWN_CHARACTERS`."""
    shown = text[:SHOWN_CHARACTERS]
    html = Markup("").join(
        Markup('<span class="ctl">{}</span>').format(_name(part)) if (part := _UNSEEN.fullmatch(piece)) else piece
        for piece in re.split(f"({_UNSEEN.pattern})", shown)
    )
    if len(text) > len(shown):
        html += Markup('<span class="ctl">⟦{} more characters⟧</span>').format(len(text) - len(shown))
    return html


def excerpt(text: str, length: int = 110) -> Markup:
    """The beginning of a text on one line, as HTML."""
    line = " ".join(text[: 4 * length].split())
    return visible(line[:length]) + ("…" if len(line) > length or len(text) > 4 * length else "")


def script_json(value: Any) -> Markup:
    """JSON that is safe inside ``<script type="application/json">``: ASCII without <, > and &."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def plain(value: Any) -> str:
    """A value of a manifest or of a judge's evidence as one line of text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def finalize(value: Any) -> Any:
    """Jinja2's hook for every printed expression: plain strings lose invisible controls, markup is kept."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible_text(value)
