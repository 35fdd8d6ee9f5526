from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from userturn import grid, layout, specs
from userturn.artefacts import write_json, write_jsonl
from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.load import ConfigError, load_study, open_revisions, validate
from userturn.config.sampling import Sampling
from userturn.config.study import Study
from userturn.measured import Lengths, Measured, Timing, measure
from userturn.plan import jobs, n_items, plan

MODEL = "smollm2-135m-instruct"


def study_of(**changes: Any) -> Study:
    """A small study of known counts; top-level sections can be replaced."""
    config = deepcopy(DEFAULT_STUDY)
    config["datasets"] = {
        "gsm8k": config["datasets"]["gsm8k"] | {"n_items": 10},
        "ifeval": config["datasets"]["ifeval"] | {"n_items": 4},
    }
    config["probe"]["perturbations"] = {
        "baseline": {"kind": "baseline", "temperatures": [0.0, 1.0]},
        "removed_assistant": {"kind": "removed_assistant", "temperatures": [0.0]},
    }
    config["probe"]["likelihood"] = None
    config["probe"]["samples"] = 3
    return validate(config | changes)


@pytest.fixture(scope="module")
def paper(root: Path) -> Study:
    return load_study([root / "config/paper.yaml"])


# --- counts and tokens


def test_tokens_of_a_small_study_by_hand() -> None:
    made = plan(study_of(engine=DEFAULT_STUDY["engine"] | {"prefix_caching": False}))
    model = made.models[MODEL]
    # 14 items; an answer is 0.9 of 160 tokens for both datasets, a user turn 0.7 of 48
    assert (model.assistant_turns.prompts, model.assistant_turns.new) == (14, pytest.approx(14 * 144))
    assert model.assistant_turns.prompt == 10 * 95 + 4 * 75
    assert model.assistant_turns.at_most == 14 * 160
    # baseline: 1 + 3 turns an item after q, a and the header; removed_assistant: 1 turn after q
    assert model.user_turns.prompts == 14 * 5
    assert model.user_turns.prompt == 4 * (10 * (95 + 144 + 5) + 4 * (75 + 144 + 5)) + 10 * 95 + 4 * 75
    assert model.user_turns.computed == model.user_turns.prompt
    assert model.user_turns.new == pytest.approx(70 * 0.7 * 48)
    assert model.user_turns.at_most == 70 * 48
    assert (made.cells, made.tokens.prompts) == (6, 84)


def test_a_prefix_cache_reads_each_prompt_once() -> None:
    user = plan(study_of()).models[MODEL].user_turns
    assert user.computed == 10 * (95 + 144 + 5) + 4 * (75 + 144 + 5) + 10 * 95 + 4 * 75


def test_controls_are_cells_but_nothing_is_generated_for_them() -> None:
    config = deepcopy(DEFAULT_STUDY)
    config["probe"]["likelihood"] = None
    config["probe"]["perturbations"] = {
        "baseline": {"kind": "baseline", "temperatures": [0.0]},
        "echoed_query": {"kind": "echoed_query"},
    }
    made = plan(validate(config))
    assert made.cells == 6
    assert made.models[MODEL].user_turns.prompts == 3 * 16


def test_time_is_load_and_tokens_at_the_stated_speeds() -> None:
    resources = {"load_seconds": 10, "prefill_tokens_per_second": 100, "decode_tokens_per_second": 20, "gpus": 2}
    models = {MODEL: DEFAULT_STUDY["models"][MODEL] | {"resources": resources}}
    engine = DEFAULT_STUDY["engine"] | {"prefix_caching": False, "tensor_parallel_size": 2}
    made = plan(study_of(models=models, engine=engine))
    both = made.tokens
    assert made.models[MODEL].seconds == pytest.approx(2 * 10 + both.prompt / 100 + both.new / 20)
    assert made.accelerator_hours == pytest.approx(2 * made.models[MODEL].seconds / 3600)


def test_jobs_that_share_a_shard_load_the_model_once_each_and_share_the_work() -> None:
    def planned(jobs: int) -> Any:
        resources = {"load_seconds": 10, "prefill_tokens_per_second": 100, "decode_tokens_per_second": 20, "jobs": jobs}
        models = {MODEL: DEFAULT_STUDY["models"][MODEL] | {"resources": resources}}
        return plan(study_of(models=models)).models[MODEL]

    alone, shared = planned(1), planned(4)
    assert shared.seconds == pytest.approx(alone.seconds + 3 * 10)
    longest = shared.user_turns.computed / 100 + shared.user_turns.new / 20
    answers = shared.assistant_turns.computed / 100 + shared.assistant_turns.new / 20
    assert shared.longest_job_seconds == pytest.approx(10 + max(longest / 4, answers))


