"""Closed-form intervals for clustered counts, and how to combine them for differences and ratios."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv, ndtri

from userturn.statistics.types import FloatArray, IntArray

RARE = 3.0
"""Effective successes (or failures) up to which Brown, Cai and DasGupta widen the Wilson limit."""

SHRINK_ITEMS = 1
"""Weight, in informative items, of the largest possible design effect against the estimated one."""

NAME_WILSON = "modified Wilson on n_eff"


def modified_wilson(p: ArrayLike, n: ArrayLike, level: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's score interval with the Poisson limit near 0 and 1.

    Wilson's interval undercovers where one to three successes are seen; Brown, Cai and DasGupta (2001,
    Statistical Science 16, section 4.1.1) replace its lower limit there by a Poisson one, ``chi2(alpha;
    2x) / 2n``. Here ``x`` may be fractional, and the lower of the two limits is taken.

    Args:
        p: observed proportion(s).
        n: (effective) number(s) of trials, > 0, not necessarily whole.
        level: nominal coverage.

    Returns:
        Lower and upper limits, of the broadcast shape.
    """
    share, size = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(n, dtype=np.float64))
    alpha = 1.0 - level
    low, high = _wilson(share, size, alpha)
    hits, misses = share * size, (1.0 - share) * size
    tiny = 1e-12
    # chi2.ppf(alpha, 2x) / 2 is the inverse of the incomplete gamma function
    rare_low = gammaincinv(np.maximum(hits, tiny), alpha) / size
    rare_high = 1.0 - gammaincinv(np.maximum(misses, tiny), alpha) / size
    low = np.where(hits <= RARE, np.minimum(low, rare_low), low)
    high = np.where(misses <= RARE, np.maximum(high, rare_high), high)
    low = np.where(hits <= tiny, 0.0, np.clip(low, 0.0, 1.0))
    high = np.where(misses <= tiny, 1.0, np.clip(high, 0.0, 1.0))
    return low, high


def _wilson(p: FloatArray, n: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's score interval (1927); statsmodels' would add half a second to every audit of a number."""
    z = float(ndtri(1.0 - alpha / 2.0))
    scale = 1.0 + z * z / n
    centre = (p + z * z / (2.0 * n)) / scale
    reach = z / scale * np.sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n))
    return centre - reach, centre + reach


def informative_items(positives: IntArray, scored: IntArray) -> IntArray:
    """The scarcer of items with any positive row and items with any negative row.

    Args:
        positives: shape (..., n_items).
        scored: shape (..., n_items).

    Returns:
        Shape (...).
    """
    some = np.count_nonzero(positives > 0, axis=-1)
    other = np.count_nonzero(positives < scored, axis=-1)
    return cast("IntArray", np.minimum(some, other))


def effective_size(positives: IntArray, scored: IntArray) -> FloatArray:
    """Number of independent rows that carry as much as the clustered ones: n / deff.

    The design effect is the linearised between-item variance of the ratio over the binomial one (Kish
    1965; as in Korn and Graubard 1998), kept within [1, sum m^2 / sum m]. With few informative items it is
    too noisy to use (one positive row says nothing of how positives cluster), so it is averaged with its
    largest value: ``(a deff + deff_max) / (a + 1)`` for ``a`` informative items. With no positive row (a =
    0) this is ``deff_max``, and n_eff is the number of items.

    Args:
        positives: shape (..., n_items).
        scored: shape (..., n_items), with at least one row in all.

    Returns:
        Shape (...).
    """
    k = np.asarray(positives, dtype=np.float64)
    m = np.broadcast_to(np.asarray(scored, dtype=np.float64), k.shape)
    rows = m.sum(axis=-1)
    items = np.count_nonzero(m > 0, axis=-1)
    p = k.sum(axis=-1) / rows
    largest = (m * m).sum(axis=-1) / rows
    between = ((k - p[..., None] * m) ** 2).sum(axis=-1) / rows**2
    binomial = p * (1.0 - p) / rows
    with np.errstate(invalid="ignore", divide="ignore"):
        deff = between * items / (items - 1.0) / binomial
    deff = np.where((binomial > 0) & (items > 1), deff, largest)
    deff = np.clip(deff, 1.0, np.maximum(largest, 1.0))
    a = informative_items(np.asarray(positives), np.asarray(scored))
    deff = (a * deff + SHRINK_ITEMS * largest) / (a + SHRINK_ITEMS)
    return cast("FloatArray", rows / deff)


def mover_difference(
    p1: float, limits1: tuple[float, float], p2: float, limits2: tuple[float, float], correlation: float
) -> tuple[float, float]:
    """Limits of p1 - p2 from the limits of each (Newcombe's hybrid score interval).

    With independent rows this is Newcombe's method 10 (1998, Statistics in Medicine 17, 2635-2650 and
    873-890 for correlation 0); Zou and Donner (2008) show that it holds for any two estimates with good
    limits of their own.

    Args:
        p1: first estimate.
        limits1: its limits.
        p2: second estimate.
        limits2: its limits.
        correlation: of the two estimates.

    Returns:
        Lower and upper limits.
    """
    d = p1 - p2

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(0.0, a * a + b * b - 2.0 * correlation * a * b))

    return (
        d - reach(p1 - limits1[0], limits2[1] - p2),
        d + reach(limits1[1] - p1, p2 - limits2[0]),
    )


def mover_ratio(
    p1: float, limits1: tuple[float, float], p2: float, limits2: tuple[float, float]
) -> tuple[float, float]:
    """Limits of p1 / p2 from the limits of each, correlation taken as 0 (Donner and Zou 2012, MOVER-R).

    Args:
        p1: numerator.
        limits1: its limits.
        p2: denominator, > 0 with a positive lower limit.
        limits2: its limits.

    Returns:
        Lower and upper limits.
    """
    (l1, u1), (l2, u2) = limits1, limits2
    product = p1 * p2
    low_root = math.sqrt(max(0.0, product**2 - l1 * (2 * p1 - l1) * u2 * (2 * p2 - u2)))
    high_root = math.sqrt(max(0.0, product**2 - u1 * (2 * p1 - u1) * l2 * (2 * p2 - l2)))
    low = 0.0 if l1 <= 0.0 else l1 * (2 * p1 - l1) / (product + low_root)
    return max(0.0, low), (product + high_root) / (l2 * (2 * p2 - l2))
