"""Fitting, comparing and applying the classifiers of scikit-learn; nothing fitted is ever stored, only examples are.

A fit is a function of the examples and a seed, so that the judge's jobs fit it anew instead of loading a pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from userturn.judges.embedded.conversations import TrainingError
from userturn.judges.labels import GENUINE, LABELS
from userturn.seeds import derive

#: Share of conversations that is held out.
HELD_OUT = 0.3
FOLDS = 5
#: Specificity for genuine follow-ups that the threshold must reach on conversations that it was not fitted on.
SPECIFICITY = 0.97
#: The feature without which no turn is called genuine: the program rules must agree with the classifier.
AGREED = "vote.genuine_followup"
#: A more complex classifier is kept only when it wins by more than this in macro-F1 on held-out conversations.
CLEARLY = 0.03

FloatArray = npt.NDArray[np.float64]
LabelArray = npt.NDArray[np.str_]


@dataclass(frozen=True)
class Data:
    """Examples as numbers.

    Attributes:
        names: Of the features.
        x: Shape (n, n_features).
        y: Labels, shape (n,).
        groups: Conversation of each example, shape (n,).
        kinds: How each was made, shape (n,).
    """

    names: tuple[str, ...]
    x: FloatArray
    y: LabelArray
    groups: LabelArray
    kinds: LabelArray

    def take(self, which: npt.NDArray[np.bool_]) -> Data:
        """The examples that are marked."""
        return Data(self.names, self.x[which], self.y[which], self.groups[which], self.kinds[which])


def logistic(seed: int) -> Any:
    """Multinomial logistic regression on standardised features: the simpler one."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(
        StandardScaler(), LogisticRegression(C=0.3, class_weight="balanced", max_iter=5000, random_state=seed)
    )


