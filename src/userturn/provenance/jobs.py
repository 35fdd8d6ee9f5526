"""Snakemake's records of the jobs that wrote each file: packed with a sealed study, and read to tell edits from jobs.

Snakemake keeps one JSON file for every output, named by the path in URL-safe base64; long names are cut into folders
that begin with ``@`` (`snakemake.persistence.file`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from userturn import layout
from userturn.provenance import ProvenanceError


def unfinished(root: Path) -> list[str]:
    """Files whose job was killed, or is running."""
    return sorted(path for path, _ in _named(root / layout.UNFINISHED_JOBS))


def marked(root: Path) -> dict[str, float]:
    """Files whose job was killed, waits in a queue or is running, with the time at which it was handed over.

    Returns:
        Seconds since the epoch, by path.
    """
    found = {}
    for path, file in _named(root / layout.UNFINISHED_JOBS):
        try:
            found[path] = file.stat().st_mtime
        except FileNotFoundError:
            continue  # the job has just ended
    return found


def fingerprint(root: Path) -> str:
    """Tells, without reading them, whether any of Snakemake's records has been written since."""
    stamps = []
    for path, file in _named(root / layout.JOB_RECORDS):
        status = file.stat()
        stamps.append((path, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))
    return hashlib.sha256(json.dumps(sorted(stamps)).encode()).hexdigest()


def pack(root: Path, stream: BinaryIO) -> int:
    """Writes Snakemake's records as a tar whose bytes depend on nothing but names and contents.

    Returns:
        How many records were packed.
    """
    folder = root / layout.JOB_RECORDS
    members = sorted((file.relative_to(folder).as_posix(), file) for _, file in _named(folder))
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, file in members:
            member = tarfile.TarInfo(name)
            member.size = file.stat().st_size
            member.mode = 0o660  # as Snakemake has it
            with file.open("rb") as content:
                archive.addfile(member, content)
    return len(members)


def unpack(archive: Path, root: Path) -> int:
    """Brings packed records back; records of other files are left alone.

    Returns:
        How many records were written.

    Raises:
        ProvenanceError: the archive holds anything but records.
    """
    count = 0
    with _open(archive) as packed:
        for member in packed:
            where = Path(member.name)
            if not member.isfile() or where.is_absolute() or ".." in where.parts or _path_of(where) is None:
                raise ProvenanceError(f"{archive}: {member.name!r} is not a record of Snakemake")
            content = packed.extractfile(member)
            assert content is not None, "members are regular files"
            file = root / layout.JOB_RECORDS / where
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.read())  # Snakemake counts a half-written record as none; restoring again mends it
            count += 1
    return count


class JobTimes:
    """When the job that wrote a file ended, by Snakemake's records."""

    def __init__(self, read: Callable[[str], bytes | None]) -> None:
        self._read = read

    @classmethod
    def here(cls, root: Path) -> JobTimes:
        """By the records in a study's folder."""
        return cls(partial(_record_here, dict(_named(root / layout.JOB_RECORDS))))

    @classmethod
    def packed(cls, archive: Path) -> JobTimes:
        """By packed records.

        Raises:
            ProvenanceError: the archive is missing or damaged.
        """
        found: dict[str, bytes] = {}
        with _open(archive) as packed:
            for member in packed:
                path, content = _path_of(Path(member.name)), packed.extractfile(member)
                if path is not None and content is not None:
                    found[path] = content.read()
        return cls(found.get)

    def ended(self, path: str) -> float | None:
        """Seconds since the epoch; None where no job is recorded."""
        data = self._read(path)
        if data is None:
            return None
        try:
            ended: Any = json.loads(data).get("endtime")
        except (json.JSONDecodeError, UnicodeDecodeError, AttributeError):
            return None  # half-written: Snakemake counts it as no record, too
        return float(ended) if isinstance(ended, int | float) else None


def _record_here(files: dict[str, Path], path: str) -> bytes | None:
    file = files.get(path)
    return None if file is None else file.read_bytes()


def _open(archive: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(archive, "r:")
    except (OSError, tarfile.TarError) as error:
        raise ProvenanceError(f"{archive}: Snakemake's records cannot be read: {error}") from error


def _named(folder: Path) -> Iterator[tuple[str, Path]]:
    """Records with the path that each is about."""
    for top, _, names in os.walk(folder):
        inside = Path(top)
        before = inside.relative_to(folder)
        for name in names:
            path = _path_of(before / name)
            if path is not None:
                yield path, inside / name


def _path_of(record: Path) -> str | None:
    text = "".join(part.removeprefix("@") for part in record.parts)
    try:
        return base64.b64decode(text, altchars=b"-_", validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
