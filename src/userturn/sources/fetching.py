"""From a pinned origin to verified bytes on this machine."""

import difflib
import time
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import assert_never

from userturn.files import sha256_file
from userturn.sources import folder, hub
from userturn.sources.cache import SourceCache, wheel_names
from userturn.sources.config import FileSource, FolderSource, HubSource, Source, WheelSource
from userturn.sources.errors import SourceError
from userturn.sources.pip import download, wrong_digest

Progress = Callable[[str], None]


def _silent(message: str) -> None:
    """Reports nothing."""


def _require_name(source: WheelSource, filename: str) -> None:
    """Refuses a wheel whose digest is right but whose name is another release's."""
    if not wheel_names(filename, source.package, source.version):
        raise SourceError(
            f"sha256 {source.sha256} belongs to {filename}, not to {source}: correct package and version in "
            f"the "
            "configuration, spelling the version as the file name does."
        )


def _check_file(source: FileSource, cache: SourceCache) -> Path:
    """Returns the path of a local file after checking that it is the pinned one."""
    path = Path(source.path)
    if not path.is_file():
        names = [entry.name for entry in path.parent.glob("*")] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, names, n=3)
        hint = f" Near names there: {', '.join(near)}." if near else ""
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise SourceError(f"the source file {source.path} {what} (looked at {path.absolute()}).{hint}")
    got = cache.digest(path.absolute())
    if got != source.sha256:
        raise SourceError(
            f"the source file {source.path} is not the pinned one.\n  expected sha256 {source.sha256}\n"
            f"  got      sha256 {got}\nRestore the file, or pin the new digest if the change was meant."
        )
    return path


def check_cached(source: Source, cache: SourceCache | None = None) -> None:
    """Refuses early what is known to be wrong without any download; meant to run before jobs are planned.

    A file must exist and have its digest. A folder must exist and be pinned. A wheel that is not in the cache must not
    be there under another digest, and one that is must be of the named package and version. The bytes of both are
    verified on use, not here.
    A hub source must be pinned, and in the hub client's cache where HF_HUB_OFFLINE is set.

    Args:
        source: the source to check.
        cache: the cache to look in, by default the one that the environment names.

    Raises:
        SourceError: saying what differs and what to do.
    """
    cache = cache or SourceCache.default()
    match source:
        case FileSource():
            _check_file(source, cache)
        case FolderSource():
            folder.require_pinned(source)
        case WheelSource():
            held = cache.find(source.sha256)
            if held is not None:
                _require_name(source, held.name)
                return
            others = cache.universal_wheels(source.package, source.version)
            if others:
                known = "\n".join(f"  in cache sha256 {path.parent.name} ({path.name})" for path in others)
                raise SourceError(
                    f"the digest pinned for {source} is not that of the release seen before.\n"
                    f"  pinned   sha256 {source.sha256}\n{known}\nA release never changes: correct the "
                    f"digest in the "
                    f"configuration, or, if the cached file is the wrong one, remove its folder below "
                    f"{cache.root}."
                )
        case HubSource():
            hub.require_pinned(source)
            hub.require_cached_when_offline(source)
        case _:
            assert_never(source)


def fetch(source: Source, *, cache: SourceCache, progress: Progress = _silent) -> Path:
    """Brings a source here and verifies it.

    Args:
        source: what to fetch.
        cache: where wheels are kept. A kept wheel is verified once per cache object; a damaged one is fetched
            again.
        progress: called with one plain line for each step worth telling.

    Returns:
        The path of the verified wheel in the cache, of the verified local file or folder, or of the one file of a hub
        source in the hub client's own cache.

    Raises:
        SourceError: the source cannot be had or is not the pinned one. Nothing half-written is left.
    """
    match source:
        case FileSource():
            return _check_file(source, cache)
        case FolderSource():
            return folder.verified(source)
        case WheelSource():
            return _fetch_wheel(source, cache, progress)
        case HubSource():
            return hub.fetch_file(source, progress)
        case _:
            assert_never(source)


def _fetch_wheel(source: WheelSource, cache: SourceCache, progress: Progress) -> Path:
    check_cached(source, cache)
    held = cache.find(source.sha256)
    if held is not None:
        if cache.digest(held) == source.sha256:
            return held
        progress(f"the cached wheel of {source} is damaged: downloading it again")
    start = time.monotonic()
    with cache.temporary() as scratch:
        progress(f"downloading {source}")
        wheel = download(source, scratch)
        got = sha256_file(wheel)
        if got != source.sha256:
            raise wrong_digest(source, got)
        _require_name(source, wheel.name)
        kept = cache.add(wheel, source.sha256)
    megabytes = kept.stat().st_size / 1e6
    progress(f"verified {source} ({megabytes:.1f} MB in {time.monotonic() - start:.1f} s)")
    return kept


def origin(source: Source) -> dict[str, str]:
    """Returns what a manifest says about a source: everything that pins it, no path of this machine.

    An absolute file path is cut down to the file's name; the digest identifies it.
    """
    facts = {key: str(value) for key, value in source.model_dump(mode="json", exclude_none=True).items()}
    if isinstance(source, FileSource | FolderSource) and PurePath(source.path).is_absolute():
        facts["path"] = PurePath(source.path).name
    return facts