def forest(seed: int) -> Any:
    """A random forest."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(
        n_estimators=300, min_samples_leaf=3, class_weight="balanced_subsample", random_state=seed, n_jobs=1
    )


#: From simple to complex.
CANDIDATES: Mapping[str, Callable[[int], Any]] = {"logistic": logistic, "forest": forest}


def held_out(groups: Sequence[str], seed: int, share: float = HELD_OUT) -> npt.NDArray[np.bool_]:
    """Which examples belong to held-out conversations: decided for each conversation by a keyed hash."""
    chosen = {group: derive(seed, "held out", group, bits=48) < share * 2**48 for group in sorted(set(groups))}
    return np.array([chosen[group] for group in groups], dtype=bool)


def agreed_probabilities(model: Any, x: FloatArray, agreed: int) -> FloatArray:
    """Probabilities of the classes; 0 for a genuine follow-up where the program rules say otherwise.

    Args:
        model: Fitted.
        x: Shape (n, n_features).
        agreed: Column of `AGREED`.
    """
    found: FloatArray = model.predict_proba(x).copy()
    found[x[:, agreed] == 0, [str(name) for name in model.classes_].index(GENUINE)] = 0.0
    # the others share what it had; all of them alike where it had everything
    total = found.sum(axis=1, keepdims=True)
    return np.where(total > 0, found / np.where(total > 0, total, 1.0), 1.0 / found.shape[1])


class Fitted:
    """A fitted classifier with the threshold above which a turn is called a genuine follow-up."""

    def __init__(self, model: Any, threshold: float, agreed: int) -> None:
        self._model = model
        self._agreed = agreed
        self.threshold = threshold
        self.classes: tuple[str, ...] = tuple(str(name) for name in model.classes_)

    def probabilities(self, x: FloatArray) -> FloatArray:
        """Shape (n, n_classes), in the order of `classes`."""
        return agreed_probabilities(self._model, x, self._agreed)

    def labels(self, probabilities: FloatArray) -> list[str]:
        """Genuine where its probability reaches the threshold, else the most probable of the others."""
        genuine = self.classes.index(GENUINE)
        others = probabilities.copy()
        others[:, genuine] = -1.0
        return [
            GENUINE if row[genuine] >= self.threshold else self.classes[int(best)]
            for row, best in zip(probabilities, others.argmax(axis=1), strict=True)
        ]

    def why(self, label: str, row: FloatArray) -> str:
        """Why `labels` gave a turn with these probabilities, shape (n_classes,), its label: a sentence."""
        genuine = float(row[self.classes.index(GENUINE)])
        reached = f"Its probability as a genuine follow-up, {genuine:.3f},"
        if label == GENUINE:
            return f"{reached} reaches the threshold of {self.threshold:.3f}."
        if genuine >= float(row.max()):
            others = "of the other labels the classifier finds this one most likely."
            return f"{reached} is below the threshold of {self.threshold:.3f}; {others}"
        return "The classifier finds this label most likely."


def threshold(genuine: FloatArray, truth: npt.NDArray[np.bool_], specificity: float = SPECIFICITY) -> float:
    """The lowest threshold in [0.05, 0.99] at which at least ``specificity`` of the negatives stay below it.

    Where more of them lie above 0.99 it is 0.99; without negatives it is 0.5.

    Args:
        genuine: Probability of a genuine follow-up, of examples that were not fitted on; shape (n,).
        truth: Which of them are genuine, shape (n,).
        specificity: Wanted.
    """
    negatives = np.sort(genuine[~truth])
    if not negatives.size:
        return 0.5
    allowed = int(np.floor((1.0 - specificity) * negatives.size + 1e-9))
    return float(np.clip(np.round(negatives[-1 - allowed] + 1e-4, 4), 0.05, 0.99))


def fit(name: str, data: Data, seed: int) -> Fitted:
    """Fits a candidate and sets its threshold by cross-validation over conversations.

    Args:
        name: One of `CANDIDATES`.
        data: Training examples.
        seed: Of the fit.

    Raises:
        TrainingError: Too few conversations to fit on some and look at others.
    """
    folds = np.array([derive(seed, "fold", group, bits=48) % FOLDS for group in data.groups])
    if len(set(folds.tolist())) < 2:
        raise TrainingError(f"{len(set(data.groups))} training conversations are too few to set a threshold: give more")
    agreed = data.names.index(AGREED)
    genuine = np.zeros(len(data.y))
    for fold in sorted(set(folds.tolist())):
        inside = folds != fold
        model = CANDIDATES[name](seed % 2**31).fit(data.x[inside], data.y[inside])
        place = list(model.classes_).index(GENUINE)
        genuine[~inside] = agreed_probabilities(model, data.x[~inside], agreed)[:, place]
    model = CANDIDATES[name](seed % 2**31).fit(data.x, data.y)
    return Fitted(model, threshold(genuine, data.y == GENUINE), agreed)


def scores(truth: Sequence[str], given: Sequence[str]) -> dict[str, float]:
    """Sensitivity and specificity for genuine follow-ups, and macro-F1 over the labels that occur."""
    from sklearn.metrics import f1_score

    positive = np.array(truth) == GENUINE
    called = np.array(given) == GENUINE
    labels = [label for label in LABELS if label in set(truth)]
    return {
        "sensitivity": round(float(called[positive].mean()), 4) if positive.any() else float("nan"),
        "specificity": round(float((~called[~positive]).mean()), 4) if (~positive).any() else float("nan"),
        "macro_f1": round(float(f1_score(truth, given, labels=labels, average="macro", zero_division=0)), 4),
    }


@dataclass(frozen=True)
class Comparison:
    """How the candidates did on held-out conversations.

    Attributes:
        kept: The simplest candidate, unless another is better by more than `CLEARLY` in macro-F1.
        scores: Scores and threshold of each candidate.
        held_out: Positions of the held-out examples.
        given: Labels that each candidate gave them.
    """

    kept: str
    scores: Mapping[str, Mapping[str, float]]
    held_out: Sequence[int]
    given: Mapping[str, Sequence[str]]


def compare(data: Data, seed: int) -> Comparison:
    """Fits each candidate without the held-out conversations and scores it on them.

    Raises:
        TrainingError: Too few conversations to hold some out.
    """
    out = held_out(data.groups.tolist(), seed)
    if not out.any():
        raise TrainingError(f"none of {len(set(data.groups))} training conversations is held out: give more")
    inside, outside = data.take(~out), data.take(out)
    found: dict[str, dict[str, float]] = {}
    given: dict[str, list[str]] = {}
    for name in CANDIDATES:
        fitted = fit(name, inside, seed)
        given[name] = fitted.labels(fitted.probabilities(outside.x))
        found[name] = scores(outside.y.tolist(), given[name]) | {"threshold": fitted.threshold}
    kept = next(iter(CANDIDATES))
    for name in CANDIDATES:
        if found[name]["macro_f1"] > found[kept]["macro_f1"] + CLEARLY:
            kept = name
    return Comparison(kept, found, np.flatnonzero(out).tolist(), given)
