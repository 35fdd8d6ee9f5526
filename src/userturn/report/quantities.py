"""What each quantity of a study is, in words and as a formula: what a reader finds behind every number.

The formulas are those of ``docs/statistics.md``: item *i* has *k_i* positive among *m_i* scored rows, *r_i = k_i/m_i*.
"""

from __future__ import annotations

from dataclasses import dataclass

_RATE = "Σk / Σm over items; k of an item's m scored rows count"
_RATE_LIMIT = "What is unscored may depend on the answer: read the bounds."
_PAIRED = "mean over shared items of r(treated) − r(baseline), where r = k/m of an item"


@dataclass(frozen=True)
class Quantity:
    """A quantity as the page explains it.

    Attributes:
        name: its title.
        meaning: what it is, in plain words.
        counted: what a row is.
        formula: how it is computed.
        limits: where it says nothing or misleads.
    """

    name: str
    meaning: str
    counted: str
    formula: str = _RATE
    limits: str = _RATE_LIMIT


_GOLD = "turns of the gold set"
_GOLD_LIMIT = "Speaks of this study's turns only as far as they are like the gold set's."
_MADE_LIMIT = "The labels are known by construction: real turns are harder."
_F1 = "mean over labels of 2tp / (2tp + fp + fn)"
_NATS = "mean over items of one difference of log-probabilities per token"
_TAILS = "A handful of texts with extreme probabilities can move it."

