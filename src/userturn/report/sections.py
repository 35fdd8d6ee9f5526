"""The page's main sections as plain view models: which numbers stand in which table and figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from userturn.judges.labels import LABELS
from userturn.report import plots
from userturn.report.data import Numbers, Row
from userturn.report.figures import is_zero, number

View = dict[str, Any]

#: Colour and letter of each label; the position in this list is the colour's index.
LETTERS: dict[str, str] = dict(zip(LABELS, "FRCMGUD", strict=True))
UNSCORED_COLOUR = len(LABELS)

#: Numbers set beside a figure of the paper; of more than these, the lowest and the highest.
SHOWN_BESIDE = 6

#: Models whose part of a section is open when the page opens.
OPEN_MODELS = 3


def words(name: str) -> str:
    """A name from code as words."""
    return name.replace("_", " ")


def cells(study: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Perturbation and temperature of each cell of one model and dataset, in the config's order."""
    for name, perturbation in study["probe"]["perturbations"].items():
        for temperature in perturbation["temperatures"]:
            yield name, float(temperature)


def _baseline_temperatures(study: Mapping[str, Any]) -> list[float]:
    return sorted(float(t) for t in study["probe"]["perturbations"]["baseline"]["temperatures"])


def dot(row: Row, series: int) -> plots.Dot:
    """A defined number as a mark with its interval, which is as wide as the value where there is none."""
    value = float(row["value"])
    low = value if row["low"] is None else float(row["low"])
    high = value if row["high"] is None else float(row["high"])
    return plots.Dot(value, low, high, series, str(row["id"]), is_zero(row))


def defined(row: Row | None) -> bool:
    """Whether there is a number, and it has a value."""
    return row is not None and row["value"] is not None


def ends(dots: Iterable[plots.Dot]) -> list[float]:
    """How far from 0 marks and intervals reach."""
    return [end for one in dots for end in (abs(one.low), abs(one.high), abs(one.value))]


#: Colour class of samples that stand for every colour.
_ANY = "any"

_ZERO_LEGEND = (
    plots.swatch(_ANY, 0, hollow=True),
    "hollow: a measured zero, the bar ends at its upper bound",
)


def legend(names: Sequence[str]) -> list[tuple[Markup, str]]:
    """Colour and shape of each series, by its position."""
    return [(plots.swatch(plots.series_class(i), i), name) for i, name in enumerate(names)]


def headline(study: Mapping[str, Any], numbers: Numbers) -> View:
    """Accuracy and baseline rates, one row a model and dataset."""
    temperatures = _baseline_temperatures(study)
    shards = [(model, dataset) for model in study["models"] for dataset in study["datasets"]]
    columns = {
        "Accuracy, strict": "accuracy_strict",
        "Accuracy, loose": "accuracy_loose",
        "Answers cut off": "assistant_cut_rate",
    }
    readings = {name: [numbers.get(quantity, *shard) for shard in shards] for name, quantity in columns.items()}
    readings = {name: rows for name, rows in readings.items() if any(row is not None for row in rows)}
    return {
        "temperatures": temperatures,
        "readings": list(readings),
        "rows": [
            {
                "model": model,
                "dataset": dataset,
                "accuracy": number(numbers.get("accuracy", model, dataset), missing="not scored"),
                "readings": [number(rows[index], missing="–") for rows in readings.values()],
                "rates": [number(numbers.get("followup_rate", model, dataset, "baseline", t)) for t in temperatures],
            }
            for index, (model, dataset) in enumerate(shards)
        ],
    }


def accuracy_against_followup(study: Mapping[str, Any], numbers: Numbers) -> View:
    """One scatter plot a baseline temperature: colour is the model, shape the dataset."""
    models, datasets = list(study["models"]), list(study["datasets"])
    temperatures = _baseline_temperatures(study)
    panels: dict[float, list[tuple[plots.Dot, plots.Dot, int]]] = {t: [] for t in temperatures}
    unscored = set(datasets)
    for t in temperatures:
        for m, model in enumerate(models):
            for d, dataset in enumerate(datasets):
                x = numbers.get("accuracy", model, dataset)
                y = numbers.get("followup_rate", model, dataset, "baseline", t)
                if x is not None and y is not None and defined(x) and defined(y):
                    panels[t].append((dot(x, m), dot(y, m), d))
                    unscored.discard(dataset)
    limit = plots.rate_limit(max(ends(y for points in panels.values() for _, y, _ in points), default=1.0))
    shown = [dataset for dataset in datasets if dataset not in unscored]
    return {
        "panels": [
            (
                f"Baseline, T = {t:g}",
                plots.scatter(
                    points,
                    limit,
                    f"Accuracy against genuine-followup rate at temperature {t:g}",
                    "accuracy",
                    "genuine-followup rate",
                ),
            )
            for t, points in panels.items()
            if points
        ],
        "legend": [(plots.swatch(plots.series_class(i), None), model) for i, model in enumerate(models)]
        + [(plots.swatch(_ANY, datasets.index(d)), d) for d in shown]
        + [_ZERO_LEGEND],
        "unscored": [dataset for dataset in datasets if dataset in unscored],
        "few": len(models) < 4,
    }


