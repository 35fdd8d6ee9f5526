"""Verifying a made-up study against its seal and against other studies."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealed_fixture import CELL, CONFIG, JUDGED, TURNS_MANIFEST, WEIGHTS, job, make_study, number
from userturn import cli, grid, layout
from userturn.artefacts import read_json, read_jsonl, write_json, write_jsonl
from userturn.provenance.contents import SealedContents
from userturn.provenance.difference import compare, shown
from userturn.provenance.record import RECORD, stable_part
from userturn.provenance.seal import seal
from userturn.provenance.verify import Status, verify, verify_against

LATER = 1_800_000_000.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verified") / "study"
    seal(root, make_study(root), [CONFIG])
    return root


@pytest.fixture
def sealed(made: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    shutil.copytree(made, folder)
    return folder


def statuses(root: Path) -> dict[str, Status]:
    return {finding.path: finding.status for finding in verify(root).findings}


def flip(file: Path) -> None:
    """One bit of a byte in the middle, behind the old time stamp."""
    status = file.stat()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_sealed_study_is_identical(made: Path) -> None:
    found = verify(made)
    assert found.same
    assert found.findings == []
    assert found.notes == []
    assert found.counts[Status.IDENTICAL] == found.files == len(read_jsonl(made / RECORD))


@pytest.mark.parametrize("folder", ["data", "results"])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace("md5: ", "md5: dead", 1).replace("dead" + text.partition("md5: ")[2][:4], "dead", 1),
         "a clone cannot be restored from it"),
        (lambda text: "garbage\n", "not a pointer of DVC"),
    ],
    ids=["another digest", "garbage"],
)  # fmt: skip
def test_a_pointer_that_names_something_else_is_named(sealed: Path, folder: str, change, says: str) -> None:
    pointer = sealed / f"{folder}.dvc"
    pointer.write_text(change(pointer.read_text()))
    (finding,) = verify(sealed).findings
    assert (finding.path, finding.status) == (f"{folder}.dvc", Status.TAMPERED)
    assert says in finding.reason


def test_a_link_is_named_and_does_not_end_the_rest(sealed: Path, tmp_path: Path) -> None:
    (sealed / CELL).rename(tmp_path / "elsewhere")
    (sealed / CELL).symlink_to(tmp_path / "elsewhere")
    flip(sealed / JUDGED)
    found = {finding.path: finding for finding in verify(sealed).findings}
    assert found.keys() == {CELL.as_posix(), JUDGED.as_posix()}
    assert "symbolic link" in found[CELL.as_posix()].reason


@pytest.mark.parametrize(
    "path",
    [
        layout.dataset("gsm8k"), layout.contexts("alpha", "gsm8k", "baseline"), CELL, JUDGED, layout.NUMBERS,
        layout.REPORT, TURNS_MANIFEST, WEIGHTS,
    ],
    ids=lambda path: path.as_posix(),
)  # fmt: skip
def test_one_flipped_bit_is_named(sealed: Path, path: Path) -> None:
    flip(sealed / path)
    found = verify(sealed)
    assert [(one.path, one.status) for one in found.findings] == [(path.as_posix(), Status.TAMPERED)]
    assert not found.same
    assert [one.path for one in found.differences] == [path.as_posix()]
    assert found.differences[0].first is not None


def test_the_reason_says_when_a_time_stamp_hides_the_change(sealed: Path) -> None:
    os.utime(sealed / CELL, (1.6e9, 1.6e9))
    flip(sealed / CELL)
    assert "hides the change" in verify(sealed).findings[0].reason
    os.utime(sealed / CELL, (LATER, LATER))
    (finding,) = verify(sealed).findings
    assert finding.status is Status.TAMPERED
    assert "hides" not in finding.reason


def test_a_tampered_record_is_named(sealed: Path) -> None:
    (sealed / layout.NUMBERS).unlink()
    kept = [row for row in read_jsonl(sealed / RECORD) if row["path"] != layout.NUMBERS.as_posix()]
    write_jsonl(sealed / RECORD, kept)
    found = verify(sealed)
    assert [(one.path, one.status) for one in found.findings] == [("sealed", Status.TAMPERED)]
    assert not found.same


def test_what_a_job_wrote_since_is_changed_or_rebuilt(sealed: Path) -> None:
    write_jsonl(sealed / layout.NUMBERS, [number("followup_rate/0", 0.5)])
    job(sealed, "analyse", [], [layout.NUMBERS], ended=LATER)
    job(sealed, "dataset", ["gsm8k"], [layout.dataset("gsm8k")], ended=LATER)
    assert statuses(sealed) == {
        layout.NUMBERS.as_posix(): Status.CHANGED,
        layout.manifest("analyse").as_posix(): Status.CHANGED,
        layout.manifest("dataset", "gsm8k").as_posix(): Status.REBUILT,
    }


def test_a_clock_that_is_behind_makes_no_tampering(sealed: Path) -> None:
    write_jsonl(sealed / layout.NUMBERS, [number("followup_rate/0", 0.5)])
    job(sealed, "analyse", [], [layout.NUMBERS], ended=1_000_000_000.0)
    assert statuses(sealed)[layout.NUMBERS.as_posix()] is Status.CHANGED


def test_an_edit_after_a_jobs_work_is_tampering(sealed: Path) -> None:
    job(sealed, "analyse", [], [layout.NUMBERS], ended=LATER)
    flip(sealed / layout.NUMBERS)
    (finding, rebuilt) = verify(sealed).findings
    assert (finding.path, finding.status) == (layout.NUMBERS.as_posix(), Status.TAMPERED)
    assert "says that its job wrote another content" in finding.reason
    assert rebuilt.status is Status.REBUILT


def test_a_rebuild_to_the_same_bytes_is_the_same(sealed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests of manifests stand in the report's manifest, so it is rebuilt, too."""
    study_spec = read_json(sealed / layout.manifest("report"))["spec"]
    cells = [path.relative_to(sealed) for path in sorted((sealed / "results/user_turns").rglob("*.jsonl"))]
    written = [Path(o["path"]) for o in read_json(sealed / TURNS_MANIFEST)["outputs"]]
    assert sorted(written) == cells
    job(sealed, "user_turns", ["alpha"], written, ended=LATER)
    job(sealed, "report", [], [layout.REPORT], spec=study_spec, reads=[TURNS_MANIFEST], ended=LATER)
    found = verify(sealed)
    assert {one.status for one in found.findings} == {Status.REBUILT}
    assert len(found.findings) == 2
    assert found.same
    monkeypatch.chdir(sealed)
    assert cli.main(["verify"]) == 0


