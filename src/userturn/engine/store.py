"""Finished cells, kept by the digest of everything that went into them.

A job writes a cell here as soon as it is finished, and its artefacts at the end. So a kill loses only the cell in
progress, a job that is run again generates only what is missing, and a grown grid only its new cells. An entry is
found by content alone: any change of prompt, seed, parameter, weights, version or generating code is another key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from userturn.artefacts import Row, canonical, jsonl_bytes, sha256_text, write_bytes


def cell_key(description: Mapping[str, Any]) -> str:
    """The key of a cell: the digest of its whole request."""
    return sha256_text(canonical(description))


class CellStore:
    """Cells on disk, one file each: a header with the digest of the rows, then the rows."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def _path(self, key: str) -> Path:
        return self._root / key[:2] / f"{key}.jsonl"

    def get(self, key: str) -> list[Row] | None:
        """The rows of a cell, or None where there is no intact entry: a damaged one is removed."""
        path = self._path(key)
        try:
            header_line, _, body = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        try:
            header = json.loads(header_line)
            intact = header["key"] == key and header["sha256"] == sha256_text(body.decode("utf-8"))
        except (ValueError, KeyError, TypeError):
            intact = False
        if not intact:
            path.unlink(missing_ok=True)
            return None
        return [json.loads(line) for line in body.decode("utf-8").split("\n") if line]

    def put(self, key: str, rows: Sequence[Row]) -> None:
        """Keeps the rows of a finished cell."""
        body = jsonl_bytes(rows)
        header = canonical({"key": key, "sha256": sha256_text(body.decode("utf-8"))}) + "\n"
        write_bytes(self._path(key), header.encode("utf-8") + body)
