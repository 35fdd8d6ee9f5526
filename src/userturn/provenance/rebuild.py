"""One cell built again from its recorded inputs, in a scratch folder, and compared with the record byte by byte."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from userturn import layout
from userturn.artefacts import canonical
from userturn.code import stage_digest
from userturn.environments import engine_python
from userturn.files import sha256_file
from userturn.provenance import ProvenanceError, nearest
from userturn.provenance.difference import Difference, compare
from userturn.provenance.lineage import Job, Lineage

#: Stages that one engine process runs, in order; judging follows, each judge in a process of its own.
_ENGINE_STAGES = ("assistant_turns", "contexts", "user_turns")


class UnknownCell(ProvenanceError):
    """There is no such cell; the message names near ones."""


@dataclass(frozen=True)
class Step:
    """One stage of the cell, with the recorded job's spec cut down to the cell."""

    job: Job
    spec: Mapping[str, Any]
    output: str

    @property
    def stage(self) -> str:
        """The stage's name."""
        return self.job.manifest.stage


@dataclass(frozen=True)
class Rebuilt:
    """An artefact that was built again."""

    path: str
    recorded: str
    found: str | None
    difference: Difference | None

    @property
    def identical(self) -> bool:
        """Whether it has the recorded bytes."""
        return self.found == self.recorded


@dataclass(frozen=True)
class Plan:
    """What rebuilding a cell runs, and what speaks against it."""

    cell: str
    steps: Sequence[Step]
    inputs: Sequence[str]
    """Recorded files that it starts from."""
    faults: Sequence[str]
    """What of sources, weights, code and locks is not as recorded."""
    turns: int
    assistant_turns: int = field(default=0)


def find_cell(lineage: Lineage, cell: str) -> str:
    """The artefact with a cell's user turns.

    Raises:
        UnknownCell: no job wrote such a cell.
    """
    prefix = layout.user_turns("", "", "", "").parent.as_posix().rstrip("/") + "/"
    cells = {
        output.path.removeprefix(prefix).removesuffix(".jsonl"): output.path
        for job in lineage.jobs()
        if job.manifest.stage == "user_turns"
        for output in job.manifest.outputs
    }
    if cell in cells:
        return cells[cell]
    where = layout.MANIFESTS / "user_turns"
    raise UnknownCell(f"no cell {cell!r} in {where} ({len(cells)} cells){nearest(cell, cells)}")


def plan(root: Path, cell: str, *, whole: bool = False) -> Plan:
    """Says what rebuilding a cell runs, and checks that its inputs are what they were.

    Args:
        root: the study's folder.
        cell: ``model/dataset/perturbation/t<T>``.
        whole: also the items and the assistant turns of the dataset, from the sources on.

    Raises:
        UnknownCell: there is no such cell.
        ProvenanceError: a manifest of the cell is missing.
    """
    lineage = Lineage(root)
    turns = find_cell(lineage, cell)
    model, dataset, perturbation, temperature = cell.split("/")
    wanted = [turns, layout.contexts(model, dataset, perturbation).as_posix()]
    if whole:
        wanted += [layout.assistant_turns(model, dataset).as_posix(), layout.dataset(dataset).as_posix()]
    judges = dict.fromkeys(job.manifest.spec["judge"] for job in lineage.jobs() if job.manifest.stage == "judge")
    judged = [layout.judgements(judge, model, dataset, perturbation, temperature).as_posix() for judge in judges]
    wanted += [path for path in judged if lineage.maker(path) is not None]
    steps = []
    for path in wanted:
        job = lineage.maker(path)
        if job is None:
            raise ProvenanceError(f"{path}: no manifest in {layout.MANIFESTS} says how it was made")
        steps.append(Step(job, _narrowed(job, dataset, perturbation, temperature), path))
    order = ("dataset", *_ENGINE_STAGES, "judge")
    steps.sort(key=lambda step: (order.index(step.stage), step.output))
    made = {step.output for step in steps}
    inputs = list(dict.fromkeys(path for step in steps for path in step.job.origins(step.output) if path not in made))
    found = next(step for step in steps if step.stage == "user_turns").job.manifest.facts["cells"][cell]
    n_items = found["n_turns"] // max(found["samples"], 1) if whole else 0
    return Plan(cell, steps, inputs, list(_faults(root, lineage, steps, inputs)), found["n_turns"], n_items)


def _narrowed(job: Job, dataset: str, perturbation: str, temperature: str) -> Mapping[str, Any]:
    """The spec of a recorded job, for one cell of its shard."""
    spec = dict(job.manifest.spec)
    if "datasets" in spec:
        spec["datasets"] = [dataset]
    if "perturbations" in spec:
        spec["perturbations"] = {perturbation: spec["perturbations"][perturbation]}
    if "cells" in spec:
        spec["cells"] = [
            one
            for one in spec["cells"]
            if (one["dataset"], one["perturbation"], layout.temperature_key(one["temperature"]))
            == (dataset, perturbation, temperature)
        ]
    return spec


