"""Checkpoints of a training: kept by the digest of everything that shapes its result, and taken up after a kill."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from userturn import layout
from userturn.artefacts import canonical, sha256_text

#: Written by the trainer last: a checkpoint without it was not finished.
_LAST = "trainer_state.json"
_NAME = re.compile(r"checkpoint-(\d+)")
_VERSIONED = ("torch", "transformers", "trl", "peft", "accelerate", "tokenizers", "safetensors")


def versions() -> dict[str, str]:
    """Versions of the packages that could change a weight."""
    return {name: metadata.version(name) for name in _VERSIONED}


def key(**parts: Any) -> str:
    """The digest of everything that shapes a training's result."""
    return sha256_text(canonical(parts))


def folder(digest: str) -> Path:
    """Where the checkpoints of a training lie."""
    return layout.checkpoints(digest)


def newest(where: Path) -> Path | None:
    """The newest finished checkpoint; one that a kill left half-written is removed."""
    found = sorted(
        (int(match.group(1)), path) for path in where.glob("checkpoint-*") if (match := _NAME.fullmatch(path.name))
    )
    for _, path in reversed(found):
        if _finished(path):
            return path
        shutil.rmtree(path)
    return None


def _finished(path: Path) -> bool:
    try:
        state: Mapping[str, Any] = json.loads((path / _LAST).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return state.get("global_step") == int(path.name.removeprefix("checkpoint-"))


def remove(where: Path) -> None:
    """Removes the checkpoints of a training whose model folder is written."""
    shutil.rmtree(where, ignore_errors=True)
