"""Sealing and restoring a made-up study with the real DVC."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from sealed_fixture import CELL, CONFIG, TURNS_MANIFEST, WEIGHTS, contents, job, make_study
from userturn import cli, layout
from userturn.artefacts import read_json, read_jsonl, write_json
from userturn.provenance import ProvenanceError, dvc, jobs
from userturn.provenance import seal as sealing
from userturn.provenance.record import METADATA, RECORD, read_record
from userturn.provenance.restore import WouldOverwrite, restore
from userturn.provenance.seal import POINTERS, push, seal
from userturn.provenance.verify import verify
from userturn.runlock import RunLock


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed study with a remote in another folder, pushed; not to be changed."""
    root = tmp_path_factory.mktemp("made") / "study"
    study = make_study(root)
    (root / ".gitignore").write_text("/data/\n/results/\n/sealed/\n/.userturn/\n/.snakemake/\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    sealed = seal(root, study, [CONFIG])
    assert sealed.first
    assert not sealed.unchanged
    assert sealed.hashed == sealed.files == len(read_record(root / RECORD))
    with (root / dvc.CONFIG).open("a") as stream:
        stream.write(f"['remote \"here\"']\n    url = {root.parent / 'remote'}\n")
    push(root, "here")
    return root


@pytest.fixture
def study_folder(made: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    shutil.copytree(made, folder)
    return folder


def clone(made: Path, folder: Path, *, git: bool) -> Path:
    """What git would bring: no data, no results, no cache."""
    folder.mkdir()
    for name in ("config", "envs", ".dvc/config", ".dvc/.gitignore", ".dvcignore", ".gitignore", *map(str, POINTERS)):
        (folder / name).parent.mkdir(exist_ok=True)
        (shutil.copytree if (made / name).is_dir() else shutil.copy)(made / name, folder / name)
    if git:
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def resealed(root: Path, **changes: str) -> sealing.Sealed:
    from userturn.config.load import load_study

    return seal(root, load_study([root / CONFIG]), [CONFIG])


def test_the_record_names_every_file_once(made: Path) -> None:
    rows = read_jsonl(made / RECORD)
    assert [row["path"] for row in rows] == sorted(row["path"] for row in rows)
    files = {f.relative_to(made).as_posix() for t in ("data", "results") for f in (made / t).rglob("*") if f.is_file()}
    assert {row["path"] for row in rows} == files | {CONFIG.as_posix()}
    assert {row["path"] for row in rows if "stable_sha256" in row} == {f for f in files if "/manifests/" in f}
    said = read_json(made / "sealed/study.json")
    assert said["study"] == "made-up"
    assert said["config"]["seed"] == 7
    assert set(said["locks"]) == {"workflow.lock"}
    assert re.fullmatch("[0-9a-f]{16}", said["code"]["report"])
    assert str(made) not in (made / "sealed/study.json").read_text() + (made / RECORD).read_text()


def test_sealing_leaves_git_and_its_index_alone(made: Path) -> None:
    said = subprocess.run(["git", "status", "--porcelain"], cwd=made, capture_output=True, text=True, check=True).stdout
    assert {line[:2] for line in said.splitlines()} == {"??"}
    assert (made / ".gitignore").read_text() == "/data/\n/results/\n/sealed/\n/.userturn/\n/.snakemake/\n"
    assert {line[3:] for line in said.splitlines()} == {
        ".dvc/", ".dvcignore", ".gitignore", "config/", "envs/", *map(str, POINTERS)
    }  # fmt: skip


def test_an_unchanged_study_is_not_sealed_again(made: Path) -> None:
    before = contents(made)
    started = time.monotonic()
    again = resealed(made)
    assert again.unchanged
    assert (again.added, again.changed, again.removed) == (0, 0, 0)
    assert contents(made) == before
    assert time.monotonic() - started < 2


def test_a_sealed_folder_has_the_digest_that_dvc_gives_it(made: Path) -> None:
    for folder in layout.TRACKED:
        assert dvc.read_pointer(made, folder) == dvc.folder_digest(made, folder)


def test_what_changed_is_told(study_folder: Path) -> None:
    (study_folder / CELL).write_text("")
    (study_folder / "results/new.txt").write_text("new")
    (study_folder / layout.dataset("gsm8k")).unlink()
    again = resealed(study_folder)
    assert not again.unchanged
    assert (again.added, again.changed, again.removed) == (1, 1, 1)
    assert again.unaccounted == [
        "results/new.txt: no manifest names it",
        f"{CELL.as_posix()}: {TURNS_MANIFEST.as_posix()} says that its job wrote another content",
    ]
    assert any("results/new.txt: no manifest names it" in note for note in verify(study_folder).notes)


@pytest.mark.parametrize("git", [True, False], ids=["clone", "archive"])
def test_a_restored_study_is_the_sealed_one(made: Path, tmp_path: Path, git: bool) -> None:
    folder = clone(made, tmp_path / "clone", git=git)
    restored = restore(folder, remote="here")
    assert contents(folder) == contents(made)
    assert restored.study == "made-up"
    assert restored.notes == []
    assert restored.job_records == sum(1 for f in (made / layout.JOB_RECORDS).rglob("*") if f.is_file())
    assert (folder / dvc.CONFIG).read_bytes() == (made / dvc.CONFIG).read_bytes()
    assert ((folder / dvc.LOCAL_CONFIG).is_file()) == (not git)
    assert resealed(folder).unchanged
    assert restore(folder).files == restored.files, "again, from the cache alone"


def test_a_restore_overwrites_nothing_unasked(made: Path, tmp_path: Path) -> None:
    folder = clone(made, tmp_path / "clone", git=False)
    (folder / CELL).parent.mkdir(parents=True)
    (folder / CELL).write_text("mine\n")
    (folder / "data").mkdir()
    (folder / "data/notes.txt").write_text("mine, too\n")
    with pytest.raises(WouldOverwrite) as refused:
        restore(folder, remote="here")
    assert refused.value.paths == ["data/notes.txt", CELL.as_posix()]
    assert (folder / CELL).read_text() == "mine\n"
    restore(folder, remote="here", force=True)
    assert contents(folder) == contents(made)


def test_a_changed_file_behind_an_old_time_stamp_is_brought_back(made: Path, tmp_path: Path) -> None:
    folder = clone(made, tmp_path / "clone", git=False)
    restore(folder, remote="here")
    times = (folder / CELL).stat()
    data = bytearray((folder / CELL).read_bytes())
    data[len(data) // 2] ^= 1
    # in place: the inode, the size and the time that DVC remembers are those of before
    with (folder / CELL).open("r+b") as stream:
        stream.write(data)
    os.utime(folder / CELL, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(WouldOverwrite):
        restore(folder, remote="here")
    restore(folder, remote="here", force=True)
    assert contents(folder) == contents(made)


def test_what_the_checkout_has_otherwise_is_told(made: Path, tmp_path: Path) -> None:
    folder = clone(made, tmp_path / "clone", git=False)
    (folder / "envs/workflow.lock").write_text("package==2.0\n")
    (folder / CONFIG).write_text("name: other\n")
    notes = restore(folder, remote="here").notes
    assert any("workflow.lock" in note for note in notes)
    assert any("config/config.yaml" in note for note in notes)


def test_a_damaged_remote_is_found_out(made: Path, tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    shutil.copytree(made.parent / "remote", remote)
    folder = clone(made, tmp_path / "clone", git=False)
    config = (folder / dvc.CONFIG).read_text()
    (folder / dvc.CONFIG).write_text(config.replace(str(made.parent / "remote"), str(remote)))
    weights = [file for file in remote.rglob("*") if file.is_file() and file.stat().st_size == 256 * 64]
    weights[0].chmod(0o644)
    whole = weights[0].read_bytes()
    weights[0].write_bytes(b"\x01" + whole[1:])
    with pytest.raises(ProvenanceError, match=r"model\.safetensors \(other content\)|failed"):
        restore(folder, remote="here")
    # nothing of it stands in the way once the remote is mended
    weights[0].write_bytes(whole)
    restore(folder, remote="here")
    assert contents(folder) == contents(made)


def test_no_remote_and_no_pointer_are_told(made: Path, tmp_path: Path) -> None:
    folder = clone(made, tmp_path / "clone", git=False)
    with pytest.raises(ProvenanceError, match="no remote is configured"):
        restore(folder)
    (folder / "data.dvc").unlink()
    with pytest.raises(ProvenanceError, match=r"data\.dvc: no such file: the study is not sealed"):
        restore(folder)


def test_a_failed_push_loses_nothing(
    study_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(study_folder)
    blocked = study_folder.parent / "blocked"
    blocked.write_text("a file where the remote's folder should be")
    with dvc.CONFIG.open("a") as stream:
        stream.write(f"['remote \"blocked\"']\n    url = {blocked}\n")
    before = contents(study_folder)
    assert cli.main(["seal", "--remote", "blocked"]) == 1
    assert "nothing is lost" in capsys.readouterr().err
    assert contents(study_folder) == before
    blocked.unlink()
    assert cli.main(["seal", "--remote", "blocked", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["pushed"]
    assert said["unchanged"]
    shutil.rmtree(dvc.FOLDER / "cache")
    restore(Path(), remote="blocked")


def test_sealing_is_refused_while_a_run_is_active(study_folder: Path) -> None:
    with (
        RunLock(study_folder / layout.STATE / "run.lock").held("a test"),
        pytest.raises(ProvenanceError, match=f"another run is active in this folder: a test, process {os.getpid()}"),
    ):
        resealed(study_folder)
    assert resealed(study_folder).unchanged


@pytest.mark.parametrize("missing", [layout.NUMBERS, layout.REPORT, CELL, layout.manifest("report")])
def test_an_unfinished_study_is_refused(study_folder: Path, missing: Path) -> None:
    (study_folder / missing).unlink()
    with pytest.raises(ProvenanceError, match=rf"not complete: {missing} missing; run the workflow first: snakemake"):
        resealed(study_folder)


def test_files_that_a_killed_job_left_are_refused(study_folder: Path) -> None:
    (study_folder / layout.UNFINISHED_JOBS).mkdir()
    (study_folder / layout.UNFINISHED_JOBS / "ZGF0YS94Lmpzb25s").touch()
    with pytest.raises(ProvenanceError, match=r"killed while they wrote data/x\.jsonl"):
        resealed(study_folder)


def test_another_config_than_the_reports_is_refused(study_folder: Path) -> None:
    text = (study_folder / CONFIG).read_text()
    (study_folder / CONFIG).write_text(text.replace("seed: 7", "seed: 8"))
    with pytest.raises(ProvenanceError, match=r"another config \(different: seed\)"):
        resealed(study_folder)


def test_links_are_refused(study_folder: Path) -> None:
    (study_folder / "data/link").symlink_to(study_folder / "envs")
    with pytest.raises(ProvenanceError, match="data/link is a symbolic link"):
        resealed(study_folder)


@pytest.mark.parametrize(
    ("section", "line"), [("remote", "secret_access_key = abc"), ("remote", "url = ssh://me:abc@host/place")]
)
def test_credentials_are_not_committed(study_folder: Path, section: str, line: str) -> None:
    with (study_folder / dvc.CONFIG).open("a") as stream:
        stream.write(f"['{section} \"s3\"']\n    {line}\n")
    with pytest.raises(ProvenanceError, match="holds credentials") as refused:
        resealed(study_folder)
    assert "abc" not in str(refused.value)
    assert dvc.secrets(study_folder) == [f"['{section} \"s3\"'] {line.partition(' ')[0]}".replace("['", "['")]


def test_a_full_disk_leaves_the_seal_before(study_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(study_folder)
    (study_folder / CELL).write_text("{}\n")
    real = dvc.add

    def full(root: Path) -> None:
        real(root)
        (root / "sealed.dvc").write_text("outs:")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(dvc, "add", full)
    with pytest.raises(OSError, match="No space"):
        resealed(study_folder)
    after = contents(study_folder)
    assert {path for path in before if before[path] != after.get(path)} == {CELL.as_posix()}
    monkeypatch.undo()
    assert resealed(study_folder).changed == 1


KILLED = """
import os, sys
from pathlib import Path
from userturn.config.load import load_study
from userturn.provenance import dvc, seal
real = dvc.add
def killed(root):
    real(root)
    os.kill(os.getpid(), 9)
dvc.add = killed
seal.seal(Path(), load_study([Path("config/config.yaml")]), [Path("config/config.yaml")])
"""


def test_a_killed_seal_is_undone_by_the_next_command(study_folder: Path) -> None:
    before = contents(study_folder)
    original = (study_folder / CELL).read_bytes()
    (study_folder / CELL).write_text("{}\n")
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=study_folder, check=False, capture_output=True)
    assert done.returncode == -9, done.stderr.decode()
    assert (study_folder / "results.dvc").read_bytes() != before["results.dvc"]
    (study_folder / CELL).write_bytes(original)
    with sealing.exclusively(study_folder):
        assert contents(study_folder) == before
    assert resealed(study_folder).unchanged


def test_undoing_a_first_seal_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study(tmp_path)

    def fails(root: Path) -> None:
        (root / "data.dvc").write_text("half")
        raise dvc.DvcFailed("no")

    monkeypatch.setattr(dvc, "add", fails)
    with pytest.raises(dvc.DvcFailed):
        seal(tmp_path, study, [CONFIG])
    assert not [path for path in (*POINTERS, layout.SEALED) if (tmp_path / path).exists()]


def test_remembered_digests_are_not_fooled_by_an_old_time_stamp(study_folder: Path) -> None:
    file = study_folder / WEIGHTS
    status = file.stat()
    os.utime(file, (1.6e9, 1.6e9))
    resealed(study_folder)
    data = bytearray(file.read_bytes())
    data[100] ^= 1
    file.write_bytes(data)
    os.utime(file, (1.6e9, 1.6e9))
    assert file.stat().st_size == status.st_size
    assert resealed(study_folder).changed == 1


def test_packed_records_depend_on_names_and_contents_alone(tmp_path: Path) -> None:
    packed = []
    for number, order in enumerate((("a" * 300, "b"), ("b", "a" * 300))):
        root = tmp_path / f"{number}"
        for name in order:
            job(tmp_path / "any", name[:9], [], [])
            parts = [f"@{'YWFh' * 60}", "YWFh"] if name != "b" else ["Yg=="]
            file = root / layout.JOB_RECORDS / Path(*parts)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("{}")
            os.utime(file, (number, number))
        stream = io.BytesIO()
        assert jobs.pack(root, stream) == 2
        packed.append(stream.getvalue())
    assert packed[0] == packed[1]
    (tmp_path / "packed.tar").write_bytes(packed[0])
    assert jobs.unpack(tmp_path / "packed.tar", tmp_path / "back") == 2
    assert jobs.JobTimes.packed(tmp_path / "packed.tar").ended("a" * 183) is None


@pytest.mark.parametrize("name", ["../../escape", "/etc/escape", "not base64!", "link"])
def test_hostile_archives_are_refused(tmp_path: Path, name: str) -> None:
    archive = tmp_path / "packed.tar"
    with tarfile.open(archive, "w") as made_up:
        member = tarfile.TarInfo(name if name != "link" else "Yg==")
        if name == "link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        made_up.addfile(member, io.BytesIO())
    with pytest.raises(ProvenanceError, match="is not a record of Snakemake"):
        jobs.unpack(archive, tmp_path / "out")
    assert not [file for file in (tmp_path / "out").rglob("*") if file.is_file()]


def test_a_record_that_leads_out_is_refused(study_folder: Path) -> None:
    row = {"path": "../outside", "bytes": 1, "sha256": "0" * 64}
    (study_folder / RECORD).write_text(json.dumps(row) + "\n")
    with pytest.raises(ProvenanceError, match="leads out of the study's folder"):
        read_record(study_folder / RECORD)


def test_the_command_says_what_to_commit(
    study_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(study_folder)
    assert cli.main(["seal"]) == 0
    assert "nothing since the last seal" in capsys.readouterr().out
    write_json(Path("results/new.json"), {})
    assert cli.main(["seal"]) == 0
    said, err = capsys.readouterr()
    assert "To track the changes" not in said + err
    assert "0 files changed, 1 new, 0 gone" in said
    assert "git add .dvc/config .dvc/.gitignore .dvcignore data.dvc results.dvc sealed.dvc" in said
    assert Path(METADATA).is_file()
