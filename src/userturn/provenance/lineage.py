"""Which file came from which, by the manifests of the jobs that wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from userturn import layout
from userturn.artefacts import ArtefactError, read_json
from userturn.manifest import Manifest
from userturn.sources.config import Source

_SOURCE: TypeAdapter[Source] = TypeAdapter(Source)


@dataclass(frozen=True)
class Job:
    """A job that ran: its manifest and where that lies."""

    path: str
    manifest: Manifest

    @property
    def name(self) -> str:
        """Stage and shard, as in ``user_turns/model``."""
        return Path(self.path).relative_to(layout.MANIFESTS).with_suffix("").as_posix()

    def origins(self, path: str) -> list[str]:
        """The job's inputs that one of its outputs comes from."""
        made_from = next((one.made_from for one in self.manifest.outputs if one.path == path), None)
        return [one.path for one in self.manifest.inputs] if made_from is None else made_from


@dataclass(frozen=True)
class Link:
    """A file of a chain."""

    path: str
    job: Job | None
    """The job that wrote it; None for what a person provided."""
    made_from: tuple[str, ...]
    expected: Mapping[str, str] = field(default_factory=dict)
    """Digests that the file must have, by who says so."""


class Lineage:
    """The manifests of a study."""

    def __init__(self, root: Path) -> None:
        """Reads them.

        Args:
            root: the study's folder.
        """
        self.root = root
        self.faults: dict[str, str] = {}
        """Manifests that are none, with the reason."""
        self._makers: dict[str, Job] = {}
        self._claims: dict[str, dict[str, str]] = {}
        for file in sorted((root / layout.MANIFESTS).rglob("*.json")):
            path = file.relative_to(root).as_posix()
            try:
                self._add(Job(path, Manifest.model_validate(read_json(file))))
            except (ArtefactError, ValidationError) as error:
                self.faults[path] = str(error).splitlines()[0]

    def _add(self, job: Job) -> None:
        for output in job.manifest.outputs:
            self._makers[output.path] = job
            self._claims.setdefault(output.path, {})[f"{job.name} wrote"] = output.sha256
        for read in job.manifest.inputs:
            self._claims.setdefault(read.path, {})[f"{job.name} read"] = read.sha256

    def maker(self, path: str) -> Job | None:
        """The job that wrote a file."""
        return self._makers.get(path)

    def claims(self, path: str) -> Mapping[str, str]:
        """Digests of a file, by the jobs that wrote and read it."""
        return self._claims.get(path, {})

    def link(self, path: str, origins: Iterable[str]) -> Link:
        """A file with who made it and what its bytes must be."""
        return Link(path, self.maker(path), tuple(origins), self.claims(path))

    def jobs(self) -> list[Job]:
        """All jobs that wrote a file, each once, by name."""
        return sorted({job.path: job for job in self._makers.values()}.values(), key=lambda job: job.path)

    def chain(self, paths: Iterable[str]) -> Iterator[Link]:
        """Everything that files come from, nearest first, each file once.

        Args:
            paths: where to begin.
        """
        seen: set[str] = set()
        waiting = list(dict.fromkeys(paths))
        while waiting:
            path = waiting.pop(0)
            if path in seen:
                continue
            seen.add(path)
            job = self.maker(path)
            origins: list[str] = []
            if job is not None:
                origins = job.origins(path)
                # a description stands for the whole folder that was written with it
                if Path(path).name == "model.json":
                    origins = origins + [one.path for one in job.manifest.outputs if one.path != path]
                waiting.append(job.path)
            yield self.link(path, origins)
            waiting += origins


def pinned_sources(told: object) -> Iterator[Source]:
    """The pinned sources that a job tells of, anywhere in its facts or in its spec."""
    if isinstance(told, Mapping):
        if "kind" in told:
            with suppress(ValidationError):  # something else that has a kind
                yield _SOURCE.validate_python(told)
        told = list(told.values())
    if isinstance(told, list):
        for one in told:
            yield from pinned_sources(one)
