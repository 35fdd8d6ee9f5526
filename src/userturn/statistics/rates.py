"""Rates: the share of rows with the positive label, and the share of items whose text repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from userturn.statistics.intervals import NAME_WILSON, effective_size, informative_items, modified_wilson
from userturn.statistics.resample import MIN_INFORMATIVE, check_level, check_resampling, ratio_percentile
from userturn.statistics.types import Estimate, Interval, ItemCounts

NAME_BOOTSTRAP = "item bootstrap (percentile)"


def rate(counts: ItemCounts, *, level: float = 0.95, resamples: int = 10_000, seed: int) -> Estimate:
    """Positives over scored rows, ``sum k_i / sum m_i``, with items as clusters.

    The chosen interval is the percentile bootstrap over items where at least ``MIN_INFORMATIVE`` items
    have a positive and as many a negative row, and the modified Wilson interval on n_eff elsewhere.

    Args:
        counts: by item.
        level: nominal coverage.
        resamples: of the bootstrap, where its exact distribution is out of reach.
        seed: of this number.

    Returns:
        The rate; its value is None when nothing was scored.
    """
    check_level(level)
    check_resampling(resamples, seed)
    used = counts.scored_only()
    unscored = counts.n_unscored
    n, k, n_items = int(used.scored.sum()), int(used.positives.sum()), len(used.items)
    if n == 0:
        bounds = (0.0, 1.0) if unscored else None
        note = "no row was scored" if unscored else "there are no rows"
        return Estimate(None, None, None, 0, 0, 0, unscored, bounds, notes=(note,))
    boot = ratio_percentile(
        used.positives, used.scored, level=level, resamples=resamples, seed=seed, method=NAME_BOOTSTRAP
    )
    value = k / n
    informative = int(informative_items(used.positives, used.scored))
    notes: tuple[str, ...] = ()
    if informative >= MIN_INFORMATIVE:
        chosen = boot
    else:
        low, high = modified_wilson(value, effective_size(used.positives, used.scored), level)
        chosen = Interval(float(low), float(high), NAME_WILSON, level)
        notes = (f"{informative} informative items, fewer than {MIN_INFORMATIVE}: bootstrap too short",)
    bounds = (k / (n + unscored), (k + unscored) / (n + unscored))
    return Estimate(value, chosen, boot, n, n_items, k, unscored, bounds, notes=notes)


def determinism(
    texts: Mapping[str, Sequence[str | None]], *, level: float = 0.95, resamples: int = 10_000, seed: int
) -> Estimate:
    """Share of items whose repeated texts at T = 0 are all the same.

    Args:
        texts: item id to its repeated texts (or their digests); None is a text that is missing.
        level: nominal coverage.
        resamples: of the bootstrap.
        seed: of this number.

    Returns:
        The share over items; an item with fewer than two texts, or a missing one, is unscored.
    """
    rows = (
        (item, None if len(given) < 2 or any(t is None for t in given) else len(set(given)) == 1)
        for item, given in texts.items()
    )
    return rate(ItemCounts.from_rows(rows), level=level, resamples=resamples, seed=seed)
