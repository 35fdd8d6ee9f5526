"""A sealed study as a Workflow Run RO-Crate: a folder, or a zip file, that others can read without userturn.

What stands in it is what the seal says: every file is checked against the record first, and no time but those of the
jobs enters, so that the same study exported again gives the same bytes. Small files are carried along; data and weights
are described with their digests. `userturn.provenance.crate_graph` writes the description.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from userturn import layout
from userturn.artefacts import Row
from userturn.files import PUBLIC_FILE_MODE, atomic_file, atomic_folder, sha256_file, temporary_folder
from userturn.provenance import ProvenanceError
from userturn.provenance.citation import CITATION
from userturn.provenance.contents import check_seal, own_record
from userturn.provenance.crate_graph import SNAKEFILE, describe
from userturn.provenance.crate_study import SealedStudy
from userturn.provenance.lineage import Lineage
from userturn.provenance.record import (
    DESCRIPTION,
    METADATA,
    RECORD,
    Record,
    drift,
    is_artefact,
    is_manifest,
    lock_digests,
    read_description,
)

#: Of the results, what every crate carries besides the manifests.
_RESULTS = (layout.NUMBERS, layout.NUMBERS_TABLE, layout.NUMBERS_TABLE_METADATA, layout.REPORT)
#: What a crate with data also carries: never weights.
_DATA = (layout.RESULTS, layout.dataset("any").parent, layout.contexts("any", "any", "any").parents[2])
#: Files beside data and results: how the study was run, and what was sealed.
_ASIDE = (SNAKEFILE, "rules/**/*", "envs/*.lock", "envs/*.yaml", "LICENSE", CITATION)
_SEALED = (RECORD, DESCRIPTION, METADATA)
#: The first time stamp that a zip file can hold.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_SHOWN = 5


@dataclass(frozen=True)
class Exported:
    """What an export wrote."""

    path: str
    study: str
    jobs: int
    carried: int
    """Files of the study in the crate."""
    described: int
    """Files of the study that are only described, with their digests."""
    bytes: int
    """Of the files in the crate, before packing."""
    notes: list[str]


def export(root: Path, target: Path, *, with_data: bool = False) -> Exported:
    """Writes the crate of a sealed study.

    Args:
        root: the study's folder.
        target: the folder to make, or the zip file where the name ends in ``.zip``.
        with_data: also carries everything under ``results/``, the items and the contexts.

    Raises:
        ProvenanceError: there is no seal, a file is not what was sealed, a manifest is none, or ``target`` exists.
    """
    _check_target(root, target)
    broken = check_seal(root)
    if broken:
        raise ProvenanceError(f"the sealed record itself was changed: {broken}; seal again (userturn seal)")
    record, description = own_record(root), read_description(root)
    carried = sorted({*_sealed_files(record, with_data), *_files_aside(root)})
    _check_files(root, record, description, carried)
    lineage = Lineage(root)
    if lineage.faults:
        path, fault = min(lineage.faults.items())
        raise ProvenanceError(f"{path}: not a manifest, so its job cannot be described: {fault}")
    study = SealedStudy(root, record, description, lineage.jobs(), frozenset(carried))
    crate = describe(study)
    if target.suffix == ".zip":
        with temporary_folder(target.absolute().parent, target.name) as folder:
            crate.write(folder)
            with atomic_file(target.absolute()) as stream, zipfile.ZipFile(stream, "w") as archive:
                _pack(folder, archive)
    else:
        with atomic_folder(target.absolute()) as folder:
            crate.write(folder)
    return Exported(
        path=target.as_posix(),
        study=study.name,
        jobs=len(study.jobs),
        carried=len(carried),
        described=len(study.files.keys() - study.carried),
        bytes=sum((root / path).stat().st_size for path in carried),
        notes=list(drift(root, description)),
    )


def _check_target(root: Path, target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise ProvenanceError(f"{target} exists already: remove it, or give another name")
    place = target.absolute()
    for folder in layout.TRACKED:
        if place.is_relative_to((root / folder).absolute()):
            raise ProvenanceError(f"{target} lies in {folder}/, which is sealed: give a place outside of it")


def _sealed_files(record: Record, with_data: bool) -> Iterator[str]:
    for path in record:
        parents = Path(path).parents
        config = not is_artefact(path)
        data = with_data and any(folder in parents for folder in _DATA)
        if config or data or is_manifest(path) or Path(path) in _RESULTS:
            yield path


def _files_aside(root: Path) -> Iterator[str]:
    for pattern in _ASIDE:
        for file in root.glob(pattern):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file.relative_to(root).as_posix()
    yield from (path.as_posix() for path in _SEALED)


def _check_files(root: Path, record: Record, description: Row, carried: Sequence[str]) -> None:
    """Refuses files that are not what was sealed, and missing ones that the crate is to carry.

    Files that are only described may be missing: their digests are in the record.
    """
    sealed = {path: one.sha256 for path, one in record.items()}
    sealed |= {f"envs/{name}": digest for name, digest in description.get("locks", {}).items()}
    # a lock that the study was not sealed with says nothing of it
    unsealed = [f"envs/{name}" for name in lock_digests(root) if f"envs/{name}" not in sealed]
    here = {path for path in sealed if (root / path).is_file()}
    changed = unsealed + sorted(path for path in here if sha256_file(root / path) != sealed[path])
    if changed:
        raise ProvenanceError(
            f"not what was sealed: {_some(changed)}; `userturn verify` says what changed, `userturn seal` seals it anew"
        )
    missing = [path for path in (SNAKEFILE, *carried) if not (root / path).is_file()]
    if missing:
        raise ProvenanceError(f"sealed, but not here: {_some(missing)}; `userturn restore` brings it back")


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN:,} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more


def _pack(folder: Path, archive: zipfile.ZipFile) -> None:
    """Packs a folder: names and contents alone decide the bytes."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        member = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _NO_TIME)
        member.compress_type = zipfile.ZIP_DEFLATED
        member.external_attr = PUBLIC_FILE_MODE << 16
        member.file_size = file.stat().st_size
        with file.open("rb") as source, archive.open(member, "w") as packed:
            while chunk := source.read(1 << 20):
                packed.write(chunk)
