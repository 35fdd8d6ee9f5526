from __future__ import annotations

import base64
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from userturn import grid, layout
from userturn.artefacts import write_json, write_jsonl
from userturn.cli import main
from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.load import read_yaml
from userturn.config.study import Study
from userturn.measured import job_names
from userturn.plan import jobs
from userturn.simulation.study import twin
from userturn.status import Status, status

NOW = 1_800_000_000.0
MODEL = "smollm2-135m-instruct"


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    made = twin(deepcopy(dict(DEFAULT_STUDY)), items=2, times=2).config
    made["models"][MODEL]["resources"] = {**made["models"][MODEL]["resources"], "gpus": 1, "card": "one"}
    made["engine"] = {**made["engine"], "batch_invariant": True}
    return made


@pytest.fixture(scope="module")
def study(config: dict[str, Any]) -> Study:
    return Study.model_validate(config)


@pytest.fixture
def workflow(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that the lock names, and that looks like Snakemake."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "snakemake"])
    hold(tmp_path, process.pid)
    while b"snakemake" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
        time.sleep(0.01)
    yield process
    process.kill()
    process.wait()


def hold(folder: Path, process: int, machine: str = platform.node()) -> None:
    path = folder / layout.RUN_LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"process {process} on {machine}\n")


def finish(folder: Path, *name: str, seconds: float = 60, ago: float = 0, **facts: Any) -> None:
    """Leaves the manifest of a finished job."""

    def moment(when: float) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(when))

    run = {"started": moment(NOW - ago - seconds), "ended": moment(NOW - ago)}
    path = folder / layout.manifest(*name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"stage": name[0], "run": run, "outputs": [], **facts})


def begin(folder: Path, *name: str, said: str | None = "", ago: float = 5) -> None:
    """Marks a job as Snakemake does; without words it has not begun its log."""
    mark = (
        folder / layout.UNFINISHED_JOBS / base64.urlsafe_b64encode(layout.manifest(*name).as_posix().encode()).decode()
    )
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    os.utime(mark, (NOW - 100, NOW - 100))
    if said is not None:
        log = folder / layout.log(*name)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(said)
        os.utime(log, (NOW - ago, NOW - ago))


def states(found: Status) -> dict[str, str]:
    return {"/".join(job.name): job.state for job in found.jobs if job.state != "left"}


def test_nothing_has_run(study: Study, tmp_path: Path) -> None:
    found = status(study, tmp_path, NOW)
    assert found.run is None
    assert not found.active
    assert found.counts() == {"done": 0, "running": 0, "waiting": 0, "failed": 0, "left": sum(jobs(study).values()) - 1}
    assert (found.prompt_tokens, found.new_tokens, found.cells_stored, found.seconds_left) == (0, 0, 0, None)


def test_done_running_waiting_failed(study: Study, tmp_path: Path, workflow: object) -> None:
    finish(tmp_path, "dataset", "gsm8k")
    begin(tmp_path, "user_turns", MODEL, said="x: user turns: 30/120 in 15 s, about 45 s left\n")
    begin(tmp_path, "likelihood", MODEL, said=None)
    log = tmp_path / layout.WORKFLOW_LOGS / "2026-01-02T000000.0.snakemake.log"
    log.parent.mkdir(parents=True)
    (log.parent / "2026-01-01T000000.0.snakemake.log").write_text(failure("contexts", MODEL))
    for number, when in ((7, NOW - 50), (12, NOW - 10)):
        attempt = tmp_path / layout.SLURM_LOGS / "rule_scores" / MODEL / f"{number}.log"
        attempt.parent.mkdir(parents=True, exist_ok=True)
        attempt.touch()
        os.utime(attempt, (when, when))
    log.write_text("some words\n" + failure("scores", MODEL) + failure("judge", "provisional", f"{MODEL}.2"))
    found = status(study, tmp_path, NOW)
    # what failed in an earlier run is merely left
    assert states(found) == {
        "dataset/gsm8k": "done",
        f"user_turns/{MODEL}": "running",
        f"likelihood/{MODEL}": "waiting",
        f"scores/{MODEL}": "failed",
        f"judge/provisional/{MODEL}.2": "failed",
    }
    (job,) = (job for job in found.jobs if job.state == "running")
    assert (job.done, job.total, job.seconds, job.rate, job.silent_seconds) == (30, 120, 15, 2, 5)
    assert [job.slurm_log for job in found.jobs if job.state == "failed"] == [
        f"logs/slurm/rule_scores/{MODEL}/12.log",
        None,
    ]
    assert found.by_model()[f"{MODEL}.2"]["failed"] == 1
    assert found.by_stage()["dataset"] == {"done": 1, "running": 0, "waiting": 0, "failed": 0, "left": 2}


def failure(stage: str, *shard: str) -> str:
    """As Snakemake tells it."""
    log = layout.log(stage, *shard)
    return (
        f"Error in rule {stage}:\n    message: None\n    jobid: 7\n    input: a, b\n    output: c\n"
        f"    log: {log} (check log file(s) for error details)\n    shell:\n        python ...\n\nmore\n"
    )


def test_a_log_of_before_the_job_was_handed_over_is_not_its_own(study: Study, tmp_path: Path, workflow: object) -> None:
    begin(tmp_path, "user_turns", MODEL, said="x: user turns: 30/120 in 15 s\n", ago=200)
    assert states(status(study, tmp_path, NOW)) == {f"user_turns/{MODEL}": "waiting"}


