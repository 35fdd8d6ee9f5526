"""The conversational reward: what counts as a reaction, how conversations are played on, what is logged."""

from __future__ import annotations

import pytest
from render_tokenizers import assistant, user

from userturn.judges.labels import Judgement
from userturn.posttrain.curves import rows, summary
from userturn.posttrain.rewards import Exchange, Outcome, Simulation, by_judge, by_program, of_user_turns, reacts

QUERY = "Which rivers run through Wales and where do they start?"
ANSWER = "The Teifi begins at Strata Florida, the Severn on Plynlimon."


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        ("How high is Plynlimon?", True),
        ("Which rivers run through Wales and where do they start?", False),
        ("rivers run through wales and where do they start, and the Severn?", False),
        ("Thanks, that helps.", False),
        ("", False),
        ("Severn Severn Severn Severn Severn Severn Severn Severn Severn Severn Severn Severn", False),
        ("Tell me about rivers.", False),
    ],
)
def test_a_reaction_takes_up_what_only_the_answer_said(turn, expected):
    assert reacts(Exchange(QUERY, ANSWER, turn)) is expected


def problem(answer: str | None):
    item = {"item": "i", "messages": [user("2 + 2?")], "reference": {"answer": answer}}
    return {"row": "r", "messages": [user("2 + 2?")], "scorer": "gsm8k" if answer else "none", "item": item}


def test_the_last_answer_is_scored_and_all_tokens_are_paid_for():
    seen = []

    def writes_user(talks):
        seen.append([[one["role"] for one in talk] for talk in talks])
        return ["so four?" if len(talk) == 2 else "sure about four?" for talk in talks]

    simulation = Simulation(
        writes_user,
        lambda talks: [("The answer is 4", 3) for _ in talks],
        future_turns=2,
        reacts=lambda found: ["sure" in one.user_turn for one in found],
        max_tokens=10,
    )
    (outcome,) = simulation.outcomes([problem("4")], ["It is 5"], [5])
    assert outcome == Outcome(accuracy=1.0, interactivity=0.5, tokens=0.8)
    assert seen == [[["user", "assistant"]], [["user", "assistant", "user", "assistant"]]]


def test_without_a_reference_accuracy_is_nothing_and_rows_are_not_changed():
    row = problem(None)
    simulation = Simulation(lambda t: ["x"] * len(t), lambda t: [], future_turns=1, reacts=by_program, max_tokens=4)
    (outcome,) = simulation.outcomes([row], ["4"], [2])
    assert outcome == Outcome(0.0, 0.0, 0.5)
    assert row["messages"] == [user("2 + 2?")]


def test_a_judge_of_the_study_can_say_what_reacts_and_unscored_is_no_reaction():
    class Fixed:
        name, version, provisional = "fixed", "1", True

        def judge(self, turns):
            labels = {"yes": "genuine_followup", "no": "generic"}
            return [
                Judgement("scored", labels[turn.text], {}, "")
                if turn.text in labels
                else Judgement("unscored", None, {}, "")
                for turn in turns
            ]

    found = [Exchange("q", "a", text) for text in ("yes", "no", "?")]
    assert by_judge(Fixed())(found) == [True, False, False]


def test_user_turns_are_judged_against_the_answer_before_them():
    row = {"messages": [user(QUERY)], "answer": ANSWER, "item": None, "scorer": "none"}
    found = of_user_turns([row, row], ["How high is Plynlimon?", "ok"], [6, 1], reacts=by_program, max_tokens=12)
    assert found == [Outcome(0.0, 1.0, 0.5), Outcome(0.0, 0.0, 1 / 12)]
    assert assistant("x")["role"] == "assistant"


def test_a_curve_keeps_what_repeats_and_leaves_out_times():
    history = [
        {"eval_loss": 2.5, "eval_runtime": 3.1, "epoch": 0.0, "step": 0},
        {"loss": 2.00000049, "grad_norm": 0.5, "num_tokens": 99.0, "step": 1, "rewards/accuracy/mean": 0.25},
        {"loss": float("nan"), "step": 2},
        {"eval_loss": 1.5, "step": 1},
        {"train_runtime": 9.0, "step": 2},
    ]
    curve = rows(history)
    assert curve == [
        {"step": 0, "held_out_loss": 2.5},
        {"step": 1, "loss": 2.0, "grad_norm": 0.5, "reward_accuracy": 0.25, "held_out_loss": 1.5},
    ]
    assert summary(curve)["held_out_loss"] == {"first": 2.5, "last": 1.5, "lowest": 1.5, "highest": 2.5}
