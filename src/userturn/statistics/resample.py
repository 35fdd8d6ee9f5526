"""The bootstrap over items, done on kinds of items.

A ratio of two sums has a law that can be computed (:func:`ratio_percentile`); other statistics are drawn.
Items with the same counts are interchangeable: a resample of items is a multinomial draw of how often each
*kind* of item occurs. With a few samples an item there are a handful of kinds whatever the number of
items, so that 10,000 resamples cost milliseconds, in the same distribution as drawing the items themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from userturn.statistics.law import RatioLaw
from userturn.statistics.types import FloatArray, IntArray, Interval

CHUNK_CELLS = 4_000_000
"""Most draws held at once (32 MB of int64)."""

PICKS_PER_KIND = 8
"""Items a kind, beside the most frequent one, from which drawing kinds' numbers is quicker than picking the items."""

CHUNK_PICKS = 200_000
"""Most items picked at once: their counts stay in the processor's cache."""

MIN_INFORMATIVE = 15
"""Items off the most common outcome from which the percentile bootstrap is trusted (tuned in
docs/statistics.md)."""


def generator(seed: int) -> np.random.Generator:
    """The explicit generator of one number.

    Args:
        seed: non-negative, derived from the number's id.

    Returns:
        A PCG64 generator.

    Raises:
        ValueError: on a negative seed.
    """
    check_resampling(1, seed)
    return np.random.Generator(np.random.PCG64(seed))


