"""What a sealed study holds: its record (one row a file), a description of the study, Snakemake's records.

Three files in ``sealed/``. Nothing in them depends on when or where the study was sealed:

- ``record.jsonl``: one canonical row for every file of ``data/`` and ``results/`` and every config file: path, bytes,
  sha256; manifests also have ``stable_sha256``, the digest of what is the same in every rebuild.
- ``study.json``: name, the resolved config, config files, locks and code with their digests.
- ``snakemake_metadata.tar``: see `userturn.provenance.jobs`.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from userturn import __version__, layout, stages
from userturn.artefacts import ArtefactError, Row, canonical, iter_jsonl, jsonl_bytes, read_json, sha256_text
from userturn.code import stage_digest
from userturn.files import sha256_file
from userturn.provenance import ProvenanceError

if TYPE_CHECKING:
    from userturn.config.study import Study

RECORD = layout.SEALED / "record.jsonl"
DESCRIPTION = layout.SEALED / "study.json"
METADATA = layout.SEALED / "snakemake_metadata.tar"
#: What a seal replaces, until it is complete.
ASIDE = layout.STATE / "sealing"


@dataclass(frozen=True, order=True)
class Entry:
    """One file of a study."""

    path: str
    """Relative to the study's folder, with forward slashes."""
    bytes: int
    sha256: str
    stable_sha256: str | None = None
    """Manifests only: digest without what changes from run to run."""

    def row(self) -> Row:
        """The entry as it stands in the record."""
        return {key: value for key, value in asdict(self).items() if value is not None}


Record = Mapping[str, Entry]


def is_manifest(path: str) -> bool:
    """Whether a file is the sidecar manifest of a job."""
    return layout.MANIFESTS in Path(path).parents


def stable_part(manifest: Row) -> Row:
    """What of a manifest is the same in every rebuild: all but ``run``, and digests of other manifests that it read."""

    def stable(files: list[Row]) -> list[Row]:
        return [{"path": file["path"]} if is_manifest(file["path"]) else file for file in files]

    kept = {key: value for key, value in manifest.items() if key != "run"}
    return kept | {key: stable(kept[key]) for key in ("inputs", "outputs") if key in kept}


def entry(root: Path, path: str) -> Entry:
    """Reads a file and gives its entry.

    Raises:
        OSError: the file cannot be read.
    """
    file = root / path
    stable = None
    if is_manifest(path):
        try:
            stable = sha256_text(canonical(stable_part(read_json(file))))
        except (ArtefactError, AttributeError, KeyError, TypeError, ValueError):
            stable = None  # no manifest any more; its sha256 says so
    return Entry(path, file.stat().st_size, sha256_file(file), stable)


def is_artefact(path: str) -> bool:
    """Whether a path lies in ``data/`` or ``results/``; what else a record names are config files."""
    return Path(path).parts[0] in {layout.DATA.name, layout.RESULTS.name}


def artefacts(root: Path) -> list[str]:
    """The files under ``data/`` and ``results/``, sorted; what a killed job left half-written does not count.

    Raises:
        ProvenanceError: a symbolic link, a name that is not UTF-8: neither comes back from a restore as it was.
    """
    files, links = files_and_links(root)
    for link in links:
        raise ProvenanceError(f"{link} is a symbolic link: DVC tracks files, not links; copy the file here")
    return files


def files_and_links(root: Path) -> tuple[list[str], list[str]]:
    """What `artefacts` gives, and beside it the symbolic links, which are none; both sorted.

    Raises:
        ProvenanceError: ``data`` or ``results`` is itself a link; a name that is not UTF-8.
    """
    found, links = [], []
    for top in (layout.DATA, layout.RESULTS):
        if (root / top).is_symlink():
            raise ProvenanceError(f"{top} is a symbolic link: DVC tracks folders, not links; move the folder here")
        for folder, folders, files in os.walk(root / top):
            inside = Path(folder).relative_to(root).as_posix()
            # os.path is twice as fast, of thousands
            linked = {name for name in folders + files if os.path.islink(os.path.join(folder, name))}  # noqa: PTH114, PTH118
            links += [f"{inside}/{name}" for name in linked]
            found += [f"{inside}/{name}" for name in files if name not in linked and not is_half_written(name)]
    for path in found:
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            raise ProvenanceError(f"{path!r}: the name of the file is not UTF-8: rename or remove it") from None
    return sorted(found), sorted(links)


