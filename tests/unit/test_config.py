from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from userturn import grid, specs
from userturn.config import document
from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.load import ConfigError, check_config, load_study, read_yaml, validate
from userturn.config.study import Study

ROOT = Path(__file__).parents[2]


@pytest.fixture
def config() -> dict[str, Any]:
    return copy.deepcopy(DEFAULT_STUDY)


def test_documented_default_and_schema_have_not_drifted() -> None:
    assert (ROOT / "config" / "config.yaml").read_text("utf-8") == document.default_yaml(), (
        "run `userturn config write`"
    )
    assert (ROOT / "config" / "config.schema.json").read_text("utf-8") == document.schema_text()


def test_the_documented_default_is_the_default_study() -> None:
    assert load_study([ROOT / "config" / "config.yaml"]) == Study.model_validate(DEFAULT_STUDY)


def test_every_key_of_the_schema_is_described() -> None:
    schema = json.loads(document.schema_text())

    def described(value: dict[str, Any]) -> bool:
        return "description" in value or "$ref" in value

    undescribed = [
        f"{name}.{key}"
        for name, definition in {"Study": schema, **schema["$defs"]}.items()
        for key, value in definition["properties"].items()
        if key != "kind" and not described(value)
    ]
    assert undescribed == []


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    *parents, last = path.split(".")

    def change(config: dict[str, Any]) -> None:
        for part in parents:
            config = config[part]
        config[last] = value

    return change


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], None], list[str]]] = {
    "unknown key": (
        _set("probe.sampels", 3),
        ["probe.sampels: unknown key (given: 3)", "allowed there:", "samples"],
    ),
    "unknown top-level key": (_set("juges", {}), ["juges: unknown key", "judges"]),
    "unknown perturbation parameter": (
        _set("probe.perturbations.truncated_assistant.fracton", 0.5),
        ["probe.perturbations.truncated_assistant.fracton: unknown key (given: 0.5)", "fraction"],
    ),
    "wrong type": (
        _set("probe.samples", "many"),
        ["probe.samples: Input should be a valid integer", "'many'"],
    ),
    "negative n": (
        _set("datasets.gsm8k.n_items", -4),
        ["datasets.gsm8k.n_items: ", "greater than or equal to 1", "-4"],
    ),
    "unknown dataset": (
        _set("datasets.gsm8k.reader", "gsm9k"),
        ["datasets.gsm8k.reader: unknown dataset reader; known: gsm8k", "'gsm9k'"],
    ),
    "unknown perturbation": (
        _set("probe.perturbations.scrambled", {"kind": "scrambled", "temperatures": [0.0]}),
        ["probe.perturbations.scrambled", "'scrambled'", "'shuffled_context'"],
    ),
    "temperature -1": (
        _set("probe.perturbations.baseline.temperatures", [0.0, -1.0]),
        ["temperatures.1: ", "greater than or equal to 0", "-1.0"],
    ),
    "empty grid": (_set("datasets", {}), ["datasets: ", "at least 1 item"]),
    "no temperatures": (
        _set("probe.perturbations.baseline.temperatures", []),
        ["temperatures: ", "at least 1 item"],
    ),
    "duplicate cell": (
        _set("probe.perturbations.baseline.temperatures", [1.0, 0.0, 1]),
        ["temperatures: each temperature makes one cell", "[1.0]"],
    ),
    "sampled control": (
        _set("probe.perturbations.echoed_query.temperatures", [1.0]),
        ["probe.perturbations.echoed_query.temperatures: a control's user turns are known"],
    ),
    "no baseline": (
        _set("probe.perturbations", {"swapped_roles": {"kind": "swapped_roles", "temperatures": [0.0]}}),
        ["probe.perturbations: exactly one perturbation must be named 'baseline'"],
    ),
    "wrong digest": (_set("datasets.gsm8k.source.sha256", "abc"), ["datasets.gsm8k.source", "sha256", "64"]),
    "name that is no file name": (
        _set("datasets", {"../x": DEFAULT_STUDY["datasets"]["gsm8k"]}),
        ["datasets.../x"],
    ),
    "unknown judge": (
        _set("reported_judge", "oracle"),
        ["reported_judge: 'oracle' is no judge", "provisional"],
    ),
    "no room for prompts": (_set("engine.max_model_len", 200), ["engine.max_model_len: 200 leaves no room"]),
    "one item to shuffle": (_set("datasets.gsm8k.n_items", 1), ["gsm8k: n_items is 1", "shuffled_context"]),
    "missing section": (lambda config: config.pop("probe"), ["probe: required, but not given"]),
    "not a number": (_set("probe.sampling.top_p", float("nan")), ["probe.sampling.top_p"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(config: dict[str, Any], fault: str) -> None:
    change, said = FAULTS[fault]
    change(config)
    with pytest.raises(ConfigError) as error:
        validate(config)
    for part in said:
        assert part in str(error.value)


def test_several_faults_are_told_at_once(config: dict[str, Any]) -> None:
    config["probe"]["samples"] = 0
    config["seed"] = -1
    with pytest.raises(ConfigError) as error:
        validate(config)
    assert "probe.samples" in str(error.value)
    assert "seed" in str(error.value)


def test_a_missing_file_and_a_wrong_digest_are_refused_before_anything_runs(
    config: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "items.jsonl.gz"
    source = {"kind": "file", "path": str(file), "sha256": "0" * 64}
    config["datasets"]["gsm8k"]["source"] = source
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(ConfigError, match=r"datasets\.gsm8k\.source: .*items\.jsonl\.gz"):
        check_config(config, [path])
    file.write_bytes(b"other")
    with pytest.raises(ConfigError, match=r"(?s)datasets\.gsm8k\.source: .*0000"):
        check_config(config, [path])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2\n", r"line 2: the key 'a' stands twice \(first in line 1\)"),
        ("a: [1\n", "not YAML"),
        ("- 1\n", "expected keys and values, found list"),
    ],
)
def test_files_that_are_no_config(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_yaml(path)
    with pytest.raises(ConfigError, match="no such config file"):
        read_yaml(tmp_path / "absent.yaml")


def test_later_files_override_single_keys(tmp_path: Path) -> None:
    over = tmp_path / "over.yaml"
    over.write_text("probe: {samples: 7}\n")
    study = load_study([ROOT / "config" / "config.yaml", over])
    assert study.probe.samples == 7
    assert study.probe.sampling.max_tokens == DEFAULT_STUDY["probe"]["sampling"]["max_tokens"]


def test_cells_and_shards(config: dict[str, Any]) -> None:
    study = Study.model_validate(config)
    cells = grid.cells(study)
    baseline, perturbed, contrasts, controls = 3, 5 * 2, 2, 4
    assert len(cells) == len({cell.key for cell in cells}) == 3 * (baseline + perturbed + contrasts + controls)
    first = cells[0]
    assert first.key == "smollm2-135m-instruct/gsm8k/baseline/t0.0"
    assert first.samples == 1
    assert {cell.samples for cell in cells if cell.temperature > 0} == {study.probe.samples}
    assert len(grid.shards(study)) == 1
    config["engine"]["shard_by"] = "dataset"
    by_dataset = Study.model_validate(config)
    assert [shard.name for shard in grid.shards(by_dataset)] == [
        ("smollm2-135m-instruct", dataset) for dataset in config["datasets"]
    ]
    assert sorted(grid.cells(by_dataset)) == sorted(cells)


# --- sampling by temperature, the likelihood probe, repeats


def test_sampling_can_differ_at_a_temperature(config: dict[str, Any]) -> None:
    config["probe"]["at"] = {1.0: {"samples": 4, "top_p": 0.9, "max_tokens": 20}}
    study = Study.model_validate(config)
    assert {cell.samples for cell in grid.cells(study) if cell.temperature == 1.0} == {4}
    assert {cell.samples for cell in grid.cells(study) if cell.temperature == 0.7} == {study.probe.samples}
    assert (study.probe.sampling_at(1.0).top_p, study.probe.sampling_at(0.7).top_p) == (0.9, 1.0)
    spec = json.loads(specs.user_turns(study, grid.shards(study)[0], "0" * 64))
    assert {key: one["max_tokens"] for key, one in spec["sampling"].items()} == {"t0.0": 48, "t0.7": 48, "t1.0": 20}
    # the report's job reads the study back from JSON, where keys are texts
    assert Study.model_validate_json(study.model_dump_json()) == study


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("at", {0.3: {"samples": 2}}, "no perturbation has the temperature 0.3; those of this study: 0, 0.7, 1"),
        ("at", {0.0: {"samples": 2}}, "repeated_baseline"),
        ("at", {1.0: {"temperature": 2}}, "temperature"),
        ("likelihood", {"controls": ["baseline"]}, "only the user turns of controls are known"),
        (
            "likelihood",
            {"controls": ["human_followup"], "against": "baseline"},
            "those of this study: shuffled_context",
        ),
    ],
)
def test_what_cannot_be_sampled_or_scored_is_refused(config: dict[str, Any], key: str, value: Any, told: str) -> None:
    config["probe"][key] = value
    with pytest.raises(ConfigError, match=re.escape(told)):
        validate(config)


def test_a_longer_turn_at_one_temperature_counts_for_the_longest(config: dict[str, Any]) -> None:
    config["probe"]["at"] = {1.0: {"max_tokens": 2000}}
    with pytest.raises(ConfigError, match="max_model_len"):
        validate(config)


def test_cells_that_repeat_the_baseline_are_paired_with_it(config: dict[str, Any]) -> None:
    pairs = grid.repeated(Study.model_validate(config))
    assert [(base.perturbation, again.perturbation) for base, again in pairs] == 3 * [("baseline", "repeated_baseline")]
    assert all(base.dataset == again.dataset and again.temperature == 0 for base, again in pairs)


# --- judges


def llm_judge(**transport: Any) -> dict[str, Any]:
    return {"kind": "llm", "transport": transport}


def test_a_judge_is_never_the_model_it_judges(config: dict[str, Any]) -> None:
    source = config["models"]["smollm2-135m-instruct"]["source"]
    config["judges"]["self"] = llm_judge(kind="offline", source=source)
    with pytest.raises(ConfigError, match=r"judges\.self.*would judge itself.*allow_self_judging"):
        validate(config)
    config["judges"]["self"]["allow_self_judging"] = True
    assert validate(config).judges["self"].weights is not None


def test_a_served_judge_is_never_the_served_model(config: dict[str, Any]) -> None:
    config["probe"]["likelihood"] = None
    config["models"]["smollm2-135m-instruct"] |= {
        "endpoint": {"base_url": "http://127.0.0.1:1/v1", "model": "m"},
        "resources": None,
    }
    config["judges"]["served"] = llm_judge(kind="endpoint", base_url="http://127.0.0.1:2/v1", model="m")
    with pytest.raises(ConfigError, match="would judge itself"):
        validate(config)
    config["judges"]["served"]["transport"]["model"] = "another"
    assert validate(config).judges["served"].weights is None


def test_what_each_kind_of_judge_needs(config: dict[str, Any]) -> None:
    config["judges"] |= {
        "people": {"kind": "people", "labels": "labels/people/labels.jsonl"},
        "served": llm_judge(kind="endpoint", base_url="http://127.0.0.1:2/v1", model="m"),
    }
    study = validate(config)
    assert grid.judge_needs(study, "people") == [Path("labels/people/labels.jsonl")]
    assert grid.judge_needs(study, "served") == []
    assert [path.name for path in grid.judge_needs(study, "provisional")] == ["model.json"]
    assert len(grid.judge_needs(study, "embedded")) == 4
    assert grid.judges_with(study, gold=True) == ["embedded", "provisional", "served"]
    assert grid.judges_with(study, model=True) == ["embedded", "provisional"]
