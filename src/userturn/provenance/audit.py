"""Where one number comes from: recomputed from its rows, each file behind it hashed again, down to sources and code."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from userturn import layout
from userturn.artefacts import ArtefactError, Row, read_jsonl
from userturn.files import sha256_file
from userturn.provenance import ProvenanceError, nearest
from userturn.provenance.contents import check_seal
from userturn.provenance.dvc import pointer
from userturn.provenance.lineage import Job, Lineage, Link, pinned_sources
from userturn.provenance.record import RECORD, code_digests, entry, is_artefact, is_manifest, read_record
from userturn.sources.cache import SourceCache
from userturn.sources.config import FileSource, Source, WheelSource


class UnknownNumber(ProvenanceError):
    """There is no such number; the message names near ones."""


@dataclass(frozen=True)
class File:
    """A file of a number's chain, hashed again."""

    path: str
    sha256: str | None
    """None where it is missing."""
    bytes: int
    faults: tuple[str, ...]
    """Who expected another digest."""
    made_by: str | None
    made_from: tuple[str, ...]


@dataclass(frozen=True)
class Audit:
    """What an audit found; it verifies the number if there is no fault."""

    number: Row
    recomputed: Row | None
    shown: int
    """Parts of the number that the report shows; each was compared."""
    faults: Sequence[str]
    notes: Sequence[str]
    """What a reader should know and what makes nothing wrong."""
    files: Sequence[File]
    jobs: Sequence[Job]
    sources: Sequence[Mapping[str, Any]]
    code_now: Mapping[str, bool] = field(default_factory=dict)
    """By job: whether the code here is the code that it ran."""

    @property
    def verified(self) -> bool:
        """Whether everything is as it should be."""
        return not self.faults


def find(numbers: Sequence[Row], wanted: str) -> Row:
    """The row of a number.

    Raises:
        UnknownNumber: names the nearest ids.
    """
    ids = {str(row["id"]): row for row in numbers}
    if wanted in ids:
        return ids[wanted]
    raise UnknownNumber(f"no number {wanted!r} in {layout.NUMBERS} ({len(ids)} numbers){nearest(wanted, ids)}")


def read_numbers(root: Path) -> list[Row]:
    """All numbers of a study.

    Raises:
        ProvenanceError: there are none, or they are damaged.
    """
    try:
        return read_jsonl(root / layout.NUMBERS)
    except ArtefactError as error:
        raise ProvenanceError(f"{error}") from error


