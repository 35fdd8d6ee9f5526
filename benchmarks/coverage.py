"""Coverage of the intervals of a rate on the grid of the acceptance test, as a table for the documentation.

One command: ``python benchmarks/coverage.py [--draws 4000] [--scipy] [--write docs/statistics.md]``. All
methods see the same beta-binomial draws. The item bootstrap of every draw of a grid point shares its
resampling weights, which changes no coverage on average and makes the grid affordable. "CLT" is value +-
1.96 standard errors of independent rows, the interval of the usual evaluation harnesses.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from userturn.statistics.intervals import effective_size, informative_items, modified_wilson
from userturn.statistics.resample import MIN_INFORMATIVE

DESIGNS = ((50, 1), (100, 10), (200, 5), (500, 4))
CORRELATIONS = (0.0, 0.3, 0.6)
RATES = (0.001, 0.005, 0.01, 0.05, 0.2, 0.5)
BEGIN, END = "<!-- coverage:begin -->", "<!-- coverage:end -->"
Limits = tuple[NDArray[np.float64], NDArray[np.float64]]


def draw(
    rng: np.random.Generator, n_items: int, samples: int, *, rho: float, p: float, draws: int
) -> NDArray[np.int64]:
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


def chosen_interval(positives: NDArray[np.int64], samples: int, bootstrap: Limits, level: float = 0.95) -> Limits:
    """The rule of ``userturn.statistics.rate`` on many cells at once.

    Args:
        positives: shape (draws, n_items).
        samples: rows an item.
        bootstrap: percentile limits, shape (draws,) each.
        level: nominal coverage.

    Returns:
        Limits of the chosen interval, shape (draws,) each.
    """
    n_items = positives.shape[1]
    scored = np.full(positives.shape, samples)
    share = positives.sum(axis=1) / (n_items * samples)
    low, high = modified_wilson(share, effective_size(positives, scored), level)
    trusted = informative_items(positives, scored) >= MIN_INFORMATIVE
    return np.where(trusted, bootstrap[0], low), np.where(trusted, bootstrap[1], high)


def _covers(limits: Limits, p: float) -> float:
    return float(np.mean((limits[0] <= p + 1e-12) & (p - 1e-12 <= limits[1])))


def point(seed: int, design: tuple[int, int], *, rho: float, p: float, draws: int, resamples: int) -> dict[str, float]:
    """Coverage of each method at one point of the grid.

    Args:
        seed: of this point.
        design: items and samples.
        rho: intraclass correlation.
        p: true rate.
        draws: simulated cells.
        resamples: of the bootstrap.

    Returns:
        Coverage by method, and the share of cells in which the bootstrap was chosen.
    """
    n_items, samples = design
    rng = np.random.Generator(np.random.PCG64(seed))
    positives = draw(rng, n_items, samples, rho=rho, p=p, draws=draws)
    rows = n_items * samples
    weights = rng.multinomial(n_items, np.full(n_items, 1.0 / n_items), size=resamples).astype(np.float32)
    bootstrap = np.empty((2, draws))
    for start in range(0, draws, 500):
        means = weights @ positives[start : start + 500].T.astype(np.float32) / rows
        bootstrap[:, start : start + 500] = np.quantile(means, [0.025, 0.975], axis=0)
    k = positives.sum(axis=1)
    share = k / rows
    spread = positives.std(axis=1, ddof=1) / samples / np.sqrt(n_items)
    reach = stats.t.ppf(0.975, n_items - 1) * spread
    normal = 1.959964 * np.sqrt(share * (1 - share) / rows)
    scored = np.full(positives.shape, samples)
    boot: Limits = (bootstrap[0], bootstrap[1])
    limits: dict[str, Limits] = {
        "chosen": chosen_interval(positives, samples, boot),
        "item bootstrap": boot,
        "Wilson": proportion_confint(k, rows, method="wilson"),
        "Clopper-Pearson": proportion_confint(k, rows, method="beta"),
        "clustered t": (share - reach, share + reach),
        "CLT": (share - normal, share + normal),
    }
    found = {name: _covers(pair, p) for name, pair in limits.items()}
    found["bootstrap chosen"] = float(np.mean(informative_items(positives, scored) >= MIN_INFORMATIVE))
    return found


def scipy_point(
    seed: int, design: tuple[int, int], *, rho: float, p: float, draws: int, resamples: int
) -> tuple[float, float]:
    """Coverage of ``scipy.stats.bootstrap`` over items, percentile and BCa, on the first of the same draws.

    Args:
        seed: of the point.
        design: items and samples.
        rho: intraclass correlation.
        p: true rate.
        draws: cells that :func:`point` drew; the first 200 are used, as scipy takes one cell at a time.
        resamples: of the bootstrap.

    Returns:
        Coverage of the percentile and of the BCa interval; NaN limits do not cover.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    positives = draw(rng, *design, rho=rho, p=p, draws=draws)[:200]
    hits = np.zeros(2)
    for row in positives:
        for i, method in enumerate(("percentile", "BCa")):
            with np.errstate(all="ignore"):
                limits = stats.bootstrap(
                    (row / design[1],), np.mean, n_resamples=resamples, method=method, rng=rng
                ).confidence_interval
            hits[i] += limits.low <= p <= limits.high
    return float(hits[0] / len(positives)), float(hits[1] / len(positives))


