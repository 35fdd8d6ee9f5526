"""What a judge's own errors do to a rate, and how far they can be taken out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from userturn.statistics.effects import effect_resamples, paired_effect
from userturn.statistics.intervals import effective_size, modified_wilson, mover_difference
from userturn.statistics.rates import rate
from userturn.statistics.resample import (
    MIN_INFORMATIVE,
    check_level,
    generator,
    percentile,
    resampled_ratios,
)
from userturn.statistics.types import Estimate, Interval, ItemCounts

NAME_LANG_REICZIGEL = "Lang-Reiczigel on n_eff"
NAME_BOOTSTRAP_BOTH = "item bootstrap x binomial gold sets (percentile)"


@dataclass(frozen=True)
class CorrectedRate:
    """A rate with the judge's errors taken out, and the floor below which it says nothing.

    Attributes:
        corrected: Rogan and Gladen's estimate.
        floor: 1 - specificity: the rate that this judge reports where the truth is 0.
        above_floor: whether the raw rate's interval lies above the floor's upper limit; None if either is
            missing.
    """

    corrected: Estimate
    floor: Estimate
    above_floor: bool | None


def _gold(name: str, counts: tuple[int, int]) -> tuple[int, int]:
    right, size = counts
    if not 0 <= right <= size:
        raise ValueError(f"{name} is {counts}; (right, size) with 0 <= right <= size is needed")
    return right, size


def false_positive_floor(specificity: tuple[int, int], *, level: float = 0.95) -> Estimate:
    """The share of true negatives that the judge calls positive, with its interval.

    Args:
        specificity: (negatives judged negative, negatives) in the gold set.
        level: nominal coverage.

    Returns:
        1 - specificity; None without a negative in the gold set.

    Raises:
        ValueError: on impossible counts.
    """
    check_level(level)
    right, size = _gold("specificity", specificity)
    if size == 0:
        note = ("the gold set has no negative: specificity is unknown",)
        return Estimate(None, None, None, 0, 0, 0, 0, notes=note)
    share = (size - right) / size
    low, high = modified_wilson(share, size, level)
    interval = Interval(float(low), float(high), "modified Wilson", level)
    return Estimate(share, interval, None, size, size, size - right, 0)


def rogan_gladen(
    raw: ItemCounts,
    sensitivity: tuple[int, int],
    specificity: tuple[int, int],
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int,
) -> CorrectedRate:
    """The rate with the judge's errors taken out: ``(p + spec - 1) / (sens + spec - 1)``, within [0, 1].

    The interval is Lang and Reiczigel's (2014, Preventive Veterinary Medicine 113, 13-22), which carries
    the sampling error of the rate and of both gold sets; the rate enters with its effective size for
    clustered rows.

    Args:
        raw: judged counts by item.
        sensitivity: (positives judged positive, positives) in the gold set.
        specificity: (negatives judged negative, negatives) in the gold set.
        level: nominal coverage.
        resamples: of the bootstrap, which resamples items and draws both gold sets anew.
        seed: of this number.

    Returns:
        The corrected rate and the floor.

    Raises:
        ValueError: on impossible gold counts.
    """
    check_level(level)
    hit, n_pos = _gold("sensitivity", sensitivity)
    rejected, n_neg = _gold("specificity", specificity)
    floor = false_positive_floor(specificity, level=level)
    plain = rate(raw, level=level, resamples=resamples, seed=seed)
    blank = replace(plain, value=None, interval=None, bootstrap=None, bounds=None)
    if plain.value is None:
        return CorrectedRate(blank, floor, None)
    above = None
    if plain.interval is not None and floor.interval is not None:
        above = plain.interval.low > floor.interval.high
    if n_pos == 0 or n_neg == 0:
        notes = ("the gold set lacks positives or negatives: nothing can be corrected",)
        return CorrectedRate(replace(blank, notes=notes), floor, above)
    sens, spec = hit / n_pos, rejected / n_neg
    if sens + spec <= 1.0:
        notes = (f"sensitivity {sens:.3f} + specificity {spec:.3f} <= 1: the judge carries no information",)
        return CorrectedRate(replace(blank, notes=notes), floor, above)
    used = raw.scored_only()
    value = (plain.value + spec - 1.0) / (sens + spec - 1.0)

    z = float(ndtri(0.5 + level / 2.0))
    size = float(effective_size(used.positives, used.scored))
    n1 = size + z * z
    p1 = (size * plain.value + z * z / 2.0) / n1
    s1, c1 = (hit + 1.0) / (n_pos + 2.0), (rejected + 1.0) / (n_neg + 2.0)
    gain = s1 + c1 - 1.0
    theta = (p1 + c1 - 1.0) / gain
    sens_var, spec_var = s1 * (1 - s1) / (n_pos + 2.0), c1 * (1 - c1) / (n_neg + 2.0)
    shift = 2.0 * z * z * (theta * sens_var - (1.0 - theta) * spec_var)
    error = math.sqrt(p1 * (1 - p1) / n1 + theta**2 * sens_var + (1 - theta) ** 2 * spec_var) / gain
    limits = [min(1.0, max(0.0, theta + shift + sign * z * error)) for sign in (-1.0, 1.0)]
    interval = Interval(limits[0], limits[1], NAME_LANG_REICZIGEL, level)

    rng = generator(seed + 1)
    p = resampled_ratios(used.positives, used.scored, resamples=resamples, seed=seed)
    s, c = rng.binomial(n_pos, sens, resamples) / n_pos, rng.binomial(n_neg, spec, resamples) / n_neg
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.where(s + c > 1.0, np.clip((p + c - 1.0) / (s + c - 1.0), 0.0, 1.0), np.nan)
    boot = percentile(drawn, level, NAME_BOOTSTRAP_BOTH)
    remarks: tuple[str, ...] = ()
    if value < 0.0:
        remarks = ("the raw rate is below 1 - specificity: corrected to 0",)
    elif above is False:
        remarks = ("the raw rate cannot be told from the judge's false positives",)
    bounds = None
    if plain.bounds is not None:
        low, high = (min(1.0, max(0.0, (b + spec - 1.0) / (sens + spec - 1.0))) for b in plain.bounds)
        bounds = (low, high)
    corrected = replace(
        plain,
        value=min(1.0, max(0.0, value)),
        interval=interval,
        bootstrap=boot,
        bounds=bounds,
        notes=remarks,
    )
    return CorrectedRate(corrected, floor, above)


def corrected_effect(
    treated: ItemCounts,
    baseline: ItemCounts,
    sensitivity: tuple[int, int],
    specificity: tuple[int, int],
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int,
) -> Estimate:
    """A paired effect with the judge's errors taken out: the raw effect over ``sens + spec - 1``.

    A judge that errs at the same rates in both conditions shrinks a difference by that factor; false
    positives cancel. The limits combine those of the effect and of the factor (MOVER, Zou and Donner 2008).

    Args:
        treated: judged counts under the perturbation.
        baseline: judged counts without it.
        sensitivity: (positives judged positive, positives).
        specificity: (negatives judged negative, negatives).
        level: nominal coverage.
        resamples: of the bootstrap of the raw effect.
        seed: of this number.

    Returns:
        The corrected effect; the test is the raw effect's, which asks the same question.

    Raises:
        ValueError: on impossible gold counts.
    """
    hit, n_pos = _gold("sensitivity", sensitivity)
    rejected, n_neg = _gold("specificity", specificity)
    raw = paired_effect(treated, baseline, level=level, resamples=resamples, seed=seed)
    blank = replace(raw, value=None, interval=None, bootstrap=None, bounds=None)
    if raw.value is None or raw.interval is None:
        return blank
    if n_pos == 0 or n_neg == 0:
        return replace(blank, notes=("the gold set lacks positives or negatives: nothing can be corrected",))
    sens, false = hit / n_pos, 1.0 - rejected / n_neg
    gain = sens - false
    limits_s = tuple(float(x) for x in modified_wilson(sens, n_pos, level))
    limits_f = tuple(float(x) for x in modified_wilson(false, n_neg, level))
    low_gain, high_gain = mover_difference(sens, (limits_s[0], limits_s[1]), false, (limits_f[0], limits_f[1]), 0.0)
    if low_gain <= 0.0:
        notes = (f"sensitivity + specificity - 1 is {gain:.3f} and may be 0: the effect cannot be corrected",)
        return replace(blank, notes=notes)
    d, (low, high) = raw.value, (raw.interval.low, raw.interval.high)
    value = d / gain
    smaller, larger = sorted((d / low_gain, d / high_gain))
    reach_low = math.hypot((d - low) / gain, value - smaller)
    reach_high = math.hypot((high - d) / gain, larger - value)
    rng = generator(seed + 1)
    gains = rng.binomial(n_pos, sens, resamples) / n_pos - rng.binomial(n_neg, false, resamples) / n_neg
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.where(gains > 0, effect_resamples(treated, baseline, resamples=resamples, seed=seed) / gains, np.nan)
    boot = percentile(np.clip(drawn, -1.0, 1.0), level, NAME_BOOTSTRAP_BOTH)
    method = f"{raw.interval.method}, with the judge's gain by MOVER"
    interval = Interval(max(-1.0, value - reach_low), min(1.0, value + reach_high), method, level)
    remarks = (*raw.notes, "valid if the judge errs alike in both conditions")
    value = min(1.0, max(-1.0, value))
    return replace(raw, value=value, interval=interval, bootstrap=boot, bounds=None, notes=remarks)


def prediction_powered(
    judged: ItemCounts, gold: tuple[tuple[int, int], tuple[int, int]], *, level: float = 0.95
) -> Estimate:
    """The rate from many judged rows and few human labels (PPI++, Angelopoulos, Duchi and Zrnic 2023).

    ``lambda mean(judge, judged rows) + mean(human - lambda judge, gold rows)`` with the variance-optimal
    lambda. Its normal interval undercovers when positives or disagreements are rare (0.60 for 0.95 at a
    rate of 0.005 with 200 gold rows), so it is refused there.

    Args:
        judged: judged counts by item, without the gold rows.
        gold: a random sample of the same cell with human labels,
            ``((judge+ human+, judge+ human-), (judge- human+, judge- human-))``, one row an item.
        level: nominal coverage.

    Returns:
        The estimate; refused (None, with the reason) where human positives, human negatives or rows on
        which the judge and the human differ number fewer than ``MIN_INFORMATIVE``.

    Raises:
        ValueError: on negative gold counts.
    """
    check_level(level)
    (both, false), (missed, neither) = gold
    if min(both, false, missed, neither) < 0:
        raise ValueError(f"gold is {gold}; counts are >= 0")
    used = judged.scored_only()
    n, k, n_items = int(used.scored.sum()), int(used.positives.sum()), len(used.items)
    size, human, differ = both + false + missed + neither, both + missed, false + missed
    base = Estimate(None, None, None, n, n_items, k, judged.n_unscored)
    needs = {
        "human positives": human,
        "human negatives": size - human,
        "disagreements with the judge": differ,
    }
    few = [f"{count} {name}" for name, count in needs.items() if count < MIN_INFORMATIVE]
    if few or n == 0:
        reason = "no judged row" if n == 0 else f"{', '.join(few)}; at least {MIN_INFORMATIVE} of each are needed"
        return replace(base, notes=(f"refused: {reason}",))
    y, f = human / size, (both + false) / size
    p = k / n
    spread = float(effective_size(used.positives, used.scored))
    covariance = (both / size - y * f) * size / (size - 1)
    variance_f = f * (1 - f) * size / (size - 1)
    tuning = 0.0 if variance_f == 0 else min(1.0, max(0.0, covariance / ((1 + size / spread) * variance_f)))
    variance_y = y * (1 - y) * size / (size - 1)
    variance = tuning**2 * p * (1 - p) / spread
    variance += (variance_y - 2 * tuning * covariance + tuning**2 * variance_f) / size
    value = tuning * p + y - tuning * f
    reach = float(ndtri(0.5 + level / 2)) * math.sqrt(variance)
    interval = Interval(max(0.0, value - reach), min(1.0, value + reach), "PPI++ normal", level)
    notes = (f"{size} gold rows, lambda {tuning:.3f}; valid if they are a random sample of this cell",)
    return replace(base, value=value, interval=interval, notes=notes)
