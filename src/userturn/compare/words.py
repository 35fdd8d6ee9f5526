"""A comparison in words and figures: what the terminal and the page print alike."""

from __future__ import annotations

import re

from userturn.compare.pairs import FALSE_SHARE, FISHER, FROM_LIMITS, INTERVAL, STATUSES, Comparison, Pair, Side

_DIGEST = re.compile(r"\b[0-9a-f]{40,64}\b")
_SHOWN = 70

METHOD = (
    f"Shift: B minus A. Its interval: {INTERVAL}. p: {FISHER} test where each row has an item of its own, else "
    f"{FROM_LIMITS}. Adjusted: Benjamini and Hochberg over all numbers of one quantity that are in both studies; "
    f"significant means at most {FALSE_SHARE:g}."
)


def value(side: Side, decimals: int) -> str:
    """The value, or that there is none."""
    return "not defined" if side.value is None else f"{side.value:.{decimals}f}"


def interval(side: Side, decimals: int) -> str:
    """The limits in brackets, or nothing."""
    if side.low is None or side.high is None:
        return ""
    return f"[{side.low:.{decimals}f}, {side.high:.{decimals}f}]"


def shift(pair: Pair) -> str:
    """The shift with its sign."""
    return "" if pair.shift is None else f"{pair.shift:+.{pair.decimals}f}"


def shift_interval(pair: Pair) -> str:
    """The limits of the shift."""
    if pair.low is None or pair.high is None:
        return ""
    return f"[{pair.low:+.{pair.decimals}f}, {pair.high:+.{pair.decimals}f}]"


def half_widths(pair: Pair) -> str:
    """The shift in half-widths of its interval."""
    return "" if pair.half_widths is None else f"{pair.half_widths:.2f}"


def p_value(p: float | None) -> str:
    """A p-value to three decimals."""
    if p is None:
        return ""
    return "< 0.001" if p < 0.0005 else f"{p:.3f}"


def summary(comparison: Comparison) -> list[str]:
    """Sentences that say what moved."""
    counts = comparison.counts
    told = ", ".join(f"{counts[status]:,} {words}" for status, words in STATUSES.items() if counts[status])
    significant = sum(pair.significant for pair in comparison.pairs)
    lines = [
        f"{len(comparison.pairs):,} numbers in both{': ' + told if told else ''}",
        f"{significant:,} moves are significant (adjusted p at most {FALSE_SHARE:g})",
    ]
    if comparison.only_a or comparison.only_b:
        lines.append(f"{len(comparison.only_a):,} numbers only in A, {len(comparison.only_b):,} only in B")
    return lines


def short(text: str | None) -> str:
    """A value of a manifest on one line: digests and long texts cut; what is not there is said."""
    if text is None:
        return "none"
    line = " ".join(_DIGEST.sub(lambda match: match[0][:12] + "…", text).split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
