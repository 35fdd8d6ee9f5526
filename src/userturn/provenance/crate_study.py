"""What a crate tells of a sealed study: files with their digests, jobs with their times, pinned sources, kinds."""

from __future__ import annotations

import ast
import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from userturn import layout, stages
from userturn.artefacts import Row
from userturn.files import sha256_file
from userturn.manifest import FileFacts
from userturn.provenance import ProvenanceError
from userturn.provenance.lineage import Job
from userturn.provenance.record import Entry, Record

#: By the end of the name, not by the tables of the machine, which differ.
_MEDIA_TYPES = {
    "": "text/plain",
    ".cff": "application/yaml",
    ".csv": "text/csv",
    ".html": "text/html",
    ".jinja": "text/plain",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".lock": "text/plain",
    ".md": "text/markdown",
    ".rst": "text/x-rst",
    ".smk": "text/x-python",
    ".tar": "application/x-tar",
    ".txt": "text/plain",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_OTHER_MEDIA_TYPE = "application/octet-stream"


@dataclass(frozen=True)
class Described:
    """A file as a crate describes it."""

    sha256: str
    bytes: int | None
    """None where nobody noted it: a config file outside the study's folder."""


@dataclass(frozen=True)
class SealedStudy:
    """A study whose files were checked against its record."""

    root: Path
    record: Record
    description: Row
    """``sealed/study.json``."""
    jobs: Sequence[Job]
    carried: frozenset[str]
    """Files that go into the crate."""

    @property
    def name(self) -> str:
        """The study's name."""
        return str(self.description["study"])

    @property
    def simulated(self) -> bool:
        """Whether a program made its texts up."""
        return bool(self.description["config"].get("engine", {}).get("name") == "simulated")

    @property
    def title(self) -> str:
        """A name for people."""
        return f"{'SIMULATED ' if self.simulated else ''}userturn study {self.name}"

    @property
    def summary(self) -> str:
        """What the crate is, in a few sentences."""
        made_up = "SIMULATED: a program made all texts up. " if self.simulated else ""
        return (
            f"{made_up}User turn generation as a probe of language models: what a model writes under the user role "
            f"after its own answer, judged, with intervals. {len(self.jobs):,} jobs and {len(self.files):,} files; "
            "files that are not in this crate are described with their digests."
        )

    @property
    def configs(self) -> list[str]:
        """The config files; of one outside the study's folder only the name."""
        return [str(one["path"]) for one in self.description["config_files"]]

    @cached_property
    def files(self) -> Mapping[str, Described]:
        """Every file that was sealed, that a job read or wrote, or that is carried, by path, sorted."""
        told: list[FileFacts | Entry] = [
            one for job in self.jobs for one in (*job.manifest.inputs, *job.manifest.outputs)
        ]
        found = {one["path"]: Described(one["sha256"], None) for one in self.description["config_files"]}
        found |= {one.path: Described(one.sha256, one.bytes) for one in (*told, *self.record.values())}
        for path in self.carried - self.record.keys():
            file = self.root / path
            found[path] = Described(sha256_file(file), file.stat().st_size)
        return dict(sorted(found.items()))

    @cached_property
    def times(self) -> Mapping[str, tuple[str, str]]:
        """Start and end of every job in UTC, by the path of its manifest.

        Raises:
            ProvenanceError: there is no job, or a manifest does not say when it ran.
        """
        found = {}
        for job in self.jobs:
            try:
                both = (dt.datetime.fromisoformat(one) for one in (job.manifest.run.started, job.manifest.run.ended))
                start, end = (one.astimezone(dt.UTC).isoformat(timespec="seconds") for one in both)
            except ValueError as error:
                raise ProvenanceError(f"{job.path}: does not say when its job ran: {error}") from error
            found[job.path] = (start, end)
        if not found:
            raise ProvenanceError(f"{layout.MANIFESTS}: no manifest is there, so there is no job to describe")
        return found

    @cached_property
    def stages(self) -> Mapping[str, list[Job]]:
        """The jobs of every stage, in the order of the data flow."""
        found: dict[str, list[Job]] = {}
        for job in self.jobs:
            found.setdefault(job.manifest.stage, []).append(job)

        def rank(stage: str) -> tuple[int, str]:
            # one file of each kind is enough, and there are thousands
            outputs = {tuple(one.path.split("/")[:2]): one.path for job in found[stage] for one in job.manifest.outputs}
            return min(layout.flow_rank(Path(path))[0] for path in outputs.values()), stage

        return {stage: found[stage] for stage in sorted(found, key=rank)}

    def licences(self) -> dict[str, str]:
        """Licences of files that hold a dataset's items, by path."""
        found: dict[str, str] = {}
        for job in self.jobs:
            reader = job.manifest.facts.get("reader")
            if isinstance(reader, Mapping) and reader.get("licence"):
                found |= {one.path: str(reader["licence"]) for one in job.manifest.outputs}
        return found


def readme(study: SealedStudy) -> str:
    """What a person who opens the crate should know first."""
    return f"""# {study.title}

{study.summary}

- `ro-crate-metadata.json` describes every job and file as linked data: Workflow Run RO-Crate, Provenance Run Crate 0.5.
- `{layout.REPORT}` is the page, `{layout.NUMBERS}` holds every number of it.
- `{layout.MANIFESTS}/` holds what each job read, did and wrote, with digests.
- `{layout.SEALED}/record.jsonl` holds the digest of every file of the study; DVC keeps those that are not here, where
  the study was sealed.
"""


def kind(path: str) -> str:
    """What a file is among the artefacts: ``user_turns``, ``manifests``, ``numbers.jsonl``."""
    parts = Path(path).parts
    return parts[1] if parts[0] in {layout.DATA.name, layout.RESULTS.name} and len(parts) > 1 else parts[0]


def media_type(path: str) -> str:
    """The media type of a file, by its name."""
    return _MEDIA_TYPES.get(Path(path).suffix, _OTHER_MEDIA_TYPE)


def purpose(stage: str) -> str | None:
    """The first line of what the module of a stage says of itself; None where there is no such stage any more."""
    file = Path(stages.__path__[0], f"{stage}.py")
    doc = ast.get_docstring(ast.parse(file.read_bytes())) if file.is_file() else None
    return doc.splitlines()[0] if doc else None
