"""Scores of a classifier over several labels, with items as clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from userturn.statistics.rates import NAME_BOOTSTRAP
from userturn.statistics.resample import check_level, check_resampling, kinds, percentile, resampled, total
from userturn.statistics.types import Estimate, FloatArray, IntArray


def macro_f1(
    truth: Sequence[str],
    given: Sequence[str],
    items: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int,
) -> Estimate:
    """Mean over the true labels of each label's F1, with the bootstrap over items.

    A label's F1 is ``2 tp / (2 tp + fp + fn)``, 0 where nothing of it was found (as in scikit-learn with
    ``zero_division=0``); labels that never are true are left out.

    Args:
        truth: labels, one a turn.
        given: the classifier's.
        items: the item of each turn.
        level: nominal coverage.
        resamples: of the bootstrap.
        seed: of this number.

    Returns:
        The score; None without turns.

    Raises:
        ValueError: on unequal lengths.
    """
    check_level(level)
    check_resampling(resamples, seed)
    if not len(truth) == len(given) == len(items):
        raise ValueError(f"truth, given and items have lengths {len(truth)}, {len(given)}, {len(items)}")
    if not truth:
        return Estimate(None, None, None, 0, 0, 0, 0, notes=("there are no turns",))
    labels = sorted(set(truth))
    order = {item: place for place, item in enumerate(sorted(set(items)))}
    # tp, true, given by item and label
    counts = np.zeros((len(order), 3, len(labels)), dtype=np.int64)
    for real, found, item in zip(truth, given, items, strict=True):
        counts[order[item], 1, labels.index(real)] += 1
        if found in labels:
            counts[order[item], 2, labels.index(found)] += 1
            counts[order[item], 0, labels.index(real)] += real == found
    width = 3 * len(labels)

    def score(sums: IntArray) -> FloatArray:
        hits, real, found = (sums.reshape(-1, 3, len(labels))[:, i].astype(np.float64) for i in range(3))
        with np.errstate(invalid="ignore", divide="ignore"):
            each = np.where(real + found > 0, 2 * hits / (real + found), np.nan)
        # a label that a resample lacks altogether says nothing there
        return np.asarray(np.nanmean(each, axis=1), dtype=np.float64)

    kind, frequency = kinds(counts.reshape(-1, width))
    drawn = resampled(frequency, resamples, seed, lambda frequencies: score(total(frequencies, kind)))
    boot = percentile(drawn, level, NAME_BOOTSTRAP)
    right = sum(real == found for real, found in zip(truth, given, strict=True))
    value = float(score(counts.sum(axis=0).reshape(1, width))[0])
    return Estimate(value, boot, boot, len(truth), len(order), right, 0)
