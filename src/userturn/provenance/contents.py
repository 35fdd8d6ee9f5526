"""Where the bytes of a study's files can be read: a folder, or DVC's cache, which holds what was sealed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from userturn import layout
from userturn.provenance import ProvenanceError, dvc
from userturn.provenance.record import RECORD, Record, read_record


class Contents(Protocol):
    """Files of a study by path."""

    def find(self, path: str) -> Path | None:
        """A file with the bytes, to be read only; None where they are not at hand."""
        ...


class FolderContents:
    """The files of a study's folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, path: str) -> Path | None:
        """See `Contents`."""
        file = self._root / path
        return file if file.is_file() else None


class SealedContents:
    """What was sealed, from DVC's cache: nothing is fetched and nothing is changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._cache = dvc.cache_folder(root)
        self._md5: dict[str, str] = {}
        for folder in (layout.DATA, layout.RESULTS):
            listing = self._object(dvc.read_pointer(root, folder))
            if listing is not None:
                for row in json.loads(listing.read_bytes()):
                    self._md5[f"{folder}/{row['relpath']}"] = row["md5"]

    def find(self, path: str) -> Path | None:
        """See `Contents`."""
        return self._object(self._md5[path]) if path in self._md5 else None

    def _object(self, md5: str) -> Path | None:
        file = self._cache / md5[:2] / md5[2:]
        return file if file.is_file() else None


class NoContents:
    """A record by itself: digests, no bytes."""

    def find(self, path: str) -> Path | None:
        """See `Contents`."""
        del path
        return None


def sealed_contents(root: Path) -> Contents:
    """The sealed files of a study's folder, where its pointers are."""
    try:
        return SealedContents(root)
    except ProvenanceError:
        return NoContents()  # a record without pointers or without DVC: only the rows cannot be compared


def check_seal(root: Path) -> str | None:
    """Whether ``sealed/`` is what its pointer says, as a sentence; None where it is.

    Raises:
        ProvenanceError: there is no seal here.
    """
    if not (root / RECORD).is_file():
        raise ProvenanceError(
            f"{RECORD}: no such file: the study is not sealed here (userturn seal), or not restored (userturn restore)"
        )
    expected, found = dvc.read_pointer(root, layout.SEALED), dvc.folder_digest(root, layout.SEALED)
    return None if expected == found else f"{dvc.pointer(layout.SEALED)} names {expected}, the folder is {found}"


def wrong_pointers(root: Path, *, whole: bool) -> Iterator[tuple[str, str]]:
    """Pointers of ``data/`` and ``results/`` that are none, or do not name what lies there.

    Args:
        root: the study's folder.
        whole: the folders hold what was sealed, so that their pointers must name them.

    Yields:
        The pointer and what is wrong.
    """
    for folder in (layout.DATA, layout.RESULTS):
        name = dvc.pointer(folder).as_posix()
        try:
            expected = dvc.read_pointer(root, folder)
        except ProvenanceError as error:
            yield name, f"{error}".removeprefix(f"{name}: ")
            continue
        if whole and expected != (found := dvc.folder_digest(root, folder)):
            yield name, f"names {expected}, the folder is {found}: a clone cannot be restored from it"


def own_record(root: Path) -> Record:
    """The sealed record of a study's folder."""
    return read_record(root / RECORD)
