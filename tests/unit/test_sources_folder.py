"""Local model folders as sources: pinned by one digest that the refusal tells, copied without code and checkpoints."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from pydantic import ValidationError

from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.load import ConfigError, check_config
from userturn.job import Job
from userturn.models import ModelError, build_from_folder, describe
from userturn.sources import (
    FileSource,
    FolderSource,
    SourceCache,
    SourceError,
    check_cached,
    fetch,
    origin,
    read_member,
)
from userturn.stages import model as stage

FILES = {
    "config.json": b"{}",
    "tokenizer_config.json": b"{}",
    "tokenizer.json": b"{}",
    "model.safetensors": b"w" * (17 << 20),
}
LEFT = {
    "README.md": b"a card",
    "modeling_evil.py": b"raise SystemExit",
    "training_args.bin": b"pickle",
    "optimizer.pt": b"pickle",
    "checkpoint-5/config.json": b"{}",
    ".cache/x.json": b"{}",
    "model.json": b"{}",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, data in (FILES | LEFT).items():
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "mine"


def pinned(folder: Path) -> str:
    """What `sha256sum FILES | sha256sum` prints."""
    lines = [f"{hashlib.sha256(FILES[name]).hexdigest()}  {name}\n" for name in sorted(FILES)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def source(folder: Path, **settings: str) -> FolderSource:
    return FolderSource(kind="folder", path=str(folder), **settings)


def test_an_unpinned_folder_is_refused_with_the_line_to_paste(folder: Path) -> None:
    study = DEFAULT_STUDY | {"models": {"mine": {"source": {"kind": "folder", "path": str(folder)}}}}
    with pytest.raises(ConfigError, match=r"models.mine.source: the model folder .* is not pinned") as refused:
        check_config(study, [])
    line = str(refused.value).splitlines()[-1].strip()
    assert line == f"sha256: {pinned(folder)}"
    checked = source(folder, sha256=line.removeprefix("sha256: "))
    check_cached(checked)
    assert fetch(checked, cache=SourceCache(folder)) == folder


def test_a_folder_becomes_a_model_of_data_alone(folder: Path, tmp_path: Path) -> None:
    destination = tmp_path / "data" / "m"
    made = source(folder, sha256=pinned(folder))
    job = Job("model")
    stage.run(stage.Spec(folder=destination, source=made, dtype="float32"), job)
    described = job.facts["description"]
    assert sorted(path.name for path in destination.iterdir()) == sorted([*FILES, "model.json"])
    assert described["weights_sha256"] == pinned(folder) == describe(destination)["weights_sha256"]
    assert described["origin"] == {"kind": "folder", "path": "mine", "sha256": pinned(folder)}
    # large files are on disk once
    assert (destination / "model.safetensors").stat().st_ino == (folder / "model.safetensors").stat().st_ino
    assert (destination / "config.json").stat().st_ino != (folder / "config.json").stat().st_ino


def test_a_served_model_takes_the_tokenizer_alone(folder: Path, tmp_path: Path) -> None:
    job = Job("model")
    spec = stage.Spec(
        folder=tmp_path / "m", source=source(folder, sha256=pinned(folder)), dtype="float32", weights=False
    )
    stage.run(spec, job)
    assert sorted(job.facts["description"]["files"]) == ["config.json", "tokenizer.json", "tokenizer_config.json"]
    (folder / "tokenizer.json").write_bytes(b"{ }")
    with pytest.raises(SourceError, match="is not the pinned one"):
        stage.run(spec, job)


@pytest.mark.parametrize("name", sorted(FILES))
def test_one_changed_byte_is_refused_and_both_digests_are_told(folder: Path, tmp_path: Path, name: str) -> None:
    made = source(folder, sha256=pinned(folder))
    with (folder / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(SourceError, match=rf"expected sha256 {pinned(folder)}\n  got      sha256 [0-9a-f]{{64}}"):
        build_from_folder(made, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_what_is_left_out_may_change(folder: Path, tmp_path: Path) -> None:
    for name in LEFT:
        (folder / name).write_bytes(b"other")
    (folder / "tokenizer.link").symlink_to("tokenizer.json")
    assert build_from_folder(source(folder, sha256=pinned(folder)), tmp_path / "m")["weights_sha256"] == pinned(folder)


def test_a_folder_of_links_is_read_through_them(folder: Path, tmp_path: Path) -> None:
    linked = tmp_path / "snapshot"
    linked.mkdir()
    for name in FILES:
        (linked / name).symlink_to(folder / name)
    made = build_from_folder(source(linked, sha256=pinned(folder)), tmp_path / "m")
    assert made["weights_sha256"] == pinned(folder)
    assert not any(path.is_symlink() for path in (tmp_path / "m").iterdir())


def test_what_is_no_model_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"does not exist \(looked at .*Near names there: mine"):
        check_cached(source(tmp_path / "mime"))
    with pytest.raises(SourceError, match="is a file, not a folder"):
        check_cached(source(folder / "config.json"))
    with pytest.raises(ModelError, match="where the study keeps its own copy"):
        build_from_folder(source(folder, sha256=pinned(folder)), folder)
    with pytest.raises(SourceError, match="is a model folder: one file is needed here"):
        read_member(source(folder, sha256=pinned(folder)), SourceCache(tmp_path))
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(
        SourceError, match=r"no model folder as transformers writes it: it has no tokenizer_config\.json"
    ):
        check_cached(source(folder))


def test_pickled_weights_are_never_read(folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pickled weights such as pytorch_model\.bin are never read"):
        build_from_folder(source(folder, sha256="0" * 64), tmp_path / "m")


def test_items_do_not_come_from_a_model_folder(folder: Path) -> None:
    dataset = {"source": {"kind": "folder", "path": str(folder)}, "reader": "own"}
    with pytest.raises(ConfigError, match=r"datasets: d: a source of kind 'folder' is a model"):
        check_config(DEFAULT_STUDY | {"datasets": {"d": dataset}}, [])


def test_digests_and_origins_are_plain() -> None:
    with pytest.raises(ValidationError, match="leave it out, and the refusal says which"):
        FolderSource(kind="folder", path="x", sha256="A" * 64)
    assert origin(FolderSource(kind="folder", path="runs/mine", sha256="0" * 64))["path"] == "runs/mine"
    assert origin(FileSource(kind="file", path="/somewhere/else/a", sha256="0" * 64))["path"] == "a"
