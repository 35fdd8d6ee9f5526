"""The main job on a tiny study: results, repetition, kills, edits, refusals."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from .conftest import MODEL, Workspace, tiny_config

pytestmark = [pytest.mark.workflow, pytest.mark.timeout(900)]

CELLS = 2 * 3
GENERATION = {"assistant_turns", "user_turns"}
BEHIND_GENERATION = {"scores", "contexts", "judge", "analyse", "report"}


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def test_every_artefact_is_there_and_complete(finished: Workspace) -> None:
    results = finished.folder / "results"
    turns = sorted((results / "user_turns").rglob("*.jsonl"))
    assert len(turns) == CELLS
    for path in turns:
        samples = 1 if path.stem == "t0.0" else 2
        found = rows(path)
        assert [(row["item"], row["sample"]) for row in found] == sorted(
            ((row["item"], row["sample"]) for row in found),
            key=lambda turn: [r["item"] for r in found].index(turn[0]),
        )
        assert len(found) == 2 * samples
        assert all((row["seed"] is None) == (path.stem == "t0.0") for row in found)
        judged = results / "judgements" / "provisional" / path.relative_to(results / "user_turns")
        assert [(r["item"], r["sample"]) for r in rows(judged)] == [(r["item"], r["sample"]) for r in found]
    page = (results / "report.html").read_text("utf-8")
    shown = set(re.findall(r'data-number-id="([^"]+)"', page))
    known = {row["id"] for row in rows(results / "numbers.jsonl")}
    assert shown <= known
    assert {i for i in known if i.startswith(("accuracy/", "followup_rate/", "effect/"))} <= shown


def test_golden_data(finished: Workspace) -> None:
    """What does not depend on the processor: the chosen items and a prompt without generated text."""
    items = rows(finished.folder / "data/datasets/gsm8k.jsonl")
    assert [item["item"] for item in items] == GOLDEN_ITEMS
    contexts = rows(finished.folder / f"data/contexts/{MODEL}/gsm8k/shuffled_context.jsonl")
    assert [row["changes"]["donor_item"] for row in contexts] == GOLDEN_ITEMS[::-1]
    for row in contexts:
        assert row["prompt"].startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
        assert row["prompt"].endswith("<|im_end|>\n<|im_start|>user\n")
        assert row["prompt_token_ids"][-3:] == [1, 4093, 198]


GOLDEN_ITEMS = ["gsm8k-0953", "gsm8k-0449"]


def test_manifests_say_what_was_done(finished: Workspace) -> None:
    manifest = json.loads((finished.folder / f"results/manifests/user_turns/{MODEL}.json").read_text())
    assert manifest["facts"]["template"]["stop_token_ids"][:3] == [0, 1, 2]
    cell = manifest["facts"]["cells"][f"{MODEL}/gsm8k/baseline/t1.0"]
    assert cell["sampling"]["temperature"] == 1.0
    assert cell["n_turns"] == 4
    assert {
        "frequency_penalty",
        "max_tokens",
        "min_p",
        "presence_penalty",
        "repetition_penalty",
        "top_k",
        "top_p",
    } <= set(cell["sampling"])
    assert manifest["facts"]["engine"]["versions"]["transformers"]
    for entry in manifest["outputs"]:
        assert finished.digests()[entry["path"]] == entry["sha256"]


def test_a_second_run_has_nothing_to_do(finished: Workspace) -> None:
    assert "Nothing to be done" in finished.run("results/report.html", "--cores", "all")


def test_scrambled_time_stamps_run_nothing(copied: Workspace) -> None:
    for number, name in enumerate(copied.digests()):
        os.utime(copied.folder / name, (1.7e9 + 997 * (number % 13),) * 2)
    assert copied.planned() == set()


def test_deleted_artefacts_come_back_with_the_same_bytes(copied: Workspace) -> None:
    before = copied.digests()
    names = (f"user_turns/{MODEL}/gsm8k/baseline/t1.0.jsonl", f"scores/{MODEL}/gsm8k.jsonl", "numbers.jsonl")
    targets = [f"results/{name}" for name in names]
    for target in targets:
        (copied.folder / target).unlink()
    copied.run(*targets, "--cores", "all")
    assert copied.digests() == before


def test_a_killed_run_goes_on_where_it_was(finished: Workspace, copied: Workspace) -> None:
    """Kills Snakemake in the middle of generation; the same command then generates the rest, to the same bytes."""
    for made in ("results/user_turns", "results/judgements", ".userturn"):
        shutil.rmtree(copied.folder / made)
    for made in ("numbers.jsonl", "report.html"):
        (copied.folder / "results" / made).unlink()
    with subprocess.Popen(
        copied.command("results/report.html", "--cores", "all"),
        cwd=copied.folder,
        env=copied.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 400
        while not stored(copied):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    kept = stored(copied)
    assert kept
    time.sleep(4)
    assert orphans(copied) == []
    kept = stored(copied)
    stamps = {path: path.stat().st_mtime_ns for path in kept}
    copied.run("results/report.html", "--cores", "all")
    assert copied.digests() == finished.digests()
    assert {path: path.stat().st_mtime_ns for path in kept} == stamps
    log = (copied.folder / f"logs/user_turns/{MODEL}.log").read_text()
    assert f"generated {CELLS - len(kept)} cells, took {len(kept)} from the store" in log


def stored(workspace: Workspace) -> list[Path]:
    return sorted((workspace.folder / ".userturn" / "cells").rglob("*.jsonl"))


def orphans(workspace: Workspace) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == workspace.folder.resolve():
                found.append((process / "cmdline").read_text().replace("\0", " ")[:200])
        except OSError:
            continue
    return found


def edit(workspace: Workspace, module: str) -> None:
    with (workspace.folder / "src/userturn" / module).open("a") as stream:
        stream.write("\n_EDITED = True\n")


def test_an_edit_runs_what_depends_on_it(copied: Workspace) -> None:
    assert copied.planned() == set()
    with (copied.folder / "src/userturn/engine/generation.py").open("a") as stream:
        stream.write("\n# a comment changes nothing\n")
    assert copied.planned() == set()
    edit(copied, "report/build.py")
    assert copied.planned() == {"report"}
    edit(copied, "statistics/rates.py")
    assert copied.planned() == {"analyse", "report"}
    edit(copied, "engine/generation.py")
    assert copied.planned() == GENERATION | BEHIND_GENERATION


def test_a_change_of_the_config_runs_what_depends_on_it(copied: Workspace) -> None:
    path = copied.folder / "config/tiny.yaml"

    def planned(**changes: object) -> set[str]:
        path.write_text(yaml.safe_dump(tiny_config() | changes))
        return copied.planned()

    assert planned(report={"transcripts_per_cell": 1}) == {"report"}
    assert planned(statistics={"resamples": 600}) == {"analyse", "report"}
    probe = tiny_config()["probe"]
    assert planned(probe=probe | {"samples": 3}) == {"user_turns", "judge", "analyse", "report"}
    assert planned() == set()


def test_a_new_lock_is_refused_until_set_up_and_then_runs_the_engine_again(copied: Workspace) -> None:
    envs = copied.folder / ".envs"
    real = envs.resolve()
    envs.unlink()
    for name in ("workflow", "engine"):
        (envs / name).mkdir(parents=True)
        for entry in (real / name).iterdir():
            if entry.name != "userturn.lock":
                (envs / name / entry.name).symlink_to(entry)
        shutil.copy(real / name / "userturn.lock", envs / name / "userturn.lock")
    assert copied.planned() == set()
    lock = copied.folder / "envs" / (envs / "engine/userturn.lock").read_text().split()[0]
    with lock.open("a") as stream:
        stream.write("# another package\n")
    said = copied.run("results/report.html", "--dry-run", check=False)
    assert f"envs/{lock.name} has changed since the engine environment was installed: run `make setup`" in said
    digest = subprocess.check_output(["sha256sum", lock], text=True).split()[0]
    (envs / "engine/userturn.lock").write_text(f"{lock.name} {digest}\n")
    # items and scores come from the engine's environment too
    assert copied.planned() >= {*GENERATION, "dataset", "scores"}


def _edited(change: str, value: object) -> dict:
    config = tiny_config()
    *parents, last = change.split(".")
    node = config
    for part in parents:
        node = node[part]
    node[last] = value
    return config


@pytest.mark.parametrize(
    ("change", "value", "said"),
    [
        ("probe.sampels", 3, "probe.sampels: unknown key (given: 3)"),
        ("probe.perturbations.baseline.temperatures", [-1.0], "greater than or equal to 0 (given: -1.0)"),
        (
            "datasets.gsm8k.source",
            {"kind": "file", "path": "config/absent.jsonl", "sha256": "0" * 64},
            "datasets.gsm8k.source: the source file config/absent.jsonl",
        ),
        (
            "datasets.gsm8k.source",
            {"kind": "file", "path": "config/config.yaml", "sha256": "0" * 64},
            f"expected sha256 {'0' * 64}",
        ),
    ],
)
def test_a_bad_config_ends_before_anything_runs(copied: Workspace, change: str, value: object, said: str) -> None:
    (copied.folder / "config/tiny.yaml").write_text(yaml.safe_dump(_edited(change, value)))
    done = subprocess.run(
        copied.command("results/report.html", "--cores", "all"),
        cwd=copied.folder,
        env=copied.environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode != 0
    assert said in done.stdout
    assert done.stdout.count("WorkflowError") == 1
    assert "Traceback" not in done.stdout
    assert "Job stats" not in done.stdout
