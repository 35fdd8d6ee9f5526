"""Progress, the run lock, environments and the specs that rules pass to stages."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from userturn import grid, specs
from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.study import Study
from userturn.environments import EnvironmentMismatch, current_lock
from userturn.progress import Progress
from userturn.runlock import RunLock, RunLockHeld


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_and_plain_lines_in_a_log() -> None:
    terminal, log = Terminal(), io.StringIO()
    now = iter([0.0, 1.0, 12.0, 20.0])
    progress = Progress(4, "user turns", terminal=terminal, log=log, every=10.0, clock=lambda: next(now))
    progress.advance(1)
    progress.advance(1, "cell")
    progress.advance(2)
    progress.close()
    assert log.getvalue().splitlines() == [
        "user turns: 2/4 in 12 s, about 12 s left · cell",
        "user turns: 4/4 in 20 s",
    ]
    assert "\r" in terminal.getvalue()
    assert "[████████████████████████] user turns: 4/4" in terminal.getvalue()


def test_no_bar_where_there_is_no_terminal() -> None:
    stream, log = io.StringIO(), io.StringIO()
    Progress(1, "x", terminal=stream, log=log).advance()
    assert stream.getvalue() == ""


def test_the_run_lock_holds_against_another_process_and_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / "run.lock"
    code = (
        "import sys; from pathlib import Path; from userturn.runlock import RunLock;"
        f"RunLock(Path({str(path)!r})).hold(); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(RunLockHeld, match=f"process {process.pid} on "):
            RunLock(path).hold()
        process.kill()
        process.wait()
    run = path.read_text()
    assert run.startswith(f"process {process.pid} on ")
    with RunLock(path).held("a seal"):
        assert path.read_text().startswith(f"a seal, process {os.getpid()} on ")
    assert path.read_text() == run, "the last run is still known"
    RunLock(path).hold()


def test_a_changed_lock_is_refused(tmp_path: Path) -> None:
    (tmp_path / "envs").mkdir()
    lock = tmp_path / "envs" / "workflow.lock"
    lock.write_text("a==1\n")
    with pytest.raises(EnvironmentMismatch, match="run `make setup`"):
        current_lock("workflow", tmp_path)
    stamp = tmp_path / ".envs" / "workflow" / "userturn.lock"
    stamp.parent.mkdir(parents=True)
    digest = hashlib.sha256(b"a==1\n").hexdigest()
    stamp.write_text(f"workflow.lock {digest}\n")
    assert current_lock("workflow", tmp_path).sha256 == digest
    lock.write_text("a==2\n")
    with pytest.raises(EnvironmentMismatch, match=r"envs/workflow.lock has changed .* run `make setup`"):
        current_lock("workflow", tmp_path)


def test_stages_accept_the_specs_that_rules_pass() -> None:
    study = Study.model_validate(DEFAULT_STUDY)
    (shard,) = grid.shards(study)
    given = {
        "dataset": specs.dataset(study, "gsm8k"),
        "model": specs.model(study, shard.model),
        "assistant_turns": specs.assistant_turns(study, shard, "0" * 64),
        "scores": specs.scores(study, shard),
        "contexts": specs.contexts(study, shard),
        "user_turns": specs.user_turns(study, shard, "0" * 64),
        "judge": specs.judge(study, "provisional", shard),
        "analyse": specs.analyse(study),
        "report": specs.report(study),
    }
    for stage, text in given.items():
        spec = importlib.import_module(f"userturn.stages.{stage}").Spec.model_validate_json(text)
        assert json.loads(spec.model_dump_json(exclude_unset=True)) == json.loads(text), stage


def test_parsing_the_workflow_imports_nothing_heavy() -> None:
    code = (
        "import sys; from userturn import grid, layout, specs; from userturn.code import stage_digest;"
        "from userturn.config.load import check_config; from userturn.environments import current_lock;"
        "import userturn.runlock;"
        "heavy = {'torch', 'vllm', 'transformers', 'datasets', 'numpy', 'pandas', 'scipy', 'nltk'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
