"""Restoring: a sealed study comes back from DVC, is checked file by file, and Snakemake finds nothing to do."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from userturn import layout
from userturn.provenance import ProvenanceError, dvc, jobs, some
from userturn.provenance.record import (
    METADATA,
    RECORD,
    Entry,
    artefacts,
    drift,
    entry,
    is_artefact,
    read_description,
    read_record,
)
from userturn.provenance.seal import exclusively, note


class WouldOverwrite(ProvenanceError):
    """Files of this folder are not the sealed ones, and would be lost."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(f"{len(paths)} files here are not the sealed ones and would be overwritten or removed")
        self.paths = list(paths)


@dataclass(frozen=True)
class Restored:
    """What a restore did."""

    study: str
    files: int
    bytes: int
    job_records: int
    config_files: list[str]
    notes: list[str]
    """What of the checkout is not what the study was sealed with."""
    seconds: float


def restore(root: Path, *, remote: str | None = None, force: bool = False) -> Restored:
    """Brings a sealed study back into a checkout.

    Args:
        root: the checkout: a clone, or an unpacked archive without git.
        remote: where to fetch from; DVC's default remote, or what is in its cache, without it.
        force: overwrite files that are not the sealed ones, and remove files that were not sealed.

    Raises:
        WouldOverwrite: local files differ, and ``force`` was not given.
        ProvenanceError: a run is active, there are no pointers, DVC failed, what came is not what was sealed.
    """
    started = time.monotonic()
    for folder in layout.TRACKED:
        dvc.read_pointer(root, folder)
    with exclusively(root):
        dvc.prepare(root)
        remote = remote or dvc.default_remote(root)
        _bring(root, remote, [layout.SEALED], force=True)
        record = read_record(root / RECORD)
        description = read_description(root)
        tracked = {path: one for path, one in record.items() if is_artefact(path)}
        differing = _differing(root, tracked)
        if differing and not force:
            raise WouldOverwrite(differing)
        _bring(root, remote, [layout.DATA, layout.RESULTS], force=force, replaced=differing)
        _refuse_damaged(root, tracked)
        count = jobs.unpack(root / METADATA, root)
        note(root)
        notes = list(drift(root, description))
        for path, one in record.items():
            if path not in tracked and (not (root / path).is_file() or entry(root, path) != one):
                notes.append(f"{path} is not the config that the study was sealed with")
    return Restored(
        study=description["study"],
        files=len(tracked),
        bytes=sum(one.bytes for one in tracked.values()),
        job_records=count,
        config_files=[file["path"] for file in description["config_files"]],
        notes=notes,
        seconds=time.monotonic() - started,
    )


def _differing(root: Path, tracked: Mapping[str, Entry]) -> list[str]:
    """Local files that the sealed study does not hold as they are."""
    return [path for path in artefacts(root) if path not in tracked or entry(root, path) != tracked[path]]


def _bring(
    root: Path, remote: str | None, folders: Sequence[Path], *, force: bool, replaced: Sequence[str] = ()
) -> None:
    try:
        dvc.bring(root, folders, remote, force=force, replaced=replaced)
    except dvc.DvcFailed as error:
        if remote:
            raise
        raise ProvenanceError(
            f"{error}\nno remote is configured: userturn restore --remote NAME, after dvc remote add NAME ADDRESS"
        ) from error


def _refuse_damaged(root: Path, tracked: Mapping[str, Entry]) -> None:
    """Removes what DVC brought and is not what the record says, and tells of it."""
    wrong = []
    for path, one in tracked.items():
        if not (root / path).is_file():
            wrong.append(f"{path} (missing)")
        elif entry(root, path) != one:
            wrong.append(f"{path} (other content)")
            # not a file of the person here: it must not stand in the way of the next restore
            (root / path).unlink()
    if wrong:
        dropped = dvc.drop_damaged(root)
        raise ProvenanceError(
            f"{len(wrong)} files that DVC brought are not what the record says: {some(wrong)}; "
            "the remote or the cache is damaged, or the pointers are not of one seal. They were removed here"
            + (f", with {dropped} damaged objects of the cache" if dropped else "")
            + ": mend the remote and call again"
        )
