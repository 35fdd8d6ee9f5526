"""Numbers of a single shard or cell: accuracies, follow-up rates, the composition of labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from userturn import layout
from userturn.artefacts import Row
from userturn.judges.labels import GENUINE, LABELS
from userturn.numbers.row import CellName, Definition
from userturn.numbers.shard import Shard
from userturn.numbers.tables import LabelTable
from userturn.statistics import ItemCounts, rate


def accuracies(shard: Shard) -> Iterator[Definition]:
    """Share of correct answers, and of those correct under the strict and the loose reading where a scorer has both."""
    model, dataset = shard.name
    scores, excluded = shard.scores
    for quantity, column in (("accuracy", "correct"), ("accuracy_strict", "strict"), ("accuracy_loose", "loose")):
        if quantity != "accuracy" and all(row[column] is None for row in scores):
            continue
        yield Definition(
            f"{quantity}/{model}/{dataset}",
            {"model": model, "dataset": dataset},
            partial(rate, ItemCounts.from_rows((row["item"], row[column]) for row in scores)),
            unit="proportion",
            sources=[layout.scores(model, dataset)],
            selector={"column": column, "positive": True},
            excluded=excluded,
        )


def cut_rate(shard: Shard) -> Iterator[Definition]:
    """Share of assistant turns that were cut at the longest length: a low accuracy may come from there."""
    model, dataset = shard.name
    path = layout.assistant_turns(model, dataset)
    rows, excluded = shard.kept(shard.read(path))
    yield Definition(
        f"assistant_cut_rate/{model}/{dataset}",
        {"model": model, "dataset": dataset},
        partial(rate, ItemCounts.from_rows((row["item"], row["finish_reason"] == "length") for row in rows)),
        unit="proportion",
        sources=[path],
        selector={"column": "finish_reason", "positive": "length"},
        excluded=excluded,
    )


def cell_numbers(shard: Shard) -> Iterator[Definition]:
    """Follow-up rate, unscored rate, grounded share and label shares of each cell."""
    for cell, table in shard.tables.items():
        yield from _of_cell(cell, table, shard.settings.judge)


def _of_cell(cell: CellName, table: LabelTable, judge: str) -> Iterator[Definition]:
    def share(id: str, counts: ItemCounts, selector: Row, **more: str) -> Definition:
        return Definition(
            id,
            cell.labels(judge) | more,
            partial(rate, counts),
            unit="proportion",
            sources=[cell.judgements(judge)],
            selector=selector,
            excluded=table.excluded,
        )

    yield share(f"followup_rate/{cell.key}", table.label(GENUINE), {"column": "label", "positive": GENUINE})
    yield share(f"unscored_rate/{cell.key}", table.unscored(), {"column": "state", "positive": "unscored"})
    # a judge that claims what a turn reacts to, and is checked
    grounded = table.grounded()
    if grounded is not None:
        selector = {"label": GENUINE, "column": "evidence.grounding", "positive": "verified"}
        yield share(f"grounded_share/{cell.key}", grounded, selector)
    for label in LABELS:
        selector = {"column": "label", "positive": label}
        yield share(f"label_share/{cell.key}/{label}", table.label(label), selector, label=label)