class Auditor:
    """Audits numbers of one study; what several numbers share is hashed once."""

    def __init__(self, root: Path, *, code: bool = True) -> None:
        """Reads the manifests.

        Args:
            root: the study's folder, which is the current one.
            code: whether the code here is compared with the code that ran.
        """
        self.root = root
        self.numbers = read_numbers(root)
        self.lineage = Lineage(root)
        self._pool = ThreadPoolExecutor(2)
        self._digests: dict[str, Future[tuple[str | None, int]]] = {}
        self._compares_code = code
        self._report = ""
        self._origins: dict[tuple[str, str | None], Future[Mapping[str, Any]]] = {}
        self.sealed = read_record(root / RECORD) if (root / RECORD).is_file() else None

    def audit(self, wanted: str) -> Audit:
        """Audits one number.

        Args:
            wanted: its id.

        Raises:
            UnknownNumber: there is none with this id.
        """
        row = find(self.numbers, wanted)
        links = self._links(row)
        for link in sorted(links, key=lambda link: -self._size(link.path)):
            self._digest(link.path)
        jobs = list({link.job.path: link.job for link in links if link.job is not None}.values())
        pinned = [source for job in jobs for source in pinned_sources(job.manifest.spec)]
        origins = {_named(source): self._origin(source) for source in pinned}
        faults = [f"{path}: {fault}" for path, fault in self.lineage.faults.items()]
        faults += self._seal_faults
        twice = sum(one["id"] == row["id"] for one in self.numbers)
        faults += [f"{layout.NUMBERS}: {row['id']} stands there {twice} times"] if twice > 1 else []
        code = self._code_now(jobs)
        recomputed, found = self._recompute(row)
        faults += found
        shown, found = self._page(recomputed or row)
        faults += found
        files = [self._file(link) for link in links]
        faults += [f"{file.path}: {fault}" for file in files for fault in file.faults]
        sources = [found.result() for found in origins.values()]
        faults += [f"{source['what']}: {source['fault']}" for source in sources if source.get("fault")]
        notes = [f"the code of {name} here is not the code that ran" for name, same in code.items() if not same]
        notes += [f"{job.name} ran in a checkout with uncommitted changes" for job in jobs if _dirty(job)]
        if self.sealed is None:
            notes.append("the study is not sealed: manifests are checked by those that read them only")
        return Audit(row, recomputed, shown, faults, notes, files, jobs, sources, code)

    def _links(self, row: Row) -> list[Link]:
        """The numbers and the page, whose jobs read everything, then the number's own chain."""
        analysis = self._analysis
        ledger = analysis.manifest.spec.get("exclusions") if analysis is not None else None
        beside = (layout.NUMBERS, layout.manifest("analyse"), layout.REPORT, layout.manifest("report"))
        ends = [self.lineage.link(path.as_posix(), []) for path in beside if (self.root / path).is_file()]
        chain = self.lineage.chain([*row["sources"], *([ledger] if ledger else [])])
        return ends + [link for link in chain if link.path not in {one.path for one in ends}]

    @property
    def _analysis(self) -> Job | None:
        return self.lineage.maker(layout.NUMBERS.as_posix())

    def _size(self, path: str) -> int:
        file = self.root / path
        return file.stat().st_size if file.is_file() else 0

    def _digest(self, path: str) -> Future[tuple[str | None, int]]:
        if path not in self._digests:
            self._digests[path] = self._pool.submit(_hashed, self.root / path)
        return self._digests[path]

    def _file(self, link: Link) -> File:
        sha256, size = self._digest(link.path).result()
        if sha256 is None:
            return File(link.path, None, 0, ("no such file",), _name(link.job), link.made_from)
        faults = [
            f"is {sha256[:16]}…, but {who} {expected[:16]}…"
            for who, expected in link.expected.items()
            if sha256 != expected
        ]
        faults += self._against_seal(link.path, sha256)
        if (self.root / link.path).is_symlink():
            faults.append("is a symbolic link: its bytes lie elsewhere")
        return File(link.path, sha256, size, tuple(faults), _name(link.job), link.made_from)

    @cached_property
    def _seal_faults(self) -> list[str]:
        """What is wrong with the seal itself: its pointer vouches for the record, and the record for the files."""
        if not (self.root / pointer(layout.SEALED)).is_file():
            return []
        try:
            broken = check_seal(self.root)
        except ProvenanceError as error:
            broken = f"{error}"
        return [f"{layout.SEALED}: {broken}"] if broken else []

    def _against_seal(self, path: str, sha256: str) -> Iterator[str]:
        if self.sealed is None:
            return
        sealed = self.sealed.get(path)
        if sealed is None and is_artefact(path):
            yield "the sealed record does not name it"
        if sealed is None or sealed.sha256 == sha256:
            return
        if is_manifest(path) and entry(self.root, path).stable_sha256 == sealed.stable_sha256 is not None:
            return
        yield f"is {sha256[:16]}…, but was sealed as {sealed.sha256[:16]}…"

    def _recompute(self, row: Row) -> tuple[Row | None, list[str]]:
        """The number from its rows, and what of the recorded row is not so."""
        from userturn.numbers import definition
        from userturn.numbers.families import adjusted
        from userturn.stages.analyse import Spec

        analysis = self._analysis
        if analysis is None:
            return None, [f"{layout.manifest('analyse')}: no manifest says how {layout.NUMBERS} was computed"]
        spec = Spec.model_validate(analysis.manifest.spec)
        try:
            settings = spec.settings()
            found = definition(row["id"], [Path(one) for one in row["sources"]], spec.inputs(), settings, read_jsonl)
        except (ArtefactError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            return None, [f"{row['id']}: cannot be computed from its rows: {type(error).__name__}: {error}"]
        if found is None:
            return None, [f"{row['id']}: the study has no such number from the sources that it names"]
        again = found.row(settings)
        family = [one for one in self.numbers if row["family"] is not None and one["family"] == row["family"]]
        merged = [again if one["id"] == row["id"] else one for one in family]
        if again["p_value"] is not None and merged:
            again = next(one for one in adjusted(merged, settings.confirmatory) if one["id"] == row["id"])
        wrong = [
            f"{row['id']}: {key} is recorded as {_short(row.get(key))}, its rows give {_short(value)}"
            for key, value in again.items()
            if row.get(key) != value
        ]
        extra = sorted(set(row) - set(again))
        return again, wrong + ([f"{row['id']}: the record has fields of its own: {', '.join(extra)}"] if extra else [])

    def _page(self, row: Row) -> tuple[int, list[str]]:
        from userturn.provenance.shown import wrongly_shown

        path = self.root / layout.REPORT
        if not path.is_file():
            return 0, []
        self._report = self._report or path.read_text("utf-8", errors="replace")
        found, wrong = wrongly_shown(self._report, row)
        return found, [f"{layout.REPORT}: {fault}" for fault in wrong]

    def _origin(self, source: Source) -> Future[Mapping[str, Any]]:
        """A pinned origin that a chain ends in."""
        key = _named(source)
        if key not in self._origins:
            self._origins[key] = self._pool.submit(_looked_up, source)
        return self._origins[key]

    @cached_property
    def _code_here(self) -> Mapping[str, str]:
        """Digests of the code here; read late, while files are hashed."""
        return code_digests()

    def _code_now(self, jobs: Sequence[Job]) -> dict[str, bool]:
        if not self._compares_code:
            return {}
        return {job.name: self._code_here.get(job.manifest.stage) == job.manifest.code.digest for job in jobs}


def _hashed(path: Path) -> tuple[str | None, int]:
    try:
        return sha256_file(path), path.stat().st_size
    except OSError:
        return None, 0


def _name(job: Job | None) -> str | None:
    return None if job is None else job.name


def _dirty(job: Job) -> bool:
    git = job.manifest.run.git
    return git is not None and git.dirty


def _named(source: Source) -> tuple[str, str | None]:
    """A pinned origin and its pin: several members of one wheel are one origin."""
    pin: str | None = getattr(source, "sha256", None) or getattr(source, "revision", None)
    return f"{source.kind} {source}", pin


def _looked_up(source: Source) -> Mapping[str, Any]:
    """A pinned origin, hashed again where it is at hand."""
    what, pin = _named(source)
    file = None
    if isinstance(source, FileSource):
        file = Path(source.path)
    elif isinstance(source, WheelSource):
        file = SourceCache.default().find(source.sha256)
    if file is None or not file.is_file():
        return {"what": what, "pin": pin, "at_hand": False}
    digest = sha256_file(file)
    fault = {} if digest == pin else {"fault": f"is {digest[:16]}…, but {str(pin)[:16]}… is pinned"}
    return {"what": what, "pin": pin, "at_hand": True, **fault}


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 80 else text[:77] + "…"
