"""Sections on the study itself: sources and versions, what it took, and numbers that no other section shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from userturn.exclusions import Exclusion, describe
from userturn.report.data import Numbers, Row
from userturn.report.figures import number
from userturn.report.inert import plain
from userturn.report.quantities import quantity_of
from userturn.report.sections import View, words


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


def exclusions(ledger: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """What people have taken out of the numbers: ``what``, ``reason`` and ``by`` of each line of the ledger."""
    return [
        {
            "what": plain(describe(Exclusion.model_validate(entry))),
            "reason": plain(entry["reason"]),
            "by": ", ".join(plain(entry[key]) for key in ("by", "date") if key in entry),
        }
        for entry in ledger
    ]


@dataclass(frozen=True)
class Extra:
    """A section that is there when a study has its numbers: a table of them, one row a place in the grid.

    Attributes:
        anchor: the section's id in the page.
        heading: its title.
        nav: its name in the list of sections.
        text: what it tells.
        quantities: its columns.
    """

    anchor: str
    heading: str
    nav: str
    text: str
    quantities: tuple[str, ...]


EXTRAS = (
    Extra(
        "determinism",
        "Determinism",
        "Determinism",
        "The baseline was generated twice at temperature 0. Where texts differ, the machine does not repeat itself, "
        "and a rebuilt cell may differ from the first.",
        ("determinism",),
    ),
)


def extras(numbers: Numbers) -> list[View]:
    """The sections of `EXTRAS` that this study has numbers for."""
    found = []
    for extra in EXTRAS:
        rows = numbers.of(*extra.quantities)
        if rows:
            columns = [name for name in extra.quantities if any(row["quantity"] == name for row in rows)]
            places: dict[str, dict[str, Row]] = {}
            for row in rows:
                places.setdefault(_place(row), {})[row["quantity"]] = row
            found.append(
                {
                    "extra": extra,
                    "columns": [quantity_of(name).name for name in columns],
                    "rows": [
                        (place, [number(at.get(name), missing="–") for name in columns]) for place, at in places.items()
                    ],
                }
            )
    return found


def _place(row: Row) -> str:
    labels = row["labels"]
    parts = [str(labels[key]) for key in ("model", "dataset") if key in labels]
    parts += [words(str(labels[key])) for key in ("perturbation",) if key in labels]
    return " · ".join(parts) or str(row["id"])


def cost(tokens: Mapping[str, Mapping[str, Mapping[str, int]]]) -> list[View]:
    """What generation took, by model and part: how many calls and tokens. Seconds are in the manifests.

    Args:
        tokens: see `userturn.stages.report.catalogue`.
    """
    columns = ("calls", "prompt tokens", "generated tokens")
    return [
        {"model": model, "part": part, "counts": [f"{counts.get(column, 0):,}" for column in columns]}
        for model, parts in tokens.items()
        for part, counts in parts.items()
    ]


def filters(study: Mapping[str, Any], labels: Iterable[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """What transcripts can be filtered by: key and (value, name) of each choice.

    Args:
        study: the config.
        labels: the labels, and unscored.
    """
    perturbations = study["probe"]["perturbations"]
    temperatures = sorted({float(t) for one in perturbations.values() for t in one["temperatures"]})
    return [
        ("model", [(name, name) for name in study["models"]]),
        ("dataset", [(name, name) for name in study["datasets"]]),
        ("perturbation", [(name, words(name)) for name in perturbations]),
        ("temperature", [(f"{t:g}", f"{t:g}") for t in temperatures]),
        ("label", [(label, words(label)) for label in labels]),
    ]


def others(numbers: Numbers) -> list[View]:
    """Numbers of the study that no other section shows."""
    return [{"id": row["id"], "number": number(row)} for row in numbers.rest()]
