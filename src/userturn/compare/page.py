"""The comparison as a page: one HTML file that opens from disk, asks for nothing and runs no script."""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from userturn.compare import words
from userturn.compare.causes import KINDS, Causes
from userturn.compare.pairs import STATUSES, Comparison, Pair, Status
from userturn.compare.study import Study
from userturn.report.build import asset, page_environment

ASSETS = Path(__file__).resolve().parent / "assets"

#: Width and inner half-width of the drawing of a shift, in its own units.
_WIDTH, _HALF = 160.0, 74.0


@dataclass(frozen=True)
class Line:
    """Where the shift and its interval are drawn; zero is in the middle."""

    low: float
    high: float
    at: float


def build_page(a: Study, b: Study, comparison: Comparison, causes: Causes) -> str:
    """Renders the page. The same studies give the same text."""
    style = asset(ASSETS, "diff.css")
    environment = page_environment(ASSETS)
    environment.globals |= {name: getattr(words, name) for name in ("value", "interval", "shift", "half_widths")}
    environment.globals |= {"shift_interval": words.shift_interval, "p_value": words.p_value, "short": words.short}
    scales = _scales(comparison.pairs)
    return environment.get_template("diff.html.j2").render(
        csp=content_security_policy(style),
        # our own file, with no closing tag in it (tested)
        style=Markup(style),
        sides=[("A", a), ("B", b)],
        simulated=[name for name, one in (("A", a), ("B", b)) if one.simulated],
        summary=words.summary(comparison),
        method=words.METHOD,
        comparison=comparison,
        tables=[(status, words_, comparison.of(status)) for status, words_ in STATUSES.items()],
        opened=_opened(comparison),
        line=lambda pair: _line(pair, scales[pair.quantity]),
        causes=causes,
        kinds=KINDS,
    )


def content_security_policy(style: str) -> str:
    """A policy that allows one inline style sheet, no script and no request."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _opened(comparison: Comparison) -> Status | None:
    """The first table with something in it that moved."""
    return next((status for status in ("beyond", "within") if comparison.counts[status]), None)


def _scales(pairs: Iterable[Pair]) -> dict[str, float]:
    """For each quantity the largest distance from zero that is drawn, so that its rows share an axis."""
    found: defaultdict[str, float] = defaultdict(float)
    for pair in pairs:
        found[pair.quantity] = max(found[pair.quantity], *(abs(x) for x in (pair.low, pair.high, pair.shift) if x), 0.0)
    return dict(found)


def _line(pair: Pair, scale: float) -> Line | None:
    if pair.shift is None or scale == 0:
        return None

    def place(x: float) -> float:
        return round(_WIDTH / 2 + _HALF * x / scale, 2)

    low, high = (pair.shift if limit is None else limit for limit in (pair.low, pair.high))
    return Line(place(low), place(high), place(pair.shift))
