"""A model folder from a repository of the hub, or from a folder that is already here."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from userturn.files import atomic_folder
from userturn.models.folder import ModelError, write_description
from userturn.sources import hub
from userturn.sources.config import FolderSource, HubSource
from userturn.sources.errors import explaining_disk_errors
from userturn.sources.fetching import origin
from userturn.sources.folder import model_files, require_digest, verified

# Other file systems, file systems without links, and too many links.
_LINKED_FROM = 16 << 20
_WEIGHTS = "weights in *.safetensors (pickled weights such as pytorch_model.bin are never read)"
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EMLINK)


def build_from_hub(
    source: HubSource,
    destination: Path,
    progress: Callable[[str], None] = lambda _: None,
    *,
    weights: bool = True,
) -> dict[str, Any]:
    """Fetches a pinned repository and makes an ordinary model folder of it, with its description.

    Safetensors, configuration, tokenizer and chat template are taken; code and pickled weights never are. A large
    file is linked where the cache lies on the same file system, so that it is on disk once; other files are copied,
    so that a person may edit them without changing the cache.

    Args:
        source: a whole model repository.
        destination: the folder to make. It appears whole or not at all.
        progress: called with one plain line for each step.
        weights: whether tensors are fetched; without them the folder is tokenizer, chat template and configuration.

    Returns:
        The description, with ``origin``.

    Raises:
        SourceError: the repository cannot be had.
        ModelError: it is no model in safetensors; or the file system changed a file.
    """
    ignored = hub.MODEL_IGNORED if weights else (*hub.MODEL_IGNORED, *hub.WEIGHT_FILES)
    files = hub.fetch_files(source, hub.MODEL_FILES, ignored, progress)
    missing = [
        what
        for what, there in {
            "config.json": "config.json" in files,
            _WEIGHTS: not weights or _any_weights(files),
        }.items()
        if not there
    ]
    if missing:
        raise ModelError(f"{source} has no {' and no '.join(missing)}; files taken: {', '.join(files) or 'none'}")
    with explaining_disk_errors(str(source), destination.parent), atomic_folder(destination) as folder:
        for name, path in files.items():
            link_or_copy(path, folder / name, _LINKED_FROM)
        progress(f"describing {len(files)} files of {source}")
        description = write_description(folder, {"origin": origin(source)})
        for name, path in files.items():
            expected, got = hub.blob_digest(path), description["files"][name]["sha256"]
            if expected not in (None, got):
                raise ModelError(f"{name} of {source} changed while it was copied: expected {expected}, got {got}")
        return description


def build_from_folder(
    source: FolderSource,
    destination: Path,
    progress: Callable[[str], None] = lambda _: None,
    *,
    weights: bool = True,
) -> dict[str, Any]:
    """Makes an ordinary model folder, with its description, of the files of a pinned local one.

    What is taken and what is linked is as for `build_from_hub`.

    Args:
        source: the local folder.
        destination: the folder to make. It appears whole or not at all.
        progress: called with one plain line for each step.
        weights: whether tensors are taken; without them the folder is tokenizer, chat template and configuration.

    Returns:
        The description, with ``origin``; with weights its ``weights_sha256`` is the source's digest.

    Raises:
        SourceError: the folder is not the pinned one.
        ModelError: it holds no safetensors, or it is the folder to make.
    """
    if Path(source.path).resolve() == destination.resolve():
        raise ModelError(f"{source.path} is where the study keeps its own copy: name a folder elsewhere as the source")
    files = model_files(source)
    if weights and not _any_weights(files):
        raise ModelError(f"{source} has no {_WEIGHTS}; files taken: {', '.join(files)}")
    if not weights:
        verified(source)
    taken = hub.named_model_files(list(files), weights=weights)
    with explaining_disk_errors(str(source), destination.parent), atomic_folder(destination) as folder:
        for name in taken:
            link_or_copy(files[name], folder / name, _LINKED_FROM)
        progress(f"describing {len(taken)} files of {source}")
        description = write_description(folder, {"origin": origin(source)})
        if weights:
            require_digest(source, {name: facts["sha256"] for name, facts in description["files"].items()})
        return description


def _any_weights(names: Iterable[str]) -> bool:
    return any(name.endswith(".safetensors") for name in names)


def link_or_copy(source: Path, destination: Path, smallest: int = 0) -> None:
    """Gives a file a second name, or copies it where that cannot be or where the file is somebody else's.

    Args:
        source: the file, or a symbolic link to it.
        destination: its new name.
        smallest: files below this size, in bytes, are copied.
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    file = source.resolve()
    about = file.stat()
    if about.st_size >= smallest and about.st_uid == os.geteuid() and os.access(file, os.W_OK):
        try:
            os.link(file, destination)
            return
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
    shutil.copyfile(file, destination)
