"""The words of a crate: profiles and terms that it uses, and the names of what it describes.

A name that begins with ``#`` stands for something that is no file of the crate.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from userturn.artefacts import canonical
from userturn.manifest import Manifest
from userturn.provenance.crate_study import kind

WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
#: The profiles that the crate follows; the last one stands on the others.
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    WORKFLOW_CRATE: "Workflow RO-Crate",
    "https://w3id.org/ro/wfrun/provenance/0.5": "Provenance Run Crate",
}
_WORKFLOW_RUN_TERMS = ("ParameterConnection", "connection", "sha256", "sourceParameter", "targetParameter")
#: Terms that RO-Crate 1.1 does not have, with their meaning.
TERMS = {name: f"https://w3id.org/ro/terms/workflow-run#{name}" for name in _WORKFLOW_RUN_TERMS} | {
    "buildInstructions": "https://codemeta.github.io/terms/buildInstructions"
}
WORKFLOW_PROFILE = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
LOCK_FORMAT = "https://pip.pypa.io/en/stable/reference/requirements-file-format/"
DONE = "http://schema.org/CompletedActionStatus"
#: Data types of schema.org by type of Python.
DATA_TYPES = {bool: "Boolean", int: "Integer", float: "Float", str: "Text"}


def ref(identifier: str) -> dict[str, str]:
    """A reference to something that has a name."""
    return {"@id": identifier}


def refs(identifiers: Iterable[str]) -> list[dict[str, str]]:
    """References, each once."""
    return [ref(one) for one in dict.fromkeys(identifiers)]


def local(*parts: str) -> str:
    """The name of something that is no file of the crate."""
    return "#" + quote("/".join(parts))


def tool(stage: str) -> str:
    """A stage as a program."""
    return local("stage", stage)


def step(stage: str) -> str:
    """A stage as a step of the workflow."""
    return local("step", stage)


def reads_as(stage: str, path: str) -> str:
    """The parameter that a file is given to a stage as."""
    return local("stage", stage, "input", kind(path))


def writes_as(stage: str, path: str) -> str:
    """The parameter that a stage gives a file as."""
    return local("stage", stage, "output", kind(path))


def setting(stage: str, key: str) -> str:
    """The parameter that a key of a stage's spec is."""
    return local("stage", stage, "setting", key)


def plain(value: object) -> bool | int | float | str:
    """A value as it may stand in linked data: what is no plain value as its JSON text."""
    return value if isinstance(value, bool | int | float | str) else canonical(value)


def circumstances(manifest: Manifest) -> str:
    """Where a job ran and with what, in a sentence; its manifest has all of it."""
    run, lock, git = manifest.run, manifest.lock, manifest.run.git
    parts = [f"Stage {manifest.stage}", f"code {manifest.code.digest}", f"Python {manifest.python}"]
    parts += [f"{lock.file} {lock.sha256[:16]}"] if lock else []
    parts += [f"commit {git.commit}{' with changes' if git.dirty else ''}"] if git else []
    parts += [f"on {run.host} ({', '.join(one for one in (run.platform, run.processor, run.accelerator) if one)})"]
    return ", ".join(parts)
