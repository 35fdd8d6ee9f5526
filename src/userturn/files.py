"""Files and folders that appear whole or not at all."""

import glob
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PUBLIC_FILE_MODE = 0o644
PUBLIC_FOLDER_MODE = 0o755
_SUFFIX = ".part"
_STALE_SECONDS = 24 * 3600


def sha256_file(path: Path) -> str:
    """Returns the sha256 of a file's bytes in lower-case hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def remove_stale(parent: Path, stem: str) -> None:
    """Removes temporary entries that killed processes left behind more than a day ago.

    Args:
        parent: the folder to look in; only entries named ``.{stem}.*.part`` directly inside are considered.
        stem: the name the temporary entries were made for.
    """
    limit = time.time() - _STALE_SECONDS
    for entry in parent.glob(f".{glob.escape(stem)}.*{_SUFFIX}"):
        try:
            stale = entry.lstat().st_mtime < limit
            if stale and entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif stale:
                entry.unlink()
        except FileNotFoundError:
            continue  # another process was quicker


def _sync_folder(folder: Path) -> None:
    """Makes a rename inside a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Gives a file its public mode and forces its bytes to disk."""
    with path.open("rb+") as stream:
        os.fchmod(stream.fileno(), PUBLIC_FILE_MODE)
        os.fsync(stream.fileno())


@contextmanager
def temporary_folder(parent: Path, stem: str) -> Iterator[Path]:
    """Yields a fresh folder ``parent/.{stem}.….part`` and removes it afterwards, whatever happens."""
    parent.mkdir(parents=True, exist_ok=True)
    remove_stale(parent, stem)
    folder = Path(tempfile.mkdtemp(prefix=f".{stem}.", suffix=_SUFFIX, dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # gone already when it was renamed into place


@contextmanager
def atomic_file(destination: Path) -> Iterator[BinaryIO]:
    """Yields a binary stream whose bytes become ``destination`` when the block ends without an error.

    The bytes go to a temporary name in the same folder, are forced to disk, and replace the destination in
    one step.
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(destination.parent, destination.name)
    descriptor, name = tempfile.mkstemp(prefix=f".{destination.name}.", suffix=_SUFFIX, dir=destination.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fchmod(stream.fileno(), PUBLIC_FILE_MODE)
            os.fsync(stream.fileno())
        publish(temporary, destination)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def publish(temporary: Path, destination: Path) -> None:
    """Moves a finished file to its place in one step; both must be on one file system."""
    temporary.replace(destination)
    _sync_folder(destination.parent)


@contextmanager
def atomic_folder(destination: Path) -> Iterator[Path]:
    """Yields a temporary sibling folder that becomes ``destination`` when the block ends without an error.

    An existing destination is set aside first and removed last, so a reader sees the old folder, for a moment
    none, or the whole new one, never a mixture. Files get mode 0644, folders 0755.
    """
    with temporary_folder(destination.parent, destination.name) as folder:
        yield folder
        for entry in sorted(folder.rglob("*")):
            if entry.is_dir():
                entry.chmod(PUBLIC_FOLDER_MODE)
            else:
                sync_file(entry)
        folder.chmod(PUBLIC_FOLDER_MODE)
        with temporary_folder(destination.parent, destination.name) as aside:
            old = aside / "old"
            if destination.exists():
                destination.rename(old)
            try:
                folder.rename(destination)
            except BaseException:
                if old.exists():
                    old.rename(destination)
                raise
        _sync_folder(destination.parent)
