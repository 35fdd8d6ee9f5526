"""The page's section on judges: who labelled the turns, how often they err, how far they agree."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from userturn.judges.labels import DEFINITIONS, LABELS
from userturn.report import plots
from userturn.report.data import Numbers
from userturn.report.figures import number
from userturn.report.sections import View, words

_MEASURES = ("raw", "kappa", "alpha", "ac1", "positive")


def judges(study: Mapping[str, Any], known: Mapping[str, Any], numbers: Numbers) -> View:
    """Which judges labelled the turns, what the labels mean, and what is known of the judges' errors."""
    reported = study["reported_judge"]
    rows = [
        {
            "name": name,
            "kind": config["kind"],
            "version": str(known["judges"].get(name, {}).get("version", "not recorded")),
            # not known to be validated is not validated
            "provisional": bool(known["judges"].get(name, {}).get("provisional", True)),
            "reported": name == reported,
            "itself": _judges_itself(config, study),
            "sensitivity": number(numbers.get("sensitivity", name)),
            "specificity": number(numbers.get("specificity", name)),
            "floor": number(numbers.get("floor", name)),
            "macro_f1": number(numbers.get("macro_f1", name), "interval"),
        }
        for name, config in study["judges"].items()
    ]
    return {
        "rows": rows,
        "reported": reported,
        "provisional": any(row["provisional"] and row["reported"] for row in rows),
        "measured": numbers.get("sensitivity", reported) is not None,
        "definitions": [(plots.label_class(i), words(label), DEFINITIONS[label]) for i, label in enumerate(LABELS)],
        "labels": [words(label) for label in LABELS],
        "matrices": _matrices(study, numbers),
        "held_out": _held_out(study, numbers),
        "agreements": _agreements(study, numbers),
        "corrected": _corrected(study, numbers),
    }


def _judges_itself(config: Mapping[str, Any], study: Mapping[str, Any]) -> list[str]:
    """Models of the study that a language model as judge is itself."""
    transport = config.get("transport")
    if transport is None:
        return []
    return [
        name
        for name, model in study["models"].items()
        if ("source" in transport and transport["source"] == model["source"])
        or ("model" in transport and transport["model"] == (model.get("endpoint") or {}).get("model"))
    ]


def _matrix(quantity: str, judge: str, numbers: Numbers) -> list[View]:
    """What the turns of each known label were called: shares of a row."""
    found = []
    for truth in LABELS:
        cells = [numbers.get(f"{quantity}confusion", judge, truth, given) for given in LABELS]
        if any(cell is not None for cell in cells):
            found.append({"truth": words(truth), "cells": [number(cell, "count") for cell in cells]})
    return found


def _matrices(study: Mapping[str, Any], numbers: Numbers) -> list[View]:
    matrices = [(f"{judge}, on the gold set", _matrix("", judge, numbers)) for judge in study["judges"]]
    for judge, config in study["judges"].items():
        if config["kind"] == "embedded":
            matrices += [
                (
                    f"{judge}, on held-out conversations, classifier {name}",
                    _matrix("held_out_", f"{judge}/{name}", numbers),
                )
                for name in _classifiers(judge, numbers)
            ]
    return [{"name": name, "rows": rows} for name, rows in matrices if rows]


def _classifiers(judge: str, numbers: Numbers) -> list[str]:
    prefix = f"held_out_macro_f1/{judge}/"
    return [str(row["id"]).removeprefix(prefix) for row in numbers.all() if str(row["id"]).startswith(prefix)]


def _held_out(study: Mapping[str, Any], numbers: Numbers) -> list[View]:
    return [
        {
            "judge": judge,
            "classifier": name,
            "sensitivity": number(numbers.get("held_out_sensitivity", judge, name)),
            "specificity": number(numbers.get("held_out_specificity", judge, name)),
            "floor": number(numbers.get("held_out_floor", judge, name)),
            "macro_f1": number(numbers.get("held_out_macro_f1", judge, name), "interval"),
        }
        for judge in study["judges"]
        for name in _classifiers(judge, numbers)
    ]


def _agreements(study: Mapping[str, Any], numbers: Numbers) -> list[View]:
    pairs = [("gold/first/second", "the two labellings of the gold set")]
    pairs += [(f"{one}/{other}", f"{one} and {other}, all turns") for one, other in combinations(study["judges"], 2)]
    found = []
    for pair, name in pairs:
        cells = [numbers.get(f"agreement_{measure}", pair) for measure in _MEASURES]
        if any(cell is not None for cell in cells):
            found.append({"name": name, "cells": [number(cell, "interval", missing="–") for cell in cells]})
    return found


def _corrected(study: Mapping[str, Any], numbers: Numbers) -> list[View]:
    """Raw and corrected rates and effects of every cell."""
    found = []
    for model in study["models"]:
        for dataset in study["datasets"]:
            for name, perturbation in study["probe"]["perturbations"].items():
                for t in perturbation["temperatures"]:
                    at = (model, dataset, name, float(t))
                    corrected = numbers.get("corrected_rate", *at)
                    if corrected is None:
                        continue
                    found.append(
                        {
                            "model": model,
                            "dataset": dataset,
                            "perturbation": words(name),
                            "temperature": float(t),
                            "raw": number(numbers.get("followup_rate", *at)),
                            "corrected": number(corrected, "interval"),
                            "effect": number(numbers.get("effect", *at), "interval", missing="–"),
                            "corrected_effect": number(numbers.get("corrected_effect", *at), "interval", missing="–"),
                        }
                    )
    return found
