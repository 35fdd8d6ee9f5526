"""Revisions of hub sources that a config leaves open, found in its text and filled in."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from userturn.artefacts import write_text
from userturn.sources.config import PIN_ME

_TIMEOUT = 20.0
_COMMIT = re.compile(r"[0-9a-f]{40}")


class PinningError(Exception):
    """A revision cannot be resolved; nothing was written. The message says which and why."""


@dataclass(frozen=True)
class Pin:
    """One revision of a config file.

    Attributes:
        key: where it stands, such as ``models.a.source.revision``.
        repo: ``owner/name``.
        repo_type: ``model`` or ``dataset``.
        start: offset of the value in the file, in characters.
        end: offset after the value.
        line: line of the value, from 1.
        revision: the commit, 40 hexadecimal digits, or `PIN_ME`.
    """

    key: str
    repo: str
    repo_type: str
    start: int
    end: int
    line: int
    revision: str = PIN_ME


Resolve = Callable[[str, str], str]
"""From repository and its type to a commit."""


def unpinned(text: str) -> list[Pin]:
    """The open revisions of a config's text, in the order in which they stand.

    Raises:
        yaml.YAMLError: the text is no YAML.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    found = {pin.start: pin for pin in _walk(root, ())} if root is not None else {}
    return [found[start] for start in sorted(found)]


def _walk(node: yaml.Node, keys: tuple[str, ...]) -> Iterator[Pin]:
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield from _walk(child, (*keys, str(index)))
    if not isinstance(node, yaml.MappingNode):
        return
    children = {key.value: value for key, value in node.value}
    scalars = {key: child.value for key, child in children.items() if isinstance(child, yaml.ScalarNode)}
    if scalars.get("kind") == "hub" and scalars.get("revision") == PIN_ME and {"repo", "repo_type"} <= set(scalars):
        mark = children["revision"]
        yield Pin(
            key=".".join((*keys, "revision")),
            repo=scalars["repo"],
            repo_type=scalars["repo_type"],
            start=mark.start_mark.index,
            end=mark.end_mark.index,
            line=mark.start_mark.line + 1,
        )
    for key, child in children.items():
        yield from _walk(child, (*keys, str(key)))


def pin(path: Path, resolve: Resolve | None = None) -> list[Pin]:
    """Fills in the open revisions of a config file: all of them, or nothing is written.

    Args:
        path: the config file.
        resolve: asks for a repository's commit; the hub is asked where none is given.

    Returns:
        What was pinned.

    Raises:
        PinningError: the file cannot be read, or a revision cannot be resolved.
    """
    try:
        text = path.read_text("utf-8")
        pins = unpinned(text)
    except FileNotFoundError as error:
        raise PinningError(f"{path}: no such config file") from error
    except yaml.YAMLError as error:
        raise PinningError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    ask = resolve or hub_commit
    commits = {(one.repo, one.repo_type): "" for one in pins}
    for repo, repo_type in commits:
        commits[repo, repo_type] = ask(repo, repo_type)
    pinned = [replace(one, revision=commits[one.repo, one.repo_type]) for one in pins]
    for one in reversed(pinned):
        # a commit of decimal digits alone would be read back as a number
        quoted = f'"{one.revision}"' if one.revision.isdecimal() else one.revision
        text = text[: one.start] + quoted + text[one.end :]
    if pinned:
        write_text(path, text)
    return pinned


def hub_commit(repo: str, repo_type: str) -> str:
    """The commit of a repository's default branch, asked of the hub that HF_ENDPOINT names.

    Raises:
        PinningError: the hub cannot be reached, or does not tell.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None)
    what = f"{repo} ({repo_type})"
    try:
        commit = api.repo_info(repo, repo_type=repo_type, timeout=_TIMEOUT).sha
    except OfflineModeIsEnabled as error:
        raise PinningError(f"{what}: cannot be pinned offline: HF_HUB_OFFLINE is set") from error
    except GatedRepoError as error:
        raise PinningError(
            f"{what} is gated: accept its terms on {api.endpoint}, then set HF_TOKEN to a token of that account"
        ) from error
    except RepositoryNotFoundError as error:
        raise PinningError(
            f"{what}: {api.endpoint} has no such repository, or it is private or gated (then set HF_TOKEN)"
        ) from error
    except (HFValidationError, HfHubHTTPError, ValueError) as error:
        raise PinningError(f"{what}: {' '.join(str(error).split())}") from error
    except Exception as error:
        # the client's transport errors are those of whichever HTTP library it uses
        if not isinstance(error, OSError) and "httpx" not in type(error).__module__.partition(".")[0]:
            raise
        raise PinningError(
            f"{what}: the hub at {api.endpoint} cannot be reached ({' '.join(str(error).split())}); nothing was "
            "pinned. Run this where there is a network, set HF_ENDPOINT to a mirror, or write the commit by hand"
        ) from error
    if commit is None or not _COMMIT.fullmatch(commit):
        raise PinningError(f"{what}: {api.endpoint} gave {commit!r} for its revision, expected 40 hexadecimal digits")
    return commit
