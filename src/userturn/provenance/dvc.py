"""DVC: the program as this project uses it, its settings, and what a pointer says.

DVC tracks three folders with one pointer each, never file by file, and is called once, serially, after the workflow. It
runs in this process: a start of the program costs more than sealing thousands of files.
"""

from __future__ import annotations

import configparser
import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from userturn import layout
from userturn.artefacts import write_text
from userturn.provenance import ProvenanceError
from userturn.provenance.record import is_half_written

FOLDER = Path(".dvc")
CONFIG = FOLDER / "config"
LOCAL_CONFIG = FOLDER / "config.local"
#: What DVC needs in a checkout, besides the pointers.
SETTINGS = (CONFIG, FOLDER / ".gitignore", Path(".dvcignore"))

# Links into the cache would let a writer that appends change the sealed bytes.
_CONFIG = """\
[core]
    analytics = false
    check_update = false
    autostage = false
[cache]
    type = "reflink,copy"
"""
_GITIGNORE = "/config.local\n/tmp\n/cache\n"
_DVCIGNORE = "# what a killed job left half-written\n.*.part\n"
_SECRETS = frozenset(
    {
        "access_key_id", "account_key", "account_key_id", "client_secret", "connection_string", "custom_auth_header",
        "gdrive_client_secret", "gdrive_service_account_json_file_path", "oss_key_id", "oss_key_secret", "password",
        "sas_token", "secret_access_key", "session_token", "token",
    }
)  # fmt: skip


class DvcFailed(ProvenanceError):
    """DVC ended with an error; the message holds what it said."""


def pointer(folder: Path) -> Path:
    """The pointer of a tracked folder."""
    return folder.with_name(folder.name + ".dvc")


def prepare(root: Path) -> None:
    """Makes DVC's settings where there are none, and tells it when there is no git.

    The files are written here, and not by ``dvc init``, which would put them into git's index unasked.
    """
    for path, text in zip(SETTINGS, (_CONFIG, _GITIGNORE, _DVCIGNORE), strict=True):
        if not (root / path).is_file():
            write_text(root / path, text)
    if not any((folder / ".git").exists() for folder in (root.resolve(), *root.resolve().parents)):
        local = _read(root / LOCAL_CONFIG)
        if local.get("core", "no_scm", fallback="") != "true":
            kept = (root / LOCAL_CONFIG).read_text("utf-8") if (root / LOCAL_CONFIG).is_file() else ""
            if local.has_section("core"):
                raise ProvenanceError(f"{LOCAL_CONFIG}: without git, its section [core] needs the line no_scm = true")
            write_text(root / LOCAL_CONFIG, kept + "[core]\n    no_scm = true\n")


def secrets(root: Path) -> list[str]:
    """Credentials that stand in the settings to be committed, by their keys."""
    config = _read(root / CONFIG)
    found = []
    for section in config.sections():
        for key, value in config.items(section):
            if key in _SECRETS or urlsplit(value.strip("\"'")).password:
                found.append(f"[{section}] {key}")
    return found


def default_remote(root: Path) -> str | None:
    """The default remote's name, by the settings of the checkout or of the person."""
    with _repository(root) as repository:
        name: str | None = repository.config["core"].get("remote")
        return name


def cache_folder(root: Path) -> Path:
    """Where DVC keeps contents by md5: ``ab/cdef…``."""
    with _repository(root) as repository:
        return Path(repository.cache.local.path)


def add(root: Path) -> None:
    """Puts the tracked folders into the cache and writes their pointers.

    Raises:
        DvcFailed: it failed; pointers may be new or old.
    """
    with _repository(root) as repository:
        repository.add([str(root.resolve() / folder) for folder in layout.TRACKED])


def push(root: Path, remote: str | None) -> None:
    """Sends what the pointers name to a remote; what is there already is not sent again.

    Args:
        root: the study's folder.
        remote: the remote's name; DVC's default remote without it.

    Raises:
        DvcFailed: it failed.
    """
    with _repository(root) as repository:
        repository.push(_targets(root, layout.TRACKED), remote=remote)


