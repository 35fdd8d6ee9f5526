"""Training on a tiny model, for real: it repeats byte for byte, and goes on after a kill to the same weights."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

pytest.importorskip("torch")

from posttrain_fixture import (
    BASE,
    LORA,
    RENDERER,
    ROOT,
    TALKS,
    TRAINING,
    VARIANT,
    command,
    conversations,
    prepared,
    rl_spec,
    run_stages,
    sft_spec,
    summary,
    tiny_model,
)
from userturn.artefacts import read_jsonl, write_jsonl
from userturn.environments import engine_python
from userturn.files import sha256_file
from userturn.posttrain.contamination import Evaluated
from userturn.posttrain.conversations import chats
from userturn.posttrain.masks import Masker
from userturn.posttrain.rows import Report, context_rows, problem_rows, turn_rows
from userturn.render import load_renderer
from userturn.sources import FolderSource
from userturn.sources.folder import listing_sha256, model_files

from .conftest import tiny_config

pytestmark = [pytest.mark.workflow, pytest.mark.timeout(900)]

#: Every fourth byte ends a turn, so that lengths, and so rewards, differ.
ENDING_SOON = RENDERER | {"extra_stop_token_ids": list(range(0, 256, 4))}
SEVERAL = rl_spec(renderer=ENDING_SOON, user_renderer=ENDING_SOON, training=TRAINING | {"batch": 2, "accumulation": 2})
STEPS = {"steps": 12, "save_every": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A study's folder with the tiny base and the rows of a supervised training."""
    if not (ROOT / engine_python()).is_file():
        pytest.skip("no engine environment: run `make setup`")
    where = prepared(tmp_path_factory.mktemp("base"), [])
    model = where / "data" / "models" / BASE
    masker = Masker(lambda prefix: load_renderer(model, prefix=prefix), "stripped", 400, 60)
    rows = turn_rows(
        list(chats(conversations(), "own")),
        masker,
        loss_on="user",
        held_out=0.2,
        shuffled_pairs=False,
        seed=3,
        report=Report(),
    )
    write_jsonl(where / "data" / "posttrain" / VARIANT / "rows.jsonl", rows)
    return where


@pytest.fixture(scope="module")
def queries(folder, tmp_path_factory) -> Path:
    """The same with queries to be rewarded on."""
    where = tmp_path_factory.mktemp("queries") / "study"
    shutil.copytree(folder, where)
    items = [
        {"item": f"q{n}", "messages": [{"role": "user", "content": question}], "reference": None, "meta": {}}
        for n, (question, _, _) in enumerate(TALKS)
    ]
    rows = problem_rows(
        [("own", item, "none") for item in items],
        load_renderer(where / "data" / "models" / BASE),
        Evaluated.of([], 8),
        max_prompt_tokens=100,
        report=Report(),
    )
    write_jsonl(where / "data" / "posttrain" / VARIANT / "rows.jsonl", rows)
    return where


@pytest.fixture(scope="module")
def contexts(folder, tmp_path_factory) -> Path:
    """The same with contexts after which user turns are rewarded."""
    where = tmp_path_factory.mktemp("contexts") / "study"
    shutil.copytree(folder, where)
    model = where / "data" / "models" / BASE
    masker = Masker(lambda prefix: load_renderer(model, prefix=prefix), "stripped", 400, 60)
    rows = context_rows(list(chats(conversations(), "own")), masker, report=Report())
    write_jsonl(where / "data" / "posttrain" / VARIANT / "rows.jsonl", rows)
    return where


@pytest.fixture(scope="module")
def runs(folder, queries, contexts, tmp_path_factory) -> dict[str, Path]:
    """Trainings in one process: supervised twice, longer once, and on rewards twice."""
    top = tmp_path_factory.mktemp("runs")
    asked = {
        "sft": ("posttrain", sft_spec(**STEPS), folder),
        "sft again": ("posttrain", sft_spec(**STEPS), folder),
        "other seed": ("posttrain", sft_spec(**STEPS) | {"seed": 12}, folder),
        "rl": ("posttrain_rl", SEVERAL, queries),
        "rl again": ("posttrain_rl", SEVERAL, queries),
        "another user": ("posttrain_rl", SEVERAL | {"user": {"model": "other", "max_tokens": 8}}, queries),
        "user turns": ("posttrain_rl", SEVERAL | {"reward_user_turn": True, "flags": ["probe"]}, contexts),
    }
    found = {}
    for name, (_, _, origin) in asked.items():
        found[name] = top / name
        shutil.copytree(origin, found[name])
    models = found["another user"] / "data" / "models"
    shutil.copytree(models / BASE, models / "other")
    run_stages([(stage, spec, found[name]) for name, (stage, spec, _) in asked.items()])
    return found


def test_the_same_seed_and_threads_give_the_same_weights(runs):
    assert summary(runs["sft"]) == summary(runs["sft again"])
    assert summary(runs["rl"]) == summary(runs["rl again"])
    digests = {summary(runs[name])["weights_sha256"] for name in ("sft", "other seed", "rl")}
    assert len(digests) == 3


def test_training_lowers_the_loss_on_turns_that_it_has_not_seen(runs):
    losses = summary(runs["sft"])["measures"]["held_out_loss"]
    assert losses["last"] < losses["first"] - 0.05


