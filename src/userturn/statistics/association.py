"""Are accuracy and the follow-up rate coupled: across models, and within a model across items."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Literal, cast

import numpy as np
from scipy.special import ndtri

from userturn.statistics.intervals import effective_size, modified_wilson, mover_difference
from userturn.statistics.rates import NAME_BOOTSTRAP
from userturn.statistics.resample import (
    MIN_INFORMATIVE,
    check_level,
    generator,
    kinds,
    percentile,
    resampled,
    total,
)
from userturn.statistics.types import Estimate, FloatArray, IntArray, Interval, ItemCounts

Method = Literal["spearman", "kendall"]
NAME_INDEPENDENT = "Newcombe hybrid score on n_eff, independent groups"
PERMUTATIONS = 20_000
EXHAUSTIVE_MODELS = 8
"""Up to this many models all orders are enumerated (8! = 40,320)."""


def _spearman(x: FloatArray, y: FloatArray) -> FloatArray:
    # imported here: it takes a second, and most numbers need none of it
    from scipy.stats import rankdata

    a, b = rankdata(x, axis=-1), rankdata(y, axis=-1)
    a, b = a - a.mean(axis=-1, keepdims=True), b - b.mean(axis=-1, keepdims=True)
    spread = np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return cast("FloatArray", np.where(spread > 0, (a * b).sum(axis=-1) / spread, np.nan))


def _kendall(x: FloatArray, y: FloatArray) -> FloatArray:
    i, j = np.triu_indices(x.shape[-1], 1)
    a, b = np.sign(x[..., i] - x[..., j]), np.sign(y[..., i] - y[..., j])
    spread = np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return cast("FloatArray", np.where(spread > 0, (a * b).sum(axis=-1) / spread, np.nan))


def _fisher_interval(value: float, n: int, method: Method, level: float) -> Interval | None:
    """Bonett and Wright (2000, Psychometrika 65, 23-28): Fisher's z with their standard errors."""
    freedom = n - 3 if method == "spearman" else n - 4
    if freedom < 1:
        return None
    next_value = 1 - 12 / (n * (n * n - 1)) if method == "spearman" else 1 - 4 / (n * (n - 1))
    r = math.copysign(min(abs(value), next_value), value)
    error = math.sqrt((1 + r * r / 2) / freedom) if method == "spearman" else math.sqrt(0.437 / freedom)
    reach = float(ndtri(0.5 + level / 2)) * error
    low, high = math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach)
    return Interval(min(low, value), max(high, value), f"Fisher z for {method} (Bonett-Wright)", level)


def decoupling(
    accuracy: Mapping[str, float],
    followup: Mapping[str, float],
    *,
    method: Method = "spearman",
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int,
) -> Estimate:
    """Rank correlation of accuracy and follow-up rate over models.

    The unit is the model: the interval speaks of a population of models like these, and says nothing of
    the noise in each model's two rates. With a dozen models it is wide, as it should be.

    Args:
        accuracy: model to accuracy.
        followup: model to follow-up rate.
        method: ``spearman`` or ``kendall`` (tau-b).
        level: nominal coverage.
        resamples: of the bootstrap over models.
        seed: of this number.

    Returns:
        The correlation over the models in both mappings; None below three models or without variation.
        ``n`` and ``n_items`` are models.

    Raises:
        ValueError: on an unknown method or a value that is not finite.
    """
    check_level(level)
    if method not in ("spearman", "kendall"):
        raise ValueError(f"method {method!r}: spearman or kendall")
    models = sorted(set(accuracy) & set(followup))
    n = len(models)
    x, y = np.array([accuracy[i] for i in models]), np.array([followup[i] for i in models])
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("accuracy and follow-up must be finite for every model; leave a model out instead")
    if n < 3:
        note = f"{n} models with both values; a rank correlation needs at least 3"
        return Estimate(None, None, None, n, n, 0, 0, notes=(note,))
    coefficient = _spearman if method == "spearman" else _kendall
    value = float(coefficient(x, y))
    if math.isnan(value):
        return Estimate(None, None, None, n, n, 0, 0, notes=("all models tie in one of the two values",))
    rng = generator(seed)
    picks = rng.integers(n, size=(resamples, n))
    boot = percentile(coefficient(x[picks], y[picks]), level, "bootstrap over models (percentile)")
    if n <= EXHAUSTIVE_MODELS:
        orders = np.array(list(itertools.permutations(range(n))))
        test, extra = f"exact permutation of {method}", 0
    else:
        orders = rng.permuted(np.tile(np.arange(n), (PERMUTATIONS, 1)), axis=1)
        test, extra = f"permutation of {method}", 1
    permuted = coefficient(np.broadcast_to(x, orders.shape), y[orders])
    extreme = int(np.count_nonzero(np.abs(permuted) >= abs(value) - 1e-9))
    p_value = (extreme + extra) / (len(orders) + extra)
    interval = _fisher_interval(value, n, method, level)
    notes = () if interval else (f"{n} models are too few for an interval that covers",)
    return Estimate(value, interval, boot, n, n, 0, 0, None, p_value, test, notes)