def test_the_likelihood_probe_reads_each_text_under_two_roles_and_follow_ups_after_another_answer() -> None:
    config = deepcopy(DEFAULT_STUDY)
    config["datasets"] = {name: config["datasets"][name] for name in ("gsm8k", "mt_bench")}
    without = deepcopy(config)
    without["probe"]["likelihood"] = None
    with_probe, plain = plan(validate(config)).models[MODEL], plan(validate(without)).models[MODEL]
    assert (with_probe.generation_jobs, plain.generation_jobs) == (3, 2)
    assert with_probe.seconds is not None
    assert plain.seconds is not None
    # an answer is 144 tokens, its header 5, a known text 60; only mt_bench has follow-ups, each read three times
    read = 16 * (2 * (95 + 144 + 65)) + 16 * ((2 + 3 + 3) * (90 + 144 + 65))
    assert with_probe.seconds - plain.seconds == pytest.approx(30 + read / 1500)


def test_no_time_is_invented_where_no_speed_is_stated() -> None:
    models = {MODEL: DEFAULT_STUDY["models"][MODEL] | {"resources": None}}
    made = plan(study_of(models=models))
    assert made.accelerator_hours is made.seconds_in_turn is made.models[MODEL].seconds is None
    assert "resources is not given" in made.models[MODEL].notes[0]


def test_a_job_that_outlasts_its_time_limit_is_told() -> None:
    slow = DEFAULT_STUDY["models"][MODEL]["resources"] | {"decode_tokens_per_second": 0.01}
    models = {MODEL: DEFAULT_STUDY["models"][MODEL] | {"resources": slow}}
    assert "time_minutes: 60, but its longest job" in plan(study_of(models=models)).models[MODEL].notes[0]


@given(
    temperatures=st.lists(st.sampled_from([0.0, 0.3, 0.7, 1.0, 1.3]), min_size=1, unique=True),
    samples=st.integers(1, 9),
    items=st.integers(2, 400),
)
def test_prompts_are_items_times_turns(temperatures: list[float], samples: int, items: int) -> None:
    config = deepcopy(DEFAULT_STUDY)
    config["datasets"] = {"gsm8k": config["datasets"]["gsm8k"] | {"n_items": items}}
    config["probe"]["samples"] = samples
    config["probe"]["likelihood"] = None
    config["probe"]["perturbations"] = {"baseline": {"kind": "baseline", "temperatures": temperatures}}
    made = plan(validate(config))
    turns = sum(samples if temperature > 0 else 1 for temperature in temperatures)
    assert made.tokens.prompts == items * (1 + turns)
    assert made.tokens.new <= made.tokens.at_most
    assert made.tokens.computed <= made.tokens.prompt


def test_a_dataset_has_no_more_items_than_there_are() -> None:
    datasets = {"gsm8k": DEFAULT_STUDY["datasets"]["gsm8k"] | {"n_items": 5000}}
    assert n_items(study_of(datasets=datasets), "gsm8k", Measured()) == 1319


# --- what has been measured


def ran(study: Study, folder: Path, *, taken: int = 0, seconds: int = 100) -> None:
    """Leaves behind what runs of a study leave behind, with turns of 7 tokens after prompts of 50."""
    run = {
        "started": "2026-01-01T00:00:00+00:00",
        "ended": f"2026-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}+00:00",
    }
    for shard in grid.shards(study):
        paths = []
        for dataset in shard.datasets:
            n = study.datasets[dataset].n_items or 0
            paths.append(layout.assistant_turns(shard.model, dataset))
            write_jsonl(folder / paths[-1], [{"item": str(i), "n_tokens": 30, "n_prompt_tokens": 20} for i in range(n)])
        spec = {"engine": study.engine_of(shard.model).model_dump(mode="json")}
        facts: dict[str, Any] = {"sampling": {"max_tokens": study.assistant_turns.max_tokens}}
        outputs = [{"path": path.as_posix()} for path in paths]
        write_json(
            folder / layout.manifest("assistant_turns", *shard.name),
            {"spec": spec, "facts": facts, "outputs": outputs, "run": run},
        )
        cells = {
            cell.key: {
                "sampling": {
                    "temperature": cell.temperature,
                    "max_tokens": study.probe.sampling_at(cell.temperature).max_tokens,
                },
                "n_turns": (n := (study.datasets[cell.dataset].n_items or 0) * cell.samples),
                "n_tokens": 7 * n,
                "n_prompt_tokens": 50 * n,
            }
            for cell in grid.cells_of(study, shard)
        }
        write_json(
            folder / layout.manifest("user_turns", *shard.name),
            {"spec": spec, "facts": {"cells": cells}, "outputs": [], "run": run},
        )
        for stage in ("assistant_turns", "user_turns"):
            log = folder / layout.log(stage, *shard.name)
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(f"[00:00:01] generated {len(cells) - taken} cells, took {taken} from the store\n")


