"""The page's data in compressed pieces: inside the page where they fit, in files beside it where they do not.

A page opened from disk may not fetch, so a piece that is not in the page is a script that hands over one text. What
is in it is base64 of gzip of JSON: nothing in it is ever run or parsed as markup.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

#: The page's function that a file calls with its name and its data; a name is all that the page will load.
FUNCTION = "userturnChunk"
NAME_LENGTH = 20


def packed(value: Any) -> bytes:
    """JSON, compressed; the same value gives the same bytes (no time stamp, sorted keys)."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return gzip.compress(text.encode("ascii"), compresslevel=6, mtime=0)


def unpacked(data: str) -> Any:
    """The value of a piece as it stands in a page or a file."""
    return json.loads(gzip.decompress(base64.b64decode(data)))


class Chunks:
    """Packed values under the digest of their content, in a folder, so that no more than one is held in memory."""

    def __init__(self, folder: Path) -> None:
        """Starts empty.

        Args:
            folder: where the files go; it exists.
        """
        self.folder = folder
        self.sizes: dict[str, int] = {}
        self.beside: list[str] = []

    def add(self, value: Any) -> str:
        """Keeps a value and returns its name."""
        data = packed(value)
        name = hashlib.sha256(data).hexdigest()[:NAME_LENGTH]
        if name not in self.sizes:
            text = base64.b64encode(data).decode("ascii")
            self.sizes[name] = len(text)
            self.path(name).write_bytes(f'{FUNCTION}("{name}","{text}")\n'.encode("ascii"))
        return name

    def path(self, name: str) -> Path:
        """The file of a piece."""
        return self.folder / f"{name}.js"

    @property
    def total(self) -> int:
        """Characters that all pieces would take in the page."""
        return sum(self.sizes.values())

    def settle(self, limit: int) -> dict[str, str] | None:
        """Decides where the pieces live, once all are known.

        Args:
            limit: characters that the page may take of them.

        Returns:
            All pieces by name where they fit into the page; None where they stay in files (``beside``).
        """
        if self.total > limit:
            self.beside = sorted(self.sizes)
            return None
        start = len(FUNCTION) + NAME_LENGTH + len('("","')
        return {name: self.path(name).read_text("ascii")[start : -len('")\n')] for name in sorted(self.sizes)}
