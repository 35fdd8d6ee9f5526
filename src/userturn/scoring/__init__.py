"""Scoring of assistant turns: was the model's own answer right?

Each dataset names one scorer. A scorer is deterministic, reads nothing but the response and its item, and
never raises on what a model wrote: a response that cannot be parsed or verified is ``unscored`` with a
reason. Heavy packages (nltk, langdetect, if_verifiable) are imported only by the scorer that needs them.
"""

from userturn.scoring.base import JSON, Score, Scorer
from userturn.scoring.registry import SCORER_NAMES, ScorerName, get_scorer

__all__ = ["JSON", "SCORER_NAMES", "Score", "Scorer", "ScorerName", "get_scorer"]