def test_what_has_run_predicts_itself(tmp_path: Path) -> None:
    study = study_of()
    ran(study, tmp_path)
    made = plan(study, measure(study, tmp_path))
    assert made.models[MODEL].seconds == pytest.approx(200)
    assert made.models[MODEL].assistant_turns.new == 14 * 30
    assert made.models[MODEL].user_turns.new == 70 * 7
    assert made.models[MODEL].user_turns.prompt == 70 * 50
    assert "lengths of user turns, by cell: 6 of 6" in made.measured
    assert "speed of the jobs that generate: 2 of 2" in made.measured


def test_a_measured_speed_carries_over_to_more_items(tmp_path: Path) -> None:
    small = study_of()
    ran(small, tmp_path)
    datasets = {
        n: c | {"n_items": 10 * k} for (n, c), k in zip(DEFAULT_STUDY["datasets"].items(), (10, 4), strict=False)
    }
    made = plan(study_of(datasets=datasets), measure(study_of(datasets=datasets), tmp_path))
    assert 200 < (made.models[MODEL].seconds or 0) < 10 * 200
    assert made.models[MODEL].user_turns.new == 10 * 70 * 7


def test_a_resumed_job_tells_lengths_but_no_speed(tmp_path: Path) -> None:
    study = study_of()
    ran(study, tmp_path, taken=2, seconds=1)
    found = measure(study, tmp_path)
    assert len(found.cells) == 6
    assert not any(timing.tells_speed for timing in found.jobs.values())


def test_runs_with_other_limits_are_no_measurement(tmp_path: Path) -> None:
    ran(study_of(), tmp_path)
    other = study_of(assistant_turns={"max_tokens": 99})
    assert not measure(other, tmp_path).answers
    assert measure(other, tmp_path).cells
    slower = study_of(engine=DEFAULT_STUDY["engine"] | {"max_sequences": 7})
    assert not any(timing.tells_speed for timing in measure(slower, tmp_path).jobs.values())


def test_items_are_counted_only_where_the_same_dataset_was_read(tmp_path: Path) -> None:
    whole = {"gsm8k": DEFAULT_STUDY["datasets"]["gsm8k"] | {"n_items": None}}
    study = study_of(datasets=whole)
    write_jsonl(tmp_path / layout.dataset("gsm8k"), [{"item": str(i)} for i in range(7)])
    run = {"started": "2026-01-01T00:00:00+00:00", "ended": "2026-01-01T00:00:05+00:00"}
    for n_read, expected in ((16, 1319), (None, 7)):
        spec = json.loads(specs.dataset(study, "gsm8k")) | {"n_items": n_read}
        write_json(tmp_path / layout.manifest("dataset", "gsm8k"), {"spec": spec, "run": run})
        assert n_items(study, "gsm8k", measure(study, tmp_path)) == expected


def test_measured_lengths_of_one_cell_leave_the_others_assumed() -> None:
    known = Measured(cells={f"{MODEL}/gsm8k/baseline/t0.0": Lengths(100, 1)}, jobs={("analyse",): Timing(3.0)})
    made = plan(study_of(), known)
    assert made.models[MODEL].user_turns.new == pytest.approx(10 * 1 + 60 * 0.7 * 48)
    assert "lengths of user turns, by cell: 1 of 6" in made.measured
    assert any(sentence.startswith("lengths of user turns, by cell: 5 of 6:") for sentence in made.assumed)


# --- the engine and the resources of one model


def test_a_model_has_its_own_engine_settings() -> None:
    model = DEFAULT_STUDY["models"][MODEL]
    models = {"plain": model, "own": model | {"engine": {"dtype": "bfloat16", "max_model_len": 4096}}}
    study = study_of(models=models)
    assert study.engine_of("plain") == study.engine
    assert study.engine_of("own") == study.engine.model_copy(update={"dtype": "bfloat16", "max_model_len": 4096})
    assert json.loads(specs.model(study, "own"))["dtype"] == "bfloat16"
    plain, own = grid.shards(study)
    for spec in (specs.user_turns, specs.assistant_turns):
        assert json.loads(spec(study, own, "l"))["engine"]["max_model_len"] == 4096
        assert json.loads(spec(study, plain, "l"))["engine"] == study.engine.model_dump(mode="json")


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ({"engine": {"shard_by": "dataset"}}, "models.smollm2-135m-instruct.engine.shard_by: unknown key"),
        ({"engine": {"max_model_len": 200}}, "engine.max_model_len: 200 leaves no room"),
        ({"resources": {"gpus": 2}}, "resources.gpus: 2, but the engine shares the model between"),
        ({"resources": {"gpus": 1}, "engine": {"batch_invariant": False}}, "a prefix cache can change texts unless"),
        ({"resources": {"decode_tokens_per_second": 0}}, "decode_tokens_per_second: Input should be greater than 0"),
    ],
)
def test_settings_that_do_not_fit_are_refused(model: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(reason)):
        study_of(models={MODEL: DEFAULT_STUDY["models"][MODEL] | model})


