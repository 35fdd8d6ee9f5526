"""One run at a time in a study's folder: a lock that ends with the process that holds it, however that ends."""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

#: Files stay open for the life of the process: closing one would release its lock.
_held: list[IO[str]] = []


class RunLockHeld(RuntimeError):
    """Another run is active in this folder."""


class RunLock:
    """An advisory lock on a file, released by the operating system when the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def hold(self) -> Self:
        """Takes the lock for the rest of this process.

        Raises:
            RunLockHeld: if another process holds it: says which one.
        """
        _held.append(self._take(f"process {_here()}")[0])
        return self

    @contextmanager
    def held(self, what: str) -> Iterator[None]:
        """Holds the lock while the block runs, for something that is no run: the last run stays known.

        Args:
            what: what is done meanwhile, for whoever is refused.

        Raises:
            RunLockHeld: if another process holds it: says which one.
        """
        stream, before = self._take(f"{what}, process {_here()}")
        with stream:
            try:
                yield
            finally:
                _write(stream, before)

    def _take(self, holder: str) -> tuple[IO[str], str]:
        """The open file, locked, and what stood in it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        stream = self._path.open("a+")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            other = stream.read().strip() or "unknown"
            stream.close()
            raise RunLockHeld(f"another run is active in this folder: {other} ({self._path})") from None
        stream.seek(0)
        before = stream.read()
        _write(stream, f"{holder}\n")
        return stream, before


def _here() -> str:
    return f"{os.getpid()} on {platform.node()}"


def _write(stream: IO[str], text: str) -> None:
    stream.seek(0)
    stream.truncate()
    stream.write(text)
    stream.flush()
