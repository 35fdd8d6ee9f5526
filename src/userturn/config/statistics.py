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
    confirmatory: list[str] = Field(
        default_factory=lambda: [
            f"effect/*/*/{name}/*" for name in ("shuffled_context", "removed_assistant", "swapped_roles")
        ]
    )
    """Patterns of number ids whose tests form the confirmatory family, adjusted together by Holm's method; the tests of
    each other quantity are adjusted by Benjamini and Hochberg's."""