def test_missing_and_extra(sealed: Path) -> None:
    (sealed / CELL).unlink()
    (sealed / "results/new.txt").write_text("new")
    (sealed / "results/.new.txt.x.part").write_text("left by a kill")
    assert statuses(sealed) == {CELL.as_posix(): Status.MISSING, "results/new.txt": Status.EXTRA}


def test_another_config_or_lock_is_told(sealed: Path) -> None:
    (sealed / CONFIG).write_text("name: other\n")
    (sealed / "envs/workflow.lock").write_text("package==2.0\n")
    found = verify(sealed)
    assert [(one.path, one.status) for one in found.findings] == [(CONFIG.as_posix(), Status.CHANGED)]
    assert any("workflow.lock" in note for note in found.notes)


def test_what_was_remembered_is_not_trusted(sealed: Path) -> None:
    remembered = sealed / layout.STATE / "digests.jsonl"
    flip(sealed / WEIGHTS)
    status = (sealed / WEIGHTS).stat()
    stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
    rows = [row for row in read_jsonl(sealed / RECORD) if row["path"] == WEIGHTS.as_posix()]
    write_jsonl(remembered, [{"stamp": stamp, "entry": row} for row in rows])
    assert statuses(sealed) == {WEIGHTS.as_posix(): Status.TAMPERED}


def test_sealed_bytes_come_from_the_cache(made: Path) -> None:
    contents = SealedContents(made)
    for row in read_jsonl(made / RECORD):
        if row["path"] != CONFIG.as_posix():
            found = contents.find(row["path"])
            assert found is not None
            assert found.read_bytes() == (made / row["path"]).read_bytes()
    assert contents.find("results/absent.jsonl") is None


def test_what_differs_first_and_by_how_much(sealed: Path, made: Path) -> None:
    turns, numbers = read_jsonl(sealed / CELL), read_jsonl(sealed / layout.NUMBERS)
    turns[3]["text"] = turns[3]["text"].replace("tfel", "left")
    turns[5]["text"] = "\x1b]0;owned\x07"
    write_jsonl(sealed / CELL, [*turns[:-1], turns[5] | {"sample": 9}])
    numbers[1]["value"] += 0.05
    numbers[2]["value"] -= 0.25
    numbers[3]["id"] = "followup_rate/new"
    write_jsonl(sealed / layout.NUMBERS, numbers)
    for found in (verify(sealed), verify_against(sealed, made), verify_against(sealed, made / "sealed")):
        assert [one.path for one in found.differences] == [CELL.as_posix(), layout.NUMBERS.as_posix()]
        cell, moved = found.differences
        assert (cell.rows_here, cell.rows_there, cell.differing, cell.only_here, cell.only_there) == (6, 6, 1, 1, 1)
        assert cell.first is not None
        assert (cell.first.where, cell.first.field) == ("line 4, gsm8k-1 1", "text")
        assert cell.first.here is not None
        assert cell.first.there is not None
        assert "left ⟦U+0007⟧ and⏎more 3" in cell.first.here
        assert "⟦U+202E⟧ tfel" in cell.first.there
        assert moved.shift is not None
        assert (moved.shift.compared, moved.shift.moved, moved.shift.outside) == (4, 2, 1)
        assert moved.shift.largest == pytest.approx(0.25)
        assert moved.shift.largest_id == "followup_rate/2"
        assert (moved.only_here, moved.only_there) == (1, 1)


