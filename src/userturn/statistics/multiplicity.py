"""Adjusted p-values for the families that the config declares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def _adjust(p_values: Sequence[float | None], method: str) -> list[float | None]:
    given = [p for p in p_values if p is not None]
    wrong = [p for p in given if not 0.0 <= p <= 1.0]
    if wrong:
        raise ValueError(f"p-value {wrong[0]!r}: a number within [0, 1], or None, is needed")
    if not given:
        return [None] * len(p_values)
    # imported here: it takes half a second, and most numbers need none of it
    from statsmodels.stats.multitest import multipletests

    adjusted = iter(np.asarray(multipletests(given, method=method)[1]).tolist())
    return [None if p is None else float(next(adjusted)) for p in p_values]


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment: controls the chance of any false claim (confirmatory families).

    Args:
        p_values: raw values; None where a number has no test.

    Returns:
        Adjusted values at the same places; None stays None and does not count in the family.

    Raises:
        ValueError: on a value outside [0, 1].
    """
    return _adjust(p_values, "holm")


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Hochberg's step-up adjustment: controls the share of false claims (all other families).

    Args:
        p_values: raw values; None where a number has no test.

    Returns:
        Adjusted values at the same places; None stays None and does not count in the family.

    Raises:
        ValueError: on a value outside [0, 1].
    """
    return _adjust(p_values, "fdr_bh")
