"""What jobs ask of a cluster, and the profile that sends them there. The real SLURM is in tests/slurm."""

from __future__ import annotations

import datetime as dt
import re
import time
from copy import deepcopy
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from userturn import grid
from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.engine import EngineConfig, SimulatedTexts
from userturn.config.study import Study
from userturn.engine.interface import Request, SamplingParameters
from userturn.engine.simulated import SimulatedEngine
from userturn.manifest import run_facts


def test_what_a_job_asks_for_comes_from_the_models_entry() -> None:
    config = deepcopy(dict(DEFAULT_STUDY))
    (name,) = config["models"]
    asked = {"gpus": 2, "cores": 6, "memory_gb": 96, "time_minutes": 720, "partition": "gpu"}
    engine = {"tensor_parallel_size": 2, "batch_invariant": True}
    config["models"] = {
        "large": {**config["models"][name], "engine": engine, "resources": asked},
        "unknown": {key: value for key, value in config["models"][name].items() if key != "resources"},
    }
    study = Study.model_validate(config)
    assert grid.resources(study, "large") == {
        "cores": 6, "gpu": 2, "mem_mb": 98304, "runtime": 720, "slurm_partition": "gpu",
    }  # fmt: skip
    # None leaves it to the cluster: a job that names no cards must not ask for 0 of them
    assert grid.resources(study, "unknown") == {
        "cores": 4, "gpu": None, "mem_mb": 8192, "runtime": 240, "slurm_partition": None,
    }  # fmt: skip


def test_the_profile_keeps_what_makes_the_default_one_safe(root: Path) -> None:
    default, slurm = (
        yaml.safe_load((root / f"profiles/{name}/config.yaml").read_text()) for name in ("default", "slurm")
    )
    assert {key: slurm.get(key) for key in default} == default
    # --cores would limit the cores of all jobs together, and rules take its absence for a cluster
    assert not {"cores", "local-cores"} & set(slurm)


def test_every_line_of_the_profile_is_explained(root: Path) -> None:
    lines = (root / "profiles/slurm/config.yaml").read_text().splitlines()
    for before, line in pairwise(lines):
        if re.match(r"[a-z-]+:", line):
            assert before.startswith("# "), line


@pytest.mark.parametrize("devices", [None, "1", "0,3"])
def test_the_manifest_tells_which_cards_a_job_saw(devices: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if devices is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", devices)
    assert run_facts(dt.datetime.now(dt.UTC))["accelerator_devices"] == devices


def test_a_simulated_call_can_take_its_time_and_says_the_same() -> None:
    config = EngineConfig(name="simulated")
    slow = config.model_copy(update={"simulated": SimulatedTexts(seconds_per_call=0.2)})
    asked = [Request((1, 2, 3), 4)], [SamplingParameters(temperature=1.0, max_tokens=30, stop_token_ids=(2,))]
    started = time.monotonic()
    texts = SimulatedEngine("m", slow).generate(*asked, lambda _: None)
    assert time.monotonic() - started >= 0.2
    assert texts == SimulatedEngine("m", config).generate(*asked, lambda _: None)
    # cells that were made before there was such a setting keep their keys
    assert "seconds_per_call" not in SimulatedTexts().model_dump(mode="json")