def test_nothing_that_a_model_wrote_reaches_the_terminal(
    sealed: Path, made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = read_jsonl(sealed / CELL)
    write_jsonl(sealed / CELL, [row | {"text": "\x1b[2J" + row["text"]} for row in rows])
    write_jsonl(sealed / layout.NUMBERS, [number("rate/\x1b[2J", 0.5)])
    (sealed / "results/\x1b[2Jnew\u202e.txt").write_text("new")
    monkeypatch.chdir(sealed)
    for arguments in (["verify"], ["verify", "--json"], ["verify", "--against", str(made)]):
        assert cli.main(arguments) == 1
        said = capsys.readouterr()
        assert not set(said.out + said.err) & set("\x1b\x07\u202e\x00")
    assert json.loads(_json(capsys))["counts"]["extra"] == 1


def _json(capsys: pytest.CaptureFixture[str]) -> str:
    cli.main(["verify", "--json"])
    return capsys.readouterr().out


def test_a_record_by_itself_can_be_compared_with(sealed: Path, made: Path) -> None:
    assert verify_against(sealed, made / RECORD).same
    flip(sealed / CELL)
    found = verify_against(sealed, made / RECORD)
    assert [(one.path, one.status) for one in found.findings] == [(CELL.as_posix(), Status.CHANGED)]
    assert found.differences == []
    assert any("rows cannot be compared" in note for note in found.notes)


def test_two_runs_of_one_study_are_the_same(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_study(tmp_path / name)
    job(tmp_path / "b", "analyse", [], [layout.NUMBERS], ended=LATER)
    found = verify_against(tmp_path / "a", tmp_path / "b")
    assert found.same
    assert found.counts[Status.REBUILT] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["verify"], "not sealed here (userturn seal), or not restored (userturn restore)"),
        (["verify", "--against", "nowhere"], "nowhere: neither a study's folder"),
        (["restore"], "data.dvc: no such file: the study is not sealed"),
    ],
)
def test_refusals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    make_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 1
    assert said in capsys.readouterr().err


def test_files_come_in_the_order_of_the_data_flow() -> None:
    study_order = [
        layout.dataset("z"), layout.model("z"), layout.assistant_turns("z", "z"), layout.scores("a", "a"),
        layout.contexts("a", "a", "a"), CELL, JUDGED, layout.NUMBERS, layout.REPORT, TURNS_MANIFEST, Path("a"),
    ]  # fmt: skip
    assert sorted(sorted(study_order), key=layout.flow_rank) == study_order


def test_every_path_of_the_grid_has_a_place_in_the_flow(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    for cell in grid.cells(study):
        for path in (cell.user_turns, cell.judgements("provisional")):
            assert layout.flow_rank(path)[0] < len(layout.DATA_FLOW)


def test_what_is_stable_in_a_manifest() -> None:
    manifest = {
        "stage": "report",
        "inputs": [{"path": TURNS_MANIFEST.as_posix(), "sha256": "1"}, {"path": CELL.as_posix(), "sha256": "2"}],
        "outputs": [],
        "run": {"host": "a"},
    }
    assert stable_part(manifest) == {
        "stage": "report",
        "inputs": [{"path": TURNS_MANIFEST.as_posix()}, {"path": CELL.as_posix(), "sha256": "2"}],
        "outputs": [],
    }


@given(st.binary(max_size=200), st.binary(max_size=200), st.sampled_from(["x.jsonl", "x.json", "x.bin"]))
def test_any_two_files_can_be_compared(tmp_path_factory: pytest.TempPathFactory, a: bytes, b: bytes, name: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "here").write_bytes(a)
    (folder / "there").write_bytes(b)
    found = compare(name, folder / "here", folder / "there")
    assert (found.first is None) <= (a == b or name != "x.bin")
    if a == b:
        assert found.first is None
    elif name == "x.bin":
        assert found.first is not None
        start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        assert found.first.where == f"byte {start}"


@given(st.text())
def test_shown_text_is_one_harmless_line(text: str) -> None:
    line = shown(text)
    assert line.isprintable() or not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in line)
    assert "\n" not in line


@given(
    st.lists(st.fixed_dictionaries({"item": st.text(max_size=3), "text": st.text(max_size=5)}), max_size=6),
    st.lists(st.fixed_dictionaries({"item": st.text(max_size=3), "text": st.text(max_size=5)}), max_size=6),
)
def test_rows_add_up(tmp_path_factory: pytest.TempPathFactory, a: list[dict], b: list[dict]) -> None:
    folder = tmp_path_factory.getbasetemp()
    write_jsonl(folder / "rows_a", a)
    write_jsonl(folder / "rows_b", b)
    found = compare("x.jsonl", folder / "rows_a", folder / "rows_b")
    assert found.rows_here == len(a)
    assert found.rows_there == len(b)
    assert found.only_here is not None
    assert found.only_there is not None
    assert len(a) - found.only_here == len(b) - found.only_there >= (found.differing or 0)
    assert (found.first is None) == (a == b)


def test_an_unreadable_manifest_is_named(sealed: Path) -> None:
    (sealed / TURNS_MANIFEST).write_text("[]")
    write_json(sealed / layout.manifest("dataset", "gsm8k"), {"outputs": 5})
    found = statuses(sealed)
    assert found[TURNS_MANIFEST.as_posix()] is Status.TAMPERED
