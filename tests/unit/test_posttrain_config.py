"""Variants in a study: what is refused, what a reader is warned of, and what the plan and the specs make of them."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from userturn import grid, specs
from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.load import ConfigError, load_study, named_sources, validate
from userturn.config.posttrain import flags
from userturn.measured import job_names
from userturn.plan import plan

ROOT = Path(__file__).resolve().parents[2]
MODEL = "smollm2-135m-instruct"
FILE = {"kind": "file", "path": "talks.jsonl", "sha256": "0" * 64}
SFT = {
    "base": MODEL,
    "method": "sft",
    "data": {"sources": {"talks": {"source": FILE}}},
    "training": {"steps": 20, "seconds_per_step": 3},
}
RL = {
    "base": MODEL,
    "method": "rl",
    "problems": {"sums": {"source": FILE, "reader": "own"}},
    "training": {"steps": 15, "batch": 2, "seconds_per_step": 20},
}


def study(**variants):
    config = copy.deepcopy(DEFAULT_STUDY)
    base = config["models"][MODEL]
    for name, variant in variants.items():
        config["models"][name.replace("_", "-")] = {"resources": base["resources"], "posttrain": variant}
    return config


def with_(variant, path, value):
    """A copy with one key set; ``path`` is dotted."""
    made = copy.deepcopy(variant)
    *parents, last = path.split(".")
    node = made
    for key in parents:
        node = node.setdefault(key, {})
    node[last] = value
    return made


def test_variants_are_models_of_the_grid_with_jobs_of_their_own():
    made = validate(study(sft=SFT, rl=with_(RL, "base", "sft")))
    assert grid.variants(made) == ["sft", "rl"]
    assert (grid.variants(made, "sft"), grid.taken(made), grid.converted(made)) == (["sft"], [], [MODEL])
    jobs = list(job_names(made))
    assert [job for job in jobs if job[0].startswith(("posttrain", "model"))] == [
        ("model", MODEL),
        ("posttrain_data", "sft"),
        ("posttrain_data", "rl"),
        ("posttrain", "sft"),
        ("posttrain_rl", "rl"),
    ]
    assert len(grid.cells(made)) == 3 * len(grid.cells(validate(DEFAULT_STUDY)))
    assert set(named_sources(made)) > {
        "models.sft.posttrain.data.sources.talks.source",
        "models.rl.posttrain.problems.sums.source",
    }


def test_the_plan_counts_training_and_lines_of_variants():
    alone, one, two = (
        plan(validate(study(**variants)))
        for variants in ({}, {"sft": SFT}, {"sft": SFT, "rl": with_(RL, "base", "sft")})
    )
    assert one.models["sft"].seconds == pytest.approx(alone.models[MODEL].seconds + 60 + 20 * 3)
    assert two.models["rl"].seconds == pytest.approx(alone.models[MODEL].seconds + 60 + 15 * 20)
    assert two.seconds_at_once - one.seconds_at_once >= 60 + 15 * 20
    assert one.jobs["posttrain"] == 1
    assert two.jobs["posttrain_rl"] == 1
    assert any("time of training: 2 of 2" in line for line in two.assumed)


def test_a_card_that_trains_costs_accelerator_hours():
    made = plan(validate(study(sft=with_(SFT, "training", {"steps": 3600, "seconds_per_step": 1, "device": "cuda"}))))
    assert made.models["sft"].accelerator_hours == pytest.approx(3660 / 3600)


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        (with_(SFT, "base", "nobody"), "models.v.posttrain.base: 'nobody' is no model of this study"),
        (with_(SFT, "base", "v"), "go round in a circle"),
        (with_(SFT, "loss_on", "system"), "loss_on"),
        (with_(SFT, "data.sources.talks.reader", "tooltalk"), "needs a folder of a wheel"),
        (with_(SFT, "data.sources.talks.reader", "rss"), "unknown reader of conversations; known: chats, tooltalk"),
        (with_(SFT, "training.accumulation", 3), "accumulation: 3 does not divide batch = 8"),
        (
            with_(SFT, "data.sources.talks", {"source": DEFAULT_STUDY["datasets"]["mt_bench"]["source"]}),
            "is the source of datasets.mt_bench: evaluation data is not trained on",
        ),
        (
            with_(
                SFT,
                "data.sources.talks",
                {"source": DEFAULT_STUDY["judges"]["embedded"]["training"]["written"]["source"], "reader": "written"},
            ),
            "the reported judge embedded was trained on it",
        ),
        (with_(RL, "problems", {}), "an assistant is trained on `problems`"),
        (with_(RL, "reward_user_turn", True), "an assistant is trained on `problems`"),
        (with_(RL, "reward.judge", "embedded"), "'embedded' reports the result: another judge must score"),
        (with_(RL, "reward.judge", "nobody"), "allowed: null, embedded, provisional"),
        (with_(RL, "user.model", "v"), "a model of this study that is not trained from this one"),
        (with_(RL, "vllm", True), "vllm: true, but training.device is 'cpu'"),
        (with_(RL, "training.accumulation", 3), "accumulation: 3 does not divide batch = 2"),
        (with_(RL, "training.steps", 0), "steps"),
    ],
)
def test_what_cannot_be_trained_or_would_not_mean_what_it_seems_is_refused(variant, said):
    with pytest.raises(ConfigError) as error:
        validate(study(v=variant))
    assert said in str(error.value)


def test_a_model_has_a_source_or_is_trained_and_is_rendered_as_its_base():
    both = study(v=SFT)
    both["models"]["v"]["source"] = DEFAULT_STUDY["models"][MODEL]["source"]
    with pytest.raises(ConfigError, match="give either `source`"):
        validate(both)
    neither = study(v=SFT)
    del neither["models"]["v"]["posttrain"]
    with pytest.raises(ConfigError, match="give either `source`"):
        validate(neither)
    other = study(v=SFT)
    other["models"]["v"]["thinking"] = False
    with pytest.raises(ConfigError, match=r"models\.v\.thinking: False, but its base"):
        validate(other)
    simulated = study(v=SFT)
    simulated["engine"] = {"name": "simulated"}
    simulated["judges"] = {name: {"kind": "simulated"} for name in simulated["judges"]}
    with pytest.raises(ConfigError, match="has no weights to train"):
        validate(simulated)


def test_what_weakens_a_gain_is_allowed_only_by_name_and_then_flagged():
    judged = with_(with_(RL, "reward.judge", "embedded"), "reward.allow_reported_judge", True)
    conversations = {"sources": {"talks": {"source": FILE}}}
    probed = with_(with_(with_(RL, "problems", {}), "conversations", conversations), "reward_user_turn", True)
    control = with_(SFT, "data.shuffled_pairs", True)
    made = validate(study(judged=judged, probed=probed, control=control, plain=SFT))

    def found(name):
        return flags(made.models[name].posttrain, made.reported_judge)

    assert found("plain") == []
    assert found("judged") == ["the judge that reports it (embedded) also rewarded it"]
    assert found("probed") == ["the user turn itself was rewarded: the measure was optimised"]
    assert "control" in found("control")[0]
    assert json.loads(specs.posttrain_rl(made, "judged", "0" * 64))["flags"] == found("judged")
    needs = [path.as_posix() for path in grid.training_needs(made, "judged")]
    assert "data/judges/embedded/model.json" in needs


def test_specs_are_what_the_stages_take_and_hold_nothing_that_shapes_nothing():
    from userturn.stages import posttrain, posttrain_data, posttrain_rl

    made = validate(study(sft=SFT, rl=RL))
    for variant in ("sft", "rl"):
        posttrain_data.Spec.model_validate_json(specs.posttrain_data(made, variant))
    posttrain_rl.Spec.model_validate_json(specs.posttrain_rl(made, "rl", "0" * 64))
    slow = validate(study(sft=with_(SFT, "training.seconds_per_step", 9), rl=RL))
    assert specs.posttrain(slow, "sft", "x") == specs.posttrain(made, "sft", "x")
    posttrain.Spec.model_validate_json(specs.posttrain(made, "sft", "0" * 64))
    # what is trained on is another stage's matter: another length of rows trains anew through the rows alone
    longer = validate(study(sft=with_(SFT, "data.max_tokens", 300), rl=RL))
    assert specs.posttrain(longer, "sft", "x") == specs.posttrain(made, "sft", "x")
    assert specs.posttrain_data(longer, "sft") != specs.posttrain_data(made, "sft")


@pytest.mark.parametrize("name", ["posttrain-small", "posttrain"])
def test_the_studies_that_we_ship_are_valid_and_can_be_planned(name):
    made = load_study([ROOT / "config" / f"{name}.yaml"])
    found = plan(made)
    assert {"sft", "rl"} == {made.models[one].posttrain.method for one in grid.variants(made)}
    assert found.n_jobs > 20
    assert any(flags(made.models[one].posttrain, made.reported_judge) for one in grid.variants(made))
