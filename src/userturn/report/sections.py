"""The page's sections as plain view models: which numbers stand in which table and figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

from markupsafe import Markup

from userturn.config.perturbations import CONTROLS
from userturn.judges.labels import LABELS
from userturn.report import plots
from userturn.report.data import Numbers, Row
from userturn.report.figures import is_zero, number, p_number
from userturn.report.inert import excerpt, plain, visible

View = dict[str, Any]

#: Colour and letter of each label; the position in this list is the colour's index.
LETTERS: dict[str, str] = dict(zip(LABELS, "FRCMGUD", strict=True))
UNSCORED_COLOUR = len(LABELS)

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


def _dot(row: Row, series: int) -> plots.Dot:
    value = float(row["value"])
    low = value if row["low"] is None else float(row["low"])
    high = value if row["high"] is None else float(row["high"])
    return plots.Dot(value, low, high, series, str(row["id"]), is_zero(row))


def _defined(row: Row | None) -> bool:
    return row is not None and row["value"] is not None


def _ends(dots: Iterable[plots.Dot]) -> list[float]:
    return [end for dot in dots for end in (abs(dot.low), abs(dot.high), abs(dot.value))]


#: Colour class of samples that stand for every colour.
_ANY = "any"

_ZERO_LEGEND = (
    plots.swatch(_ANY, 0, hollow=True),
    "hollow: a measured zero, the bar ends at its upper bound",
)


def _legend(names: Sequence[str]) -> list[tuple[Markup, str]]:
    return [(plots.swatch(plots.series_class(i), i), name) for i, name in enumerate(names)]


def headline(study: Mapping[str, Any], numbers: Numbers) -> View:
    """Accuracy and baseline rates, one row a model and dataset."""
    temperatures = _baseline_temperatures(study)
    shards = [(model, dataset) for model in study["models"] for dataset in study["datasets"]]
    readings = {name: [numbers.get(f"accuracy_{name}", *shard) for shard in shards] for name in ("strict", "loose")}
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
                if x is not None and y is not None and _defined(x) and _defined(y):
                    panels[t].append((_dot(x, m), _dot(y, m), d))
                    unscored.discard(dataset)
    limit = plots.rate_limit(max(_ends(y for points in panels.values() for _, y, _ in points), default=1.0))
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
    panels: list[tuple[str, list[list[tuple[float, plots.Dot]]]]] = []
    for dataset in study["datasets"]:
        lines = []
        for m, model in enumerate(models):
            rows = [(t, numbers.get("followup_rate", model, dataset, "baseline", t)) for t in temperatures]
            lines.append([(t, _dot(row, m)) for t, row in rows if row is not None and _defined(row)])
        if any(len(line) > 1 for line in lines):
            panels.append((dataset, lines))
    ends = _ends(dot for _, lines in panels for line in lines for _, dot in line)
    limit = plots.rate_limit(max(ends, default=1.0))
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
                ),
            )
            for dataset, lines in panels
        ],
        "legend": [*_legend(models), _ZERO_LEGEND],
    }


#: Kinds that do not change the context of the probe: the instructed contrast, and turns that are known.
CONTRASTS = CONTROLS | {"instructed", "repeated_baseline"}


def effects(study: Mapping[str, Any], numbers: Numbers, *, contrasts: bool = False) -> View:
    """Perturbed minus baseline, by model: a forest plot and a table a dataset.

    Args:
        study: the config.
        numbers: the study's numbers.
        contrasts: the instructed contrast and the controls instead of the perturbations.
    """
    kinds = {name: p["kind"] for name, p in study["probe"]["perturbations"].items()}
    perturbed = [(n, t) for n, t in cells(study) if n != "baseline" and (kinds[n] in CONTRASTS) == contrasts]
    temperatures = sorted({t for _, t in perturbed})
    names = list(dict.fromkeys(name for name, _ in perturbed))
    found: dict[str, dict[str, list[View]]] = {}
    for model in study["models"]:
        for dataset in study["datasets"]:
            rows = []
            for name, t in perturbed:
                effect = numbers.get("effect", model, dataset, name, t)
                if effect is None and contrasts:
                    continue
                rows.append(
                    {
                        "name": name,
                        "perturbation": words(name),
                        "temperature": t,
                        "row": effect,
                        "baseline": number(numbers.get("followup_rate", model, dataset, "baseline", t)),
                        "rate": number(numbers.get("followup_rate", model, dataset, name, t)),
                        "effect": number(effect, "interval"),
                        "p": p_number(effect),
                    }
                )
            found.setdefault(model, {})[dataset] = rows
    models = []
    for index, (model, datasets) in enumerate(found.items()):
        dots = {
            (dataset, one["name"], one["temperature"]): _dot(one["row"], temperatures.index(one["temperature"]))
            for dataset, rows in datasets.items()
            for one in rows
            if _defined(one["row"])
        }
        limit = plots.rate_limit(max(_ends(dots.values()), default=1.0))
        panels = []
        for dataset in datasets:
            forest = [
                plots.ForestRow(
                    words(name),
                    tuple(dots[dataset, name, t] for t in temperatures if (dataset, name, t) in dots),
                )
                for name in names
            ]
            if any(row.dots for row in forest):
                label = (
                    f"{'Contrasts and controls' if contrasts else 'Effects of the perturbations'} on {dataset}, {model}"
                )
                panels.append((dataset, plots.forest(forest, limit, label, "difference in genuine-followup rate")))
        models.append({"model": model, "open": index < OPEN_MODELS, "panels": panels, "datasets": datasets})
    return {"models": models, "legend": _legend([f"T = {t:g}" for t in temperatures])}


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


def likelihood(study: Mapping[str, Any], numbers: Numbers) -> list[View]:
    """Known texts under two roles and after two answers: a table a model, empty where nothing was scored."""
    config = study["probe"].get("likelihood")
    models = []
    for model in study["models"] if config else ():
        rows = []
        for dataset in study["datasets"]:
            for control in config["controls"]:
                found = {
                    quantity: numbers.get(quantity, model, dataset, control)
                    for quantity in ("role_log_odds", "role_share", "grounding", "grounding_share")
                }
                if found["role_log_odds"] is None:
                    continue
                rows.append(
                    {
                        "dataset": dataset,
                        "text": words(control),
                        "odds": number(found["role_log_odds"], "interval"),
                        "user": number(found["role_share"], "count"),
                        "grounding": number(found["grounding"], "interval", missing="–"),
                        "own": number(found["grounding_share"], "count", missing="–"),
                        "p": p_number(found["grounding"]),
                    }
                )
        if rows:
            models.append({"model": model, "rows": rows})
    return models


def _segments(shares: Mapping[str, Row | None], unscored: Row | None) -> tuple[plots.Segment, ...]:
    # shares are of the judged turns; the bar shows all turns
    without = float(unscored["value"]) if unscored is not None and _defined(unscored) else 0.0
    found = [
        plots.Segment(float(row["value"]) * (1 - without), i, LETTERS[label], str(row["id"]))
        for i, (label, row) in enumerate(shares.items())
        if row is not None and _defined(row)
    ]
    if unscored is not None and without > 0:
        found.append(plots.Segment(without, UNSCORED_COLOUR, "?", str(unscored["id"])))
    return tuple(found)


def transcripts(rows: Sequence[Row]) -> View:
    """User turns with their contexts, and what they can be filtered by."""
    shown = [_transcript(row) for row in rows]

    def values(key: str) -> list[str]:
        return list(dict.fromkeys(str(one[key]) for one in shown))

    keys = ["model", "dataset", "perturbation", "temperature", "label"]
    options = [(key, [(value, words(value)) for value in values(key)]) for key in keys]
    return {"rows": shown, "filters": options}


def _transcript(row: Row) -> View:
    label = str(row["label"]) if row["state"] == "scored" else "unscored"
    anchor = f"item/{row['cell']}/{row['item']}/{row['sample']}"
    return {
        "anchor": anchor,
        "href": "#" + quote(anchor),
        "cell": str(row["cell"]),
        "model": str(row["model"]),
        "dataset": str(row["dataset"]),
        "perturbation": str(row["perturbation"]),
        "temperature": f"{float(row['temperature']):g}",
        "item": str(row["item"]),
        "sample": int(row["sample"]),
        "label": label,
        "colour": plots.label_class(LABELS.index(label) if label in LABELS else UNSCORED_COLOUR),
        "withheld": bool(row.get("withheld")),
        "excerpt": Markup("<i>text withheld</i>")
        if row.get("withheld")
        else excerpt(str(row["text"]))
        if str(row["text"]).strip()
        else Markup("<i>empty</i>"),
        "messages": [(str(m["role"]), visible(str(m["content"]))) for m in row["messages"]],
        "text": visible(str(row["text"])),
        "finish_reason": str(row["finish_reason"]),
        "changes": flat(row["changes"]),
        "rationale": str(row["rationale"] or ""),
        "evidence": flat(row["evidence"]),
        "prompt": visible(str(row["prompt"])),
    }


def flat(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """A nested mapping as (dotted key, text), in its own order; nulls and empty values are left out."""
    found: list[tuple[str, str]] = []
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, Mapping):
            found += flat(inner, f"{name}.")
        elif inner is not None and inner not in ("", [], ()):
            found.append((name, plain(inner)))
    return found


FactGroup = Literal["models", "datasets", "judges"]


def facts(known: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Tables of versions and sources: (caption, rows)."""
    groups: list[tuple[FactGroup, str]] = [("models", "Model"), ("datasets", "Dataset"), ("judges", "Judge")]
    tables = [(f"{caption} {name}", flat(entry)) for group, caption in groups for name, entry in known[group].items()]
    tables += [
        (caption, flat(known[group]))
        for group, caption in [
            ("engine", "Engine"),
            ("versions", "Packages"),
            ("lock", "Environment locks"),
            ("code", "Digests of the code, by stage"),
        ]
    ]
    return [table for table in tables if table[1]]


def others(numbers: Numbers) -> list[View]:
    """Numbers of the study that no other section shows."""
    return [{"id": row["id"], "number": number(row)} for row in numbers.rest()]
