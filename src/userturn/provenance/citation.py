"""What `CITATION.cff` says of a checkout: who made it, under which licence, where it is kept.

The format: Citation File Format 1.2.0 (https://doi.org/10.5281/zenodo.5171937).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from userturn.config.load import ConfigError, read_yaml
from userturn.provenance import ProvenanceError

CITATION = "CITATION.cff"


@dataclass(frozen=True)
class Author:
    """A person, or an organisation."""

    name: str
    person: bool
    orcid: str | None
    website: str | None


@dataclass(frozen=True)
class Citation:
    """The parts that an export tells."""

    licence: str | None = None
    """An identifier of SPDX."""
    url: str | None = None
    authors: tuple[Author, ...] = ()


def read_citation(root: Path) -> Citation:
    """Reads the file of a checkout; where there is none, nothing is known.

    Raises:
        ProvenanceError: it is no YAML, or not as the format has it.
    """
    file = root / CITATION
    if not file.is_file():
        return Citation()
    try:
        found = read_yaml(file)
    except ConfigError as error:
        raise ProvenanceError(f"{error}") from error
    authors = found.get("authors", [])
    if not isinstance(authors, list) or not all(isinstance(one, Mapping) for one in authors):
        raise ProvenanceError(f"{file}: authors: expected a list of entries, each with a name")
    return Citation(
        licence=_text(found.get("license")),
        url=_text(found.get("repository-code")) or _text(found.get("url")),
        authors=tuple(_author(one, file) for one in authors),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _author(entry: Mapping[str, Any], file: Path) -> Author:
    parts = [_text(entry.get(key)) for key in ("given-names", "name-particle", "family-names", "name-suffix")]
    person = " ".join(part for part in parts if part)
    name = person or _text(entry.get("name")) or _text(entry.get("alias"))
    if name is None:
        raise ProvenanceError(f"{file}: authors: an entry has no name (given-names and family-names, name, or alias)")
    return Author(name, bool(person), _text(entry.get("orcid")), _text(entry.get("website")))