def _faults(root: Path, lineage: Lineage, steps: Sequence[Step], inputs: Sequence[str]) -> Iterator[str]:
    for stage, digest in sorted({(step.stage, step.job.manifest.code.digest) for step in steps}):
        here = stage_digest(stage)
        if here != digest:
            yield f"the code of {stage} is not the code that ran (recorded {digest}, here {here})"
    locks = {(lock.file, lock.sha256) for step in steps if (lock := step.job.manifest.lock) is not None}
    for name, digest in sorted(locks):
        file = root / "envs" / name
        here = sha256_file(file) if file.is_file() else "missing"
        if here != digest:
            yield f"envs/{name} is not the lock of the run (recorded {digest[:16]}, here {here[:16]})"
    # with the weights, which lie in the folder of their description
    folders = {Path(one).parent for one in inputs}
    for link in lineage.chain(inputs):
        if Path(link.path).parent not in folders:
            continue
        file = root / link.path
        here = sha256_file(file) if file.is_file() else "missing"
        for who, digest in link.expected.items():
            if here != digest:
                yield f"{link.path} is {here[:16]}, but {who} {digest[:16]}"
                break


def run(root: Path, made: Plan, scratch: Path, *, threads: int, say: Callable[[str], None]) -> list[Rebuilt]:
    """Builds the cell again.

    Args:
        root: the study's folder.
        made: what to run.
        scratch: an empty folder.
        threads: cores of the engine.
        say: told what runs.

    Returns:
        Every artefact of the cell, in the order of the data flow.

    Raises:
        ProvenanceError: a stage failed; the message has the end of its output.
    """
    root = root.resolve()
    _provide(root, made, scratch)
    engine = [_absolute(root, engine_python()), "-m"]
    for step in made.steps:
        if step.stage == "dataset":
            say("reading the items again from their source")
            _call([*engine, "userturn.stages.dataset", *_arguments(step)], root, scratch)
    shared = [step for step in made.steps if step.stage in _ENGINE_STAGES]
    say(f"{', '.join(step.stage for step in shared)} in one process, with one model load")
    together = [{"stage": step.stage, "spec": step.spec} for step in shared]
    call = [*engine, "userturn.provenance.replay", "--threads", str(threads), "--steps", canonical(together)]
    _call(call, root, scratch)
    for step in made.steps:
        if step.stage == "judge":
            say(f"judging by {step.spec['judge']}")
            call = [*engine, "userturn.stages.judge", *_arguments(step)]
            _call([*call, "--threads", str(threads)], root, scratch)
    return [_compared(root, scratch, step.job, step.output) for step in made.steps]


def _compared(root: Path, scratch: Path, job: Job, path: str) -> Rebuilt:
    recorded = next(output.sha256 for output in job.manifest.outputs if output.path == path)
    file = scratch / path
    found = sha256_file(file) if file.is_file() else None
    difference = None
    if found is not None and found != recorded and (root / path).is_file():
        difference = compare(path, file, root / path)
    return Rebuilt(path, recorded, found, difference)


def _provide(root: Path, made: Plan, scratch: Path) -> None:
    """Links the recorded inputs into the scratch folder; folders of weights as a whole."""
    inputs = list(made.inputs)
    for step in made.steps:
        inputs += _local_files(step.spec)
    for path in dict.fromkeys(inputs):
        whole = Path(path).name == "model.json"
        target = scratch / (Path(path).parent if whole else path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_symlink() and not target.exists():
            target.symlink_to(root / (Path(path).parent if whole else path))


def _local_files(value: object) -> Iterator[str]:
    """Files of the study's folder that a spec names: local sources, people's labels."""
    if isinstance(value, Mapping):
        if value.get("kind") == "file" and isinstance(value.get("path"), str):
            yield value["path"]
        if value.get("kind") == "people":
            yield value["labels"]
        for inner in value.values():
            yield from (path for path in _local_files(inner) if not Path(path).is_absolute())
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _local_files(inner)


def _arguments(step: Step) -> list[str]:
    lock = step.job.manifest.lock
    return ["--spec", json.dumps(step.spec), *(["--lock", f"{lock.file}:{lock.sha256}"] if lock else [])]


def _absolute(root: Path, python: str) -> str:
    return str(root / python) if os.sep in python else python


def _call(command: Sequence[str], root: Path, scratch: Path) -> None:
    log = scratch / "rebuild.log"
    with log.open("a", encoding="utf-8") as stream:
        stream.write(f"$ {command[1]} {command[2]}\n")
        stream.flush()
        source = root / "src"
        environ = {**os.environ, **({"PYTHONPATH": str(source)} if source.is_dir() else {})}
        done = subprocess.run(command, cwd=scratch, stdout=stream, stderr=stream, env=environ, check=False)
    if done.returncode != 0:
        tail = log.read_text("utf-8", errors="replace").strip().splitlines()[-12:]
        raise ProvenanceError(f"{command[2]} failed with exit code {done.returncode}:\n" + "\n".join(tail))
