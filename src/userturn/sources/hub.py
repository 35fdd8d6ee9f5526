"""Reading pinned repositories of the Hugging Face hub, through its own client library.

The client's settings are honoured: HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE. Files come
into the client's cache, where other programs find them too; nothing but data is ever asked for: no code, no pickles.
The client is imported only when something is read, since a configuration is parsed by every job.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from userturn.artefacts import canonical
from userturn.files import sha256_file, temporary_folder
from userturn.sources.config import PIN_ME, HubSource
from userturn.sources.errors import SourceError, explaining_disk_errors
from userturn.sources.pip import redact

#: What a model folder is made of: tensors without code, configuration, tokenizer and template.
MODEL_FILES = (
    "*.safetensors",
    "*.json",
    "*.jinja",
    "tokenizer.model",
    "spiece.model",
    "*.tiktoken",
    "merges.txt",
    "vocab.txt",
)
#: Those of them that an endpoint's model leaves where they are.
WEIGHT_FILES = ("*.safetensors", "*.safetensors.index.json")
#: Second copies of the weights in other layouts.
MODEL_IGNORED = ("*/*.safetensors", "*/*.safetensors.index.json", "original/*", "metal/*", "onnx/*", "consolidated*")
#: What the `datasets` library reads as rows; the README names configurations and splits.
TABLE_FILES = (
    "README.md",
    "*.parquet",
    *(f"*.{kind}{zipped}" for kind in ("jsonl", "json", "csv") for zipped in ("", ".gz")),
)

_CHUNK = 1 << 20
_SHOWN = 300


def require_pinned(source: HubSource) -> None:
    """Refuses a source whose revision is still open.

    Raises:
        SourceError: saying how to pin it.
    """
    if source.revision == PIN_ME:
        raise SourceError(
            f"{source.repo_type} {source.repo} is not pinned (revision: {PIN_ME}): run `userturn pin "
            "--configfile FILE` where the hub can be reached, or write the 40-digit commit of the revision by hand."
        )


def require_cached_when_offline(source: HubSource, environ: Mapping[str, str] = os.environ) -> None:
    """Refuses early, when HF_HUB_OFFLINE is set, a revision of which the client's cache holds nothing.

    Looks for one folder, with the client's own rules for where its cache is, and imports nothing.

    Raises:
        SourceError: naming the folder.
    """
    if environ.get("HF_HUB_OFFLINE", "").upper() not in ("1", "ON", "YES", "TRUE"):
        return
    caches = environ.get("XDG_CACHE_HOME", "~/.cache")
    home = environ.get("HF_HOME", f"{caches}/huggingface")
    cache = Path(environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE") or f"{home}/hub").expanduser()
    folder = cache / f"{source.repo_type}s--{source.repo.replace('/', '--')}" / "snapshots" / source.revision
    if not folder.is_dir():
        raise SourceError(
            f"{source} is not in the cache and HF_HUB_OFFLINE is set: there is no {folder}. Unset HF_HUB_OFFLINE "
            "once to download, or copy the cache from a machine that has it."
        )


def fetch_file(source: HubSource, progress: Callable[[str], None]) -> Path:
    """Brings the one file of a source into the client's cache and verifies it.

    Returns:
        Its path in the cache.

    Raises:
        SourceError: see ``fetch``; or the source names no single file.
    """
    require_pinned(source)
    if source.path is None:
        raise SourceError(f"{source}: one file is needed here (give path)")
    import huggingface_hub

    def get(force: bool) -> Path:
        with _explaining(source):
            return Path(
                huggingface_hub.hf_hub_download(
                    source.repo,
                    str(source.path),
                    repo_type=source.repo_type,
                    revision=source.revision,
                    force_download=force,
                )
            )

    progress(f"reading {source} from {_endpoint()} or the cache")
    found = get(False)
    if not _intact(found):
        progress(f"the cached file of {source} is damaged: downloading it again")
        found = get(True)
        if not _intact(found):
            raise _damaged(source, str(source.path))
    return found


def fetch_files(
    source: HubSource, allowed: Sequence[str], ignored: Sequence[str], progress: Callable[[str], None]
) -> dict[str, Path]:
    """Brings all files of a repository that match into the client's cache and verifies them.

    Args:
        source: the repository.
        allowed: patterns of names, as in ``fnmatch``, where ``*`` also matches ``/``.
        ignored: patterns of names left out.
        progress: called with one plain line for each step worth telling.

    Returns:
        ``{name in the repository: path of a plain file in the cache}``, sorted by name.

    Raises:
        SourceError: see ``fetch``.
    """
    require_pinned(source)
    import huggingface_hub

    def get(force: bool) -> dict[str, Path]:
        with _explaining(source):
            folder = Path(
                huggingface_hub.snapshot_download(
                    source.repo,
                    repo_type=source.repo_type,
                    revision=source.revision,
                    allow_patterns=list(allowed),
                    ignore_patterns=list(ignored),
                    force_download=force,
                )
            )
        # The cache may hold more of this revision than was asked for here.
        names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        return {
            name: (folder / name).resolve() for name in names if _named(name, allowed) and not _named(name, ignored)
        }

    progress(f"reading {source} from {_endpoint()} or the cache")
    found = get(False)
    damaged = [name for name, path in found.items() if not _intact(path)]
    if damaged:
        progress(f"damaged in the cache of {source}, downloading again: {', '.join(damaged)}")
        found = get(True)
        for name in damaged:
            if not _intact(found[name]):
                raise _damaged(source, name)
    return found


def read_table(source: HubSource, scratch: Path, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Reads the rows of a split with the `datasets` library.

    The library is given the verified files of the pinned revision as a folder. Asked by the repository's name it would
    fall back, whenever the hub fails, on whatever revision it happens to have cached.

    Args:
        source: configuration and split of a dataset.
        scratch: an existing folder for temporary files.
        progress: called with one plain line for each step worth telling.

    Returns:
        The rows in the split's order.

    Raises:
        SourceError: see ``fetch``; or there is no such configuration or split, or no data that can be read.
    """
    if not source.is_table:
        raise SourceError(f"{source}: rows are needed here (give split)")
    files = fetch_files(source, TABLE_FILES, (), progress)
    import datasets

    with temporary_folder(scratch, "rows") as folder, explaining_disk_errors(str(source), scratch):
        view = folder / source.repo.rsplit("/", 1)[1]
        for name, path in files.items():
            (view / name).parent.mkdir(parents=True, exist_ok=True)
            (view / name).symlink_to(path)
        view.mkdir(exist_ok=True)
        datasets.disable_progress_bars()
        try:
            table = datasets.load_dataset(
                str(view), name=source.config, split=source.split, cache_dir=str(folder / "cache"), keep_in_memory=True
            )
            if not isinstance(table, datasets.Dataset):
                raise SourceError(f"{source}: split must name one split, got {source.split!r}")
            return [dict(row) for row in table]
        except (ValueError, OSError, datasets.exceptions.DatasetsError) as error:
            raise SourceError(
                f"{source} cannot be read as rows ({len(files)} data files at this revision): "
                f"{_first_line(error).replace(str(view), source.repo)}"
            ) from error


