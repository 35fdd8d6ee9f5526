"""Numbers: every reported value with its id, interval, method, sources and the rows it is computed from.

`assemble` reads artefacts through a function, so that it can be used on recorded files and on rows in memory alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from userturn import layout
from userturn.artefacts import Row
from userturn.judges.labels import LABELS
from userturn.seeds import derive
from userturn.statistics import Estimate, Interval, ItemCounts, benjamini_hochberg, paired_effect, rate

GENUINE = "genuine_followup"

Unit = Literal["proportion", "difference of proportions"]
ReadRows = Callable[[Path], Sequence[Row]]


@dataclass(frozen=True, order=True)
class CellName:
    """A cell without its sample count."""

    model: str
    dataset: str
    perturbation: str
    temperature: float

    @property
    def key(self) -> str:
        """``model/dataset/perturbation/t<T>``."""
        return f"{self.model}/{self.dataset}/{self.perturbation}/{layout.temperature_key(self.temperature)}"

    def judgements(self, judge: str) -> Path:
        """Where one judge's labels of the cell are."""
        return layout.judgements(
            judge, self.model, self.dataset, self.perturbation, layout.temperature_key(self.temperature)
        )

    def labels(self, judge: str) -> dict[str, Any]:
        """The parts of the cell's name, as they stand with a number."""
        return {
            "model": self.model,
            "dataset": self.dataset,
            "perturbation": self.perturbation,
            "temperature": self.temperature,
            "judge": judge,
        }


@dataclass(frozen=True)
class Settings:
    """How numbers are computed."""

    judge: str
    level: float
    resamples: int
    seed: int

    def arguments(self, number: str) -> dict[str, Any]:
        """Level, resamples and the number's own seed."""
        return {
            "level": self.level,
            "resamples": self.resamples,
            "seed": derive(self.seed, "number", number, bits=48),
        }


def assemble(cells: Sequence[CellName], settings: Settings, read: ReadRows) -> list[Row]:
    """All numbers of a study, sorted by id.

    Args:
        cells: the study's cells.
        settings: judge, level, resamples, seed.
        read: reads the rows of an artefact.
    """
    shards = sorted({(cell.model, cell.dataset) for cell in cells})
    rows = [row for model, dataset in shards for row in _accuracies(model, dataset, settings, read)]
    rows += [_cut_rate(model, dataset, settings, read) for model, dataset in shards]
    judged = {cell: read(cell.judgements(settings.judge)) for cell in sorted(cells)}
    for cell, judgements in judged.items():
        rows.extend(_cell_numbers(cell, judgements, settings))
    effects = [
        _effect(cell, judged[cell], judged[base], settings)
        for cell in judged
        if cell.perturbation != "baseline"
        and (base := CellName(cell.model, cell.dataset, "baseline", cell.temperature)) in judged
    ]
    adjusted = benjamini_hochberg([row["p_value"] for row in effects])
    rows.extend(
        {**row, "p_adjusted": value, "family": "perturbation effects (Benjamini-Hochberg)"}
        for row, value in zip(effects, adjusted, strict=True)
    )
    return sorted(rows, key=lambda row: str(row["id"]))


def _accuracies(model: str, dataset: str, settings: Settings, read: ReadRows) -> Iterator[Row]:
    path = layout.scores(model, dataset)
    scores = read(path)
    labels = {"model": model, "dataset": dataset}
    for quantity, column in (
        ("accuracy", "correct"),
        ("accuracy_strict", "strict"),
        ("accuracy_loose", "loose"),
    ):
        if quantity != "accuracy" and all(row[column] is None for row in scores):
            continue
        number = f"{quantity}/{model}/{dataset}"
        counts = ItemCounts.from_rows((row["item"], row[column]) for row in scores)
        estimate = rate(counts, **settings.arguments(number))
        selector = {"column": column, "positive": True}
        yield _number(number, quantity, labels, estimate, "proportion", [path], selector, settings)


