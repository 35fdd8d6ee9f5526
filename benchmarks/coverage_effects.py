"""Coverage of intervals of effects, ratios and corrected rates, and the size of the sign-flip test.

One command: ``python benchmarks/coverage_effects.py [--draws 1000] [--kept FILE] [--write docs/statistics.md]``.
Items are beta-binomial in both conditions. An item keeps the rank of its propensity between the conditions
with probability *pairing* and draws a new one otherwise, so that *pairing* is Spearman's correlation of the two.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import cast

import numpy as np
from coverage_cells import (
    QUANTILES,
    Counts,
    Row,
    coverage,
    for_each_distinct,
    item_counts,
    markdown,
    points,
    propensities,
    replace_block,
)

from userturn.statistics import Estimate, paired_effect, rate, ratio, rogan_gladen

DESIGNS = ((50, 1), (100, 10), (200, 5))
PAIRS = ((0.005, 0.005), (0.0, 0.005), (0.01, 0.05), (0.05, 0.01), (0.2, 0.2), (0.2, 0.3), (0.5, 0.4))
CORRELATIONS = (0.0, 0.3, 0.6)
PAIRINGS = (0.0, 0.5, 1.0)
RATIOS = ((100, 10, 0.01, 0.05), (200, 5, 0.05, 0.1), (200, 5, 0.3, 0.2))
CORRECTED = ((200, 5, 0.01), (200, 5, 0.05), (100, 10, 0.2))
SENSITIVITY, SPECIFICITY = (0.9, 100), (0.99, 300)
"""Of the judge, and the size of the gold set it is measured on."""
DOUBTFUL, AGAIN = 0.935, 4
"""Effects that the chosen interval covers less often are simulated anew with so many times the draws."""
METHODS = ("chosen", "item bootstrap", "unpaired Wald")
Key = Mapping[str, float | str]


def draw_pairs(
    rng: np.random.Generator,
    design: tuple[int, int],
    rates: tuple[float, float],
    rho: float,
    pairing: float,
    draws: int,
) -> tuple[Counts, Counts, tuple[float, float]]:
    """Positives by item in two conditions.

    Args:
        rng: generator.
        design: items, and rows an item in each condition.
        rates: nominal rates, baseline and treated.
        rho: intraclass correlation within a condition.
        pairing: rank correlation of an item's propensities.
        draws: cells.

    Returns:
        Baseline and treated counts, each of shape (draws, n_items), and the exact rates.
    """
    n_items, samples = design
    one, two = (propensities(p, rho) for p in rates)
    first = rng.integers(QUANTILES, size=(draws, n_items))
    second = np.where(rng.random((draws, n_items)) < pairing, first, rng.integers(QUANTILES, size=(draws, n_items)))
    return (
        rng.binomial(samples, one[first]),
        rng.binomial(samples, two[second]),
        (float(one.mean()), float(two.mean())),
    )


def _both(found: Estimate) -> tuple[float, ...]:
    pairs = [(i.low, i.high) if i is not None else (np.nan, np.nan) for i in (found.interval, found.bootstrap)]
    return (*pairs[0], *pairs[1], float(found.interval is not None and found.interval == found.bootstrap))


def _on_pairs(
    baseline: Counts, treated: Counts, samples: int, function: Callable[[Counts, Counts], tuple[float, ...]]
) -> np.ndarray:
    """A function of (treated, baseline) counts for every draw."""
    return for_each_distinct(
        treated * (samples + 1) + baseline, lambda code: function(code // (samples + 1), code % (samples + 1))
    )


def effect_point(seed: int, key: Key) -> Row:
    """Coverage of the paired effect at one point, and how often the sign-flip test rejects.

    Args:
        seed: of the point.
        key: items, samples, baseline, treated, rho, pairing, draws.

    Returns:
        Coverage by method, ``trusted``: how often the bootstrap was chosen, ``rejected``: share of p < 0.05.
    """
    samples = int(key["samples"])
    rng = np.random.Generator(np.random.PCG64(seed))
    baseline, treated, rates = draw_pairs(
        rng,
        (int(key["items"]), samples),
        (float(key["baseline"]), float(key["treated"])),
        float(key["rho"]),
        float(key["pairing"]),
        int(key["draws"]),
    )

    def ours(two: Counts, one: Counts) -> tuple[float, ...]:
        found = paired_effect(item_counts(two, samples), item_counts(one, samples), seed=1)
        return (*_both(found), cast("float", found.p_value))

    values = _on_pairs(baseline, treated, samples, ours)
    rows = baseline.shape[1] * samples
    p1, p2 = baseline.sum(axis=1) / rows, treated.sum(axis=1) / rows
    reach = 1.959964 * np.sqrt((p1 * (1 - p1) + p2 * (1 - p2)) / rows)
    truth = rates[1] - rates[0]
    return {
        "chosen": coverage(values[:, 0], values[:, 1], truth),
        "item bootstrap": coverage(values[:, 2], values[:, 3], truth),
        "unpaired Wald": coverage(p2 - p1 - reach, p2 - p1 + reach, truth),
        "trusted": float(values[:, 4].mean()),
        "rejected": float((values[:, 5] < 0.05).mean()),
    }


def ratio_point(seed: int, key: Key) -> Row:
    """Coverage of the ratio at one point, pairing 0.5, over the draws in which it is defined.

    Args:
        seed: of the point.
        key: items, samples, baseline, treated, rho, draws.

    Returns:
        Coverage by method, and ``defined``: the share of draws with a positive row in the baseline.
    """
    samples = int(key["samples"])
    rng = np.random.Generator(np.random.PCG64(seed))
    design, nominal = (int(key["items"]), samples), (float(key["baseline"]), float(key["treated"]))
    baseline, treated, rates = draw_pairs(rng, design, nominal, float(key["rho"]), 0.5, int(key["draws"]))

    def ours(two: Counts, one: Counts) -> tuple[float, ...]:
        return _both(ratio(item_counts(two, samples), item_counts(one, samples), resamples=2000, seed=1))

    values = _on_pairs(baseline, treated, samples, ours)
    values = values[~np.isnan(values[:, 0])]
    truth = rates[1] / rates[0]
    return {
        "chosen": coverage(values[:, 0], values[:, 1], truth),
        "item bootstrap": coverage(values[:, 2], values[:, 3], truth),
        "trusted": float(values[:, 4].mean()),
        "defined": len(values) / int(key["draws"]),
    }


def corrected_point(seed: int, key: Key) -> Row:
    """Coverage of the rate corrected for a judge's errors at one point; each draw has its own gold set.

    Args:
        seed: of the point.
        key: items, samples, rate (true), rho, draws.

    Returns:
        Coverage of the true rate by Lang and Reiczigel's interval, by the bootstrap, and by the interval of
        the raw rate.
    """
    samples, draws = int(key["samples"]), int(key["draws"])
    rng = np.random.Generator(np.random.PCG64(seed))
    lots = propensities(float(key["rate"]), float(key["rho"]))
    truth = float(lots.mean())
    positive = rng.binomial(samples, lots[rng.integers(QUANTILES, size=(draws, int(key["items"])))])
    judged = rng.binomial(positive, SENSITIVITY[0]) + rng.binomial(samples - positive, 1.0 - SPECIFICITY[0])
    hits, rejections = (rng.binomial(n, p, size=draws) for p, n in (SENSITIVITY, SPECIFICITY))
    values = []
    for row, hit, rejected in zip(judged, hits, rejections, strict=True):
        counts = item_counts(row, samples)
        gold = (int(hit), SENSITIVITY[1]), (int(rejected), SPECIFICITY[1])
        found = rogan_gladen(counts, *gold, resamples=1000, seed=1).corrected
        values.append((*_both(found)[:4], *_both(rate(counts, seed=1))[:2]))
    table = np.array(values)
    names = ("chosen", "item bootstrap", "uncorrected")
    return {name: coverage(table[:, 2 * i], table[:, 2 * i + 1], truth) for i, name in enumerate(names)}


def keys(draws: int) -> Iterator[Key]:
    """The points of all three grids, each with its ``quantity``.

    Args:
        draws: cells a point.

    Yields:
        What identifies a point.
    """
    for (items, samples), (baseline, treated), rho in itertools.product(DESIGNS, PAIRS, CORRELATIONS):
        design: dict[str, float | str] = {"items": items, "samples": samples, "rho": rho, "draws": draws}
        for pairing in PAIRINGS if rho else PAIRINGS[:1]:  # without clustering there is no propensity to pair
            yield {"quantity": "effect", **design, "baseline": baseline, "treated": treated, "pairing": pairing}
    for items, samples, baseline, treated in RATIOS:
        design = {"items": items, "samples": samples, "rho": 0.3, "draws": draws}
        yield {"quantity": "ratio", **design, "baseline": baseline, "treated": treated}
    for items, samples, true in CORRECTED:
        yield {"quantity": "corrected", "items": items, "samples": samples, "rho": 0.3, "rate": true, "draws": draws}


def compute(number: int, key: Key) -> Row:
    """Figures of one point.

    Args:
        number: seeds the point.
        key: of :func:`keys`.

    Returns:
        The figures.
    """
    functions = {"effect": effect_point, "ratio": ratio_point, "corrected": corrected_point}
    return functions[str(key["quantity"])](2026_000 + number, key)


def measured(draws: int, kept: Path | None) -> list[Row]:
    """All points; doubtful ones anew, so that the lowest of many shares is not the unluckiest of them.

    Args:
        draws: cells a point.
        kept: see :func:`coverage_cells.points`.

    Returns:
        One row a point.
    """
    asked = list(keys(draws))
    rows = points(iter(asked), compute, kept)
    doubtful = [i for i, r in enumerate(rows) if r["quantity"] == "effect" and float(r["chosen"]) < DOUBTFUL]
    more = [{**asked[i], "draws": AGAIN * draws} for i in doubtful]
    for i, row in zip(doubtful, points(iter(more), lambda n, key: compute(10_000 + n, key), kept), strict=True):
        rows[i] = row
    return rows


def _span(rows: list[Row], name: str) -> str:
    values = [float(row[name]) for row in rows]
    return f"{min(values):.3f} to {max(values):.3f}"


def _size(rows: list[Row]) -> str:
    return f"{max(float(row['rejected']) for row in rows):.3f}" if rows[0]["baseline"] == rows[0]["treated"] else ""


def text(rows: list[Row], shown: int = 8) -> str:
    """The figures as Markdown: spans over correlation and pairing, the worst points in full, ratio, correction.

    Args:
        rows: of all three grids.
        shown: how many of the worst points stand there in full.

    Returns:
        Markdown.
    """
    effects = [row for row in rows if row["quantity"] == "effect"]
    lines = []
    for (items, samples), (baseline, treated) in itertools.product(DESIGNS, PAIRS):
        part = [
            r
            for r in effects
            if (r["items"], r["samples"], r["baseline"], r["treated"]) == (items, samples, baseline, treated)
        ]
        if part:
            spans = [_span(part, name) for name in METHODS]
            lines.append([f"{items}x{samples}", f"{baseline:g} → {treated:g}", *spans, _size(part)])
    head = ["items x rows", "rates", *METHODS, "sign-flip rejects, at most"]
    worst = sorted(effects, key=lambda row: float(row["chosen"]))[:shown]
    corners = [
        [
            f"{r['items']}x{r['samples']}",
            f"{r['baseline']:g} → {r['treated']:g}",
            f"{r['rho']:g}",
            f"{r['pairing']:g}",
            *(f"{float(r[name]):.3f}" for name in (*METHODS, "trusted")),
        ]
        for r in worst
    ]
    ratios = [
        f"{r['items']}x{r['samples']}, {r['baseline']:g} → {r['treated']:g}: {float(r['chosen']):.3f} "
        f"(bootstrap {float(r['item bootstrap']):.3f})"
        for r in rows
        if r["quantity"] == "ratio"
    ]
    corrected = [
        f"{r['items']}x{r['samples']}, true rate {r['rate']:g}: {float(r['chosen']):.3f} "
        f"(bootstrap {float(r['item bootstrap']):.3f}, uncorrected interval {float(r['uncorrected']):.3f})"
        for r in rows
        if r["quantity"] == "corrected"
    ]
    least, draws = (min(float(row[name]) for row in effects) for name in ("chosen", "draws"))
    prose = (
        f"{draws:,.0f} draws a point, {len(effects)} points; {AGAIN} times as many, drawn anew, where the chosen "
        f"interval covered less than {DOUBTFUL}. Lowest coverage of the chosen interval: {least:.3f}. Lowest and "
        "highest over ρ in {0, 0.3, 0.6} and rank correlation of the items' propensities in {0, 0.5, 1}:",
        f"Ratio, ρ = 0.3, rank correlation 0.5: {'; '.join(ratios)}.",
        f"Corrected rate, ρ = 0.3, sensitivity {SENSITIVITY[0]:g} on {SENSITIVITY[1]} gold positives, specificity "
        f"{SPECIFICITY[0]:g} on {SPECIFICITY[1]} gold negatives: {'; '.join(corrected)}.",
    )
    first, *others = (textwrap.fill(paragraph, 120) for paragraph in prose)
    corner_head = ["items x rows", "rates", "ρ", "rank correlation", *METHODS, "bootstrap chosen"]
    middle = "The points where the chosen interval covers least:"
    return "\n\n".join([first, markdown(head, lines), middle, markdown(corner_head, corners), *others])


def main() -> int:
    """Computes the points, prints the text and says whether the chosen interval of effects holds.

    Returns:
        0 if it covers at least 0.93 at every point, 1 otherwise.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--kept", type=Path, help="JSON lines: finished points are added, and not computed again")
    parser.add_argument("--write", type=Path, help="Markdown file whose block coverage-effects the text replaces")
    given = parser.parse_args()
    started = time.perf_counter()
    rows = measured(given.draws, given.kept)
    found = text(rows)
    print(found)
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
    if given.write:
        replace_block(given.write, "coverage-effects", found)
    return 0 if min(float(row["chosen"]) for row in rows if row["quantity"] == "effect") >= 0.93 else 1


if __name__ == "__main__":
    sys.exit(main())
