"""The cache of downloaded files, addressed by digest: ``<root>/sha256/<first 2>/<digest>/<file name>``."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from userturn.files import publish, sha256_file, sync_file, temporary_folder
from userturn.sources.errors import SourceError, explaining_disk_errors

_WHEEL_NAME = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(-\d[^-]*)?-[^-]+-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl")

_Stamp = tuple[int, int, int]


def default_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the cache folder: USERTURN_CACHE, else XDG_CACHE_HOME/userturn, else ~/.cache/userturn.

    A relative XDG_CACHE_HOME is ignored, as the XDG base directory specification asks.

    Raises:
        SourceError: no variable is set and there is no home folder.
    """
    own = environ.get("USERTURN_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    xdg = environ.get("XDG_CACHE_HOME")
    if xdg and Path(xdg).is_absolute():
        return Path(xdg) / "userturn"
    try:
        return Path.home() / ".cache" / "userturn"
    except RuntimeError as error:
        raise SourceError("there is no home folder for the cache of sources: set USERTURN_CACHE to a folder") from error


@dataclass(frozen=True)
class SourceCache:
    """A folder of verified files.

    Attributes:
        root: the cache folder; made on first use.
    """

    root: Path
    _verified: dict[Path, tuple[_Stamp, str]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def default(cls) -> "SourceCache":
        """Returns the cache that the environment names; keep one a process, it remembers what it verified."""
        return cls(default_root())

    def digest(self, path: Path) -> str:
        """Returns a file's sha256; read once per cache object while inode, size and time stay the same."""
        stat = path.stat()
        stamp = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        known = self._verified.get(path)
        if known is None or known[0] != stamp:
            self._verified[path] = known = (stamp, sha256_file(path))
        return known[1]

    def folder(self, sha256: str) -> Path:
        """Returns where a file of this digest lies, or would."""
        return self.root / "sha256" / sha256[:2] / sha256

    def find(self, sha256: str) -> Path | None:
        """Returns the file kept under a digest, unverified, or None."""
        held = sorted(path for path in self.folder(sha256).glob("*") if not path.name.startswith("."))
        return held[0] if held else None

    def universal_wheels(self, package: str, version: str) -> list[Path]:
        """Lists cached platform-independent wheels of one release, whatever their digest.

        Wheels built for a platform are left out: one release has several of them, each with a digest of its
        own.
        """
        return sorted(
            path for path in self.root.glob("sha256/*/*/*-none-any.whl") if wheel_names(path.name, package, version)
        )

    def add(self, path: Path, sha256: str) -> Path:
        """Moves a verified file from a temporary folder of this cache to its place, in one step."""
        destination = self.folder(sha256) / path.name
        with explaining_disk_errors(path.name, self.root):
            sync_file(path)
            destination.parent.mkdir(parents=True, exist_ok=True)
            publish(path, destination)
        return destination

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        """Yields a folder on the cache's file system that is removed afterwards."""
        with explaining_disk_errors("a download", self.root), temporary_folder(self.root, "fetch") as folder:
            yield folder


def _comparable(text: str) -> str:
    return re.sub(r"[-_.+]+", ".", text).lower()


def wheel_names(filename: str, package: str, version: str) -> bool:
    """Tells whether a wheel's file name is one of this package and version (spelling of separators aside)."""
    match = _WHEEL_NAME.fullmatch(filename)
    return (
        match is not None
        and _comparable(match["name"]) == _comparable(package)
        and _comparable(match["version"]) == _comparable(version)
    )