def kinds(*columns: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct rows of integer columns, most frequent first.

    Args:
        columns: each of shape (n_items,) or (n_items, c).

    Returns:
        The kinds, shape (n_kinds, n_columns), and how many items are of each, shape (n_kinds,). The order
        depends on the contents alone, and the most frequent first keeps the draws short.
    """
    table = np.column_stack(columns)
    rows, counts = np.unique(table, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return rows[order], counts[order].astype(np.int64)


def draw(frequency: IntArray, resamples: int, seed: int) -> Iterator[IntArray]:
    """Yields bootstrap frequencies of the kinds in chunks of bounded memory.

    Args:
        frequency: items of each kind, shape (n_kinds,).
        resamples: number of resamples in total.
        seed: see :func:`generator`.

    Yields:
        Arrays of shape (chunk, n_kinds); each row sums to the number of items.

    Raises:
        ValueError: if ``resamples`` is not positive.
    """
    check_resampling(resamples, seed)
    rng = generator(seed)
    n, n_kinds = int(frequency.sum()), frequency.size
    rest = n - int(frequency[0])
    if 0 < rest < PICKS_PER_KIND * n_kinds:
        yield from _picked(frequency, rng.binomial(n, rest / n, size=resamples), rng)
    else:
        for size in _sizes(resamples, CHUNK_CELLS // n_kinds):
            yield rng.multinomial(n, frequency / n, size=size)


def _picked(frequency: IntArray, others: IntArray, rng: np.random.Generator) -> Iterator[IntArray]:
    """Resamples with so many items each that are not of the first kind: these are picked one by one."""
    n, n_kinds = int(frequency.sum()), frequency.size
    kind = np.repeat(np.arange(1, n_kinds), frequency[1:])
    start = 0
    for size in _sizes(others.size, CHUNK_PICKS // n):
        some = others[start : start + size]
        start += size
        place = np.repeat(np.arange(size) * n_kinds, some) + kind[rng.integers(kind.size, size=int(some.sum()))]
        counts = np.bincount(place, minlength=size * n_kinds).reshape(size, n_kinds)
        counts[:, 0] = n - some
        yield counts


def _sizes(total: int, most: int) -> Iterator[int]:
    step = max(1, most)
    for start in range(0, total, step):
        yield min(step, total - start)


def resampled(
    frequency: IntArray, resamples: int, seed: int, statistic: Callable[[IntArray], FloatArray]
) -> FloatArray:
    """The statistic of every resample.

    Args:
        frequency: items of each kind, shape (n_kinds,).
        resamples: how many.
        seed: see :func:`generator`.
        statistic: maps frequencies (chunk, n_kinds) to values (chunk,) or (chunk, c).

    Returns:
        Shape (resamples,) or (resamples, c).
    """
    return np.concatenate([statistic(chunk) for chunk in draw(frequency, resamples, seed)])


def total(frequencies: IntArray, values: IntArray) -> IntArray:
    """Sum of ``values`` over the items of every resample, exactly.

    Products of floats are many times faster than of integers, and exact while every sum is below 2**53.

    Args:
        frequencies: shape (chunk, n_kinds).
        values: shape (n_kinds,) or (n_kinds, c).

    Returns:
        Shape (chunk,) or (chunk, c).
    """
    largest = int(np.abs(values).max(initial=0)) * int(frequencies.sum(axis=1).max(initial=0))
    if largest < 2**53:
        return (frequencies.astype(np.float64) @ values.astype(np.float64)).astype(np.int64)
    return np.asarray(frequencies @ values, dtype=np.int64)


def percentile(values: FloatArray, level: float, method: str) -> Interval | None:
    """The percentile interval of resampled values.

    Args:
        values: shape (resamples,); NaN marks a resample in which the statistic is not defined.
        level: nominal coverage.
        method: name of the interval.

    Returns:
        The interval; None when no resample, or fewer than ``level`` of them, defines the statistic.
    """
    defined = values[~np.isnan(values)]
    if defined.size == 0 or defined.size < level * values.size:
        return None
    tail = (1.0 - level) / 2.0
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(defined, [tail, 1.0 - tail])
    if not (np.isfinite(low) and np.isfinite(high)):
        return None
    return Interval(float(low), float(high), method, level)


def ratio_percentile(
    numerators: IntArray, denominators: IntArray, *, level: float, resamples: int, seed: int, method: str
) -> Interval | None:
    """The percentile interval of a ratio of two sums over items.

    It has infinitely many resamples (:class:`userturn.statistics.law.RatioLaw`), unless the law is too large to
    compute and resamples are drawn.

    Args:
        numerators: whole numbers, shape (n_items,), at least one.
        denominators: whole numbers >= 0, not all 0, shape (n_items,); all the same for a mean.
        level: nominal coverage.
        resamples: how many, where they are drawn.
        seed: see :func:`generator`.
        method: name of the interval.

    Returns:
        The interval; None when the denominator is 0 with more than ``1 - level`` of the probability.
    """
    law = RatioLaw.of(numerators, denominators)
    if law is None:
        return percentile(_drawn_ratios(numerators, denominators, resamples, seed), level, method)
    if law.defined < level:
        return None
    tail = (1.0 - level) / 2.0
    return Interval(law.quantile(tail), law.quantile(1.0 - tail), method, level)


def check_level(level: float) -> None:
    """Refuses an impossible level.

    Args:
        level: nominal coverage.

    Raises:
        ValueError: unless 0 < level < 1.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; a coverage lies strictly between 0 and 1")


def check_resampling(resamples: int, seed: int) -> None:
    """Refuses what no bootstrap could use, also where the exact distribution makes both superfluous.

    Args:
        resamples: number of resamples.
        seed: of the generator.

    Raises:
        ValueError: unless resamples >= 1 and seed >= 0.
    """
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; at least 1 is needed")
    if seed < 0:
        raise ValueError(f"seed is {seed}; a seed is a whole number >= 0")


def resampled_ratios(numerators: IntArray, denominators: IntArray, *, resamples: int, seed: int) -> FloatArray:
    """A ratio of two sums over items in every resample, drawn from its law where that can be computed.

    Args:
        numerators: whole numbers, shape (n_items,), at least one.
        denominators: whole numbers >= 0, not all 0, shape (n_items,); all the same for a mean.
        resamples: how many.
        seed: see :func:`generator`.

    Returns:
        Shape (resamples,); NaN where the denominator is 0.
    """
    check_resampling(resamples, seed)
    law = RatioLaw.of(numerators, denominators)
    if law is None:
        return _drawn_ratios(numerators, denominators, resamples, seed)
    return law.sample(generator(seed).random(resamples))


def _drawn_ratios(numerators: IntArray, denominators: IntArray, resamples: int, seed: int) -> FloatArray:
    kind, frequency = kinds(numerators, denominators)

    def statistic(frequencies: IntArray) -> FloatArray:
        sums = total(frequencies, kind).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)

    return resampled(frequency, resamples, seed, statistic)
