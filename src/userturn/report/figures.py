"""How a row of ``numbers.jsonl`` is printed. No other module turns a value of a number into text."""

from __future__ import annotations

import re
import shlex
from typing import Any, Literal

from markupsafe import Markup

from userturn.layout import temperature_key
from userturn.report.data import Row
from userturn.report.inert import plain
from userturn.report.quantities import quantity_of

Part = Literal["value", "interval", "count"]


def format_value(value: float, decimals: int, *, signed: bool = False) -> str:
    """A value with a fixed number of decimals; a minus is U+2212, and nothing is printed as minus zero."""
    text = f"{value:.{decimals}f}"
    if float(text) == 0.0:
        return text.removeprefix("-")
    if text.startswith("-"):
        return "\N{MINUS SIGN}" + text[1:]
    return f"+{text}" if signed else text


def _value(row: Row, value: float) -> str:
    return format_value(value, int(row["decimals"]), signed=row["unit"].startswith(("difference", "nats")))


def _pair(row: Row, low: float, high: float) -> str:
    return f"[{_value(row, low)}, {_value(row, high)}]"


def why_undefined(row: Row) -> str:
    """Why a row has no value, in a few words; empty where the row does not say."""
    notes = [str(note) for note in row.get("notes") or ()]
    return "no row was scored" if not row["n"] else notes[0].partition(";")[0] if notes else ""


def value_text(row: Row) -> str:
    """The value as it is rounded, or that there is none and why."""
    if row["value"] is None:
        return ": ".join(part for part in ("not defined", why_undefined(row)) if part)
    return _value(row, row["value"])


def interval_text(row: Row, *, short: bool = False) -> str:
    """The interval; ``short`` gives the one bound that matters where all or none of the rows count."""
    low, high = row["low"], row["high"]
    if low is None or high is None:
        return "no interval"
    if short and row["unit"] == "proportion" and row["value"] == low == 0:
        return f"upper limit {_value(row, high)}"
    if short and row["unit"] == "proportion" and row["value"] == high == 1:
        return f"lower limit {_value(row, low)}"
    return _pair(row, low, high)


def count_text(row: Row) -> str:
    """``k of n`` for a proportion, the number of items otherwise."""
    if row["unit"] == "proportion":
        return f"{row['k']} of {row['n']}"
    return "1 item" if row["n_items"] == 1 else f"{row['n_items']} items"


def p_text(p: float | None) -> str:
    """A p-value with three decimals; smaller ones as a bound."""
    if p is None:
        return "–"
    return "<0.001" if p < 0.001 else format_value(p, 3)


def is_zero(row: Row) -> bool:
    """Whether the row is a rate at which nothing was counted: a measured zero."""
    return bool(row["unit"] == "proportion" and row["value"] == 0)


def number(row: Row | None, *parts: Part, missing: str = "not measured") -> Markup:
    """A row as an element that shows its details on hover and focus and opens them on activation.

    Args:
        row: the row; None prints ``missing``.
        parts: what stands visibly beside the value; nothing given means interval and count.
        missing: what stands there when the study has no such number.
    """
    if row is None:
        return Markup('<span class="none">{}</span>').format(missing)
    texts = {"interval": interval_text(row, short=True), "count": count_text(row)}
    inner = Markup('<span class="v" data-field="value">{}</span>').format(value_text(row))
    for part in parts or ("interval", "count"):
        if part in texts and row["value"] is not None:
            inner += Markup(' <span class="{}" data-field="{}">{}</span>').format(part[0], part, texts[part])
    more = " undefined" if row["value"] is None else " zero" if is_zero(row) else ""
    return _button(row, inner, more)


def p_number(row: Row | None) -> Markup:
    """The adjusted p-value of a row (the raw one where there is no adjustment), as part of that number."""
    if row is None:
        return Markup('<span class="none">–</span>')
    field = "p_value" if row.get("p_adjusted") is None else "p_adjusted"
    return _button(row, Markup('<span class="v" data-field="{}">{}</span>').format(field, p_text(row.get(field))), "")


def _button(row: Row, inner: Markup, more: str) -> Markup:
    return Markup('<button type="button" class="num{}" data-number-id="{}">{}</button>').format(more, row["id"], inner)


_ORDER = ["model", "dataset", "perturbation", "temperature", "label"]


def title(row: Row) -> str:
    """Name of the quantity and where it was measured."""
    labels = row["labels"]
    order = sorted(labels, key=lambda key: _ORDER.index(key) if key in _ORDER else len(_ORDER))
    return " · ".join(
        [quantity_of(row["quantity"]).name, *(_label(key, labels[key]) for key in order if key != "judge")]
    )


