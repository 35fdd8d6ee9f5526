"""Estimates with honest intervals for rare, clustered labels from judges that err (docs/statistics.md)."""

from userturn.statistics.agreement import Agreement, ItemTables, agreement, agreement_of
from userturn.statistics.association import decoupling, within_item_association
from userturn.statistics.classification import macro_f1
from userturn.statistics.effects import paired_effect, ratio, sign_flip_test
from userturn.statistics.judge_error import (
    CorrectedRate,
    corrected_effect,
    false_positive_floor,
    prediction_powered,
    rogan_gladen,
)
from userturn.statistics.means import mean
from userturn.statistics.multiplicity import benjamini_hochberg, holm
from userturn.statistics.power import Power, detectable_difference, power
from userturn.statistics.rates import determinism, rate
from userturn.statistics.trends import temperature_slope
from userturn.statistics.types import Estimate, Interval, ItemCounts

__all__ = [
    "Agreement",
    "CorrectedRate",
    "Estimate",
    "Interval",
    "ItemCounts",
    "ItemTables",
    "Power",
    "agreement",
    "agreement_of",
    "benjamini_hochberg",
    "corrected_effect",
    "decoupling",
    "detectable_difference",
    "determinism",
    "false_positive_floor",
    "holm",
    "macro_f1",
    "mean",
    "paired_effect",
    "power",
    "prediction_powered",
    "rate",
    "ratio",
    "rogan_gladen",
    "sign_flip_test",
    "temperature_slope",
    "within_item_association",
]
