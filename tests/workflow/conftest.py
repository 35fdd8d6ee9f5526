"""A tiny study on the real weights and data, run by the real Snakemake in copies of the checkout."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from userturn.config.default_study import DEFAULT_STUDY

MODEL = "smollm2-135m-instruct"


def tiny_config() -> dict:
    """The default study's sources, four items, three cells an item set."""
    keep = ("source", "reader")
    return {
        "name": "tiny",
        "seed": 7,
        "models": DEFAULT_STUDY["models"],
        "datasets": {
            name: {**{key: DEFAULT_STUDY["datasets"][name][key] for key in keep}, "n_items": 2}
            for name in ("gsm8k", "mt_bench")
        },
        "assistant_turns": {"max_tokens": 24},
        "probe": {
            "samples": 2,
            "sampling": {"max_tokens": 12},
            "perturbations": {
                "baseline": {"kind": "baseline", "temperatures": [0.0, 1.0]},
                "shuffled_context": {"kind": "shuffled_context", "temperatures": [0.0]},
            },
        },
        "engine": {"max_model_len": 1024, "kv_cache_gb": 1, "max_sequences": 4, "batch_invariant": True},
        "judges": {"provisional": DEFAULT_STUDY["judges"]["provisional"]},
        "reported_judge": "provisional",
        "statistics": {"resamples": 500},
    }


@dataclass
class Workspace:
    """A copy of the checkout in which a study is run."""

    folder: Path

    def command(self, *words: str) -> list[str]:
        return [str(self.folder / ".envs/workflow/bin/snakemake"), *words, "--configfile", "config/tiny.yaml"]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.folder / "src")}

    def run(self, *words: str, check: bool = True) -> str:
        """Runs Snakemake and returns what it said."""
        done = subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout
        return done.stdout

    def planned(self, *words: str) -> set[str]:
        """The rules that would run, apart from the target rule."""
        said = self.run("results/report.html", "--dry-run", "--quiet", "reason", *words)
        table = said.partition("Job stats:")[2].splitlines()
        rules = {line.split()[0] for line in table if len(line.split()) == 2 and line.split()[1].isdigit()}
        return rules - {"total", "all"}

    def digests(self) -> dict[str, str]:
        """The sha256 of every hashed artefact: everything but manifests, which hold times and hosts."""
        found = {}
        for top in ("data/datasets", "data/contexts", "results"):
            for path in sorted((self.folder / top).rglob("*")):
                name = path.relative_to(self.folder).as_posix()
                if path.is_file() and not name.startswith("results/manifests/"):
                    found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found


def tracked_files(root: Path) -> list[str]:
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    return [name for name in done.stdout.decode().split("\0") if name]


@pytest.fixture(scope="session")
def workspace(root: Path, tmp_path_factory: pytest.TempPathFactory, chat_model: Path):
    """Makes copies of the checkout with the weights in place."""

    def make(name: str) -> Workspace:
        folder = tmp_path_factory.mktemp(name)
        for file in tracked_files(root):
            if (root / file).is_file():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / file, folder / file)
        (folder / ".envs").symlink_to(root / ".envs")
        for made in (
            f"data/models/{MODEL}",
            "data/judges/provisional",
            "results/manifests/model",
            "results/manifests/judge_model",
        ):
            # `make test` has prepared the weights in the checkout: hard links save half a minute a copy
            shutil.copytree(root / made, folder / made, copy_function=os.link)
        (folder / "config" / "tiny.yaml").write_text(yaml.safe_dump(tiny_config()))
        return Workspace(folder)

    return make


@pytest.fixture(scope="session")
def finished(workspace) -> Workspace:
    """The tiny study, run to its report."""
    made = workspace("finished")
    made.run("results/report.html", "--cores", "all")
    return made


@pytest.fixture
def copied(finished: Workspace, workspace, tmp_path: Path) -> Workspace:
    """A copy of the finished study, to be tampered with."""
    folder = tmp_path / "copy"
    shutil.copytree(finished.folder, folder, symlinks=True)
    return Workspace(folder)