def temperature_curves(study: Mapping[str, Any], numbers: Numbers) -> View:
    """One panel a dataset, one line a model, on the baseline."""
    models, temperatures = list(study["models"]), _baseline_temperatures(study)
    panels: list[tuple[str, list[list[tuple[float, plots.Dot]]], list[tuple[float, int]]]] = []
    for dataset in study["datasets"]:
        lines: list[list[tuple[float, plots.Dot]]] = []
        gaps: list[tuple[float, int]] = []
        for m, model in enumerate(models):
            rows = [(t, numbers.get("followup_rate", model, dataset, "baseline", t)) for t in temperatures]
            lines.append([(t, dot(row, m)) for t, row in rows if row is not None and defined(row)])
            gaps += [(t, m) for t, row in rows if row is not None and not defined(row)]
        if len(temperatures) > 1 and any(lines):
            panels.append((dataset, lines, gaps))
    limit = plots.rate_limit(max(ends(one for _, lines, _ in panels for line in lines for _, one in line), default=1.0))
    return {
        "panels": [
            (
                dataset,
                plots.curve(
                    lines,
                    limit,
                    f"Genuine-followup rate by temperature on {dataset}",
                    "temperature",
                    "genuine-followup rate",
                    gaps,
                ),
            )
            for dataset, lines, gaps in panels
        ],
        "legend": [*legend(models), _ZERO_LEGEND],
    }


def composition(study: Mapping[str, Any], numbers: Numbers) -> View:
    """Shares of the labels and of the unscored, by model: stacked bars and a table."""
    models = []
    for index, model in enumerate(study["models"]):
        panels, tables = [], {}
        for dataset in study["datasets"]:
            bars, table = [], []
            for name, t in cells(study):
                shares: dict[str, Row | None] = {
                    label: numbers.get("label_share", model, dataset, name, t, label) for label in LABELS
                }
                unscored = numbers.get("unscored_rate", model, dataset, name, t)
                table.append(
                    {
                        "perturbation": words(name),
                        "temperature": t,
                        "shares": [number(row, "interval") for row in shares.values()],
                        "unscored": number(unscored),
                    }
                )
                bars.append(plots.BarRow(words(name), f"T {t:g}", _segments(shares, unscored)))
            tables[dataset] = table
            if any(bar.segments for bar in bars):
                panels.append((dataset, plots.stacked(bars, f"Composition of labels on {dataset}, {model}")))
        models.append({"model": model, "open": index < OPEN_MODELS, "panels": panels, "datasets": tables})
    legend = [
        (plots.swatch(plots.label_class(i), None, LETTERS[label]), words(label)) for i, label in enumerate(LABELS)
    ]
    legend.append((plots.swatch(plots.label_class(UNSCORED_COLOUR), None, "?"), "unscored"))
    return {"models": models, "legend": legend, "labels": [words(label) for label in LABELS]}


def _segments(shares: Mapping[str, Row | None], unscored: Row | None) -> tuple[plots.Segment, ...]:
    # shares are of the judged turns; the bar shows all turns
    without = float(unscored["value"]) if unscored is not None and defined(unscored) else 0.0
    found = [
        plots.Segment(float(row["value"]) * (1 - without), i, LETTERS[label], str(row["id"]))
        for i, (label, row) in enumerate(shares.items())
        if row is not None and defined(row)
    ]
    if unscored is not None and without > 0:
        found.append(plots.Segment(without, UNSCORED_COLOUR, "?", str(unscored["id"])))
    return tuple(found)


def beside_the_paper(study: Mapping[str, Any], numbers: Numbers, which: str) -> list[tuple[str, Markup]]:
    """Our numbers that stand beside a published figure: where each was measured, and the number.

    Args:
        study: the config.
        numbers: the study's numbers.
        which: see `userturn.report.choices.Published`.
    """
    temperatures = _baseline_temperatures(study)
    places: list[tuple[str, Row | None]]
    if which == "gsm8k accuracy":
        gsm8k = [name for name, dataset in study["datasets"].items() if dataset["reader"] == "gsm8k"]
        places = [(model, numbers.get("accuracy", model, dataset)) for model in study["models"] for dataset in gsm8k]
    else:
        wanted = [t for t in temperatures if (t == 0) == (which == "deterministic rates")]
        places = [
            (f"{model}, {dataset}, T = {t:g}", numbers.get("followup_rate", model, dataset, "baseline", t))
            for model in study["models"]
            for dataset in study["datasets"]
            for t in wanted
        ]
    there = [(place, row) for place, row in places if row is not None and row["value"] is not None]
    if which == "highest rate":
        there = sorted(there, key=lambda one: -float(one[1]["value"]))[:1]
    elif len(there) > SHOWN_BESIDE:
        there = sorted(there, key=lambda one: float(one[1]["value"]))
        there = [there[0], there[-1]]
    return [(place, number(row)) for place, row in there]
