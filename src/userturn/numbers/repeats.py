"""Determinism: whether texts at temperature 0 repeat, from the baseline and the same cell generated once more."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from userturn.numbers.row import BASELINE, CellName, Definition
from userturn.numbers.shard import Shard
from userturn.statistics import determinism


def repeats(shard: Shard) -> Iterator[Definition]:
    """Share of items with the same text in the baseline and in the cell that repeats it."""
    for cell in shard.inputs.repeated:
        pair = [CellName(cell.model, cell.dataset, name, cell.temperature) for name in (BASELINE, cell.perturbation)]
        found = [shard.kept(shard.read(one.user_turns)) for one in pair]
        first, second = ({row["item"]: row["text"] for row in rows} for rows, _ in found)
        yield Definition(
            f"determinism/{cell.key}",
            {key: value for key, value in cell.labels("").items() if key != "judge"},
            partial(determinism, {item: (text, second.get(item)) for item, text in first.items()}),
            unit="proportion",
            sources=[one.user_turns for one in pair],
            selector={"column": "text", "positive": "equal", "paired_by": "item"},
            excluded=sum(excluded for _, excluded in found),
        )
