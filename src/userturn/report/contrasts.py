"""Sections that set one condition against another: perturbations, controls, roles, right and wrong answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from userturn.config.perturbations import CONTROLS
from userturn.report import plots
from userturn.report.data import Numbers
from userturn.report.figures import number, p_number
from userturn.report.sections import OPEN_MODELS, View, cells, defined, dot, ends, legend, words

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
                        "ratio": number(numbers.get("effect_ratio", model, dataset, name, t), "interval", missing="–"),
                    }
                )
            found.setdefault(model, {})[dataset] = rows
    models = []
    for index, (model, datasets) in enumerate(found.items()):
        dots = {
            (dataset, one["name"], one["temperature"]): dot(one["row"], temperatures.index(one["temperature"]))
            for dataset, rows in datasets.items()
            for one in rows
            if defined(one["row"])
        }
        limit = plots.rate_limit(max(ends(dots.values()), default=1.0))
        panels = []
        for dataset in datasets:
            forest = [
                plots.ForestRow(
                    words(name),
                    tuple(dots[dataset, name, t] for t in temperatures if (dataset, name, t) in dots),
                    tuple(
                        temperatures.index(one["temperature"])
                        for one in datasets[dataset]
                        if one["name"] == name and one["row"] is not None and not defined(one["row"])
                    ),
                )
                for name in names
            ]
            if any(row.dots or row.undefined for row in forest):
                label = (
                    f"{'Contrasts and controls' if contrasts else 'Effects of the perturbations'} on {dataset}, {model}"
                )
                panels.append((dataset, plots.forest(forest, limit, label, "difference in genuine-followup rate")))
        models.append({"model": model, "open": index < OPEN_MODELS, "panels": panels, "datasets": datasets})
    return {"models": models, "legend": legend([f"T = {t:g}" for t in temperatures])}


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


def slopes(study: Mapping[str, Any], numbers: Numbers) -> list[View]:
    """Change of the log-odds with temperature, one row a model, dataset and context that has several temperatures."""
    return [
        {
            "model": model,
            "dataset": dataset,
            "context": words(name),
            "slope": number(row, "interval"),
            "p": p_number(row),
        }
        for model in study["models"]
        for dataset in study["datasets"]
        for name in study["probe"]["perturbations"]
        if (row := numbers.get("temperature_slope", model, dataset, name)) is not None
    ]


def associations(study: Mapping[str, Any], numbers: Numbers) -> list[View]:
    """Follow-up after right answers minus follow-up after wrong ones, within each model and dataset."""
    return [
        {
            "model": model,
            "dataset": dataset,
            "context": words(name),
            "temperature": t,
            "difference": number(row, "interval"),
            "p": p_number(row),
        }
        for model in study["models"]
        for dataset in study["datasets"]
        for name, t in cells(study)
        if (row := numbers.get("association", model, dataset, name, t)) is not None
    ]
