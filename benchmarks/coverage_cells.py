"""What the coverage benchmarks share: simulated items, one call for each distinct cell, rows kept as they come."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from userturn.statistics import ItemCounts

Row = dict[str, float | str]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
QUANTILES = 50_000
"""Items' propensities are picked from this many quantiles; truths are means of these, so that none is rounded."""


@cache
def propensities(mean: float, rho: float) -> Floats:
    """Quantiles of a beta distribution, ascending.

    Args:
        mean: nominal rate; the exact one is the mean of what is returned.
        rho: intraclass correlation, below 1.

    Returns:
        Shape (QUANTILES,).
    """
    if rho == 0.0 or mean in (0.0, 1.0):
        return np.full(QUANTILES, mean)
    strength = (1.0 - rho) / rho
    ranks = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return np.asarray(stats.beta.ppf(ranks, mean * strength, (1.0 - mean) * strength), dtype=np.float64)


def item_counts(positives: Counts, samples: int) -> ItemCounts:
    """Counts of items with equally many scored rows.

    Args:
        positives: shape (n_items,).
        samples: scored rows an item.

    Returns:
        The counts; items are named by position.
    """
    size = positives.size
    names = tuple(f"{i:04d}" for i in range(size))
    return ItemCounts(names, positives, np.full(size, samples), np.zeros(size, dtype=np.int64))


def for_each_distinct(cells: Counts, function: Callable[[Counts], tuple[float, ...]]) -> Floats:
    """A function of a cell, called once for all cells that differ in the order of their items alone.

    Args:
        cells: one whole number an item, shape (draws, n_items).
        function: of one sorted cell; must not depend on the order of items.

    Returns:
        Shape (draws, number of values).
    """
    found, inverse = np.unique(np.sort(cells, axis=1), axis=0, return_inverse=True)
    values = np.array([function(cell) for cell in found], dtype=np.float64)
    return values[inverse.reshape(-1)]


def coverage(low: Floats, high: Floats, truth: float) -> float:
    """Share of intervals that contain the truth; a limit that is NaN contains nothing.

    Args:
        low: shape (draws,).
        high: shape (draws,).
        truth: what is to be covered.

    Returns:
        The share.
    """
    return float(np.mean((low <= truth + 1e-12) & (truth - 1e-12 <= high)))


def points(
    keys: Iterator[Mapping[str, float | str]],
    compute: Callable[[int, Mapping[str, float | str]], Row],
    kept: Path | None,
) -> list[Row]:
    """Computes the points of a grid, one line of JSON each; those found in a file are not computed again.

    Args:
        keys: what identifies each point, number of draws included.
        compute: number and key of a point to its figures.
        kept: JSON lines, appended to; none are kept without it.

    Returns:
        Key and figures of every point.
    """
    done: list[Row] = []
    if kept is not None and kept.exists():
        done = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    rows = []
    for i, key in enumerate(keys):
        row = next((r for r in done if all(r.get(name) == value for name, value in key.items())), None)
        if row is None:
            row = {**key, **compute(i, key)}
            line = json.dumps(row)
            print(line, file=sys.stderr, flush=True)
            if kept is not None:
                with kept.open("a", encoding="utf-8") as out:
                    out.write(line + "\n")
        rows.append(row)
    return rows


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """A Markdown table.

    Args:
        head: names of the columns.
        lines: the cells.

    Returns:
        The table, without a line end.
    """
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def replace_block(page: Path, name: str, text: str) -> None:
    """Replaces what stands between the two comments ``name:begin`` and ``name:end`` of a Markdown file.

    Args:
        page: the file.
        name: of the block.
        text: what is to stand there.

    Raises:
        ValueError: if the file lacks the comments.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    whole = page.read_text(encoding="utf-8")
    if begin not in whole or end not in whole.split(begin, 1)[1]:
        raise ValueError(f"{page} has no block between {begin} and {end}")
    before, rest = whole.split(begin, 1)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}", encoding="utf-8")
