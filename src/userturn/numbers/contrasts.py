"""Numbers that set cells beside each other: effects, temperature slopes, associations with accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from userturn import layout
from userturn.judges.labels import GENUINE
from userturn.numbers.row import BASELINE, CellName, Definition, Settings
from userturn.numbers.shard import Shard, Summary
from userturn.statistics import decoupling, paired_effect, ratio, temperature_slope, within_item_association


def effects(shard: Shard) -> Iterator[Definition]:
    """Each perturbed cell against the baseline at the same temperature, paired by item: difference and ratio."""
    judge = shard.settings.judge
    for cell, treated in shard.counts.items():
        base = CellName(cell.model, cell.dataset, BASELINE, cell.temperature)
        if cell.perturbation == BASELINE or base not in shard.counts:
            continue
        shared: dict[str, Any] = {
            "labels": cell.labels(judge),
            "sources": [cell.judgements(judge), base.judgements(judge)],
            "excluded": shard.excluded(cell, base),
        }
        selector = {"column": "label", "positive": GENUINE, "paired_by": "item"}
        yield Definition(
            f"effect/{cell.key}",
            estimate=partial(paired_effect, treated, shard.counts[base]),
            unit="difference of proportions",
            selector=selector | {"minus": base.key},
            **shared,
        )
        yield Definition(
            f"effect_ratio/{cell.key}",
            estimate=partial(ratio, treated, shard.counts[base]),
            unit="ratio of proportions",
            selector=selector | {"over": base.key},
            **shared,
        )


def slopes(shard: Shard) -> Iterator[Definition]:
    """How the rate moves with the temperature, wherever a perturbation has at least two."""
    model, dataset = shard.name
    judge = shard.settings.judge
    for perturbation in sorted({cell.perturbation for cell in shard.counts}):
        group = {cell: counts for cell, counts in shard.counts.items() if cell.perturbation == perturbation}
        if len(group) < 2:
            continue
        yield Definition(
            f"temperature_slope/{model}/{dataset}/{perturbation}",
            {"model": model, "dataset": dataset, "perturbation": perturbation, "judge": judge},
            partial(temperature_slope, {cell.temperature: counts for cell, counts in group.items()}),
            unit="log odds per unit",
            sources=[cell.judgements(judge) for cell in group],
            selector={"column": "label", "positive": GENUINE, "against": "temperature"},
            excluded=shard.excluded(*group),
        )


def associations(shard: Shard) -> Iterator[Definition]:
    """Whether items that the model answers correctly get more follow-ups than those it does not."""
    for cell, counted in shard.counts.items():
        if cell.perturbation != BASELINE:
            continue
        rows, _ = shard.scores
        if all(row["correct"] is None for row in rows):
            continue
        yield Definition(
            f"association/{cell.key}",
            cell.labels(shard.settings.judge),
            partial(within_item_association, {row["item"]: row["correct"] for row in rows}, counted),
            unit="difference of proportions",
            sources=[cell.judgements(shard.settings.judge), layout.scores(cell.model, cell.dataset)],
            selector={"column": "label", "positive": GENUINE, "split_by": "correct"},
            excluded=shard.excluded(cell),
        )


def decouplings(summary: Summary, settings: Settings) -> Iterator[Definition]:
    """Rank correlation over models of accuracy and follow-up rate (the paper's figure 3)."""
    for dataset, temperature in sorted({(cell.dataset, cell.temperature) for cell in summary.followups}):
        cells = sorted(c for c in summary.followups if (c.dataset, c.temperature) == (dataset, temperature))
        if len(cells) < 2:
            continue
        accuracy, followup = {}, {}
        for cell in cells:
            right, (positives, scored) = summary.accuracy[cell.shard], summary.followups[cell]
            if right is not None and scored:
                accuracy[cell.model], followup[cell.model] = right, positives / scored
        yield Definition(
            f"decoupling/{dataset}/{layout.temperature_key(temperature)}",
            {"dataset": dataset, "temperature": temperature, "judge": settings.judge},
            partial(decoupling, accuracy, followup),
            unit="correlation",
            sources=[c.judgements(settings.judge) for c in cells] + [layout.scores(*c.shard) for c in cells],
            selector={"column": "label", "positive": GENUINE, "against": "accuracy", "over": "models"},
        )