def rows_digest(rows: Sequence[dict[str, Any]]) -> str:
    """Returns the sha256 of rows as canonical JSON Lines; what JSON has no word for enters by its ``repr``."""
    digest = hashlib.sha256()
    for row in rows:
        try:
            text = canonical(row)
        except (TypeError, ValueError):
            text = repr(sorted(row.items()))
        digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def blob_digest(path: Path) -> str | None:
    """Returns the sha256 under which the client keeps a large file, or None where it keeps it otherwise."""
    name = path.resolve().name
    return name if len(name) == 64 and _is_hex(name) else None


def named_model_files(names: Sequence[str], *, weights: bool = True) -> list[str]:
    """Those of some files that make a model folder: no code, no pickles, no second copies of the weights.

    Args:
        names: relative names, with forward slashes.
        weights: whether tensors belong to it; without them it is tokenizer, chat template and configuration.
    """
    return [
        name
        for name in names
        if _named(name, MODEL_FILES) and not _named(name, MODEL_IGNORED) and (weights or not _named(name, WEIGHT_FILES))
    ]


def _named(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _is_hex(text: str) -> bool:
    return all(sign in "0123456789abcdef" for sign in text)


def _intact(path: Path) -> bool:
    """Whether a cached file is what its name in the cache says: a sha256, or the SHA-1 of a git blob.

    A cache without links (file systems that have none) keeps no such name: then there is nothing to compare.
    """
    blob = path.resolve()
    if not _is_hex(blob.name) or len(blob.name) not in (40, 64):
        return True
    if len(blob.name) == 64:
        return sha256_file(blob) == blob.name
    digest = hashlib.sha1(f"blob {blob.stat().st_size}\0".encode(), usedforsecurity=False)
    with blob.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest() == blob.name


def _damaged(source: HubSource, name: str) -> SourceError:
    return SourceError(
        f"{name} of {source} does not have the digest that the hub names for it, although it was downloaded again: the "
        "mirror or proxy changes files, or the disk is failing. It was not used."
    )


def _endpoint() -> str:
    return redact(os.environ.get("HF_ENDPOINT", "the hub").rstrip("/"))


def _page(source: HubSource) -> str:
    from huggingface_hub import constants

    return redact(f"{constants.ENDPOINT}/{'datasets/' if source.repo_type == 'dataset' else ''}{source.repo}")


def _first_line(error: BaseException) -> str:
    """The first line that an error says, without addresses' secrets and without the token."""
    from huggingface_hub import get_token

    lines = [line.strip() for line in redact(str(error)).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    token = get_token()
    return (text.replace(token, "***") if token else text)[:_SHOWN]


@contextmanager
def _explaining(source: HubSource) -> Iterator[None]:
    """Turns what the client raises into SourceErrors that say what to do; other errors pass."""
    from huggingface_hub import constants
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    try:
        with explaining_disk_errors(str(source), Path(constants.HF_HUB_CACHE)):
            yield
    except SourceError:
        raise
    except Exception as error:
        worded = _worded(source, error)
        if worded is None:
            raise
        raise worded from error


def _worded(source: HubSource, error: Exception) -> SourceError | None:
    """Words an error of the client; None for one that is not the client's."""
    from huggingface_hub import constants, errors, get_token

    page = _page(source)
    if isinstance(error, errors.GatedRepoError):
        state = (
            "HF_TOKEN is set, but its account has not been given access, or the token may not read gated repositories"
            if get_token()
            else "no token is set"
        )
        return SourceError(
            f"{source} is gated: its owners ask for agreement to their terms. Accept them on {page} with your account, "
            f"then set HF_TOKEN to a token of that account that can read ({state})."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return SourceError(
            f"{source.repo_type} {source.repo} has no revision {source.revision}: compare it with {page}/commits, or "
            f"set revision to '{PIN_ME}' and run `userturn pin --configfile FILE`."
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return SourceError(
            f"there is no {source.repo_type} {source.repo} at {page}, or it is private or gated: check repo and "
            "repo_type; for a private or gated one set HF_TOKEN to a token that can read it."
        )
    if isinstance(error, errors.LocalEntryNotFoundError | errors.IncompleteSnapshotError | errors.OfflineModeIsEnabled):
        why = (
            "HF_HUB_OFFLINE is set: unset it once to download, or copy the cache from a machine that has it"
            if constants.is_offline_mode()
            else f"and the hub cannot be reached ({_first_line(error.__cause__ or error)}): run again when it can"
        )
        return SourceError(f"{source} is not, or not wholly, in the cache {constants.HF_HUB_CACHE}; {why}.")
    if isinstance(error, errors.EntryNotFoundError):
        return SourceError(f"{source.repo_type} {source.repo} has no file {source.path!r} at this revision; see {page}")
    if isinstance(error, errors.HfHubHTTPError):
        return SourceError(f"the hub refused {source}: {_first_line(error)}")
    # The client lets through the transport errors of whichever HTTP library it uses.
    if isinstance(error, OSError) or type(error).__module__.startswith("httpx"):
        return SourceError(
            f"the download of {source} was interrupted ({_first_line(error)}); nothing half-written was kept, "
            "whole files stay in the cache. Run again when the connection is steady."
        )
    return None
