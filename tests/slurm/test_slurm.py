"""The study through `profiles/slurm` on a real SLURM: the same bytes as here, one card a job, kills survived."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

from userturn import grid, layout, plan
from userturn.artefacts import read_json
from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.load import load_study, read_yaml
from userturn.simulation.study import twin
from workflow.conftest import MODEL

from .conftest import Folder

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1800)]

#: Stages whose jobs load a model.
LOADING = {"assistant_turns", "user_turns", "likelihood"}


@pytest.fixture(scope="module")
def local(simulated, chaos) -> dict[str, str]:
    """Digests of the study, run here."""
    folder = simulated("local")
    assert folder.start("--cores", "2").wait() == 0, folder.said()
    return chaos.digests(folder.path)


def until(true: Callable[[], object], seconds: float = 300) -> None:
    """Waits until something is so."""
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.3)


def test_the_same_bytes_and_one_card_a_job(cluster, simulated, chaos, local: dict[str, str]) -> None:
    folder = simulated("cluster")
    assert folder.start_on_cluster().wait() == 0, folder.said()
    assert chaos.digests(folder.path) == local
    seen = set()
    for path in (folder.path / layout.MANIFESTS).rglob("*.json"):
        manifest = read_json(path)
        assert manifest["run"]["slurm_job_id"], path
        if manifest["stage"] in LOADING:
            assert manifest["run"]["accelerator_devices"] in {"0", "1"}, path
            seen.add(manifest["run"]["accelerator_devices"])
        else:
            assert manifest["run"]["accelerator_devices"] is None, path
    # two models ran beside each other, each with a card of its own
    assert seen == {"0", "1"}
    logs = {path.parent.parent.name for path in (folder.path / "logs/slurm").rglob("*.log")}
    assert {"rule_user_turns", "rule_judge"} <= logs


def test_a_cancelled_job_and_a_lost_node(cluster, simulated, chaos, local: dict[str, str]) -> None:
    folder = simulated("killed")
    run = folder.start_on_cluster()
    cells = folder.path / layout.cell_store()
    until(lambda: cluster.running("user_turns"))
    # the answers are 6 cells: some user turns are finished, most are not
    until(lambda: len(list(cells.glob("*/*.jsonl"))) > 9)
    (cancelled, *_) = cluster.running("user_turns")
    cluster.ask("scancel", cancelled)
    kept = {path.name: path.stat().st_ino for path in cells.glob("*/*.jsonl")}
    until(lambda: cancelled not in cluster.running("user_turns"))
    until(lambda: cluster.running("user_turns"))
    cluster.node("down")
    time.sleep(3)
    cluster.node("resume")
    assert run.wait() == 0, folder.said()
    assert chaos.digests(folder.path) == local
    # nothing that was finished was generated again
    assert {path.name: path.stat().st_ino for path in cells.glob("*/*.jsonl") if path.name in kept} == kept
    assert cluster.ask("squeue", "-h") == ""


def test_a_workflow_that_is_gone_and_a_stale_lock(cluster, simulated, chaos, local: dict[str, str]) -> None:
    folder = simulated("gone")
    run = folder.start_on_cluster()
    until(lambda: cluster.running("user_turns"))
    run.kill()
    run.wait()
    # its jobs end in their own time; whoever does not want to wait for them cancels them
    assert cluster.running("user_turns")
    cluster.ask("scancel", "--user=root")
    until(lambda: cluster.ask("squeue", "-h") == "")
    assert folder.start_on_cluster().wait() == 0, folder.said()
    assert chaos.digests(folder.path) == local


def default_shape() -> dict:
    """The default study with all its datasets and perturbations, but few items, short turns and one judge."""
    config: dict = deepcopy(dict(DEFAULT_STUDY))
    for dataset in config["datasets"].values():
        dataset["n_items"] = 2
    config["assistant_turns"] = {"max_tokens": 24}
    config["probe"]["sampling"]["max_tokens"] = 12
    config["judges"] = {"provisional": config["judges"]["provisional"]}
    config["reported_judge"] = "provisional"
    config.pop("gold")
    config["statistics"] = {"resamples": 500}
    for model in config["models"].values():
        model["resources"] = {**model["resources"], "gpus": 1, "card": "fake", "cores": 2, "memory_gb": 8}
    return config


@pytest.mark.engine
def test_the_real_model(cluster, executor, chaos, root: Path, chat_model: Path, tmp_path: Path) -> None:
    config = default_shape()
    found = []
    for where in ("local", "cluster"):
        folder = Folder(chaos.checkout(tmp_path / where, config, {}, "config/study.yaml"), executor, [])
        for made in (
            f"data/models/{MODEL}",
            "data/judges/provisional",
            "results/manifests/model",
            "results/manifests/judge_model",
        ):
            shutil.copytree(root / made, folder.path / made, copy_function=os.link)
        run = folder.start("--cores", "2") if where == "local" else folder.start_on_cluster()
        assert run.wait() == 0, folder.said()
        found.append(chaos.digests(folder.path))
    assert found[0] == found[1]
    jobs = [read_json(path) for path in (folder.path / layout.MANIFESTS).rglob("*.json")]
    devices = {job["run"]["accelerator_devices"] for job in jobs if job["stage"] in LOADING}
    assert devices in ({"0"}, {"1"}, {"0", "1"})


@pytest.mark.slow
@pytest.mark.timeout(10800)
def test_the_papers_whole_grid(cluster, executor, chaos, root: Path, tmp_path: Path) -> None:
    made = twin(read_yaml(root / "config/paper.yaml"), items=4)
    folder = Folder(chaos.checkout(tmp_path, made.config, made.files, "config/study.yaml"), executor, [])
    assert folder.start_on_cluster().wait() == 0, folder.said()
    study = load_study([folder.path / "config/study.yaml"])
    assert all((folder.path / cell.user_turns).is_file() for cell in grid.cells(study))
    jobs = [read_json(path) for path in (folder.path / layout.MANIFESTS).rglob("*.json")]
    # as many as `userturn plan` says, but for the target, which is no job of the cluster
    assert len(jobs) == sum(plan.jobs(study).values()) - 1
    assert all(job["run"]["slurm_job_id"] for job in jobs)
