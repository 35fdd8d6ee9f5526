"""How fast the statistics are, as ratios measured in one run.

``python benchmarks/statistics_speed.py`` prints the ratio to ``scipy.stats.bootstrap`` for the same interval on the
same cell. How long all numbers of a grid take is in ``benchmarks/numbers_scale.py``. Counts are drawn, so nothing here
is a result.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from scipy import stats

from userturn.statistics import ItemCounts, paired_effect, rate, ratio
from userturn.statistics.resample import ratio_percentile

N_ITEMS, SAMPLES = 500, 5


def cell(seed: int, p: float) -> ItemCounts:
    """Beta-binomial counts of one cell.

    Args:
        seed: of the cell.
        p: rate.

    Returns:
        Counts of ``N_ITEMS`` items with ``SAMPLES`` rows each.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    lots = rng.beta(p * 2, (1 - p) * 2, size=N_ITEMS)
    return ItemCounts.from_arrays(rng.binomial(SAMPLES, lots), np.full(N_ITEMS, SAMPLES))


def thinned(counts: ItemCounts, seed: int, share: float = 0.1) -> ItemCounts:
    """The same cell with rows left unscored at random.

    Args:
        counts: of the cell.
        seed: of the rows taken.
        share: of rows left unscored.

    Returns:
        Counts in which items differ in their numbers of scored rows.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    scored = rng.binomial(counts.scored, 1.0 - share)
    positives = rng.hypergeometric(counts.positives, counts.scored - counts.positives, scored)
    return ItemCounts.from_arrays(positives, scored, counts.scored - scored)


def _pooled(k: np.ndarray, m: np.ndarray, axis: int = -1) -> np.ndarray:
    return k.sum(axis=axis) / m.sum(axis=axis)


def _average(d: np.ndarray, axis: int = -1) -> np.ndarray:
    return d.mean(axis=axis)


def _seconds(functions: tuple[tuple[Callable[[], object], int], ...], rounds: int = 12) -> list[float]:
    """Least processor times of (function, repeats), taken in turns; the least is what a busy machine disturbs least."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for (function, repeats), found in zip(functions, times, strict=True):
            function()
            for _ in range(repeats):
                started = time.process_time()
                function()
                found.append(time.process_time() - started)
    return [min(found) for found in times]


def against_scipy() -> float:
    """Time of ``scipy.stats.bootstrap`` over ours: 10,000 resamples of items, the same percentile interval.

    The time of the whole public function, with its other interval and its test, stands beside it.

    Returns:
        The lowest ratio of processor times.
    """
    base, treated = cell(1, 0.05), cell(2, 0.05)
    partial = thinned(base, 3)
    used = partial.scored_only()
    change = treated.positives - base.positives
    cases: dict[str, tuple[np.ndarray, np.ndarray, Callable[[], object]]] = {
        "rate, equal rows": (base.positives, base.scored, lambda: rate(base, seed=1)),
        "rate, a tenth unscored": (used.positives, used.scored, lambda: rate(partial, seed=1)),
        "ratio of two rates": (treated.positives, base.positives, lambda: ratio(treated, base, seed=1)),
        "paired effect": (change, base.scored, lambda: paired_effect(treated, base, seed=1)),
    }
    ratios = []
    for name, (above, below, whole) in cases.items():

        def theirs(above: np.ndarray = above, below: np.ndarray = below) -> object:
            alone = bool((below == below[0]).all())
            return stats.bootstrap(
                (above / below[0],) if alone else (above, below),
                _average if alone else _pooled,
                paired=not alone,
                vectorized=True,
                n_resamples=10_000,
                batch=1_000,
                method="percentile",
                rng=np.random.default_rng(1),
            )

        def ours(above: np.ndarray = above, below: np.ndarray = below) -> object:
            return ratio_percentile(above, below, level=0.95, resamples=10_000, seed=1, method="item bootstrap")

        slow, fast, full = _seconds(((theirs, 1), (ours, 15), (whole, 15)))
        ratios.append(slow / fast)
        print(
            f"{name}: scipy {slow * 1e3:.1f} ms, the interval {fast * 1e3:.2f} ms, ratio {slow / fast:.0f}; "
            f"whole function {full * 1e3:.2f} ms, ratio {slow / full:.0f}"
        )
    return min(ratios)


if __name__ == "__main__":
    sys.exit(0 if against_scipy() >= 50 else 1)
