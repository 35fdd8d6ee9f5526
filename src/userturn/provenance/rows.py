"""The rows behind a number, and one item's whole path to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from userturn.artefacts import ArtefactError, Row, iter_jsonl
from userturn.provenance.lineage import Lineage

#: Folders below which an artefact's rows belong to items, nearest to the number first.
_ORDER = ("judgements", "scores", "likelihood", "gold", "user_turns", "contexts", "assistant_turns", "datasets")


def behind(root: Path, row: Row, lineage: Lineage, item: str | None) -> Iterator[tuple[str, Row]]:
    """The rows that a number is computed from, or every row of one item from the number to its source.

    Args:
        root: the study's folder.
        row: the number.
        lineage: the study's manifests.
        item: only this item, and with all that led to it.

    Yields:
        Path of the artefact and the row.

    Raises:
        ArtefactError: an artefact is missing or damaged.
    """
    paths = list(row["sources"])
    if item is not None:
        paths = [link.path for link in lineage.chain(paths)]
    for path in sorted(filter(_has_items, paths), key=_rank):
        for found in iter_jsonl(root / path):
            if item is None or found.get("item", found.get("id")) == item:
                yield path, found


def items_of(root: Path, row: Row) -> list[str]:
    """The items of a number's sources, sorted."""
    found: set[str] = set()
    for path in filter(_has_items, row["sources"]):
        try:
            found |= {str(one.get("item", one.get("id"))) for one in iter_jsonl(root / path)}
        except ArtefactError:
            continue
    return sorted(found)


def _has_items(path: str) -> bool:
    parts = Path(path).parts
    return path.endswith(".jsonl") and len(parts) > 2 and parts[1] in _ORDER


def _rank(path: str) -> tuple[int, str]:
    return _ORDER.index(Path(path).parts[1]), path


def without_token_ids(row: Mapping[str, Any]) -> Row:
    """A row for people: token ids are in the artefact, and fill a screen."""
    return {key: value for key, value in row.items() if key != "prompt_token_ids"}
