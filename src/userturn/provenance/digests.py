"""Digests of files, remembered between seals, so that an unchanged study is known to be unchanged in a second.

A digest is used again while the file's size, times and inode are what they were; the time of the last change of the
inode is among them, which no program can set back. `userturn.provenance.verify` never uses what is remembered.
"""

from __future__ import annotations

import time
from pathlib import Path

from userturn.artefacts import ArtefactError, read_jsonl, write_jsonl
from userturn.provenance.record import Entry, entry

#: A file written this recently may change again without its time showing it, so its digest is not remembered.
_SETTLED_NS = 2_000_000_000

Stamp = tuple[int, int, int, int]


class RememberedDigests:
    """Entries of files, by path and stamp, kept in a file that may be deleted at any time."""

    def __init__(self, root: Path, file: Path) -> None:
        self._root = root
        self._file = file
        self._known: dict[str, tuple[Stamp, Entry]] = {}
        self._used: dict[str, tuple[Stamp, Entry]] = {}
        self.hashed = 0
        """Files read."""
        try:
            for row in read_jsonl(file):
                self._known[row["entry"]["path"]] = (tuple(row["stamp"]), Entry(**row["entry"]))
        except (ArtefactError, KeyError, TypeError):
            self._known = {}  # missing or damaged: everything is read again

    def entry(self, path: str) -> Entry:
        """The entry of a file, read only where it may have changed."""
        stamp = _stamp(self._root / path)
        known = self._known.get(path)
        if known is not None and known[0] == stamp:
            found = known[1]
        else:
            found = entry(self._root, path)
            self.hashed += 1
        if max(stamp[1:3]) < time.time_ns() - _SETTLED_NS:
            self._used[path] = (stamp, found)
        return found

    def save(self) -> None:
        """Keeps what was asked for since this object was made."""
        if self._used != self._known:
            write_jsonl(self._file, ({"stamp": stamp, "entry": one.row()} for stamp, one in self._used.values()))


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