def within_item_association(
    correct: Mapping[str, bool | None],
    counts: ItemCounts,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int,
) -> Estimate:
    """Mean follow-up rate of correctly answered items minus that of incorrectly answered ones.

    Args:
        correct: item id to whether the assistant turn was correct; None and absent items are left out.
        counts: follow-up counts by item.
        level: nominal coverage.
        resamples: of the bootstrap over items.
        seed: of this number.

    Returns:
        The difference with a permutation test over items; None where one group is empty.

    Raises:
        ValueError: if items have so many different numbers of rows that rates cannot be scaled exactly.
    """
    check_level(level)
    known = [i for i in counts.scored_only().items if correct.get(i) is not None]
    used = counts.select(known)
    right = np.array([bool(correct[i]) for i in known], dtype=np.int64)
    n, k, n_items, n_right = int(used.scored.sum()), int(used.positives.sum()), len(known), int(right.sum())
    if n_right in (0, n_items):
        what = "no scored item" if not n_items else ("every item is correct" if n_right else "no item is correct")
        return Estimate(None, None, None, n, n_items, k, counts.n_unscored, notes=(f"{what}: no two groups",))
    scale = math.lcm(*(int(m) for m in np.unique(used.scored)))
    if scale > 10**9:
        raise ValueError(f"the items have too many different numbers of scored rows (common multiple {scale})")
    scaled = used.positives * (scale // used.scored)
    kind, frequency = kinds(right, scaled)
    table = np.column_stack([kind[:, 0], kind[:, 0] * kind[:, 1], kind[:, 1]])

    def statistic(frequencies: IntArray) -> FloatArray:
        sums = total(frequencies, table)
        size, hits, rest = sums[:, 0], sums[:, 1] / scale, (sums[:, 2] - sums[:, 1]) / scale
        with np.errstate(invalid="ignore", divide="ignore"):
            return hits / size - rest / (n_items - size)

    boot = percentile(resampled(frequency, resamples, seed, statistic), level, NAME_BOOTSTRAP)
    in_right, everything = int((right * scaled).sum()), int(scaled.sum())
    value = in_right / scale / n_right - (everything - in_right) / scale / (n_items - n_right)

    values, multiplicity = np.unique(scaled, return_counts=True)
    sampled = generator(seed + 1).multivariate_hypergeometric(
        multiplicity, n_right, size=PERMUTATIONS, method="marginals"
    )
    lean = n_items * (sampled @ values) - n_right * everything
    extreme = np.count_nonzero(np.abs(lean) >= abs(n_items * in_right - n_right * everything))
    p_value = float((extreme + 1) / (PERMUTATIONS + 1))

    arms: list[tuple[float, tuple[float, float]]] = []
    off_mode = []
    for group in (1, 0):
        mine = right == group
        pos, rows = used.positives[mine], used.scored[mine]
        p = float((pos / rows).mean())
        low, high = modified_wilson(p, effective_size(pos, rows), level)
        arms.append((p, (float(low), float(high))))
        off_mode.append(int(mine.sum()) - int(np.unique(scaled[mine], return_counts=True)[1].max()))
    notes: tuple[str, ...] = ()
    if min(off_mode) >= MIN_INFORMATIVE:
        interval = boot
    else:
        low_d, high_d = mover_difference(*arms[0], *arms[1], 0.0)
        interval = Interval(max(-1.0, low_d), min(1.0, high_d), NAME_INDEPENDENT, level)
        notes = (f"{min(off_mode)} informative items in the scarcer group, fewer than {MIN_INFORMATIVE}",)
    return Estimate(
        value,
        interval,
        boot,
        n,
        n_items,
        k,
        counts.n_unscored,
        None,
        p_value,
        "permutation over items",
        notes,
    )
