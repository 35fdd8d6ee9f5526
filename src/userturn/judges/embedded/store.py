"""Training examples and the fluency model as artefacts: numbers alone, no text of a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from userturn.artefacts import Row, read_json, read_jsonl, sha256_text, write_json, write_jsonl
from userturn.judges.embedded.classifiers import Data
from userturn.judges.embedded.examples import Example
from userturn.judges.embedded.fluency import Fluency


def rows(examples: Sequence[Example], names: Sequence[str], x: Iterable[Sequence[float]]) -> list[Row]:
    """One row an example: label, kind, group, digest of the text, features."""
    return [
        {
            "label": one.label,
            "kind": one.kind,
            "group": one.group,
            "text_sha256": sha256_text(one.turn.text.encode("utf-8", "replace").decode("utf-8")),
            "features": dict(zip(names, map(float, values), strict=True)),
        }
        for one, values in zip(examples, x, strict=True)
    ]


def data(found: Sequence[Row]) -> Data:
    """Rows as arrays."""
    names = tuple(found[0]["features"])
    return Data(
        names=names,
        x=np.array([[row["features"][name] for name in names] for row in found], dtype=np.float64),
        y=np.array([row["label"] for row in found]),
        groups=np.array([row["group"] for row in found]),
        kinds=np.array([row["kind"] for row in found]),
    )


def write_data(path: Path, found: Sequence[Row]) -> None:
    """Writes examples."""
    write_jsonl(path, found)


def read_data(path: Path) -> Data:
    """Reads examples."""
    return data(read_jsonl(path))


def write_fluency(path: Path, fluency: Fluency) -> None:
    """Writes a fluency model."""
    write_json(
        path,
        {
            "frequent": sorted(fluency.frequent),
            "grams": dict(fluency.grams),
            "documents": dict(fluency.documents),
            "n_documents": fluency.n_documents,
        },
    )


def read_fluency(path: Path) -> Fluency:
    """Reads a fluency model."""
    found = read_json(path)
    return Fluency(frozenset(found["frequent"]), found["grams"], found["documents"], int(found["n_documents"]))