def run(draws: int, resamples: int, seed: int = 2026) -> list[dict[str, float]]:
    """The whole grid.

    Args:
        draws: cells a point.
        resamples: of the bootstrap.
        seed: of the grid; each point derives its own.

    Returns:
        One row a point.
    """
    rows = []
    for i, (design, rho, p) in enumerate(itertools.product(DESIGNS, CORRELATIONS, RATES)):
        found = point(seed * 1000 + i, design, rho=rho, p=p, draws=draws, resamples=resamples)
        rows.append({"items": design[0], "samples": design[1], "rho": rho, "p": p, **found})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def table(rows: list[dict[str, float]], scipys: dict[tuple[float, ...], tuple[float, float]]) -> str:
    """The rows as Markdown.

    Args:
        rows: of :func:`run`.
        scipys: coverage of scipy's percentile and BCa bootstrap by (items, samples, rho, p).

    Returns:
        A Markdown table with the chosen interval first.
    """
    names = [
        "chosen",
        "item bootstrap",
        "Wilson",
        "Clopper-Pearson",
        "clustered t",
        "CLT",
        "bootstrap chosen",
    ]
    head = ["items x samples", "rho", "p", *names, "scipy percentile", "scipy BCa"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        mine = scipys.get((row["items"], row["samples"], row["rho"], row["p"]))
        cells = [f"{row['items']}x{row['samples']}", f"{row['rho']:g}", f"{row['p']:g}"]
        cells += [f"{row[name]:.3f}" for name in names]
        cells += ["", ""] if mine is None else [f"{value:.2f}" for value in mine]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    """Runs the grid, prints the table and says whether the acceptance limits hold.

    Returns:
        0 if they hold, 1 otherwise.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--scipy", action="store_true", help="also scipy.stats.bootstrap, 200 cells at some points")
    parser.add_argument("--write", type=Path, help="Markdown file whose marked block the table replaces")
    given = parser.parse_args()
    started = time.perf_counter()
    rows = run(given.draws, given.resamples)
    scipys = {}
    if given.scipy:
        for i, (design, rho, p) in enumerate(itertools.product(DESIGNS, CORRELATIONS, RATES)):
            if rho == 0.3 and p in (0.005, 0.05):
                scipys[(*design, rho, p)] = scipy_point(
                    2026 * 1000 + i, design, rho=rho, p=p, draws=given.draws, resamples=1000
                )
    lowest = min(row["chosen"] for row in rows)
    highest = max(row["chosen"] for row in rows if row["p"] >= 0.05)
    verdict = (
        f"{given.draws:,} draws a point, {given.resamples:,} resamples. Chosen interval: lowest coverage "
        f"{lowest:.3f} (wanted >= 0.93), highest at p >= 0.05 {highest:.3f} (wanted <= 0.99)."
    )
    text = f"{verdict}\n\n{table(rows, scipys)}"
    print(text)
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    if given.write:
        page = given.write.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN, 1)
        after = rest.split(END, 1)[1]
        given.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
    return 0 if lowest >= 0.93 and highest <= 0.99 else 1


if __name__ == "__main__":
    sys.exit(main())
