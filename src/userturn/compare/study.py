"""A finished study as far as a comparison needs it: its numbers, the stable part of its manifests, its items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from userturn import layout
from userturn.artefacts import ArtefactError, Row, iter_jsonl, read_json, read_jsonl
from userturn.files import sha256_file

#: What a row of ``numbers.jsonl`` must have to be compared.
FIELDS = frozenset({
    "id", "quantity", "labels", "unit", "decimals", "value", "low", "high", "level", "method", "n", "n_items", "k",
    "n_unscored",
})  # fmt: skip


class NoStudyError(ValueError):
    """There is nothing to compare at a path: says what was looked for, and what can be given."""


@dataclass(frozen=True)
class Study:
    """One side of a comparison.

    Attributes:
        path: the file of its numbers.
        numbers: its rows.
        manifests: what each job's manifest says without ``run``, by the job's name (``stage/shard``); empty where the
            numbers lie alone.
        items: the ids of each dataset's items, where they are there.
    """

    path: Path
    numbers: list[Row]
    manifests: Mapping[str, Row]
    items: Mapping[str, frozenset[str]]

    @property
    def name(self) -> str | None:
        """The study's name, where a manifest says it."""
        name = self.manifests.get("report", {}).get("spec", {}).get("name")
        return name if isinstance(name, str) else None

    @property
    def simulated(self) -> bool:
        """Whether texts come from the engine that only simulates."""
        engines = [manifest.get("facts", {}).get("engine") for manifest in self.manifests.values()]
        return any("simulated" in (one.get("name"), one.get("config", {}).get("name")) for one in engines if one)

    @property
    def stale(self) -> bool:
        """Whether the manifests speak of other numbers than these."""
        outputs = self.manifests.get("analyse", {}).get("outputs", [])
        written = [one["sha256"] for one in outputs if one["path"] == layout.NUMBERS.as_posix()]
        return bool(written) and written != [sha256_file(self.path)]


def open_study(path: Path) -> Study:
    """Reads a study.

    Args:
        path: its folder, its ``results`` folder, the folder of its sealed record beside them, or a file of numbers.

    Raises:
        NoStudyError: nothing of the kind is there, or a row is no number.
        ArtefactError: a file cannot be read as what its name says.
    """
    numbers = next((one for one in _candidates(path) if one.is_file()), None)
    if numbers is None:
        if not path.exists():
            raise NoStudyError(f"{path}: no such file or folder")
        raise NoStudyError(
            f"{path}: no {layout.NUMBERS} there; give a study's folder or a numbers.jsonl (a study of which only the "
            "sealed record is there comes back with userturn restore)"
        )
    rows = read_jsonl(numbers)
    for line, row in enumerate(rows, 1):
        missing = sorted(FIELDS - row.keys())
        if missing:
            raise NoStudyError(f"{numbers}:{line}: no number of a study: {', '.join(missing)} missing")
    root = numbers.parent.parent if numbers.parent.name == layout.RESULTS.name else None
    return Study(numbers, rows, _manifests(numbers.parent / "manifests"), dict(_items(root)) if root else {})


def _candidates(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from (path / layout.NUMBERS, path / layout.NUMBERS.name)
        if (path / "record.jsonl").is_file():
            yield path.resolve().parent / layout.NUMBERS
    else:
        yield path


def _manifests(folder: Path) -> dict[str, Row]:
    found = {}
    for path in sorted(folder.rglob("*.json")):
        manifest = read_json(path)
        if not isinstance(manifest, dict):
            raise ArtefactError(f"{path}: a manifest is a JSON object, found {type(manifest).__name__}")
        manifest.pop("run", None)
        found[path.relative_to(folder).with_suffix("").as_posix()] = manifest
    return found


def _items(root: Path) -> Iterator[tuple[str, frozenset[str]]]:
    for path in sorted((root / layout.dataset("x")).parent.glob("*.jsonl")):
        yield path.stem, frozenset(str(row.get("item")) for row in iter_jsonl(path))
