"""The embedded judge itself: program rules for `degenerate`, then the classifier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from userturn.judges import degenerate
from userturn.judges.embedded.classifiers import Data, fit
from userturn.judges.embedded.fluency import Fluency
from userturn.judges.embedded.vectors import vectors
from userturn.judges.embedding import Embedder
from userturn.judges.labels import JSON, Judgement, Label, Turn

#: Features shown as evidence.
SHOWN = (
    *("similarity.query", "similarity.answer", "similarity.sentence", "shared.share"),
    *("query.trigrams", "answer.trigrams", "fluency.surprise", "surface.asks"),
)


class EmbeddedJudge:
    """A classifier over features, fitted anew from stored examples.

    Args:
        data: Training examples as numbers.
        classifier: Which candidate to fit.
        seed: Of the fit.
        embedder: The sentence model.
        fluency: The trigram model of the training conversations.
        version: The digest of the examples.
    """

    name = "embedded"
    provisional = True

    def __init__(
        self, data: Data, classifier: str, seed: int, embedder: Embedder, fluency: Fluency, version: str
    ) -> None:
        self.version = version
        self._names = data.names
        self._fitted = fit(classifier, data, seed)
        self._embedder, self._fluency = embedder, fluency

    def judge(self, turns: Sequence[Turn]) -> list[Judgement]:
        """See `userturn.judges.labels.Judge.judge`."""
        ruled = [degenerate.find(turn.text, degenerate.DegenerateThresholds()) for turn in turns]
        open_turns = [turn for turn, rule in zip(turns, ruled, strict=True) if rule is None]
        judged = iter(self._classified(open_turns) if open_turns else [])
        return [
            Judgement("scored", "degenerate", {"rule": rule[0], **rule[1]}, rule[2]) if rule else next(judged)
            for rule in ruled
        ]

    def _classified(self, turns: Sequence[Turn]) -> list[Judgement]:
        names, x = vectors(turns, self._embedder, self._fluency)
        assert tuple(names) == self._names, "the features are those of the examples"
        finite: list[bool] = [bool(np.isfinite(row).all()) for row in x]
        probabilities = self._fitted.probabilities(np.nan_to_num(x))
        labels = self._fitted.labels(probabilities)
        return [
            self._judgement(label, row, dict(zip(names, values.tolist(), strict=True))) if known else _undecided()
            for label, row, values, known in zip(labels, probabilities, x, finite, strict=True)
        ]

    def _judgement(self, label: str, probabilities: np.ndarray, values: dict[str, float]) -> Judgement:
        evidence: dict[str, JSON] = {"rule": "classifier"}
        # three decimals: a rebuild on the same machine gives the same ones
        evidence["probability"] = {
            name: round(float(p), 3) for name, p in zip(self._fitted.classes, probabilities, strict=True)
        }
        evidence["features"] = {name: values[name] for name in SHOWN if not math.isnan(values[name])}
        return Judgement("scored", cast("Label", label), evidence, self._fitted.why(label, probabilities))


def _undecided() -> Judgement:
    cause: dict[str, JSON] = {"rule": "classifier", "cause": "similarity_not_finite"}
    return Judgement("unscored", None, cause, "The sentence model gave a number that is not finite.")
