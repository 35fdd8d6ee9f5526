"""The slope of the follow-up rate in the sampling temperature, with items as clusters.

The estimator is the GEE logit with an exchangeable working correlation (Liang and Zeger 1986), as
statsmodels has it. It is written out here because statsmodels loops over items in Python (0.6 to 1.8 s a
fit at 500 items, minutes for the paper's grid); items with equal counts are one kind, so that a fit takes
milliseconds. The tests compare coefficients, standard errors and correlation with statsmodels'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr, stdtrit

from userturn.statistics.effects import sign_flip_test
from userturn.statistics.intervals import informative_items
from userturn.statistics.rates import NAME_BOOTSTRAP
from userturn.statistics.resample import MIN_INFORMATIVE, check_level, kinds, percentile, resampled, total
from userturn.statistics.types import Estimate, FloatArray, IntArray, Interval, ItemCounts

NAME_GEE = "GEE logit, exchangeable, robust (t on informative items)"
MAX_STEPS = 100
TOLERANCE = 1e-9
STEEPEST = 30.0
"""Log-odds a unit beyond which a resample counts as separated."""


@dataclass(frozen=True)
class ExchangeableFit:
    """A fitted marginal logit.

    Attributes:
        coefficients: intercept and slope, shape (2,).
        covariance: robust (sandwich), shape (2, 2).
        correlation: of two rows of one item.
    """

    coefficients: FloatArray
    covariance: FloatArray
    correlation: float


def fit_exchangeable_logit(x: FloatArray, k: IntArray, m: IntArray, frequency: IntArray) -> ExchangeableFit | None:
    """Fits ``logit P(positive) = b0 + b1 x`` to counts by item and level of x.

    Args:
        x: covariate levels, shape (levels,).
        k: positives of each kind of item, shape (kinds, levels).
        m: scored rows, shape (kinds, levels).
        frequency: items of each kind, shape (kinds,).

    Returns:
        The fit; None if it does not converge.
    """
    design = np.column_stack([np.ones_like(x), x])
    w = frequency.astype(np.float64)
    rows = m.sum(axis=1)
    n_rows, pairs = float(w @ rows), float(w @ (rows * (rows - 1) / 2))
    overall = float(w @ k.sum(axis=1)) / n_rows
    beta = np.array([np.log(overall / (1.0 - overall)), 0.0])
    rho = 0.0
    smallest = -1.0 / max(1, int(rows.max()) - 1)
    for step in range(MAX_STEPS):
        mu = 1.0 / (1.0 + np.exp(-np.clip(design @ beta, -STEEPEST, STEEPEST)))
        sd = np.sqrt(mu * (1.0 - mu))
        residual = k - m * mu
        standardised = (residual / sd).sum(axis=1)
        if step and pairs > 2.0:
            squares = ((k * (1.0 - mu) ** 2 + (m - k) * mu**2) / sd**2).sum(axis=1)
            scale = float(w @ squares) / (n_rows - 2.0)
            rho = float(w @ (standardised**2 - squares)) / 2.0 / scale / (pairs - 2.0)
            rho = min(max(rho, 0.999 * smallest), 0.999)
        c = rho / (1.0 + rho * (rows - 1))
        weighted = (m * sd) @ design
        score = (residual @ design - (c * standardised)[:, None] * weighted) / (1.0 - rho)
        information = np.einsum("i,it,ta,tb->ab", w, m * sd**2, design, design)
        information = (information - np.einsum("i,ia,ib->ab", w * c, weighted, weighted)) / (1.0 - rho)
        bread = np.linalg.inv(information)
        move = bread @ (w @ score)
        if step and np.abs(move).max() < TOLERANCE:
            meat = np.einsum("i,ia,ib->ab", w, score, score)
            return ExchangeableFit(beta, bread @ meat @ bread, rho)
        beta = beta + move
        if not np.all(np.abs(beta) < 1e3):
            return None
    return None


def _independence_slopes(x: FloatArray, k: FloatArray, m: FloatArray) -> FloatArray:
    """Slopes of ordinary logits to totals by level, shape (resamples, levels) each; NaN where separated."""
    some, other = k > 0, k < m
    lowest, highest = np.min(x), np.max(x)
    rising = np.where(some, x, highest + 1).min(axis=1) >= np.where(other, x, lowest - 1).max(axis=1)
    falling = np.where(some, x, lowest - 1).max(axis=1) <= np.where(other, x, highest + 1).min(axis=1)
    usable = ~(rising | falling) & some.any(axis=1) & other.any(axis=1)
    slopes = np.full(k.shape[0], np.nan)
    k, m = k[usable], m[usable]
    overall = k.sum(axis=1) / m.sum(axis=1)
    b0, b1 = np.log(overall / (1.0 - overall)), np.zeros(overall.size)
    for _ in range(25):
        mu = 1.0 / (1.0 + np.exp(-np.clip(b0[:, None] + b1[:, None] * x, -STEEPEST, STEEPEST)))
        v = m * mu * (1.0 - mu)
        s0, s1 = (k - m * mu).sum(axis=1), ((k - m * mu) * x).sum(axis=1)
        a, b, c = v.sum(axis=1), (v * x).sum(axis=1), (v * x * x).sum(axis=1)
        det = np.maximum(a * c - b * b, 1e-12)
        d0, d1 = (c * s0 - b * s1) / det, (a * s1 - b * s0) / det
        b0, b1 = b0 + np.clip(d0, -2, 2), b1 + np.clip(d1, -2, 2)
        if d0.size == 0 or max(np.abs(d0).max(), np.abs(d1).max()) < 1e-8:
            break
    slopes[usable] = np.where(np.abs(b1) < STEEPEST, b1, np.nan)
    return slopes


def _trend_test(k: IntArray, m: IntArray, seed: int) -> tuple[float, str]:
    level = np.arange(k.shape[1])
    signed = m.sum(axis=1) * (k @ level) - (m @ level) * k.sum(axis=1)
    p_value, _ = sign_flip_test(signed, seed=seed)
    return p_value, "sign-flip permutation of item trends"


def temperature_slope(
    by_temperature: Mapping[float, ItemCounts], *, level: float = 0.95, resamples: int = 10_000, seed: int
) -> Estimate:
    """Change of the log-odds of a positive row for one unit of temperature.

    Args:
        by_temperature: counts at each temperature; items need not be the same.
        level: nominal coverage.
        resamples: of the bootstrap (slope of the logit with independent working correlation).
        seed: of this number.

    Returns:
        The slope; None with a note where it is not defined: fewer than two temperatures, one class only, or
        separation (positives only at one end), where the test is still given.

    Raises:
        ValueError: if a temperature is not a finite number >= 0.
    """
    check_level(level)
    wrong = [t for t in by_temperature if not (np.isfinite(t) and t >= 0)]
    if wrong:
        raise ValueError(f"temperature {wrong[0]!r}: a finite number >= 0 is needed")
    temperatures = sorted(t for t in by_temperature if int(by_temperature[t].scored.sum()))
    unscored = sum(c.n_unscored for c in by_temperature.values())
    items = sorted({i for t in temperatures for i in by_temperature[t].scored_only().items})
    counts = [by_temperature[t].select(items) for t in temperatures]
    k = np.column_stack([c.positives for c in counts]) if counts else np.zeros((0, 0), dtype=np.int64)
    m = np.column_stack([c.scored for c in counts]) if counts else np.zeros((0, 0), dtype=np.int64)
    n, positives = int(m.sum()), int(k.sum())
    blank = Estimate(None, None, None, n, len(items), positives, unscored)
    if len(temperatures) < 2:
        return replace(blank, notes=("a slope needs scored rows at two temperatures",))
    p_value, test = _trend_test(k, m, seed)
    if positives in (0, n):
        which = "no" if positives == 0 else "every"
        notes: tuple[str, ...] = (f"{which} row is positive: the slope is not defined",)
        return replace(blank, p_value=p_value, test=test, notes=notes)
    x = np.array(temperatures)
    middle = x - x.mean()
    k_all, m_all = k.sum(axis=0), m.sum(axis=0)
    if np.isnan(_independence_slopes(middle, k_all[None].astype(float), m_all[None].astype(float))[0]):
        end = "highest" if (k_all * middle).sum() > 0 else "lowest"
        notes = (f"separated: positives only at the {end} temperature, so the slope is unbounded; read the rates",)
        return replace(blank, p_value=p_value, test=test, notes=notes)
    kind, frequency = kinds(k, m)
    kk, mm = kind[:, : x.size], kind[:, x.size :]

    def statistic(frequencies: IntArray) -> FloatArray:
        sums = total(frequencies, kind).astype(np.float64)
        return _independence_slopes(middle, sums[:, : x.size], sums[:, x.size :])

    boot = percentile(resampled(frequency, resamples, seed, statistic), level, NAME_BOOTSTRAP)
    fit = fit_exchangeable_logit(middle, kk, mm, frequency)
    if fit is None:
        notes = ("the exchangeable model does not converge: the bootstrap over items stands in",)
        slope = float(_independence_slopes(middle, k_all[None].astype(float), m_all[None].astype(float))[0])
        return replace(blank, value=slope, interval=boot, bootstrap=boot, p_value=p_value, test=test, notes=notes)
    slope, error = float(fit.coefficients[1]), float(np.sqrt(fit.covariance[1, 1]))
    informative = int(informative_items(k.sum(axis=1), m.sum(axis=1)))
    df = max(1, informative - 1)
    reach = float(stdtrit(df, 0.5 + level / 2.0)) * error
    notes = () if informative >= MIN_INFORMATIVE else (f"only {informative} informative items: read with care",)
    if error > 0:
        p_value, test = (
            float(2 * stdtr(df, -abs(slope) / error)),
            "GEE robust Wald (t on informative items)",
        )
    interval = Interval(slope - reach, slope + reach, NAME_GEE, level) if error > 0 else None
    return replace(blank, value=slope, interval=interval, bootstrap=boot, p_value=p_value, test=test, notes=notes)
