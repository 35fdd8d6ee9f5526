"""The section on post-training: table 2 (base against variant), the guards, and the learning curves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from userturn.judges.labels import LABELS
from userturn.numbers.posttrain import GUARDS
from userturn.report import plots
from userturn.report.data import Numbers, Row
from userturn.report.figures import number, p_number
from userturn.report.sections import View, words

#: Perturbations under which a gain that is tied to the answer must shrink.
_BREAKING = ("shuffled_context", "removed_assistant")
#: Measures that are drawn together, each group in one panel.
_PANELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Loss", ("loss", "held_out_loss")),
    ("Reward", ("reward", "reward_accuracy", "reward_interactivity", "reward_tokens")),
    ("Tokens of a turn in training", ("completion_tokens",)),
)
_GUARDS = tuple((name, name, ()) for name in GUARDS)
_COMPOSITION = tuple((label, "label_share", (label,)) for label in LABELS)

WIDTH, HEIGHT = 460.0, 200.0


def training(study: Mapping[str, Any], numbers: Numbers, trained: Mapping[str, Mapping[str, Any]]) -> View:
    """Everything the page shows of the variants; empty where the study trains none.

    Args:
        study: the config.
        numbers: the study's numbers.
        trained: by variant: ``summary`` as in ``summary.json`` and ``curve``, the rows of ``curve.jsonl``.
    """
    variants = {name: model["posttrain"] for name, model in study["models"].items() if model.get("posttrain")}
    baseline = [float(t) for t in study["probe"]["perturbations"]["baseline"]["temperatures"]]
    return {
        "temperatures": baseline,
        "variants": [
            {
                "name": name,
                "base": config["base"],
                "method": config["method"],
                "flags": list(trained[name]["summary"]["flags"]) if name in trained else [],
                "is_control": bool((config.get("data") or {}).get("shuffled_pairs")),
                "table": list(_table(study, numbers, name, config["base"], baseline)),
                "grounding": list(_grounding(study, numbers, name)),
                "guards": list(_beside(study, numbers, (config["base"], name), baseline, _GUARDS)),
                "composition": list(_beside(study, numbers, (config["base"], name), baseline, _COMPOSITION)),
                "data": dict(trained[name]["summary"]["data"]) if name in trained else {},
                "logged": _logged(numbers, name),
                "curves": _curves(name, trained[name]["curve"]) if name in trained else [],
            }
            for name, config in variants.items()
        ],
    }


def _table(
    study: Mapping[str, Any], numbers: Numbers, variant: str, base: str, temperatures: Sequence[float]
) -> Iterator[View]:
    """Table 2: a row a dataset and temperature."""
    for dataset in study["datasets"]:
        for t in temperatures:
            effect = numbers.get("effect_posttrain", variant, dataset, "baseline", t)
            yield {
                "dataset": dataset,
                "temperature": t,
                "base": number(numbers.get("followup_rate", base, dataset, "baseline", t)),
                "variant": number(numbers.get("followup_rate", variant, dataset, "baseline", t)),
                "effect": number(effect, "interval"),
                "p": p_number(effect),
                "accuracy_base": number(numbers.get("accuracy", base, dataset), missing="not scored"),
                "accuracy_variant": number(numbers.get("accuracy", variant, dataset), missing="not scored"),
                "accuracy_effect": number(
                    numbers.get("accuracy_posttrain", variant, dataset), "interval", missing="not scored"
                ),
            }


def _grounding(study: Mapping[str, Any], numbers: Numbers, variant: str) -> Iterator[View]:
    """How much of a gain is tied to the answer: a row a dataset, perturbation and temperature."""
    for name, perturbation in study["probe"]["perturbations"].items():
        if perturbation["kind"] not in _BREAKING:
            continue
        for dataset in study["datasets"]:
            for t in map(float, perturbation["temperatures"]):
                tied = numbers.get("posttrain_grounding", variant, dataset, name, t)
                yield {
                    "perturbation": words(name),
                    "dataset": dataset,
                    "temperature": t,
                    "gain": number(numbers.get("effect_posttrain", variant, dataset, "baseline", t), "interval"),
                    "gain_perturbed": number(numbers.get("effect_posttrain", variant, dataset, name, t), "interval"),
                    "tied": number(tied, "interval"),
                    "p": p_number(tied),
                }


def _beside(
    study: Mapping[str, Any],
    numbers: Numbers,
    models: Sequence[str],
    temperatures: Sequence[float],
    shown: Sequence[tuple[str, str, tuple[str, ...]]],
) -> Iterator[View]:
    """Numbers of the baseline for base and variant: a row a dataset, temperature and thing that is shown.

    Args:
        study: the config.
        numbers: the study's numbers.
        models: base and variant.
        temperatures: of the baseline.
        shown: name of the row, quantity, and what stands behind the temperature in the number's id.
    """
    for dataset in study["datasets"]:
        for t in temperatures:
            for name, quantity, more in shown:
                base, variant = (
                    number(numbers.get(quantity, model, dataset, "baseline", t, *more), "interval") for model in models
                )
                yield {"name": name, "dataset": dataset, "temperature": t, "base": base, "variant": variant}


def _logged(numbers: Numbers, variant: str) -> list[View]:
    found = []
    for _, measures in _PANELS:
        for measure in measures:
            first, last = (numbers.get(f"training_{which}", variant, measure) for which in ("first", "last"))
            if first is not None:
                found.append(
                    {"measure": words(measure), "first": number(first, "value"), "last": number(last, "value")}
                )
    return found


def _curves(variant: str, curve: Sequence[Row]) -> list[tuple[str, Markup]]:
    """One panel a group of measures that were logged."""
    panels = []
    for title, measures in _PANELS:
        lines = {
            measure: [(float(row["step"]), float(row[measure])) for row in curve if measure in row]
            for measure in measures
        }
        lines = {measure: points for measure, points in lines.items() if points}
        if lines:
            panels.append((title, learning_curve(lines, f"{title} of {variant} by step of training")))
    return panels


def learning_curve(lines: Mapping[str, Sequence[tuple[float, float]]], label: str) -> Markup:
    """Values by step of training, one line a measure, on an axis that spans them.

    Args:
        lines: (step, value) of each measure, by rising step; at least one point each.
        label: what a screen reader says.
    """
    left, right, top, bottom = 52.0, WIDTH - 110.0, 14.0, HEIGHT - 34.0
    steps = [x for points in lines.values() for x, _ in points]
    values = [y for points in lines.values() for _, y in points]
    x_low = min(steps)
    x_high = max(*steps, x_low + 1.0)
    margin = (max(values) - min(values)) * 0.05 or 0.5
    y_low, y_high = min(values) - margin, max(values) + margin

    def place(x: float, y: float) -> tuple[str, str]:
        at_x = left + (right - left) * (x - x_low) / (x_high - x_low)
        at_y = bottom - (bottom - top) * (y - y_low) / (y_high - y_low)
        return f"{at_x:.1f}", f"{at_y:.1f}"

    body = Markup('<polyline class="axis" points="{0},{1} {0},{2} {3},{2}"/>').format(left, top, bottom, right)
    for value, at in ((y_low + margin, "low"), (y_high - margin, "high")):
        _, y = place(x_low, value)
        body += Markup('<text class="tick end {}" x="{}" y="{}">{:.3g}</text>').format(at, left - 6, y, value)
    for step in (x_low, x_high):
        x, _ = place(step, y_low)
        body += Markup('<text class="tick middle" x="{}" y="{}">{:g}</text>').format(x, bottom + 16, step)
    body += Markup('<text class="name middle" x="{}" y="{}">step</text>').format((left + right) / 2, bottom + 30)
    names = _apart({measure: float(place(*points[-1])[1]) for measure, points in lines.items()}, 12.0)
    for series, (measure, points) in enumerate(lines.items()):
        colour = plots.series_class(series)
        body += Markup('<g class="{}">').format(colour)
        path = " ".join(",".join(place(*point)) for point in points)
        data = " ".join(f"{step:g},{value!r}" for step, value in points)
        body += Markup('<polyline class="line {}" points="{}" data-series="{}" data-points="{}"/>').format(
            colour, path, words(measure), data
        )
        x, y = place(*points[-1])
        body += plots.marker(float(x), float(y), series, radius=3.0)
        body += Markup('<text class="tick" x="{:.1f}" y="{:.1f}">{}</text>').format(
            float(x) + 8, names[measure] + 4, words(measure)
        )
        body += Markup("</g>")
    return Markup('<svg class="plot" role="img" viewBox="0 0 {} {}" aria-label="{}"><title>{}</title>{}</svg>').format(
        WIDTH, HEIGHT, label, label, body
    )


def _apart(wanted: Mapping[str, float], gap: float) -> dict[str, float]:
    """Places of names on a line, each at least ``gap`` below the one before, as near as wanted."""
    found: dict[str, float] = {}
    lowest = -math.inf
    for name, place in sorted(wanted.items(), key=lambda entry: entry[1]):
        lowest = found[name] = max(place, lowest + gap)
    return found
