"""How a row of ``numbers.jsonl`` is printed. No other module turns a value of a number into text."""

from __future__ import annotations

from typing import Any, Literal

from markupsafe import Markup

from userturn.layout import temperature_key
from userturn.report.data import Row

#: Quantity: name, what it is, what is counted.
QUANTITIES: dict[str, tuple[str, str, str]] = {
    "accuracy": (
        "Accuracy",
        "Share of assistant turns that the task's scorer calls right.",
        "assistant turns",
    ),
    "accuracy_strict": (
        "Accuracy, strict",
        "Share of assistant turns right under the scorer's strict reading.",
        "assistant turns",
    ),
    "accuracy_loose": (
        "Accuracy, loose",
        "Share of assistant turns right under the scorer's forgiving reading.",
        "assistant turns",
    ),
    "followup_rate": (
        "Genuine-followup rate",
        "Share of the generated user turns that the judge calls a genuine follow-up.",
        "user turns",
    ),
    "effect": (
        "Effect of the perturbation",
        "Genuine-followup rate under the perturbation minus the rate under baseline: same items, same temperature.",
        "user turns",
    ),
    "sensitivity": (
        "Sensitivity",
        "Share of the gold set's genuine follow-ups that the judge calls genuine.",
        "turns of the gold set",
    ),
    "specificity": (
        "Specificity",
        "Share of the gold set's other turns that the judge does not call genuine. One minus it is the floor.",
        "turns of the gold set",
    ),
    "floor": (
        "Floor",
        "Share of the gold set's other turns that the judge calls genuine: the rate it reports where the truth is 0.",
        "turns of the gold set",
    ),
    "held_out_floor": (
        "Floor, held out",
        "Share of the held-out examples of other labels that the classifier calls genuine.",
        "examples",
    ),
    "grounded_share": (
        "Grounded",
        "Share of the turns called genuine for which the judge quoted words that are in the assistant turn.",
        "user turns",
    ),
    "confusion": (
        "Confusion",
        "Share of the gold set's turns with the one label that the judge gives the other.",
        "turns of the gold set",
    ),
    "macro_f1": ("Macro-F1", "Mean of the labels' F1 on the gold set.", "turns of the gold set"),
    "held_out_sensitivity": (
        "Sensitivity, held out",
        "As sensitivity, on held-out conversations with labels known by construction.",
        "examples",
    ),
    "held_out_specificity": (
        "Specificity, held out",
        "As specificity, on held-out conversations with labels known by construction.",
        "examples",
    ),
    "held_out_confusion": (
        "Confusion, held out",
        "Share of the held-out examples made as the one label that the classifier gives the other.",
        "examples",
    ),
    "held_out_macro_f1": ("Macro-F1, held out", "Mean of the labels' F1 on held-out conversations.", "examples"),
    "corrected_rate": (
        "Corrected rate",
        "The genuine-followup rate with the judge's errors on the gold set taken out (Rogan and Gladen).",
        "user turns",
    ),
    "corrected_effect": (
        "Corrected effect",
        "The effect of the perturbation with the judge's errors taken out: the raw effect over sensitivity plus "
        "specificity minus 1.",
        "user turns",
    ),
    "determinism": (
        "Determinism",
        "Share of items whose text at temperature 0 is the same when the baseline is generated once more.",
        "items",
    ),
    "role_log_odds": (
        "User role against assistant role",
        "Log-probability of known texts under the user header minus that under the assistant header, after the same "
        "context, per token; above 0 the model takes the text for a user's. No judge is involved.",
        "texts",
    ),
    "role_share": (
        "Likelier under the user role",
        "Share of the known texts that the model finds likelier under the user header than under the assistant's.",
        "texts",
    ),
    "grounding": (
        "Own answer against another",
        "Log-probability of known texts after the item's own answer minus that after another item's answer, both "
        "under the user header, per token; above 0 the text is tied to the answer. No judge is involved.",
        "texts",
    ),
    "grounding_share": (
        "Likelier after the own answer",
        "Share of the known texts that the model finds likelier after the item's own answer than after another's.",
        "texts",
    ),
    "label_share": (
        "Share of a label",
        "Share of the judged user turns that carry this label.",
        "user turns",
    ),
    "unscored_rate": (
        "Unscored",
        "Share of the user turns that the judge could not label. They count as no label.",
        "user turns",
    ),
}

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


def value_text(row: Row) -> str:
    """The value, or why there is none."""
    if row["value"] is None:
        return "undefined" if row["n"] else "nothing scored"
    return _value(row, row["value"])


def interval_text(row: Row, *, short: bool = False) -> str:
    """The interval; ``short`` gives the one bound that matters where all or none of the rows count."""
    low, high = row["low"], row["high"]
    if low is None or high is None:
        return "no interval"
    if short and row["unit"] == "proportion" and row["value"] == low == 0:
        return f"≤ {_value(row, high)}"
    if short and row["unit"] == "proportion" and row["value"] == high == 1:
        return f"≥ {_value(row, low)}"
    return _pair(row, low, high)


def count_text(row: Row) -> str:
    """``k/n`` for a proportion, the number of pairs for a difference."""
    return f"{row['k']}/{row['n']}" if row["unit"] == "proportion" else f"{row['n_items']} items"


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
    name = QUANTITIES.get(row["quantity"], (str(row["quantity"]).replace("_", " "), "", ""))[0]
    labels = row["labels"]
    order = sorted(labels, key=lambda key: _ORDER.index(key) if key in _ORDER else len(_ORDER))
    return " · ".join([name, *(_label(key, labels[key]) for key in order if key != "judge")])


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


def details(row: Row) -> dict[str, Any]:
    """What the tooltip (``short``) and the panel (everything) of a number show, as text.

    The page's script only lays these out; it formats nothing.
    """
    level = f"{100 * row['level']:g} % interval" if row.get("level") else "Interval"
    counted = QUANTITIES.get(row["quantity"], ("", "", "rows"))[2]
    share = f"{row['k']} of {row['n']} {counted}" if row["unit"] == "proportion" else f"{row['n']} {counted}"
    short = [
        ["Value", value_text(row)],
        [level, interval_text(row)],
        ["Method", row.get("method") or "none"],
        ["Counted", f"{share}, {row['n_items']} items"],
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
    if row["labels"].get("judge"):
        more.append(["Judge", str(row["labels"]["judge"])])
    if row.get("seed") is not None:
        more.append(["Seed", str(row["seed"])])
    return {
        "title": title(row),
        "definition": QUANTITIES.get(row["quantity"], ("", "", ""))[1],
        "short": short,
        "more": more,
        "notes": [str(note) for note in row.get("notes") or ()],
        "sources": [str(source) for source in row.get("sources") or ()],
        "audit": f"userturn audit {row['id']}",
        "cell": cell_key(row),
    }


def _bootstrap(row: Row) -> str:
    found = row.get("bootstrap")
    if not found or found.get("low") is None:
        return "not defined here"
    return f"{_pair(row, found['low'], found['high'])} {found.get('method') or ''}".strip()