def _label(key: str, value: Any) -> str:
    if key == "temperature" and isinstance(value, (int, float)):
        return f"T = {value:g}"
    return str(value).replace("_", " ") if key in {"perturbation", "label"} else str(value)


def cell_key(row: Row) -> str | None:
    """The cell that a number belongs to, or None for a number of several cells or of none."""
    labels = row["labels"]
    keys = ("model", "dataset", "perturbation", "temperature")
    if not all(key in labels for key in keys):
        return None
    return "/".join([*(str(labels[key]) for key in keys[:3]), temperature_key(labels["temperature"])])


_JUDGED = re.compile(r"results/judgements/[^/]+/(.+)\.jsonl")
_GENERATED = re.compile(r"results/user_turns/(.+)\.jsonl")
_SCORED = re.compile(r"results/(?:scores|assistant_turns)/(.+)\.jsonl")


def rows_behind(row: Row) -> tuple[list[str], list[str]]:
    """Cells whose user turns a number is computed from, and the ``model/dataset`` whose answers it is."""
    cells: dict[str, None] = {}
    answers: dict[str, None] = {}
    for source in row.get("sources") or ():
        if found := _JUDGED.fullmatch(source) or _GENERATED.fullmatch(source):
            cells[found[1]] = None
        elif found := _SCORED.fullmatch(source):
            answers[found[1]] = None
    return list(cells), list(answers)


#: Columns of a number that a plot's data holds.
RAW = ("value", "low", "high", "level", "method", "n", "n_items", "k", "n_unscored", "p_value", "p_adjusted", "unit")


def details(row: Row) -> dict[str, Any]:
    """What the tooltip (``short``) and the panel (everything) of a number show, as text.

    The page's script only lays these out; it formats nothing.
    """
    level = f"{100 * row['level']:g} % interval" if row.get("level") else "Interval"
    quantity = quantity_of(row["quantity"])
    share = f"{row['k']} of {row['n']} {quantity.counted}"
    if row["unit"] != "proportion":
        share = f"{row['n']} {quantity.counted}"
    short = [
        ["Value", value_text(row)],
        [level, interval_text(row)],
        ["Method", row.get("method") or "none"],
        ["Counted", f"{share}, {'1 item' if row['n_items'] == 1 else str(row['n_items']) + ' items'}"],
        ["Unscored", str(row["n_unscored"])],
        ["Bootstrap", _bootstrap(row)],
    ]
    if row.get("p_value") is not None:
        adjusted = "" if row.get("p_adjusted") is None else f", adjusted {p_text(row['p_adjusted'])}"
        short.append(["p-value", f"{p_text(row['p_value'])}{adjusted} ({row.get('test') or 'test not named'})"])
    more = []
    if row.get("bounds"):
        more.append(["If the unscored were all one way or the other", _pair(row, *row["bounds"])])
    if row.get("family"):
        more.append(["Family of tests", str(row["family"])])
    if row["labels"].get("model"):
        more.append(["Model", str(row["labels"]["model"])])
    if row["labels"].get("judge"):
        more.append(["Judge", str(row["labels"]["judge"])])
    if row.get("seed") is not None:
        more.append(["Seed of the interval", str(row["seed"])])
    if row.get("resamples"):
        more.append(["Resamples", str(row["resamples"])])
    if row.get("selector"):
        more.append(["Rows", "; ".join(f"{key}: {plain(value)}" for key, value in row["selector"].items())])
    cells, answers = rows_behind(row)
    return {
        "id": str(row["id"]),
        "title": title(row),
        "definition": quantity.meaning,
        "formula": quantity.formula,
        "limits": quantity.limits,
        "short": short,
        "more": more,
        "notes": [str(note) for note in row.get("notes") or ()],
        "sources": [str(source) for source in row.get("sources") or ()],
        "audit": f"userturn audit {shlex.quote(str(row['id']))}",
        "cell": cell_key(row),
        "cells": cells,
        "answers": answers if not cells else [],
        "positive": str((row.get("selector") or {}).get("positive", "")),
        "raw": [row.get(name) for name in RAW],
    }


def _bootstrap(row: Row) -> str:
    found = row.get("bootstrap")
    if not found or found.get("low") is None:
        return "not defined here"
    return f"{_pair(row, found['low'], found['high'])} {found.get('method') or ''}".strip()
