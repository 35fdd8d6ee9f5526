"""How fast the statistics are, as ratios measured in one run.

``python benchmarks/statistics_speed.py`` prints the ratio to ``scipy.stats.bootstrap`` for the same
interval on the same cell, and with ``--grid`` the time and peak memory of all numbers of a simulated paper
grid. Counts are drawn, so nothing here is a result.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from scipy import stats

from userturn.statistics import (
    ItemCounts,
    paired_effect,
    rate,
    ratio,
    temperature_slope,
    within_item_association,
)

N_ITEMS, SAMPLES = 500, 5
PERTURBATIONS = 6
TEMPERATURES = (0.0, 0.3, 0.6, 0.9, 1.2, 1.5)


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


def _seconds(function: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        started = time.process_time()
        function()
        times.append(time.process_time() - started)
    return statistics.median(times)


def against_scipy() -> float:
    """Time of ``scipy.stats.bootstrap`` over ours: 10,000 resamples, percentile, rate over clusters.

    Returns:
        The ratio of median processor times.
    """
    data = cell(1, 0.05)

    def pooled(k: np.ndarray, m: np.ndarray, axis: int = -1) -> np.ndarray:
        return k.sum(axis=axis) / m.sum(axis=axis)

    def theirs() -> object:
        return stats.bootstrap(
            (data.positives, data.scored),
            pooled,
            paired=True,
            vectorized=True,
            n_resamples=10_000,
            batch=1_000,
            method="percentile",
            rng=np.random.default_rng(1),
        )

    rate(data, seed=1)
    slow, fast = _seconds(theirs, 3), _seconds(lambda: rate(data, seed=1), 15)
    print(f"scipy {slow * 1e3:.1f} ms, userturn {fast * 1e3:.2f} ms, ratio {slow / fast:.0f}")
    return slow / fast


def shard(number: int) -> int:
    """All numbers of one (model, dataset): rates, effects, ratios, slopes and associations.

    Args:
        number: seeds the shard.

    Returns:
        How many numbers were computed.
    """
    rng = np.random.Generator(np.random.PCG64(number))
    cells = {
        (i, t): cell(number * 100 + 10 * i + j, float(rng.choice([0.002, 0.01, 0.05, 0.2])))
        for i in range(PERTURBATIONS)
        for j, t in enumerate(TEMPERATURES)
    }
    correct = {item: bool(rng.random() < 0.6) for item in cells[0, 0.0].items}
    done = 0
    for i in range(PERTURBATIONS):
        for t in TEMPERATURES:
            seed = number * 1000 + done
            rate(cells[i, t], seed=seed)
            within_item_association(correct, cells[i, t], seed=seed)
            done += 2
            if i:
                paired_effect(cells[i, t], cells[0, t], seed=seed)
                ratio(cells[i, t], cells[0, t], seed=seed)
                done += 2
        temperature_slope({t: cells[i, t] for t in TEMPERATURES}, seed=number * 1000 + done)
        done += 1
    return done


def main() -> int:
    """Prints the measurements.

    Returns:
        0 if the ratio is at least 50, 1 otherwise.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--shards", type=int, default=55, help="(model, dataset) pairs of the grid")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    found = against_scipy()
    if given.grid:
        started = time.perf_counter()
        with ProcessPoolExecutor(given.jobs) as pool:
            numbers = sum(pool.map(shard, range(given.shards)))
        elapsed = time.perf_counter() - started
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"{numbers:,} numbers of {given.shards} shards in {elapsed:.0f} s on {given.jobs} processes "
            f"({used.ru_utime + used.ru_stime:.0f} s of processor time), "
            f"largest process {used.ru_maxrss / 2**20:.2f} GB"
        )
    return 0 if found >= 50 else 1


if __name__ == "__main__":
    sys.exit(main())
