"""The two environments: `workflow` runs Snakemake and statistics, `engine` holds vLLM and Hugging Face's libraries.

`make setup` puts them under ``.envs`` and notes which lock each was installed from; a lock that has changed since is
refused before anything runs, since the artefacts would name a lock that did not make them.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(".envs")
#: A site with environments of its own (a module, a container) names the engine's Python here.
ENGINE_PYTHON = "USERTURN_ENGINE_PYTHON"


class EnvironmentMismatch(RuntimeError):
    """An environment is missing or was installed from another lock."""


@dataclass(frozen=True)
class Lock:
    """The lock that an environment was installed from."""

    file: str
    sha256: str


def engine_python() -> str:
    """The Python that runs the engine's rules: relative to the study's folder, unless a site names its own."""
    return os.environ.get(ENGINE_PYTHON, str(FOLDER / "engine" / "bin" / "python"))


def tell_jobs(*, workflow: str, engine: str) -> None:
    """Names the Pythons that run rules, through the environment that jobs inherit.

    A path in the text of a rule would make every checkout's rules other rules, and a restored study would run again.

    Args:
        workflow: of the rules of the `workflow` environment.
        engine: of those of the `engine` environment.
    """
    os.environ["PYTHON_OF_WORKFLOW"] = workflow
    os.environ["PYTHON_OF_ENGINE"] = engine


def current_lock(environment: str, root: Path = Path()) -> Lock:
    """The lock in use for an environment.

    Args:
        environment: ``workflow`` or ``engine``.
        root: the checkout.

    Raises:
        EnvironmentMismatch: if it is not set up, or its lock has changed since.
    """
    if environment == "engine" and ENGINE_PYTHON in os.environ:
        name = os.environ.get("USERTURN_ENGINE_LOCK", "engine-cuda.lock")
        return Lock(name, _sha256(root / "envs" / name))
    stamp = root / FOLDER / environment / "userturn.lock"
    try:
        name, installed = stamp.read_text().split()
    except FileNotFoundError:
        raise EnvironmentMismatch(
            f"the {environment} environment is not set up ({stamp} is missing): run `make setup`"
        ) from None
    now = _sha256(root / "envs" / name)
    if now != installed:
        raise EnvironmentMismatch(
            f"envs/{name} has changed since the {environment} environment was installed: run `make setup`"
        )
    return Lock(name, now)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