def _cut_rate(model: str, dataset: str, settings: Settings, read: ReadRows) -> Row:
    """Share of assistant turns that were cut at the longest length: a low accuracy may come from there."""
    path = layout.assistant_turns(model, dataset)
    number = f"assistant_cut_rate/{model}/{dataset}"
    counts = ItemCounts.from_rows((row["item"], row["finish_reason"] == "length") for row in read(path))
    estimate = rate(counts, **settings.arguments(number))
    labels = {"model": model, "dataset": dataset}
    selector = {"column": "finish_reason", "positive": "length"}
    return _number(number, "assistant_cut_rate", labels, estimate, "proportion", [path], selector, settings)


def _cell_numbers(cell: CellName, judgements: Sequence[Row], settings: Settings) -> Iterator[Row]:
    sources = [cell.judgements(settings.judge)]
    labels = cell.labels(settings.judge)

    def number(id: str, quantity: str, rows: Iterable[tuple[str, bool | None]], selector: Row) -> Row:
        estimate = rate(ItemCounts.from_rows(rows), **settings.arguments(id))
        return _number(id, quantity, labels, estimate, "proportion", sources, selector, settings)

    yield number(
        f"followup_rate/{cell.key}",
        "followup_rate",
        _labelled(judgements, GENUINE),
        {"column": "label", "positive": GENUINE},
    )
    yield number(
        f"unscored_rate/{cell.key}",
        "unscored_rate",
        ((row["item"], row["state"] == "unscored") for row in judgements),
        {"column": "state", "positive": "unscored"},
    )
    for label in LABELS:
        share = number(
            f"label_share/{cell.key}/{label}",
            "label_share",
            _labelled(judgements, label),
            {"column": "label", "positive": label},
        )
        yield {**share, "labels": {**share["labels"], "label": label}}


def _labelled(judgements: Iterable[Row], label: str) -> Iterator[tuple[str, bool | None]]:
    for row in judgements:
        yield row["item"], row["label"] == label if row["state"] == "scored" else None


def _effect(cell: CellName, treated: Sequence[Row], baseline: Sequence[Row], settings: Settings) -> Row:
    number = f"effect/{cell.key}"
    base = CellName(cell.model, cell.dataset, "baseline", cell.temperature)
    estimate = paired_effect(
        ItemCounts.from_rows(_labelled(treated, GENUINE)),
        ItemCounts.from_rows(_labelled(baseline, GENUINE)),
        **settings.arguments(number),
    )
    sources = [cell.judgements(settings.judge), base.judgements(settings.judge)]
    selector = {"column": "label", "positive": GENUINE, "minus": base.key, "paired_by": "item"}
    unit: Unit = "difference of proportions"
    return _number(number, "effect", cell.labels(settings.judge), estimate, unit, sources, selector, settings)


def _number(
    id: str,
    quantity: str,
    labels: Mapping[str, Any],
    estimate: Estimate,
    unit: Unit,
    sources: Sequence[Path],
    selector: Mapping[str, Any],
    settings: Settings,
) -> Row:
    interval = estimate.interval
    return {
        "id": id,
        "quantity": quantity,
        "labels": dict(labels),
        "value": _rounded(estimate.value),
        "low": _rounded(interval.low) if interval else None,
        "high": _rounded(interval.high) if interval else None,
        "method": interval.method if interval else None,
        "level": settings.level,
        "bootstrap": _interval(estimate.bootstrap),
        "bounds": [_rounded(bound) for bound in estimate.bounds] if estimate.bounds else None,
        "n": estimate.n,
        "n_items": estimate.n_items,
        "k": estimate.k,
        "n_unscored": estimate.n_unscored,
        "p_value": _rounded(estimate.p_value),
        "p_adjusted": None,
        "test": estimate.test,
        "family": None,
        "unit": unit,
        "decimals": 3,
        "seed": settings.arguments(id)["seed"],
        "resamples": settings.resamples,
        "sources": [path.as_posix() for path in sources],
        "selector": dict(selector),
        "notes": list(estimate.notes),
    }


def _interval(interval: Interval | None) -> Row | None:
    if interval is None:
        return None
    return {"low": _rounded(interval.low), "high": _rounded(interval.high), "method": interval.method}


def _rounded(value: float | None) -> float | None:
    """Twelve decimals: far below what is shown, above what a processor's rounding could change."""
    if value is None:
        return None
    rounded = round(float(value), 12)
    return 0.0 if rounded == 0 else rounded
