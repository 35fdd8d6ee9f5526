"""Paired effects: the same items under two conditions."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from userturn.statistics.intervals import effective_size, modified_wilson, mover_difference, mover_ratio
from userturn.statistics.rates import NAME_BOOTSTRAP
from userturn.statistics.resample import (
    MIN_INFORMATIVE,
    check_level,
    check_resampling,
    generator,
    ratio_percentile,
    resampled_ratios,
)
from userturn.statistics.types import Estimate, FloatArray, IntArray, Interval, ItemCounts

NAME_HYBRID = "Newcombe hybrid score on n_eff"
NAME_MOVER_RATIO = "MOVER ratio on n_eff"
MIN_DIFFERING = 30
"""Items off the most common difference from which the percentile bootstrap of an effect is trusted. Twice what a
rate needs: differences take more values, and a few large ones decide (tuned in docs/statistics.md)."""
LARGEST_LATTICE = 50_000
"""Largest sum of absolute whole-number differences for which the sign-flip distribution is computed
exactly."""
FLIPS = 20_000
"""Random sign flips where the exact distribution is out of reach."""


@dataclass(frozen=True)
class _Pairs:
    """Counts of the items that both conditions scored; their differences as whole numbers."""

    treated: ItemCounts
    baseline: ItemCounts
    scale: int
    differences: IntArray  # scale * (rate treated - rate baseline), shape (n_items,)
    dropped: int
    bounds: tuple[float, float] | None


def _worst_case(treated: ItemCounts, baseline: ItemCounts) -> tuple[float, float] | None:
    rows1, rows2 = treated.scored + treated.unscored, baseline.scored + baseline.unscored
    if not rows1.size:
        return None
    low = treated.positives / rows1 - (baseline.positives + baseline.unscored) / rows2
    high = (treated.positives + treated.unscored) / rows1 - baseline.positives / rows2
    return float(low.mean()), float(high.mean())


def _where(counts: ItemCounts, keep: NDArray[np.bool_]) -> ItemCounts:
    if keep.all():
        return counts
    items = tuple(itertools.compress(counts.items, keep))
    return ItemCounts(items, counts.positives[keep], counts.scored[keep], counts.unscored[keep])


def _pair(treated: ItemCounts, baseline: ItemCounts) -> _Pairs:
    one, two = treated, baseline
    if one.items != two.items:
        named = sorted({*treated.items, *baseline.items})
        one, two = treated.select(named), baseline.select(named)
    n_named = len(one.items)
    any_row = (one.scored + one.unscored > 0) & (two.scored + two.unscored > 0)
    bounds = _worst_case(_where(one, any_row), _where(two, any_row))
    both = (one.scored > 0) & (two.scored > 0)
    one, two = _where(one, both), _where(two, both)
    scale = math.lcm(*(int(m) for m in np.unique(np.concatenate([one.scored, two.scored]))))
    if scale > 10**9:
        raise ValueError(f"the items have too many different numbers of scored rows (common multiple {scale})")
    differences = one.positives * (scale // one.scored) - two.positives * (scale // two.scored)
    return _Pairs(one, two, scale, differences, n_named - len(one.items), bounds)


def _spread(mass: FloatArray, weights: FloatArray, stride: int) -> FloatArray:
    """Convolution of ``mass`` with ``weights`` that stand ``stride`` apart."""
    grown = np.zeros(mass.size + stride * (weights.size - 1))
    if stride <= min(weights.size, mass.size):
        for start in range(stride):
            grown[start::stride] = np.convolve(mass[start::stride], weights)
    else:
        for j, weight in enumerate(weights):
            grown[stride * j : stride * j + mass.size] += weight * mass
    return grown


def _fair_coins(heads: IntArray, tosses: IntArray) -> FloatArray:
    """Chance of each number of heads."""
    logarithm = gammaln(tosses + 1.0) - gammaln(heads + 1.0) - gammaln(tosses - heads + 1.0)
    return np.asarray(np.exp(logarithm - tosses * np.log(2.0)), dtype=np.float64)


def sign_flip_test(differences: IntArray, *, seed: int) -> tuple[float, str]:
    """Tests that differences are symmetric about 0 by flipping the sign of each, two-sided.

    Swapping the two conditions within an item leaves the null distribution unchanged, so the test is
    exact. The distribution of the signed sum is computed, not drawn, by convolving one scaled binomial for
    each distinct size of difference. With one row an item and condition it is McNemar's exact test.

    Args:
        differences: whole-number differences, shape (n_items,).
        seed: used only where the sum is too large to enumerate.

    Returns:
        The p-value and the name of the test.
    """
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    observed = abs(int(differences.sum()))
    if not sizes.size:
        return 1.0, "exact sign-flip permutation"
    step = int(np.gcd.reduce(sizes))
    sizes, observed = sizes // step, observed // step
    reach = int((sizes * counts).sum())
    if reach > LARGEST_LATTICE:
        rng = generator(seed)
        sums = np.zeros(FLIPS, dtype=np.int64)
        for size, count in zip(sizes, counts, strict=True):
            sums += size * (2 * rng.binomial(count, 0.5, FLIPS) - count)
        return float((1 + np.count_nonzero(np.abs(sums) >= observed)) / (FLIPS + 1)), "sign-flip permutation"
    mass = np.ones(1)
    flips = np.concatenate([np.arange(count + 1) for count in counts])
    weights = np.split(_fair_coins(flips, np.repeat(counts, counts + 1)), np.cumsum(counts + 1)[:-1])
    for size, weight in zip(sizes.tolist(), weights, strict=True):
        mass = _spread(mass, weight, 2 * size)
    sums = np.arange(-reach, reach + 1)
    name = "exact McNemar" if sizes.size == 1 else "exact sign-flip permutation"
    return float(min(1.0, mass[np.abs(sums) >= observed].sum())), name


def _correlation(x: FloatArray, y: FloatArray) -> float:
    if x.size < 2 or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def _arm(counts: ItemCounts, level: float) -> tuple[float, tuple[float, float]]:
    p = float((counts.positives / counts.scored).mean())
    low, high = modified_wilson(p, effective_size(counts.positives, counts.scored), level)
    return p, (float(low), float(high))


def _empty(treated: ItemCounts, baseline: ItemCounts, pairs: _Pairs) -> Estimate:
    unscored = treated.n_unscored + baseline.n_unscored
    notes = ("no item is scored in both conditions",)
    return Estimate(None, None, None, 0, 0, 0, unscored, pairs.bounds, notes=notes)


def _notes(pairs: _Pairs) -> list[str]:
    return [f"{pairs.dropped} items not scored in both conditions are left out"] if pairs.dropped else []


def _size(pairs: _Pairs) -> tuple[int, int, int]:
    n = int(pairs.treated.scored.sum() + pairs.baseline.scored.sum())
    return n, len(pairs.treated.items), int(pairs.treated.positives.sum() + pairs.baseline.positives.sum())


def _resampled_differences(pairs: _Pairs, resamples: int, seed: int) -> FloatArray:
    """Mean differences of the resamples."""
    whole = np.full_like(pairs.differences, pairs.scale)
    return resampled_ratios(pairs.differences, whole, resamples=resamples, seed=seed)


def effect_resamples(treated: ItemCounts, baseline: ItemCounts, *, resamples: int, seed: int) -> FloatArray:
    """The resampled effects behind the bootstrap interval of :func:`paired_effect`.

    Args:
        treated: counts under the perturbation.
        baseline: counts without it.
        resamples: how many.
        seed: of this number.

    Returns:
        Shape (resamples,).

    Raises:
        ValueError: if no item is scored in both conditions.
    """
    pairs = _pair(treated, baseline)
    if not pairs.treated.items:
        raise ValueError("no item is scored in both conditions: nothing to resample")
    return _resampled_differences(pairs, resamples, seed)


def paired_effect(
    treated: ItemCounts, baseline: ItemCounts, *, level: float = 0.95, resamples: int = 10_000, seed: int
) -> Estimate:
    """Mean over shared items of the difference of the item's rates, treated minus baseline.

    The chosen interval is the item bootstrap where at least ``MIN_DIFFERING`` items differ from the most
    common difference, and Newcombe's hybrid score interval on n_eff elsewhere, which stays defined when no
    item changes.

    Args:
        treated: counts under the perturbation.
        baseline: counts without it.
        level: nominal coverage.
        resamples: of the bootstrap, where its exact distribution is out of reach.
        seed: of this number.

    Returns:
        The effect; ``n`` and ``k`` count the rows of both conditions on the shared items.

    Raises:
        ValueError: if items have so many different numbers of rows that differences cannot be scaled
            exactly.
    """
    check_level(level)
    check_resampling(resamples, seed)
    pairs = _pair(treated, baseline)
    unscored = treated.n_unscored + baseline.n_unscored
    if not pairs.treated.items:
        return _empty(treated, baseline, pairs)
    n, n_items, k = _size(pairs)
    whole = np.full_like(pairs.differences, pairs.scale)
    boot = ratio_percentile(
        pairs.differences, whole, level=level, resamples=resamples, seed=seed, method=NAME_BOOTSTRAP
    )
    value = int(pairs.differences.sum()) / (n_items * pairs.scale)
    informative = n_items - int(np.unique(pairs.differences, return_counts=True)[1].max())
    notes = _notes(pairs)
    if informative >= MIN_DIFFERING:
        chosen = boot
    else:
        x, y = (c.positives / c.scored for c in (pairs.treated, pairs.baseline))
        low, high = mover_difference(*_arm(pairs.treated, level), *_arm(pairs.baseline, level), _correlation(x, y))
        chosen = Interval(max(-1.0, low), min(1.0, high), NAME_HYBRID, level)
        notes.append(f"{informative} items differ from the rest, fewer than {MIN_DIFFERING}: bootstrap too short")
    p_value, test = sign_flip_test(pairs.differences, seed=seed)
    return Estimate(value, chosen, boot, n, n_items, k, unscored, pairs.bounds, p_value, test, notes=tuple(notes))


def ratio(
    treated: ItemCounts, baseline: ItemCounts, *, level: float = 0.95, resamples: int = 10_000, seed: int
) -> Estimate:
    """Ratio of the mean item rates over shared items, treated over baseline.

    Args:
        treated: counts under the perturbation.
        baseline: counts without it.
        level: nominal coverage.
        resamples: of the bootstrap, where its exact distribution is out of reach.
        seed: of this number.

    Returns:
        The ratio with the p-value of the paired effect (both ask whether the rates are equal). None, with
        a note, where the baseline has no positive row.

    Raises:
        ValueError: as :func:`paired_effect`.
    """
    check_level(level)
    check_resampling(resamples, seed)
    pairs = _pair(treated, baseline)
    unscored = treated.n_unscored + baseline.n_unscored
    if not pairs.treated.items:
        return _empty(treated, baseline, pairs)
    n, n_items, k = _size(pairs)
    p_value, test = sign_flip_test(pairs.differences, seed=seed)
    notes = _notes(pairs)
    if not pairs.baseline.positives.any():
        notes.append("the baseline has no positive row: the ratio is not defined, read the difference")
        return Estimate(None, None, None, n, n_items, k, unscored, None, p_value, test, tuple(notes))
    scaled = [c.positives * (pairs.scale // c.scored) for c in (pairs.treated, pairs.baseline)]
    boot = ratio_percentile(*scaled, level=level, resamples=resamples, seed=seed, method=NAME_BOOTSTRAP)
    informative = min(int(np.count_nonzero(c.positives)) for c in (pairs.treated, pairs.baseline))
    if informative >= MIN_INFORMATIVE and boot is not None:
        chosen = boot
    else:
        low, high = mover_ratio(*_arm(pairs.treated, level), *_arm(pairs.baseline, level))
        chosen = Interval(low, high, NAME_MOVER_RATIO, level)
        notes.append(f"{informative} items with a positive row in the scarcer condition: bootstrap not trusted")
    value = int(scaled[0].sum()) / int(scaled[1].sum())
    return Estimate(value, chosen, boot, n, n_items, k, unscored, None, p_value, test, tuple(notes))
