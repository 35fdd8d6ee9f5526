"""Intervals and tests."""

from __future__ import annotations

from pydantic import Field

from userturn.config.section import Section


class Statistics(Section):
    """Intervals and tests."""

    level: float = Field(default=0.95, gt=0.0, lt=1.0)
    """Coverage of the intervals."""
    resamples: int = Field(default=10_000, ge=100)
    """Bootstrap resamples a number, over items."""
