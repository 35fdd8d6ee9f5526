"""Sealing: a finished study's files go to DVC in one go, with a record of every file.

What a seal replaces (the pointers and ``sealed/``) is set aside until the new ones are complete, and put back when
sealing fails; after a kill, by the next command. Contents that DVC has already are never touched. Pushing is a step
by itself: a push that failed is tried again by calling again.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from userturn import grid, layout
from userturn.artefacts import ArtefactError, canonical, read_json, write_bytes, write_json
from userturn.files import PUBLIC_FOLDER_MODE, sha256_file, temporary_folder
from userturn.provenance import ProvenanceError, dvc, jobs, some
from userturn.provenance.digests import RememberedDigests
from userturn.provenance.record import (
    ASIDE,
    DESCRIPTION,
    METADATA,
    RECORD,
    Entry,
    artefacts,
    claims,
    describe,
    inside,
    read_record,
    record_bytes,
    unaccounted,
)
from userturn.runlock import RunLock, RunLockHeld

if TYPE_CHECKING:
    from userturn.config.study import Study

POINTERS = tuple(dvc.pointer(folder) for folder in layout.TRACKED)
#: What belongs into git after a seal.
TO_COMMIT = (*dvc.SETTINGS, *POINTERS)
_NOTE = layout.STATE / "sealed.json"
_REMEMBERED = layout.STATE / "digests.jsonl"


@dataclass(frozen=True)
class Sealed:
    """What a seal did."""

    study: str
    files: int
    bytes: int
    first: bool
    """There was no seal before."""
    unchanged: bool
    """Nothing was left to do."""
    added: int
    changed: int
    removed: int
    unaccounted: Sequence[str]
    """Files that no job wrote as they are, by the manifests; sealed all the same."""
    hashed: int
    """Files that were read; of the others the remembered digest still held."""
    seconds: float
    dvc_seconds: float


@contextmanager
def exclusively(root: Path) -> Iterator[None]:
    """Keeps workflow runs and other seals out of a study's folder, and puts right what a killed seal left.

    Raises:
        ProvenanceError: a run is active.
    """
    try:
        with RunLock(root / layout.RUN_LOCK).held("a seal or restore"):
            undo(root)
            yield
    except RunLockHeld as error:
        raise ProvenanceError(f"{error}; wait until it has ended") from error


def undo(root: Path) -> None:
    """Puts back the pointers and ``sealed/`` of a seal that did not end; needs no room on the disk."""
    aside = root / ASIDE
    if not aside.is_dir():
        return
    for name in (*POINTERS, layout.SEALED):
        now, before = root / name, aside / name
        if before.exists():
            if now.is_dir():
                shutil.rmtree(now)
            before.replace(now)
        elif not (aside / f"{name}.absent").exists():
            continue  # not reached by the seal, or put back by an earlier call that was killed
        elif now.is_dir():
            shutil.rmtree(now)
        else:
            now.unlink(missing_ok=True)
    shutil.rmtree(aside)


@contextmanager
def _undoable(root: Path) -> Iterator[None]:
    aside = root / ASIDE
    aside.mkdir(parents=True)
    try:
        for name in (*POINTERS, layout.SEALED):
            if (root / name).is_dir():
                (root / name).rename(aside / name)
            elif (root / name).is_file():
                write_bytes(aside / name, (root / name).read_bytes())
            else:
                (aside / f"{name}.absent").touch()  # there was none: what the seal makes goes
        yield
    except BaseException:
        undo(root)
        raise
    done = aside.with_name("sealing.done")
    shutil.rmtree(done, ignore_errors=True)
    aside.rename(done)
    shutil.rmtree(done)


def check_complete(root: Path, study: Study) -> None:
    """Refuses a study that is not finished, or whose report was made from another config.

    Raises:
        ProvenanceError: says what is missing and what to run.
    """
    again = "run the workflow first: snakemake --cores all results/report.html, with the study's --configfile"
    cells = grid.cells(study)
    needed = [layout.NUMBERS, layout.REPORT, layout.manifest("report")]
    needed += [cell.user_turns for cell in cells]
    needed += [cell.judgements(judge) for judge in study.judges for cell in cells]
    missing = [path.as_posix() for path in needed if not (root / path).is_file()]
    if missing:
        raise ProvenanceError(f"the study is not complete: {some(missing)} missing; {again}")
    killed = jobs.unfinished(root)
    if killed:
        raise ProvenanceError(f"jobs were killed while they wrote {some(killed)}; {again}")
    manifest = layout.manifest("report")
    try:
        made_from = type(study).model_validate(read_json(root / manifest)["spec"])
    except (ArtefactError, KeyError, TypeError, ValidationError) as error:
        raise ProvenanceError(f"{manifest}: does not say what config the report was made from; {again}") from error
    if made_from != study:
        keys = [key for key in type(study).model_fields if getattr(made_from, key) != getattr(study, key)]
        raise ProvenanceError(f"the report was made from another config (different: {', '.join(keys)}); {again}")


def seal(root: Path, study: Study, config_files: Sequence[Path]) -> Sealed:
    """Seals the study in a folder.

    Args:
        root: the study's folder.
        study: the resolved study.
        config_files: the files it came from.

    Raises:
        ProvenanceError: a run is active, the study is not complete, credentials would be committed, DVC failed.
    """
    started = time.monotonic()
    with exclusively(root):
        check_complete(root, study)
        dvc.prepare(root)
        exposed = dvc.secrets(root)
        if exposed:
            raise ProvenanceError(
                f"{dvc.CONFIG} is committed and holds credentials: {', '.join(exposed)}; move them to "
                f"{dvc.LOCAL_CONFIG}: dvc remote modify --local NAME OPTION VALUE, then --unset them in {dvc.CONFIG}"
            )
        digests = RememberedDigests(root, root / _REMEMBERED)
        paths = {*artefacts(root), *inside(root, config_files)}
        entries = {path: digests.entry(path) for path in sorted(paths)}
        digests.save()
        before = read_record(root / RECORD) if (root / RECORD).is_file() else None
        dvc_seconds = _replace(root, study, config_files, entries)
        old: Mapping[str, Entry] = before or {}
        return Sealed(
            study=study.name,
            files=len(entries),
            bytes=sum(one.bytes for one in entries.values()),
            first=before is None,
            unchanged=dvc_seconds is None,
            added=len(entries.keys() - old.keys()),
            changed=sum(path in old and old[path] != one for path, one in entries.items()),
            removed=len(old.keys() - entries.keys()),
            unaccounted=list(unaccounted(entries, claims(root, entries))),
            hashed=digests.hashed,
            seconds=time.monotonic() - started,
            dvc_seconds=dvc_seconds or 0.0,
        )


def push(root: Path, remote: str | None = None) -> None:
    """Sends a sealed study to a remote; what is there already is not sent again.

    Args:
        root: the study's folder.
        remote: the remote's name; DVC's default remote without it.

    Raises:
        ProvenanceError: a run is active, or DVC failed: the seal stands, and pushing can be tried again.
    """
    with exclusively(root):
        dvc.push(root, remote)


def _replace(root: Path, study: Study, config_files: Sequence[Path], entries: Mapping[str, Entry]) -> float | None:
    """Puts new pointers and a new ``sealed/`` in place; seconds in DVC, or None where the old ones say the same."""
    record, description = (
        record_bytes(entries.values()),
        (canonical(describe(root, study, config_files)) + "\n").encode("utf-8"),
    )
    now = [hashlib.sha256(data).hexdigest() for data in (record, description)]
    if _noted(root) == _state(root) and now == [sha256_file(root / path) for path in (RECORD, DESCRIPTION)]:
        return None
    with temporary_folder(root / layout.STATE, "sealed") as made:
        write_bytes(made / RECORD.name, record)
        write_bytes(made / DESCRIPTION.name, description)
        with (made / METADATA.name).open("wb") as stream:
            jobs.pack(root, stream)
        noted = _noted(root) or {}
        if (
            _digests(made) == _digests(root / layout.SEALED)
            and _digests(root / layout.SEALED, root).items() <= noted.items()
        ):
            note(root)  # Snakemake's records were touched, or copied: their contents are what was sealed
            return None
        started = time.monotonic()
        with _undoable(root):
            made.chmod(PUBLIC_FOLDER_MODE)
            made.rename(root / layout.SEALED)
            dvc.add(root)
    note(root)
    return time.monotonic() - started


def note(root: Path) -> None:
    """Notes that pointers and ``sealed/`` belong together, so that the next seal need not ask DVC."""
    write_json(root / _NOTE, _state(root))


def _state(root: Path) -> dict[str, str | None]:
    return {**_digests(root / layout.SEALED, root), "job_records": jobs.fingerprint(root)}


def _noted(root: Path) -> dict[str, str | None] | None:
    try:
        found: Any = read_json(root / _NOTE)
    except ArtefactError:
        return None  # no seal has ended here
    return found if isinstance(found, dict) else None


def _digests(sealed: Path, root: Path | None = None) -> dict[str, str | None]:
    """Digests of the files of ``sealed/`` and, in a study's folder, of the pointers; None for what is missing."""
    files = [sealed / path.name for path in (RECORD, DESCRIPTION, METADATA)]
    files += [root / path for path in POINTERS] if root else []
    return {file.name: sha256_file(file) if file.is_file() else None for file in files}