# --- the paper's grid


def test_the_papers_config_names_its_models_and_datasets(paper: Study) -> None:
    repos = [model.source.repo for model in paper.models.values() if model.source.kind == "hub"]
    sizes = ("0.8B", "2B", "4B", "9B", "27B", "35B-A3B", "122B-A10B", "397B-A17B")
    others = ["openai/gpt-oss-20b", "openai/gpt-oss-120b", "zai-org/GLM-4.7-Flash"]
    assert repos == [*(f"Qwen/Qwen3.5-{size}" for size in sizes), *others]
    sources = [dataset.source.model_dump(mode="json", exclude_none=True) for dataset in paper.datasets.values()]
    assert [(one["repo"], one.get("config"), one.get("split"), one.get("path")) for one in sources] == [
        ("openai/gsm8k", "main", "test", None),
        ("allenai/IFBench_test", None, "train", None),
        ("Idavidrein/gpqa", "gpqa_diamond", "train", None),
        ("openai/healthbench", None, None, "2025-05-07-06-14-12_oss_eval.jsonl"),
        ("openai/coval", "comparisons", "train", None),
    ]


def test_the_papers_config_leaves_no_choice_to_a_default(paper: Study, root: Path) -> None:
    written = yaml.safe_load((root / "config/paper.yaml").read_text())
    assert set(written["probe"]["sampling"]) == set(Sampling.model_fields)
    for name, model in written["models"].items():
        assert "thinking" in model, name
        assert paper.engine_of(name).tensor_parallel_size == paper.models[name].resources.gpus > 0
        assert paper.engine_of(name).dtype == "bfloat16"
        assert not paper.engine_of(name).prefix_caching or paper.engine_of(name).batch_invariant
        if "gpt-oss" in name:
            assert set(model["template_kwargs"]) == {"reasoning_effort", "date"}
        else:
            assert model["thinking"] is False
    for name in ("presence_penalty", "frequency_penalty"):
        assert written["probe"]["sampling"][name] == 0.0


def test_the_papers_grid_is_planned_offline_while_its_revisions_are_open(root: Path, tmp_path: Path) -> None:
    # processor time: how long a busy machine makes the command wait says nothing about it
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "userturn.cli", "plan", "--json", "--configfile", str(root / "config/paper.yaml")],
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5
    told = json.loads(done.stdout)
    assert len(told["models"]) == 11
    assert told["cells"] == 11 * told["models"]["glm-4.7-flash"]["cells"]
    assert told["accelerator_hours"] > 10
    assert not told["measured"]


# --- the plan against Snakemake's own


def counted(root: Path, *words: str) -> dict[str, int]:
    """Jobs by rule of a run from nothing, as Snakemake counts them."""
    snakemake = root / ".envs/workflow/bin/snakemake"
    if not snakemake.exists():
        pytest.skip("no workflow environment: run the tests with `make test`")
    done = subprocess.run(
        [str(snakemake), "--dry-run", "--forceall", "--quiet", "reason", *words],
        cwd=root,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    table = (done.stdout + done.stderr).partition("Job stats:")[2]
    rows = [line.split() for line in table.splitlines()]
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit() and row[0] != "jobid:"}


@pytest.mark.workflow
def test_jobs_of_the_default_study_are_those_of_the_dag(root: Path) -> None:
    found = counted(root)
    made = plan(load_study([root / "config/config.yaml"]))
    assert found.pop("total") == made.n_jobs
    assert found == made.jobs


@pytest.mark.workflow
def test_jobs_of_the_papers_grid_are_those_of_the_dag(root: Path, tmp_path: Path, paper: Study) -> None:
    pinned = tmp_path / "paper.yaml"
    pinned.write_text((root / "config/paper.yaml").read_text().replace("revision: pin me", "revision: " + "a" * 40))
    assert not open_revisions(load_study([pinned]))
    found = counted(root, "all", "--configfile", str(pinned))
    assert found.pop("total") == sum(jobs(paper).values())
    assert found == jobs(paper)
