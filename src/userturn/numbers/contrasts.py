"""Numbers that set cells beside each other: effects, temperature slopes, associations with accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from userturn import layout
from userturn.artefacts import Row
from userturn.judges.labels import GENUINE
from userturn.numbers.row import BASELINE, CellName, Settings, number
from userturn.statistics import (
    ItemCounts,
    decoupling,
    paired_effect,
    ratio,
    temperature_slope,
    within_item_association,
)

Counts = Mapping[CellName, ItemCounts]
Scores = Mapping[tuple[str, str], Sequence[Row]]


def effects(counts: Counts, settings: Settings) -> Iterator[Row]:
    """Each perturbed cell against the baseline at the same temperature, paired by item: difference and ratio."""
    for cell, treated in counts.items():
        base = CellName(cell.model, cell.dataset, BASELINE, cell.temperature)
        if cell.perturbation == BASELINE or base not in counts:
            continue
        sources = [cell.judgements(settings.judge), base.judgements(settings.judge)]
        labels = cell.labels(settings.judge)
        selector = {"column": "label", "positive": GENUINE, "paired_by": "item"}
        id = f"effect/{cell.key}"
        yield number(
            id,
            labels,
            paired_effect(treated, counts[base], **settings.arguments(id)),
            settings,
            unit="difference of proportions",
            sources=sources,
            selector=selector | {"minus": base.key},
        )
        id = f"effect_ratio/{cell.key}"
        yield number(
            id,
            labels,
            ratio(treated, counts[base], **settings.arguments(id)),
            settings,
            unit="ratio of proportions",
            sources=sources,
            selector=selector | {"over": base.key},
        )


def slopes(counts: Counts, settings: Settings) -> Iterator[Row]:
    """How the rate moves with the temperature, wherever a perturbation has at least two."""
    for model, dataset, perturbation in sorted({(c.model, c.dataset, c.perturbation) for c in counts}):
        group = {
            c: n for c, n in counts.items() if (c.model, c.dataset, c.perturbation) == (model, dataset, perturbation)
        }
        if len(group) < 2:
            continue
        id = f"temperature_slope/{model}/{dataset}/{perturbation}"
        yield number(
            id,
            {"model": model, "dataset": dataset, "perturbation": perturbation, "judge": settings.judge},
            temperature_slope({c.temperature: n for c, n in group.items()}, **settings.arguments(id)),
            settings,
            unit="log odds per unit",
            sources=[c.judgements(settings.judge) for c in group],
            selector={"column": "label", "positive": GENUINE, "against": "temperature"},
        )


def associations(counts: Counts, scores: Scores, settings: Settings) -> Iterator[Row]:
    """Whether items that the model answers correctly get more follow-ups than those it does not."""
    for cell, counted in counts.items():
        rows = scores[cell.model, cell.dataset]
        if cell.perturbation != BASELINE or all(row["correct"] is None for row in rows):
            continue
        id = f"association/{cell.key}"
        yield number(
            id,
            cell.labels(settings.judge),
            within_item_association({r["item"]: r["correct"] for r in rows}, counted, **settings.arguments(id)),
            settings,
            unit="difference of proportions",
            sources=[cell.judgements(settings.judge), layout.scores(cell.model, cell.dataset)],
            selector={"column": "label", "positive": GENUINE, "split_by": "correct"},
        )


def decouplings(counts: Counts, scores: Scores, settings: Settings) -> Iterator[Row]:
    """Rank correlation over models of accuracy and follow-up rate (the paper's figure 3)."""
    for dataset, temperature in sorted({(c.dataset, c.temperature) for c in counts if c.perturbation == BASELINE}):
        cells = [c for c in counts if (c.dataset, c.perturbation, c.temperature) == (dataset, BASELINE, temperature)]
        accuracy = {c.model: _share(r["correct"] for r in scores[c.model, dataset]) for c in cells}
        followup = {
            c.model: counts[c].positives.sum() / counts[c].scored.sum() if counts[c].scored.sum() else None
            for c in cells
        }
        models = [m for m in accuracy if accuracy[m] is not None and followup[m] is not None]
        if len(cells) < 2:
            continue
        id = f"decoupling/{dataset}/{layout.temperature_key(temperature)}"
        yield number(
            id,
            {"dataset": dataset, "temperature": temperature, "judge": settings.judge},
            decoupling(
                {m: float(accuracy[m] or 0.0) for m in models},
                {m: float(followup[m] or 0.0) for m in models},
                **settings.arguments(id),
            ),
            settings,
            unit="correlation",
            sources=[c.judgements(settings.judge) for c in cells] + [layout.scores(c.model, dataset) for c in cells],
            selector={"column": "label", "positive": GENUINE, "against": "accuracy", "over": "models"},
        )


def _share(values: Iterator[bool | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
