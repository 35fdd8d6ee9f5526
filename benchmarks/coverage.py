"""Coverage of the intervals of a rate on the grid of the acceptance test, as a table for the documentation.

One command: ``python benchmarks/coverage.py [--scipy] [--peers] [--kept FILE] [--write docs/statistics.md]``.
All methods see the same beta-binomial draws, slow ones only the first of them. The chosen interval and the
item bootstrap are those that ``userturn.statistics.rate`` returns for each draw, not a copy of its rule.
``--peers`` runs other evaluation tools' own functions, see ``coverage_peers.py``.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import coverage_peers
import numpy as np
from coverage_cells import Counts, Row, coverage, for_each_distinct, item_counts, markdown, points, replace_block
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from userturn.statistics import rate

DESIGNS = ((50, 1), (100, 10), (200, 5), (500, 4))
CORRELATIONS = (0.0, 0.3, 0.6)
RATES = (0.001, 0.005, 0.01, 0.05, 0.2, 0.5)
SCIPY_RESAMPLES = 1_000
Key = Mapping[str, float | str]
Slow = dict[str, tuple[int, Callable[[Counts, int], tuple[float, ...]]]]
"""Interval by name, with the number of draws that it is computed for."""


def draw(rng: np.random.Generator, n_items: int, samples: int, *, rho: float, p: float, draws: int) -> Counts:
    """Positives by item of simulated cells.

    Args:
        rng: generator.
        n_items: items.
        samples: rows an item.
        rho: intraclass correlation.
        p: true rate.
        draws: cells.

    Returns:
        Shape (draws, n_items).
    """
    if rho == 0.0:
        return rng.binomial(samples, p, size=(draws, n_items))
    strength = (1.0 - rho) / rho
    return rng.binomial(samples, rng.beta(p * strength, (1.0 - p) * strength, size=(draws, n_items)))


def ours(positives: Counts, samples: int) -> tuple[float, ...]:
    """What ``rate`` returns for one cell.

    Args:
        positives: shape (n_items,).
        samples: rows an item.

    Returns:
        Limits of the chosen interval, limits of the bootstrap, and 1 where the bootstrap was chosen.
    """
    found = rate(item_counts(positives, samples), seed=1)
    assert found.interval is not None and found.bootstrap is not None
    chosen, boot = found.interval, found.bootstrap
    return chosen.low, chosen.high, boot.low, boot.high, float(chosen == boot)


def scipy_interval(method: str) -> Callable[[Counts, int], tuple[float, ...]]:
    """``scipy.stats.bootstrap`` of the mean over items.

    Args:
        method: percentile or BCa.

    Returns:
        A function of positives by item and rows an item.
    """

    def limits(positives: Counts, samples: int) -> tuple[float, ...]:
        rng = np.random.Generator(np.random.PCG64(int(positives.sum())))
        with np.errstate(all="ignore"):
            found = stats.bootstrap(
                (positives / samples,), np.mean, n_resamples=SCIPY_RESAMPLES, method=method, rng=rng
            ).confidence_interval
        return float(found.low), float(found.high)

    return limits


def point(
    seed: int, design: tuple[int, int], *, rho: float, p: float, draws: int, slow: Slow | None = None
) -> dict[str, float]:
    """Coverage of each method at one point of the grid.

    Args:
        seed: of this point.
        design: items and samples.
        rho: intraclass correlation.
        p: true rate.
        draws: simulated cells.
        slow: further intervals, for the first of the cells.

    Returns:
        Coverage by method, and the share of cells in which the bootstrap was chosen.
    """
    n_items, samples = design
    positives = draw(np.random.Generator(np.random.PCG64(seed)), n_items, samples, rho=rho, p=p, draws=draws)
    mine = for_each_distinct(positives, lambda cell: ours(cell, samples))
    found = {
        "chosen": coverage(mine[:, 0], mine[:, 1], p),
        "item bootstrap": coverage(mine[:, 2], mine[:, 3], p),
        "bootstrap chosen": float(mine[:, 4].mean()),
    }
    k, rows = positives.sum(axis=1), n_items * samples
    for name, method in {"Wilson": "wilson", "Clopper-Pearson": "beta"}.items():
        low, high = proportion_confint(k, rows, method=method)
        found[name] = coverage(np.asarray(low), np.asarray(high), p)
    for name, (first, interval) in (slow or {}).items():
        values = for_each_distinct(positives[:first], lambda cell, f=interval: f(cell, samples))  # type: ignore[misc]
        found[name] = coverage(values[:, 0], values[:, 1], p)
    return found


def keys(draws: int, slow: Slow) -> Iterator[Key]:
    """The points of the grid.

    Args:
        draws: cells a point.
        slow: the further intervals, which are part of what identifies a finished point.

    Yields:
        What identifies a point.
    """
    extra = ", ".join(f"{name} {first}" for name, (first, _) in slow.items())
    for (items, samples), rho, p in itertools.product(DESIGNS, CORRELATIONS, RATES):
        yield {"items": items, "samples": samples, "rho": rho, "p": p, "draws": draws, "slow": extra}


def table(rows: list[Row], slow: Slow) -> str:
    """The rows as Markdown.

    Args:
        rows: one a point.
        slow: the further intervals.

    Returns:
        A Markdown table with the chosen interval first.
    """
    names = ["chosen", "item bootstrap", "bootstrap chosen", "Wilson", "Clopper-Pearson"]
    lines = []
    for row in rows:
        cells = [f"{row['items']}x{row['samples']}", f"{row['rho']:g}", f"{row['p']:g}"]
        cells += [f"{row[name]:.3f}" for name in names]
        cells += [f"{row[name]:.2f}" for name in slow]
        lines.append(cells)
    return markdown(["items x samples", "rho", "p", *names, *slow], lines)


def main() -> int:
    """Runs the grid, prints the table and says whether the acceptance limits hold.

    Returns:
        0 if they hold, 1 otherwise.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--scipy", action="store_true", help="also scipy.stats.bootstrap, percentile and BCa")
    parser.add_argument("--peers", action="store_true", help="also the intervals of other evaluation tools")
    parser.add_argument("--scipy-draws", type=int, default=100)
    parser.add_argument("--peer-draws", type=int, default=200, help="for the closed forms of other tools")
    parser.add_argument("--peer-bootstrap-draws", type=int, default=25, help="for the bootstraps of other tools")
    parser.add_argument("--kept", type=Path, help="JSON lines: finished points are added, and not computed again")
    parser.add_argument("--write", type=Path, help="Markdown file whose block coverage the table replaces")
    given = parser.parse_args()
    started = time.perf_counter()
    slow: Slow = {}
    said = [f"{given.draws:,} draws a point"]
    if given.scipy:
        slow |= {f"scipy {method}": (given.scipy_draws, scipy_interval(method)) for method in ("percentile", "BCa")}
        said.append(f"{given.scipy_draws} for scipy's bootstraps ({SCIPY_RESAMPLES:,} resamples)")
    if given.peers:
        closed, drawn = coverage_peers.intervals()
        slow |= {name: (given.peer_draws, interval) for name, interval in closed.items()}
        slow |= {name: (given.peer_bootstrap_draws, interval) for name, interval in drawn.items()}
        tools = ", ".join(f"{coverage_peers.PACKAGES[m]} {v}" for m, v in coverage_peers.versions().items())
        said.append(f"{given.peer_draws} for {tools}, {given.peer_bootstrap_draws} where a tool resamples itself")

    def compute(number: int, key: Key) -> Row:
        design = (int(key["items"]), int(key["samples"]))
        rho, p = float(key["rho"]), float(key["p"])
        return {**point(2026_000 + number, design, rho=rho, p=p, draws=given.draws, slow=slow)}

    rows = points(keys(given.draws, slow), compute, given.kept)
    lowest = min(float(row["chosen"]) for row in rows)
    highest = max(float(row["chosen"]) for row in rows if float(row["p"]) >= 0.05)
    verdict = (
        f"{'; '.join(said)}. Chosen interval: lowest coverage {lowest:.3f} (wanted >= 0.93), highest at p >= 0.05 "
        f"{highest:.3f} (wanted <= 0.99)."
    )
    text = f"{textwrap.fill(verdict, 120)}\n\n{table(rows, slow)}"
    print(text)
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    if given.write:
        replace_block(given.write, "coverage", text)
    return 0 if lowest >= 0.93 and highest <= 0.99 else 1


if __name__ == "__main__":
    sys.exit(main())