def bring(
    root: Path, folders: Sequence[Path], remote: str | None, *, force: bool, replaced: Sequence[str] = ()
) -> None:
    """Brings folders to what their pointers name, from the cache and, for what it lacks, from a remote.

    Args:
        root: the study's folder.
        folders: of the tracked ones.
        remote: the remote's name; None takes the cache alone.
        force: overwrite files that are neither in the cache nor named by the pointer.
        replaced: files to be removed before theirs are put in place: DVC takes a file for unchanged whose size and time
            stamp are those that it remembers.

    Raises:
        DvcFailed: it failed.
    """
    with _repository(root) as repository:
        targets = _targets(root, folders)
        if remote:
            repository.fetch(targets, remote=remote)
        for path in replaced:
            (root / path).unlink(missing_ok=True)
        repository.checkout(targets, force=force)


def drop_damaged(root: Path) -> int:
    """Removes objects of the cache whose content is not what their name says, so that they are fetched anew.

    Returns:
        How many there were.
    """
    damaged = 0
    for file in cache_folder(root).glob("??/*"):
        if file.is_file() and file.parent.name + file.name.removesuffix(".dir") != _md5(file):
            file.chmod(0o644)
            file.unlink()
            damaged += 1
    return damaged


def _targets(root: Path, folders: Sequence[Path]) -> list[str]:
    return [str(root.resolve() / pointer(folder)) for folder in folders]


class _Said(logging.Handler):
    """What DVC's libraries log of their errors: the reasons that its exceptions leave out."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.texts.append(": ".join(text for text in (record.getMessage(), f"{error or ''}") if text))


@contextmanager
def _repository(root: Path) -> Iterator[Any]:
    """DVC's repository in a folder; its errors become `DvcFailed`."""
    if find_spec("dvc") is None:
        raise ProvenanceError("DVC is not installed beside this Python: use .envs/workflow/bin/userturn (`make setup`)")
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    from userturn.report.inert import visible_text

    said = _Said()
    loggers = [logging.getLogger(name) for name in ("dvc", "dvc_data", "dvc_objects")]
    for logger in loggers:
        logger.addHandler(said)
    # its index of known files goes with the checkout: the default is a folder that all people of a machine share
    own = {"core": {"site_cache_dir": str((root / layout.STATE / "dvc").resolve())}}
    try:
        with Repo(str(root.resolve()), config=own) as repository:
            repository.scm_context.quiet = True  # `userturn seal` says what to commit
            yield repository
    except Exception as error:  # remotes have errors of their own kinds: whatever it is, it is told
        name = "" if isinstance(error, DvcException) else f"{type(error).__name__}: "
        reasons = dict.fromkeys([f"{name}{error}", f"{error.__cause__ or ''}", *said.texts])
        raise DvcFailed("DVC failed: " + visible_text("; ".join(text for text in reasons if text))) from error
    finally:
        for logger in loggers:
            logger.removeHandler(said)


def _read(path: Path) -> configparser.ConfigParser:
    config = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        config.read(path, encoding="utf-8")
    except configparser.Error as error:
        raise ProvenanceError(f"{path}: cannot be read: {error}") from error
    return config


def read_pointer(root: Path, folder: Path) -> str:
    """The digest that a pointer names: ``<md5>.dir``.

    Raises:
        ProvenanceError: there is no such pointer, or it is not one.
    """
    file = root / pointer(folder)
    try:
        content: Any = yaml.safe_load(file.read_text("utf-8"))
        digest = content["outs"][0]["md5"]
    except FileNotFoundError:
        raise ProvenanceError(f"{pointer(folder)}: no such file: the study is not sealed (userturn seal)") from None
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, IndexError, TypeError) as error:
        raise ProvenanceError(f"{pointer(folder)}: not a pointer of DVC: {error}") from error
    if not isinstance(digest, str):
        raise ProvenanceError(f"{pointer(folder)}: not a pointer of DVC: its md5 is {digest!r}")
    return digest


def folder_digest(root: Path, folder: Path) -> str:
    """The digest that DVC gives a folder: over the sorted list of its files and their md5."""
    listing = [{"md5": md5, "relpath": name} for name, md5 in sorted(_md5_of_files(root / folder))]
    return hashlib.md5(json.dumps(listing, sort_keys=True).encode(), usedforsecurity=False).hexdigest() + ".dir"


def _md5_of_files(folder: Path) -> Iterator[tuple[str, str]]:
    for file in folder.rglob("*"):
        # as .dvcignore says
        if file.is_file() and not is_half_written(file.name):
            yield file.relative_to(folder).as_posix(), _md5(file)


def _md5(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
