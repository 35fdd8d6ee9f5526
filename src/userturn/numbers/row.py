"""One number: how it is defined, how it is computed, and how it stands in ``results/numbers.jsonl``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from userturn import layout
from userturn.artefacts import Row
from userturn.seeds import derive
from userturn.statistics import Estimate, Interval

#: The perturbation that the others are set against.
BASELINE = "baseline"

Unit = Literal[
    "proportion",
    "difference of proportions",
    "ratio of proportions",
    "log odds per unit",
    "correlation",
    "nats per token",
    "F1",
    "agreement",
    "words",
    "logged value",
]
ReadRows = Callable[[Path], Sequence[Row]]


@dataclass(frozen=True, order=True)
class CellName:
    """A cell without its sample count."""

    model: str
    dataset: str
    perturbation: str
    temperature: float

    @property
    def shard(self) -> tuple[str, str]:
        """Model and dataset."""
        return self.model, self.dataset

    @property
    def key(self) -> str:
        """``model/dataset/perturbation/t<T>``."""
        return f"{self.model}/{self.dataset}/{self.perturbation}/{layout.temperature_key(self.temperature)}"

    def judgements(self, judge: str) -> Path:
        """Where one judge's labels of the cell are."""
        return layout.judgements(
            judge, self.model, self.dataset, self.perturbation, layout.temperature_key(self.temperature)
        )

    @property
    def user_turns(self) -> Path:
        """Where the user turns of the cell are."""
        return layout.user_turns(self.model, self.dataset, self.perturbation, layout.temperature_key(self.temperature))

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
    confirmatory: tuple[str, ...] = ()
    """Patterns of number ids that form the confirmatory family."""

    def arguments(self, number: str) -> dict[str, Any]:
        """Level, resamples and the number's own seed."""
        return {
            "level": self.level,
            "resamples": self.resamples,
            "seed": derive(self.seed, "number", number, bits=48),
        }


@dataclass(frozen=True)
class Definition:
    """A number before it is computed: one alone can be, for an audit, without all the others.

    Attributes:
        id: reads like a path; the part before the first slash is the quantity.
        labels: what the number is about.
        estimate: computes it, given ``level``, ``resamples`` and ``seed``.
        unit: the unit of value and interval.
        sources: the artefacts whose rows it is computed from.
        selector: which rows and column of them, and how they are counted.
        excluded: rows of the sources that the ledger of exclusions leaves out.
        seeded_by: what its seed is derived from; measures that share their resamples share it.
    """

    id: str
    labels: Mapping[str, Any]
    estimate: Callable[..., Estimate]
    unit: Unit
    sources: Sequence[Path]
    selector: Mapping[str, Any]
    excluded: int = 0
    seeded_by: str | None = None

    def row(self, settings: Settings) -> Row:
        """The row of ``results/numbers.jsonl``; adjusted p-values are filled in once all numbers are known."""
        how = settings.arguments(self.seeded_by or self.id)
        estimate = self.estimate(**how)
        interval = estimate.interval
        return {
            "id": self.id,
            "quantity": self.id.partition("/")[0],
            "labels": dict(self.labels),
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
            "n_excluded": self.excluded,
            "p_value": _rounded(estimate.p_value),
            "p_adjusted": None,
            "test": estimate.test,
            "family": None,
            "unit": self.unit,
            "decimals": 3,
            "seed": how["seed"],
            "resamples": settings.resamples,
            "sources": [path.as_posix() for path in self.sources],
            "selector": dict(self.selector),
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
