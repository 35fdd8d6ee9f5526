"""What can go wrong between a pinned origin and its bytes."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class SourceError(Exception):
    """A source cannot be had, or is not what it was pinned to be. The message says what to do."""


def disk_full(what: str, folder: Path) -> SourceError:
    """Words the error for a full disk."""
    return SourceError(
        f"the disk is full: {what} could not be written below {folder}. Free some space, or point "
        f"USERTURN_CACHE "
        "(or the output folder) at another disk, and run again; nothing half-written was left."
    )


@contextmanager
def explaining_disk_errors(what: str, folder: Path) -> Iterator[None]:
    """Turns "no space left" and "quota exceeded" into a SourceError; lets every other error pass."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(what, folder) from error
        raise