def test_the_curve_has_every_step_and_each_term_of_the_reward(runs):
    curve = read_jsonl(runs["rl"] / "results" / "posttrain" / VARIANT / "curve.jsonl")
    assert [row["step"] for row in curve] == [1, 2, 3, 4, 5, 6]
    for row in curve:
        total = row["reward_accuracy"] + 0.5 * row["reward_interactivity"] - 0.2 * row["reward_tokens"]
        assert row["reward"] == pytest.approx(total, abs=1e-5)
    assert any(row["reward_std"] > 0 for row in curve)
    assert any(row["grad_norm"] > 0 for row in curve)


def test_a_frozen_copy_of_the_base_plays_the_user_as_the_base_itself_does(runs):
    assert summary(runs["another user"])["measures"] == summary(runs["rl"])["measures"]


def test_a_training_on_user_turns_is_flagged_wherever_its_weights_are_described(runs):
    assert summary(runs["user turns"])["flags"] == ["probe"]
    description = json.loads((runs["user turns"] / "data" / "models" / VARIANT / "model.json").read_text())
    assert description["posttrain"]["flags"] == ["probe"]
    assert summary(runs["user turns"])["measures"]["reward_accuracy"]["highest"] == 0.0


def test_the_variant_is_an_ordinary_model_folder_that_says_where_it_comes_from(runs):
    folder = runs["sft"] / "data" / "models" / VARIANT
    description = json.loads((folder / "model.json").read_text())
    base = json.loads((folder.parent / BASE / "model.json").read_text())
    assert description["origin"]["base_weights_sha256"] == base["weights_sha256"]
    assert description["posttrain"]["method"] == "sft"
    assert set(description["files"]) == set(base["files"])
    assert load_renderer(folder).format == load_renderer(folder.parent / BASE).format
    assert not list((runs["sft"] / ".userturn" / "posttrain").glob("*"))


@pytest.mark.slow
def test_a_killed_training_goes_on_to_the_same_weights(runs, folder, tmp_path):
    where = tmp_path / "killed"
    shutil.copytree(folder, where)
    words = command("posttrain", sft_spec(**STEPS), where)
    process = subprocess.Popen(words, cwd=where, start_new_session=True)
    state = where / ".userturn" / "posttrain"
    deadline = time.monotonic() + 300
    while not list(state.glob("*/checkpoint-6/trainer_state.json")):
        assert process.poll() is None, (where / "posttrain.log").read_text()[-3000:]
        assert time.monotonic() < deadline, "no checkpoint in time"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (where / "data" / "models" / VARIANT).exists()
    # what a kill in the middle of writing leaves behind
    (digest,) = state.iterdir()
    (digest / "checkpoint-9").mkdir(exist_ok=True)
    (digest / "checkpoint-9" / "trainer_state.json").write_text("{")
    run_stages([("posttrain", sft_spec(**STEPS), where)])
    assert summary(where) == summary(runs["sft"])
    for name in ("curve.jsonl", "summary.json"):
        parts = ("results", "posttrain", VARIANT, name)
        assert where.joinpath(*parts).read_bytes() == runs["sft"].joinpath(*parts).read_bytes()


def pin(model: Path) -> str:
    """What the config of a model folder says."""
    files = model_files(FolderSource(kind="folder", path=str(model)))
    return listing_sha256({name: sha256_file(path) for name, path in files.items()})


@pytest.mark.slow
def test_snakemake_trains_a_variant_and_leaves_it_alone_until_its_rows_change(workspace, tmp_path):
    """The rules, on the tiny model as a folder source: data, training, an ordinary model folder, nothing to redo."""
    made = workspace("posttrain")
    model = tiny_model(made.folder / "tiny-model")
    (model / "model.json").unlink()
    talks = made.folder / "talks.jsonl"
    write_jsonl(talks, conversations())
    study = tiny_config()
    study["models"] = {
        BASE: {"source": {"kind": "folder", "path": "tiny-model", "sha256": pin(model)}},
        VARIANT: {
            "posttrain": {
                "base": BASE,
                "method": "sft",
                "data": {
                    "sources": {
                        "talks": {"source": {"kind": "file", "path": "talks.jsonl", "sha256": sha256_file(talks)}}
                    },
                    "english": False,
                    "held_out": 0.2,
                },
                "lora": LORA,
                "training": TRAINING,
            }
        },
    }
    config = made.folder / "config" / "tiny.yaml"
    config.write_text(yaml.safe_dump(study))
    target = f"data/models/{VARIANT}/model.json"
    made.run(target, "--cores", "1")
    description = json.loads((made.folder / target).read_text())
    manifest = json.loads((made.folder / "results" / "manifests" / "posttrain" / f"{VARIANT}.json").read_text())
    assert manifest["facts"]["description"] == description
    assert {one["path"] for one in manifest["inputs"]} >= {f"data/posttrain/{VARIANT}/rows.jsonl"}
    assert "Nothing to be done" in made.run(target, "--dry-run")
    study["models"][VARIANT]["posttrain"]["training"] = TRAINING | {"seconds_per_step": 99}
    config.write_text(yaml.safe_dump(study))
    assert "Nothing to be done" in made.run(target, "--dry-run")
    study["models"][VARIANT]["posttrain"]["loss_on"] = "all"
    config.write_text(yaml.safe_dump(study))
    said = made.run(target, "--dry-run", "--quiet", "rules")
    assert "posttrain_data" in said
    assert "posttrain " in said
