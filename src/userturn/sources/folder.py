"""Model folders that are already here: which files make the model, and the one digest that pins them."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from userturn.files import sha256_file
from userturn.sources.config import PIN_ME, FolderSource
from userturn.sources.errors import SourceError
from userturn.sources.hub import named_model_files


def listing_sha256(digests: Mapping[str, str]) -> str:
    """The sha256 of the lines ``<sha256>  <relative name>`` sorted by name, as ``sha256sum`` would print them."""
    listing = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return hashlib.sha256(listing.encode("utf-8")).hexdigest()


def model_files(source: FolderSource) -> dict[str, Path]:
    """The files that make the model: what is taken of a repository of the hub, hidden files and checkpoints left out.

    Returns:
        ``{relative name: path}``, sorted by name; links to files are followed when they are read.

    Raises:
        SourceError: there is no such folder, or no model in it.
    """
    folder = Path(source.path)
    if not folder.is_dir():
        names = [entry.name for entry in folder.parent.iterdir()] if folder.parent.is_dir() else []
        near = difflib.get_close_matches(folder.name, names, n=3)
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        hint = f" Near names there: {', '.join(near)}." if near else ""
        raise SourceError(f"the model folder {source.path} {what} (looked at {folder.absolute()}).{hint}")
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    names = named_model_files(sorted(found))
    kept = [name for name in names if not any(map(_left_out, PurePosixPath(name).parts)) and name.isprintable()]
    # our own description of a folder, if this is one that a study has made
    files = {name: found[name] for name in kept if name != "model.json"}
    missing = {"config.json", "tokenizer_config.json"} - set(files)
    if missing:
        raise SourceError(
            f"{source.path} is no model folder as transformers writes it: it has no {' and no '.join(sorted(missing))}"
        )
    return files


def _left_out(part: str) -> bool:
    return part.startswith((".", "checkpoint-"))


def require_pinned(source: FolderSource) -> None:
    """Refuses a folder that is not there or has no digest yet, and tells the digest.

    Raises:
        SourceError: saying what to write.
    """
    files = model_files(source)
    if source.sha256 == PIN_ME:
        got = listing_sha256({name: sha256_file(path) for name, path in files.items()})
        raise SourceError(
            f"the model folder {source.path} is not pinned. If its {len(files)} files are the model that you mean, "
            f"write beside its path:\n  sha256: {_quoted(got)}"
        )


def verified(source: FolderSource) -> Path:
    """The folder, after checking that its files are the pinned ones.

    Raises:
        SourceError: see `require_pinned`; or the files have another digest.
    """
    require_pinned(source)
    require_digest(source, {name: sha256_file(path) for name, path in model_files(source).items()})
    return Path(source.path)


def require_digest(source: FolderSource, digests: Mapping[str, str]) -> None:
    """Refuses files that are not the pinned ones.

    Args:
        source: the folder.
        digests: sha256 of each file by its relative name.

    Raises:
        SourceError: with both digests.
    """
    got = listing_sha256(digests)
    if got != source.sha256:
        raise SourceError(
            f"the model folder {source.path} is not the pinned one ({len(digests)} files: {', '.join(digests)}).\n"
            f"  expected sha256 {source.sha256}\n  got      sha256 {got}\n"
            f"Restore the files, or, if the change was meant, write\n  sha256: {_quoted(got)}"
        )


def _quoted(digest: str) -> str:
    # digits alone, or with one e among them, would be read as a number
    return f'"{digest}"' if set(digest) <= set("0123456789e") else digest
