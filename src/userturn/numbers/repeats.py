"""Determinism: whether texts at temperature 0 repeat, from the baseline and the same cell generated once more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from userturn import layout
from userturn.artefacts import Row
from userturn.numbers.row import BASELINE, CellName, ReadRows, Settings, number
from userturn.statistics import determinism


def repeats(cells: Sequence[CellName], settings: Settings, read: ReadRows) -> Iterator[Row]:
    """Share of items with the same text in both cells.

    Args:
        cells: those that repeat the baseline at temperature 0.
        settings: level, resamples, seed.
        read: reads the rows of an artefact.
    """
    for cell in cells:
        pair = [CellName(cell.model, cell.dataset, name, cell.temperature) for name in (BASELINE, cell.perturbation)]
        paths = [
            layout.user_turns(c.model, c.dataset, c.perturbation, layout.temperature_key(c.temperature)) for c in pair
        ]
        first, second = ({row["item"]: row["text"] for row in read(path)} for path in paths)
        id = f"determinism/{cell.key}"
        labels = {key: value for key, value in cell.labels(settings.judge).items() if key != "judge"}
        yield number(
            id,
            labels,
            determinism({item: (text, second.get(item)) for item, text in first.items()}, **settings.arguments(id)),
            settings,
            unit="proportion",
            sources=paths,
            selector={"column": "text", "positive": "equal", "paired_by": "item"},
        )