def test_marks_of_a_killed_run_do_not_count(study: Study, tmp_path: Path, workflow: subprocess.Popen[bytes]) -> None:
    begin(tmp_path, "user_turns", MODEL)
    workflow.kill()
    workflow.wait()
    found = status(study, tmp_path, NOW)
    assert not found.active
    assert states(found) == {}
    assert found.run == f"process {workflow.pid} on {platform.node()}"


def test_a_run_on_another_machine_is_there_while_something_is_written(study: Study, tmp_path: Path) -> None:
    hold(tmp_path, 1, "login-7")
    begin(tmp_path, "user_turns", MODEL, ago=500)
    begin(tmp_path, "contexts", MODEL, said=None)
    assert states(status(study, tmp_path, NOW)) == {f"user_turns/{MODEL}": "waiting", f"contexts/{MODEL}": "waiting"}
    begin(tmp_path, "user_turns", MODEL, ago=50)
    assert status(study, tmp_path, NOW).active
    assert not status(study, tmp_path, NOW + 3600).active


def test_tokens_and_accelerator_hours(study: Study, tmp_path: Path, workflow: object) -> None:
    cell = {"sampling": {}, "n_prompt_tokens": 100, "n_tokens": 7}
    known = {"sampling": None, "n_prompt_tokens": 1000, "n_tokens": 1000}
    finish(tmp_path, "user_turns", MODEL, seconds=1800, facts={"cells": {"a": cell, "b": cell, "control": known}})
    # without cards
    finish(tmp_path, "user_turns", f"{MODEL}.2", seconds=1800, facts={"cells": {"a": cell}})
    path = layout.assistant_turns(MODEL, "gsm8k")
    row = {"item": "1", "n_prompt_tokens": 5, "n_tokens": 3, "text": 'say "n_prompt_tokens":9,"n_tokens":9 please'}
    write_jsonl(tmp_path / path, [row, row])
    finish(tmp_path, "assistant_turns", MODEL, seconds=900, outputs=[{"path": path.as_posix()}])
    begin(tmp_path, "likelihood", MODEL, said="x: known turns: 1/2 in 900 s\n")
    found = status(study, tmp_path, NOW)
    assert (found.prompt_tokens, found.new_tokens) == (3 * 100 + 2 * 5, 3 * 7 + 2 * 3)
    assert found.accelerator_hours == pytest.approx(0.5 + 0.25 + 0.25)


def test_rate_and_time_to_finish(study: Study, tmp_path: Path, workflow: object) -> None:
    names = list(job_names(study))
    last = ("report",)
    for name in names:
        if name not in {last, ("user_turns", MODEL)}:
            finish(tmp_path, *name, seconds=60, ago=1800, facts={"cells": {}})
    begin(tmp_path, "user_turns", MODEL, said="x: 30/120 in 100 s\n")
    # no report has ever been written here: nobody can tell
    found = status(study, tmp_path, NOW)
    assert found.seconds_left is None
    assert found.jobs_per_hour == pytest.approx((len(names) - 2) / 0.5)
    finish(tmp_path, *last, facts={})
    assert status(study, tmp_path, NOW).seconds_left == pytest.approx(300)


def test_a_job_that_runs_again_is_not_done(study: Study, tmp_path: Path, workflow: object) -> None:
    finish(tmp_path, "contexts", MODEL)
    begin(tmp_path, "contexts", MODEL)
    assert states(status(study, tmp_path, NOW)) == {f"contexts/{MODEL}": "running"}


def test_the_command(
    config: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    workflow: object,
) -> None:
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.chdir(tmp_path)
    begin(tmp_path, "user_turns", MODEL, said="x: user turns: 30/120 in 15 s\n")
    assert main(["status", "--configfile", "study.yaml"]) == 0
    page = capsys.readouterr().out
    assert "SIMULATED" in page
    assert f"running  user_turns/{MODEL}: 30 of 120, 2.0 a second" in page
    log = tmp_path / layout.WORKFLOW_LOGS / "2026.snakemake.log"
    log.parent.mkdir(parents=True)
    log.write_text(failure("scores", MODEL))
    assert main(["status", "--configfile", "study.yaml", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["counts"]["failed"] == 1
    assert {job["state"] for job in told["jobs"]} == {"running", "failed", "left"}


def test_the_papers_grid_takes_no_time(root: Path, tmp_path: Path) -> None:
    study = Study.model_validate(read_yaml(root / "config/paper-simulated.yaml"))
    cells = list(grid.cells(study))
    assert len(cells) >= 1000
    facts = {"sampling": {}, "n_prompt_tokens": 1, "n_tokens": 1}
    for name in job_names(study):
        own = [cell.key for cell in cells if name[0] == "user_turns" and cell.key.startswith("/".join(name[1:]) + "/")]
        finish(tmp_path, *name, facts={"cells": dict.fromkeys(own, facts)})
    (tmp_path / layout.cell_store() / "ab").mkdir(parents=True)
    for cell in range(len(cells)):
        (tmp_path / layout.cell_store() / "ab" / f"{cell}.jsonl").touch()
    started = time.process_time()
    found = status(study, tmp_path, NOW)
    assert time.process_time() - started < 1.0
    assert found.counts()["done"] == len(found.jobs)
    assert (found.new_tokens, found.cells_stored) == (len(cells), len(cells))
