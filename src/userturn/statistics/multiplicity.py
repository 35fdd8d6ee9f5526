"""Adjusted p-values for a family of tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from userturn.statistics.types import FloatArray


def _adjust(p_values: Sequence[float | None], stepped: Callable[[FloatArray], FloatArray]) -> list[float | None]:
    """Adjusts ranked values; written out because statsmodels takes a second to import, in every audit of a p-value."""
    given = np.array([p for p in p_values if p is not None], dtype=np.float64)
    wrong = given[~((given >= 0.0) & (given <= 1.0))]
    if wrong.size:
        raise ValueError(f"p-value {wrong[0]!r}: a number within [0, 1], or None, is needed")
    order = np.argsort(given, kind="stable")
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(stepped(given[order]), 1.0)
    values = iter(adjusted.tolist())
    return [None if p is None else next(values) for p in p_values]


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment: controls the chance of any false claim (confirmatory families).

    Args:
        p_values: raw values; None where a number has no test.

    Returns:
        Adjusted values at the same places; None stays None and does not count in the family.

    Raises:
        ValueError: on a value outside [0, 1].
    """
    return _adjust(p_values, lambda ranked: np.maximum.accumulate(ranked * np.arange(ranked.size, 0, -1)))


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Hochberg's step-up adjustment: controls the share of false claims (all other families).

    Args:
        p_values: raw values; None where a number has no test.

    Returns:
        Adjusted values at the same places; None stays None and does not count in the family.

    Raises:
        ValueError: on a value outside [0, 1].
    """

    def stepped(ranked: FloatArray) -> FloatArray:
        scaled = ranked * (ranked.size / np.arange(1, ranked.size + 1))
        return np.minimum.accumulate(scaled[::-1])[::-1]

    return _adjust(p_values, stepped)