QUANTITIES: dict[str, Quantity] = {
    "accuracy": Quantity("Accuracy", "Share of assistant turns that the task's scorer calls right.", "assistant turns"),
    "accuracy_strict": Quantity(
        "Accuracy, strict", "Share of assistant turns right under the scorer's strict reading.", "assistant turns"
    ),
    "accuracy_loose": Quantity(
        "Accuracy, loose", "Share of assistant turns right under the scorer's forgiving reading.", "assistant turns"
    ),
    "assistant_cut_rate": Quantity(
        "Answers cut off",
        "Share of assistant turns that ended at the limit of tokens, so that the user turn follows half an answer.",
        "assistant turns",
        limits="None: every answer either ended or was cut.",
    ),
    "followup_rate": Quantity(
        "Genuine-followup rate",
        "Share of the user turns (in a control: of the texts given) that the judge calls a genuine follow-up.",
        "user turns",
        limits=f"{_RATE_LIMIT} It holds the judge's errors: near 0 it measures the judge's false alarms.",
    ),
    "effect": Quantity(
        "Effect of the perturbation",
        "Genuine-followup rate under the perturbation minus the rate under baseline: same items, same temperature.",
        "user turns",
        _PAIRED,
        "The judge may err differently in the two contexts.",
    ),
    "effect_ratio": Quantity(
        "Ratio of rates",
        "Genuine-followup rate under the perturbation over the rate under baseline: same items, same temperature.",
        "user turns",
        "mean r(treated) / mean r(baseline)",
        "Not defined where the baseline has no genuine follow-up; wide where it has few.",
    ),
    "temperature_slope": Quantity(
        "Temperature slope",
        "How the log-odds of a genuine follow-up change with one unit of temperature.",
        "user turns",
        "b in logit P = a + b·T, estimating equations with items as clusters",
        "Not defined where one end has no positive (separation); misleads where the curve is not S-shaped.",
    ),
    "association": Quantity(
        "Right answers against wrong ones",
        "Genuine-followup rate after answers that are right minus the rate after answers that are wrong.",
        "user turns",
        "mean r of right items − mean r of wrong items",
        "An association, not a cause: easy items differ in more than their answers.",
    ),
    "decoupling": Quantity(
        "Accuracy and follow-up over models",
        "Rank correlation of accuracy and genuine-followup rate over the models of the study.",
        "models",
        "Spearman's ρ or Kendall's τ over models",
        "Not defined with fewer than three models; the error of each model's own rates is not in it.",
    ),
    "determinism": Quantity(
        "Determinism",
        "Share of items whose text at temperature 0 is the same when the baseline is generated once more.",
        "items",
        "share of items whose texts are all equal",
        "Says nothing of other machines or versions.",
    ),
    "label_share": Quantity("Share of a label", "Share of the judged user turns that carry this label.", "user turns"),
    "unscored_rate": Quantity(
        "Unscored",
        "Share of the user turns that the judge could not label. They count as no label.",
        "user turns",
        limits="None: every turn is either labelled or not.",
    ),
    "grounded_share": Quantity(
        "Grounded",
        "Share of the turns called genuine for which the judge quoted words that are in the assistant turn.",
        "user turns",
    ),
    "sensitivity": Quantity(
        "Sensitivity",
        "Share of the gold set's genuine follow-ups that the judge calls genuine.",
        _GOLD,
        limits=_GOLD_LIMIT,
    ),
    "specificity": Quantity(
        "Specificity",
        "Share of the gold set's other turns that the judge does not call genuine. One minus it is the floor.",
        _GOLD,
        limits=_GOLD_LIMIT,
    ),
    "floor": Quantity(
        "Floor",
        "Share of the gold set's other turns that the judge calls genuine: the rate it reports where the truth is 0.",
        _GOLD,
        "1 − specificity",
        _GOLD_LIMIT,
    ),
    "confusion": Quantity(
        "Confusion",
        "Share of the gold set's turns with the one label that the judge gives the other.",
        _GOLD,
        limits=_GOLD_LIMIT,
    ),
    "macro_f1": Quantity("Macro-F1", "Mean of the labels' F1 on the gold set.", _GOLD, _F1, _GOLD_LIMIT),
    "held_out_floor": Quantity(
        "Floor, held out",
        "Share of the held-out examples of other labels that the classifier calls genuine.",
        "examples",
        "1 − specificity",
        _MADE_LIMIT,
    ),
    "held_out_sensitivity": Quantity(
        "Sensitivity, held out",
        "As sensitivity, on held-out conversations with labels known by construction.",
        "examples",
        limits=_MADE_LIMIT,
    ),
    "held_out_specificity": Quantity(
        "Specificity, held out",
        "As specificity, on held-out conversations with labels known by construction.",
        "examples",
        limits=_MADE_LIMIT,
    ),
    "held_out_confusion": Quantity(
        "Confusion, held out",
        "Share of the held-out examples made as the one label that the classifier gives the other.",
        "examples",
        limits=_MADE_LIMIT,
    ),
    "held_out_macro_f1": Quantity(
        "Macro-F1, held out", "Mean of the labels' F1 on held-out conversations.", "examples", _F1, _MADE_LIMIT
    ),
    "corrected_rate": Quantity(
        "Corrected rate",
        "The genuine-followup rate with the judge's errors on the gold set taken out (Rogan and Gladen).",
        "user turns",
        "(p + specificity − 1) / (sensitivity + specificity − 1), kept within 0 and 1",
        _GOLD_LIMIT,
    ),
    "corrected_effect": Quantity(
        "Corrected effect",
        "The effect of the perturbation with the judge's errors taken out.",
        "user turns",
        "effect / (sensitivity + specificity − 1)",
        "The judge is taken to err alike in both contexts.",
    ),
    "prediction_powered": Quantity(
        "Prediction-powered rate",
        "The rate from a few labels by people, sharpened by the judge's labels of all turns.",
        "user turns",
        "λ·mean(f) + mean(y − λ·f), y by people, f by the judge",
        "Refused where positives, negatives or disagreements by people are fewer than 15.",
    ),
    "role_log_odds": Quantity(
        "User role against assistant role",
        "Log-probability of known texts under the user header minus that under the assistant header, after the same "
        "context, per token; above 0 the model takes the text for a user's. No judge is involved.",
        "texts",
        _NATS,
        _TAILS,
    ),
    "role_share": Quantity(
        "Likelier under the user role",
        "Share of the known texts that the model finds likelier under the user header than under the assistant's.",
        "texts",
        limits="Counts how often, not by how much.",
    ),
    "grounding": Quantity(
        "Own answer against another",
        "Log-probability of known texts after the item's own answer minus that after another item's answer, both "
        "under the user header, per token; above 0 the text is tied to the answer. No judge is involved.",
        "texts",
        _NATS,
        _TAILS,
    ),
    "grounding_share": Quantity(
        "Likelier after the own answer",
        "Share of the known texts that the model finds likelier after the item's own answer than after another's.",
        "texts",
        limits="Counts how often, not by how much.",
    ),
    "effect_posttrain": Quantity(
        "Gain by post-training",
        "Genuine-followup rate of the trained variant minus that of its base: same items, same context.",
        "user turns",
        "mean over shared items of r(variant) − r(base), where r = k/m of an item",
        "A change of style alone can raise it: read the tied gain and the guards.",
    ),
    "posttrain_grounding": Quantity(
        "Tied gain",
        "The gain under baseline minus the gain where the answer was exchanged or removed: what follows the answer.",
        "items",
        "mean over items of (r(variant) − r(base)) under baseline − the same under the perturbation",
        "Near 0 where a gain is one of style.",
    ),
    "accuracy_posttrain": Quantity(
        "Change of accuracy",
        "Task accuracy of the trained variant minus that of its base, on the same items.",
        "assistant turns",
        _PAIRED,
        "Not defined where the task has no scorer.",
    ),
    "question_rate": Quantity(
        "Turns that end with a question",
        "Share of user turns whose last sentence is a question.",
        "user turns",
        limits="A program reads the texts.",
    ),
    "closing_question_rate": Quantity(
        "Stock questions",
        "Share of user turns that end with a question that fits after any answer.",
        "user turns",
        limits="A program reads the texts, by a list of phrases.",
    ),
    "turn_words": Quantity(
        "Words of a user turn", "Mean number of words.", "items", "mean over items of the mean over samples", _TAILS
    ),
    "distinct_bigrams": Quantity(
        "Distinct pairs of words",
        "Share of pairs of neighbouring words that are new in the cell: low where turns repeat each other.",
        "pairs of words",
        "distinct pairs / all pairs",
        "Falls with the amount of text: compare cells of one size.",
    ),
    "training_first": Quantity(
        "First logged value", "What training logged first.", "one step", "as logged", "One training, one seed."
    ),
    "training_last": Quantity(
        "Last logged value", "What training logged last.", "one step", "as logged", "One training, one seed."
    ),
    "agreement_raw": Quantity(
        "Agreement, raw",
        "Share of turns to which both give the same label.",
        "turns",
        limits="High by chance where one label is common.",
    ),
    "agreement_kappa": Quantity(
        "Agreement, Cohen's κ",
        "Agreement beyond what the two would reach by chance.",
        "turns",
        "(observed − chance) / (1 − chance), chance from each one's own shares",
        "Not defined where only one label is used; falls where one label is common.",
    ),
    "agreement_alpha": Quantity(
        "Agreement, Krippendorff's α",
        "Agreement beyond chance, with the shares of both pooled.",
        "turns",
        "1 − observed disagreement / expected disagreement (nominal)",
        "Not defined where only one label is used.",
    ),
    "agreement_ac1": Quantity(
        "Agreement, Gwet's AC1",
        "Agreement beyond chance, steady where one label is common.",
        "turns",
        "(observed − chance) / (1 − chance), Gwet's chance",
        "Reads higher than κ where one label is common: compare like with like.",
    ),
    "agreement_positive": Quantity(
        "Agreement on genuine follow-ups",
        "Of the turns that either calls genuine, how far both do.",
        "turns",
        "2a / (2a + b + c), a both, b and c one alone",
        "Not defined where neither calls a turn genuine.",
    ),
}


def quantity_of(row_quantity: str) -> Quantity:
    """What is known of a quantity; one that this page does not know yet is named after itself."""
    known = QUANTITIES.get(row_quantity)
    return known or Quantity(row_quantity.replace("_", " ").capitalize(), "", "rows", "", "")
