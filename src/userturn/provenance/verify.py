"""Verifying: every file against the sealed record, or against another study.

What a file is against its record:

- ``identical``: the same bytes.
- ``rebuilt``: a manifest that says the same, but for what changes from run to run (times, host, commit).
- ``changed``: other content, and a job wrote it since the seal; or a config file, which people write.
- ``tampered``: other content that no job accounts for: by Snakemake's records no job has written the file since it was
  sealed, or the manifest of the job that did names another digest. Time stamps play no part: they are easily set.
- ``missing``, ``extra``: only the record, or only the folder has it.

Nothing that was remembered is used: every file is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from userturn import layout
from userturn.provenance import ProvenanceError, some
from userturn.provenance.contents import (
    Contents,
    FolderContents,
    NoContents,
    check_seal,
    own_record,
    sealed_contents,
    wrong_pointers,
)
from userturn.provenance.difference import Difference, compare
from userturn.provenance.jobs import JobTimes
from userturn.provenance.record import (
    ASIDE,
    METADATA,
    RECORD,
    Entry,
    Record,
    artefacts,
    claims,
    drift,
    entry,
    files_and_links,
    is_artefact,
    read_description,
    read_record,
    unaccounted,
)


class Status(StrEnum):
    """What a file is against the record."""

    IDENTICAL = "identical"
    REBUILT = "rebuilt"
    CHANGED = "changed"
    TAMPERED = "tampered"
    MISSING = "missing"
    EXTRA = "extra"


#: Nothing that a reader would see has changed.
SAME = frozenset({Status.IDENTICAL, Status.REBUILT})


@dataclass(frozen=True)
class Finding:
    """One file that is not identical."""

    path: str
    status: Status
    reason: str


@dataclass(frozen=True)
class Verification:
    """What verifying found."""

    against: str
    files: int
    counts: Mapping[Status, int]
    findings: list[Finding]
    """Files that are not identical, in the order of the data flow."""
    differences: list[Difference]
    """How those differ that both sides have: the first of them first in the data flow."""
    notes: list[str]

    @property
    def same(self) -> bool:
        """Whether nothing but volatile facts of manifests differs."""
        return all(status in SAME or n == 0 for status, n in self.counts.items())


class Culprits:
    """Tells a job's work from an edit."""

    def __init__(self, root: Path, paths: Iterable[str]) -> None:
        """Remembers where to look.

        Args:
            root: the study's folder.
            paths: its files.
        """
        self._root = root
        self._paths = paths

    @cached_property
    def _now(self) -> JobTimes:
        return JobTimes.here(self._root)

    @cached_property
    def _sealed(self) -> JobTimes:
        return JobTimes.packed(self._root / METADATA)

    @cached_property
    def claimed(self) -> dict[str, tuple[str, str]]:
        """Files that manifests name as outputs: the manifest and the digest it gives."""
        return claims(self._root, self._paths)

    def judge(self, found: Entry, sealed: Entry) -> Finding:
        """The finding of a file whose content differs from the record."""
        path = found.path
        if not is_artefact(path):
            return Finding(path, Status.CHANGED, "not the config that was sealed")
        manifest, digest = self.claimed.get(path, (None, None))
        job = path if self._now.ended(path) is not None or manifest is None else manifest
        now, then = self._now.ended(job), self._sealed.ended(job)
        if now is None:
            return Finding(path, Status.TAMPERED, "no job is recorded to have written it")
        if now == then:
            behind = (self._root / path).stat().st_mtime <= now
            how = "; its time stamp hides the change" if behind else ""
            return Finding(path, Status.TAMPERED, f"no job has written it since the seal{how}")
        if digest is not None and digest != found.sha256:
            return Finding(path, Status.TAMPERED, f"{manifest} says that its job wrote another content")
        if found.stable_sha256 is not None and found.stable_sha256 == sealed.stable_sha256:
            return Finding(path, Status.REBUILT, "the same but for times, host and commit")
        return Finding(path, Status.CHANGED, "a job has written it since the seal")


