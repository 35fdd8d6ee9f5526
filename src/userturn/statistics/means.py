"""Means of one measured value an item, and whether they differ from zero."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import stdtrit

from userturn.statistics.rates import NAME_BOOTSTRAP
from userturn.statistics.resample import check_level, check_resampling, generator, percentile
from userturn.statistics.types import Estimate, FloatArray, Interval

NAME_T = "Student t over items"
NAME_TEST = "sign-flip permutation"
FLIPS = 20_000
"""Random sign flips where not all can be enumerated."""
CHUNK = 2_000_000
"""Most values of resamples held at once."""


def mean(values: Mapping[str, float], *, level: float = 0.95, resamples: int = 10_000, seed: int) -> Estimate:
    """Mean of one value an item, with a two-sided test of symmetry about zero.

    The chosen interval is Student's t over items; the percentile bootstrap over items, too short below a few dozen
    items, stands beside it. The test flips the sign of each value; all ways are tried where they are few enough
    (``scipy.stats.permutation_test``).

    Args:
        values: item id to finite value.
        level: nominal coverage.
        resamples: of the bootstrap.
        seed: of this number.

    Returns:
        The mean; its value is None without items, its intervals are None with one.

    Raises:
        ValueError: on a value that is not finite.
    """
    check_level(level)
    check_resampling(resamples, seed)
    given = np.array([values[item] for item in sorted(values)], dtype=np.float64)
    if not np.isfinite(given).all():
        raise ValueError("a mean needs finite values")
    n = int(given.size)
    if n == 0:
        return Estimate(None, None, None, 0, 0, 0, 0, notes=("there are no items",))
    average, above = float(given.mean()), int(np.count_nonzero(given > 0))
    if n == 1:
        return Estimate(average, None, None, 1, 1, above, 0, notes=("one item: no interval",))
    # imported here: it takes a second, and most numbers need none of it
    from scipy.stats import permutation_test

    half = float(stdtrit(n - 1, (1.0 + level) / 2.0) * given.std(ddof=1) / np.sqrt(n))
    test = permutation_test(
        (given,),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=FLIPS,
        batch=max(1, CHUNK // n),
        rng=generator(seed),
    )
    exact = 2**n <= FLIPS
    return Estimate(
        value=average,
        interval=Interval(average - half, average + half, NAME_T, level),
        bootstrap=percentile(_resampled_means(given, resamples, seed), level, NAME_BOOTSTRAP),
        n=n,
        n_items=n,
        k=above,
        n_unscored=0,
        p_value=float(min(1.0, test.pvalue)),
        test=f"exact {NAME_TEST}" if exact else NAME_TEST,
    )


def _resampled_means(values: FloatArray, resamples: int, seed: int) -> FloatArray:
    rng = generator(seed)
    step = max(1, CHUNK // values.size)
    chunks = []
    for start in range(0, resamples, step):
        drawn = rng.integers(values.size, size=(min(step, resamples - start), values.size))
        chunks.append(values[drawn].mean(axis=1))
    return np.concatenate(chunks)
