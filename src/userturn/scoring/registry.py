"""Scorers by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from userturn.scoring.base import Score, Scorer, unscored

ScorerName = Literal["gsm8k", "math", "ifeval", "ifbench", "choice", "none"]
SCORER_NAMES: tuple[str, ...] = get_args(ScorerName)


@dataclass(frozen=True)
class NoScorer:
    """The scorer of datasets without references: every turn is unscored."""

    name: str = "none"

    def score(self, response: str, item: Mapping[str, Any]) -> Score:
        """Withholds judgement on every response."""
        return unscored("no reference: turns of this dataset are not scored")


def get_scorer(name: ScorerName) -> Scorer:
    """The scorer called ``name``; its packages are imported here and not before.

    Raises:
        ValueError: If there is no such scorer.
    """
    match name:
        case "gsm8k":
            from userturn.scoring.gsm8k import Gsm8kScorer

            return Gsm8kScorer()
        case "math":
            from userturn.scoring.math import MathScorer

            return MathScorer()
        case "ifeval" | "ifbench":
            from userturn.scoring.instructions import InstructionScorer

            return InstructionScorer(name)
        case "choice":
            from userturn.scoring.choice import ChoiceScorer

            return ChoiceScorer()
        case "none":
            return NoScorer()
    raise ValueError(f"unknown scorer {name!r}: allowed are {', '.join(SCORER_NAMES)}")