def verify(root: Path) -> Verification:
    """Compares a study's folder with its own sealed record.

    Raises:
        ProvenanceError: there is no sealed record here, or it is no record.
    """
    broken = check_seal(root)
    record = own_record(root)
    files, links = files_and_links(root)
    files += [path for path in record if not is_artefact(path) and (root / path).is_file()]
    here = {path: entry(root, path) for path in files}
    culprits = Culprits(root, here)
    present = {*here, *links}
    findings = [Finding(path, Status.TAMPERED, "is a symbolic link: its bytes lie elsewhere") for path in links]
    findings += [
        culprits.judge(here[path], one)
        for path, one in record.items()
        if path in here and here[path].sha256 != one.sha256
    ]
    findings += [Finding(path, Status.MISSING, "sealed, not here") for path in record if path not in present]
    findings += [Finding(path, Status.EXTRA, "here, not sealed") for path in here if path not in record]
    if broken:
        findings.append(Finding(RECORD.parent.as_posix(), Status.TAMPERED, f"the record itself: {broken}"))
    else:
        findings += [Finding(path, Status.TAMPERED, fault) for path, fault in wrong_pointers(root, whole=not findings)]
    notes = list(drift(root, read_description(root)))
    loose = list(unaccounted({path: here[path] for path in here if path in record}, culprits.claimed))
    if loose:
        notes.append(f"sealed as they are, but not as a job wrote them: {some(loose, '; ')}")
    if (root / ASIDE).is_dir():
        notes.append("a seal did not end: the next `userturn seal` puts the earlier one back first")
    contents = sealed_contents(root) if findings else NoContents()
    return _verification(RECORD.as_posix(), here, record, findings, (FolderContents(root), contents), notes)


def verify_against(root: Path, other: Path) -> Verification:
    """Compares a study's folder with another: its files, or its sealed record.

    Args:
        root: the study's folder.
        other: a study's folder, the ``sealed`` folder of one, or a ``record.jsonl``.

    Raises:
        ProvenanceError: ``other`` is none of these.
    """
    theirs, contents = _other(other)
    there = {path: one for path, one in theirs.items() if is_artefact(path)}
    here = {path: entry(root, path) for path in artefacts(root)}
    findings = []
    for path in sorted(here.keys() | there.keys()):
        if path not in here:
            findings.append(Finding(path, Status.MISSING, "there, not here"))
        elif path not in there:
            findings.append(Finding(path, Status.EXTRA, "here, not there"))
        elif here[path].sha256 != there[path].sha256:
            stable = here[path].stable_sha256
            if stable is not None and stable == there[path].stable_sha256:
                findings.append(Finding(path, Status.REBUILT, "the same but for times, host and commit"))
            else:
                findings.append(Finding(path, Status.CHANGED, "other content"))
    return _verification(f"{other}", here, there, findings, (FolderContents(root), contents), [])


def _other(other: Path) -> tuple[Record, Contents]:
    if other.is_file():
        return read_record(other), NoContents()
    if (other / RECORD.name).is_file():
        return read_record(other / RECORD.name), sealed_contents(other.parent)
    if (other / layout.RESULTS).is_dir():
        return {path: entry(other, path) for path in artefacts(other)}, FolderContents(other)
    if (other / RECORD).is_file():
        return read_record(other / RECORD), sealed_contents(other)
    raise ProvenanceError(f"{other}: neither a study's folder (with results/ or sealed/) nor a sealed record")


def _verification(
    against: str,
    here: Record,
    there: Record,
    findings: list[Finding],
    contents: tuple[Contents, Contents],
    notes: list[str],
) -> Verification:
    ordered = sorted(findings, key=lambda finding: layout.flow_rank(Path(finding.path)))
    differences, unread = [], 0
    for finding in ordered:
        if finding.status in {Status.CHANGED, Status.TAMPERED} and finding.path in there:
            a, b = (side.find(finding.path) for side in contents)
            if a is not None and b is not None:
                differences.append(compare(finding.path, a, b))
            else:
                unread += 1
    if unread:
        notes = [*notes, f"{unread} files differ of which the other side's bytes are not here: rows cannot be compared "
                 "(dvc fetch brings sealed ones)"]  # fmt: skip
    counts = Counter(finding.status for finding in findings)
    counts[Status.IDENTICAL] = len(here.keys() & there.keys()) - sum(
        finding.path in here and finding.path in there for finding in findings
    )
    return Verification(against, len(here), {s: counts[s] for s in Status}, ordered, differences, notes)