def claims(root: Path, paths: Iterable[str]) -> dict[str, tuple[str, str]]:
    """What manifests name as outputs, by path: the manifest and the digest that it gives.

    A damaged manifest accounts for nothing.
    """
    found = {}
    for path in paths:
        if is_manifest(path):
            try:
                for output in read_json(root / path)["outputs"]:
                    found[str(output["path"])] = (path, str(output["sha256"]))
            except (ArtefactError, KeyError, TypeError):
                continue
    return found


def unaccounted(entries: Mapping[str, Entry], claimed: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Files of a study that no job wrote as they are: sentences."""
    for path, one in entries.items():
        if not is_artefact(path) or is_manifest(path):
            continue
        if Path(path).name == ".snakemake_timestamp":
            continue  # Snakemake's own, in folders that are outputs
        manifest, digest = claimed.get(path, (None, ""))
        if manifest is None:
            yield f"{path}: no manifest names it"
        elif digest != one.sha256:
            yield f"{path}: {manifest} says that its job wrote another content"


def is_half_written(name: str) -> bool:
    """Whether a name is that of a file that a killed job left; see `userturn.files.atomic_file`."""
    return name.startswith(".") and name.endswith(".part")


def inside(root: Path, files: Iterable[Path]) -> list[str]:
    """Those of the files that lie in the study's folder, relative to it."""
    top = root.resolve()
    resolved = [(top / file).resolve() for file in files]
    return [file.relative_to(top).as_posix() for file in resolved if file.is_relative_to(top)]


def describe(root: Path, study: Study, config_files: Sequence[Path]) -> Row:
    """The content of ``study.json``.

    Args:
        root: the study's folder.
        study: the resolved study.
        config_files: the files it came from; of those outside the folder only the name is kept.
    """
    within = {(root / path).resolve(): path for path in inside(root, config_files)}
    named = [(within.get((root / file).resolve(), file.name), root / file) for file in config_files]
    return {
        "study": study.name,
        "config": study.model_dump(mode="json"),
        "config_files": [{"path": name, "sha256": sha256_file(file)} for name, file in named],
        "locks": lock_digests(root),
        "code": code_digests(),
        "userturn": __version__,
    }


def lock_digests(root: Path) -> dict[str, str]:
    """The locks of a checkout, each with its sha256."""
    return {file.name: sha256_file(file) for file in sorted((root / "envs").glob("*.lock"))}


def code_digests() -> dict[str, str]:
    """Every stage with the digest of its code."""
    return {name: stage_digest(name) for _, name, _ in pkgutil.iter_modules(stages.__path__)}


def record_bytes(entries: Iterable[Entry]) -> bytes:
    """The content of ``record.jsonl``."""
    return jsonl_bytes(one.row() for one in sorted(entries))


def read_record(path: Path) -> dict[str, Entry]:
    """Reads ``record.jsonl``: entries by path, sorted.

    Raises:
        ProvenanceError: the file is missing, or is no record.
    """
    found: dict[str, Entry] = {}
    try:
        for number, row in enumerate(iter_jsonl(path), start=1):
            one = _checked(row, f"{path}:{number}")
            found[one.path] = one
    except ArtefactError as error:
        raise ProvenanceError(f"{error}") from error
    return dict(sorted(found.items()))


def _checked(row: Row, where: str) -> Entry:
    expected: dict[str, type] = {"path": str, "bytes": int, "sha256": str}
    if set(row) - {"stable_sha256"} != set(expected) or any(
        type(row[key]) is not kind for key, kind in expected.items()
    ):
        raise ProvenanceError(f"{where}: not a row of a sealed record (expected path, bytes and sha256)")
    path = Path(row["path"])
    if path.is_absolute() or ".." in path.parts:
        raise ProvenanceError(f"{where}: {row['path']!r} leads out of the study's folder")
    return Entry(**row)


def read_description(root: Path) -> Row:
    """Reads ``study.json`` of a study's folder.

    Raises:
        ProvenanceError: it is missing, or is no JSON.
    """
    try:
        found: Row = read_json(root / DESCRIPTION)
    except ArtefactError as error:
        raise ProvenanceError(f"{error}") from error
    return found


def drift(root: Path, description: Mapping[str, Any]) -> Iterator[str]:
    """What of code and locks is not what the study was sealed with: sentences that name what Snakemake will see."""
    code = code_digests()
    changed = [name for name, digest in description.get("code", {}).items() if code.get(name) != digest]
    if changed:
        yield f"the code of {', '.join(sorted(changed))} is not the code that the study was sealed with"
    locks = lock_digests(root)
    changed = [name for name, digest in description.get("locks", {}).items() if locks.get(name) != digest]
    if changed:
        yield f"envs/ has other locks than the study was sealed with: {', '.join(sorted(changed))}"
