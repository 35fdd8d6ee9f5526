"""Labels that come back: what is refused, what is stored, double labelling, adjudication, and the judge they make."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

sys.path.append(str(Path(__file__).resolve().parents[1]))

from label_fixture import write_study
from userturn.artefacts import read_jsonl, sha256_text
from userturn.cli import main
from userturn.config.judging import PeopleJudge as PeopleJudgeConfig
from userturn.judges.labels import LABELS, Judge, Turn
from userturn.judges.people import LabelsError, PeopleJudge, PeopleLabel, read_labels, turn_sha256
from userturn.labelling.turns import seen

FINAL = Path("labels/people/labels.jsonl")
Say = Callable[[int, dict[str, Any]], tuple[str, str, str]]


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A study on disk with sheets for two labellers of 24 turns; their key."""
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path)
    assert main(["label", "export", "--n", "24", "--labellers", "2", "out"]) == 0
    found: dict[str, Any] = json.loads(Path("out/key.json").read_text("utf-8"))
    return found


def sheet(key: dict[str, Any], number: int) -> str:
    return next(sheet for sheet, k in key["sheets"].items() if k == number)


def as_judged(k: int, turn: dict[str, Any]) -> tuple[str, str, str]:
    """Every label in turn; a follow-up reacts to the query, which is always there."""
    label = LABELS[k % 7]
    return label, "query" if label == "genuine_followup" else "", ""


def write_json(path: str, key: dict[str, Any], say: Say = as_judged, labeller: str = "ab", number: int = 1) -> str:
    labels = []
    for k, (id, turn) in enumerate(sorted(key["turns"].items())):
        label, reacts_to, note = say(k, turn)
        state = "unscored" if label == "unscored" else "scored" if label else "open"
        labels.append(
            {
                "id": id,
                "state": state,
                "label": label if state == "scored" else None,
                "reacts_to": reacts_to or None,
                "note": note,
                "text_sha256": turn["text_sha256"],
            }
        )
    value = {"format": "userturn labels 1", "sheet": sheet(key, number), "labeller": labeller, "labels": labels}
    Path(path).write_text(json.dumps(value), "utf-8")
    return path


def take(*arguments: str, key: str = "out/key.json") -> int:
    return main(["label", "import", *arguments, "--key", key, "--name", "people"])


# --- what is stored


def test_a_round_trip_through_the_filled_csv_sheet(key: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    text = Path("out/sheet-1.csv").read_bytes().decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    words = ["1", "Restates_Prompt", "3", "u", " 5 ", "0", ""]
    for k, row in enumerate(rows):
        row["label"] = words[k % 7]
        row["reacts_to"] = "q" if row["label"] == "1" else ""
        row["note"] = "'=odd" if k == 2 else "two\nlines"
    # as a spreadsheet of another country saves it: semicolons, no byte order mark
    with Path("filled.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    assert take("filled.csv") == 1
    assert "give --labeller NAME" in capsys.readouterr().err
    assert take("filled.csv", "--labeller", "ab") == 0
    stored = {row["item"] + str(row["sample"]) + row["perturbation"] + row["model"]: row for row in read_jsonl(FINAL)}
    expected = ["genuine_followup", "restates_prompt", "continues_as_assistant", None, "generic", None]
    for k, row in enumerate(rows):
        turn = key["turns"][row["id"]]
        got = stored.get(turn["item"] + str(turn["sample"]) + turn["perturbation"] + turn["model"])
        if k % 7 == 6:
            assert got is None
            continue
        assert got is not None
        assert got["label"] == expected[k % 7]
        assert got["state"] == ("scored" if got["label"] else "unscored")
        assert got["reacts_to"] == ("query" if k % 7 == 0 else None)
        assert got["note"] == ("=odd" if k == 2 else "two lines")
        assert got["labeller"] == "ab"
        assert {name: got[name] for name in ("text_sha256", "weight")} == {
            n: turn[n] for n in ("text_sha256", "weight")
        }
    out = capsys.readouterr().out
    assert "kind: people" in out
    assert "3 turns open" in out


def test_storing_is_canonical_and_the_same_again(key: dict[str, Any]) -> None:
    write_json("labels-ab.json", key)
    assert take("labels-ab.json") == 0
    before = {path: path.read_bytes() for path in Path("labels").rglob("*.jsonl")}
    assert {path.as_posix() for path in before} == {
        "labels/people/labels.jsonl",
        "labels/people/labellers/ab.jsonl",
        "labels/people/samples.jsonl",
    }
    assert take("labels-ab.json", "labels-ab.json") == 0
    assert before == {path: path.read_bytes() for path in Path("labels").rglob("*.jsonl")}
    assert [label.place for label in read_labels(FINAL)] == sorted(label.place for label in read_labels(FINAL))
    # no text of the study is stored
    texts = [turn.text for turn in seen(label.place for label in read_labels(FINAL)).values() if turn]
    assert not [text for text in texts if len(text) > 8 and text.encode() in before[FINAL]]


# --- what is refused


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[3].update(label="nonsense"), ("label 4", "unknown label 'nonsense'", "1 genuine_followup")),
        (lambda rows: rows[1].update(id="t000"), ("label 2", "unknown id 't000'")),
        (lambda rows: rows[2].update(text_sha256="0" * 64), ("label 3", "the key says")),
        (lambda rows: rows[0].update(reacts_to="mood"), ("label 1", "unknown reacts_to 'mood'", "answer, query, both")),
        (lambda rows: rows[0].update(reacts_to=None), ("label 1", "a genuine_followup needs reacts_to")),
        (lambda rows: rows[1].update(reacts_to="query"), ("label 2", "reacts_to is for genuine_followup")),
        (lambda rows: rows.append({**rows[1], "label": "generic"}), ("label 25", "another label at", "label 2")),
        (lambda rows: rows[5].update(state="unscored"), ("label 6", "state 'unscored' does not go with")),
        (lambda rows: rows[5].update(label=7), ("label 6", "label: not as the page writes it")),
        (lambda rows: rows[5].pop("text_sha256"), ("label 6", "without text_sha256")),
        (lambda rows: rows.insert(0, "x"), ("label 1", "expected an object, found str")),
        (lambda rows: rows[1].update(note="x" * 1001), ("label 2", "1001 characters")),
    ],
)
def test_wrong_rows_are_named(
    key: dict[str, Any], change: Callable[[list[Any]], Any], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    value = json.loads(Path(write_json("l.json", key)).read_text("utf-8"))
    change(value["labels"])
    Path("l.json").write_text(json.dumps(value), "utf-8")
    assert take("l.json") == 1
    said = capsys.readouterr().err
    assert all(word in said for word in ("l.json", *words)), said
    assert not Path("labels").exists()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ("empty",)),
        (b"{", ("not JSON",)),
        (b'{"format": "other"}', ("format is 'other'",)),
        (b'{"format": "userturn labels 1", "labels": {}}', ("labels must be a list",)),
        (b"id,label\r\n", ("line 1: no column reacts_to, sheet, text_sha256",)),
        (b"id,label,label,reacts_to,sheet,text_sha256\r\n", ("columns twice: label",)),
        (b"id,label,reacts_to,sheet,text_sha256\r\n1,2,3,4,5,6\r\n", ("row 2 (line 2): 6 cells",)),
        (b'id,label,reacts_to,sheet,text_sha256\r\n"a,2\r\n', ("not CSV",)),
        ("id,label,note\r\nä".encode("latin-1"), ("not UTF-8", "CSV UTF-8")),
        (b"id,label,reacts_to,sheet,text_sha256\r\nx,generic,,s0,0\r\n", ("sheet 's0' is not one of this key's",)),
    ],
)
def test_wrong_files_are_named(
    key: dict[str, Any], data: bytes, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("back.csv").write_bytes(data)
    assert take("back.csv", "--labeller", "ab") == 1
    said = capsys.readouterr().err
    assert all(word in said for word in ("back.csv", *words)), said


def test_no_answer_was_shown_so_nobody_reacted_to_it(key: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert any(not turn["answer_shown"] for turn in key["turns"].values())
    write_json("l.json", key, lambda k, turn: ("genuine_followup", "both", ""))
    assert take("l.json") == 1
    assert "no assistant turn was shown" in capsys.readouterr().err


def test_a_labeller_may_not_say_two_things_but_may_replace(
    key: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    first = write_json("l1.json", key, lambda k, turn: ("generic", "", ""))
    second = write_json("l2.json", key, lambda k, turn: ("unrelated" if k == 0 else "generic", "", ""), number=2)
    assert take(first, second) == 1
    assert "ab said generic before, ab unrelated now" in capsys.readouterr().err
    assert not Path("labels").exists()
    assert take(first) == 0
    assert take(second, "--replace") == 0
    assert sorted({label.label for label in read_labels(FINAL)}) == ["generic", "unrelated"]
    assert take(first, "--labeller", "other") == 1
    assert "--labeller other, but the file says ab" in capsys.readouterr().err


def test_wrong_keys(key: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    write_json("l.json", key)
    for name, words in {"none.json": "no such file", "l.json": "not a key"}.items():
        assert take("l.json", key=name) == 1
        assert words in capsys.readouterr().err
    assert take("l.json", "--adjudication") == 1
    assert "leave --adjudication out" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["label", "import", "l.json", "--key", "out/key.json", "--name", "../up"])


# --- double labelling and adjudication


def other(k: int, turn: dict[str, Any]) -> tuple[str, str, str]:
    """Agrees with `as_judged` but on turns 1 (label), 2 (cannot say) and, in what it reacts to, 7."""
    if k == 1:
        return "generic", "", "only thanks"
    if k == 2:
        return "unscored", "", ""
    if k == 7:
        return "genuine_followup", "answer" if turn["answer_shown"] else "query", ""
    return as_judged(k, turn)


def test_double_labelling_and_adjudication(key: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    turns = dict(sorted(key["turns"].items()))
    shown = [turn["answer_shown"] for turn in turns.values()]
    n_differ = 2 + shown[7]
    write_json("l1.json", key)
    write_json("l2.json", key, other, labeller="cd", number=2)
    assert take("l1.json", "l2.json") == 0
    said = capsys.readouterr().out
    # 23 turns with two labels, one differs; one that cd cannot say is left out
    assert "agreement of ab and cd on 23 turns" in said
    assert f"raw                     {22 / 23:.3f} [" in said
    for measure in ("Cohen's kappa", "Krippendorff's alpha", "Gwet's AC1", "on genuine_followup"):
        assert measure in said
    assert f"{n_differ} turns differ" in said
    rows = {label.place: label for label in read_labels(FINAL)}
    assert [label.decision for label in rows.values()].count("disagreement") == 2
    assert [label.labeller for label in rows.values()] == ["ab+cd"] * 24

    assert main(["label", "adjudicate", "--name", "people", "final"]) == 0
    sheet_rows = list(csv.DictReader(io.StringIO(Path("final/sheet.csv").read_bytes().decode("utf-8-sig"), newline="")))
    assert len(sheet_rows) == n_differ
    given = {frozenset(row["labels_given"].split(" / ")) for row in sheet_rows}
    assert frozenset({"restates_prompt", "generic"}) in given
    assert frozenset({"continues_as_assistant", "cannot say"}) in given
    page = Path("final/sheet.html").read_text("utf-8")
    assert "Labels given so far" in page
    assert "only thanks" not in page + Path("final/sheet.csv").read_text("utf-8")
    assert "cd" not in {word for row in sheet_rows for word in row["labels_given"].split()}

    final: dict[str, Any] = json.loads(Path("final/key.json").read_text("utf-8"))
    write_json("f.json", final, lambda k, turn: ("generic", "", ""), labeller="ef")
    assert take("f.json", "--adjudication", key="final/key.json") == 1
    assert "needs its reason" in capsys.readouterr().err
    write_json("f.json", final, lambda k, turn: ("generic", "", "It fits anywhere."), labeller="ef")
    assert take("f.json", key="final/key.json") == 1
    assert "give --adjudication with it" in capsys.readouterr().err
    assert take("f.json", "--adjudication", key="final/key.json") == 0
    settled = [label for label in read_labels(FINAL) if label.decision == "adjudicated"]
    assert len(settled) == n_differ
    assert {(label.label, label.labeller, label.note) for label in settled} == {("generic", "ef", "It fits anywhere.")}
    capsys.readouterr()
    assert main(["label", "adjudicate", "--name", "people", "again"]) == 0
    assert "nothing to adjudicate" in capsys.readouterr().out


def test_adjudication_needs_two_labellers(key: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    write_json("l1.json", key)
    assert take("l1.json") == 0
    assert main(["label", "adjudicate", "--name", "people", "final"]) == 1
    assert "adjudication needs two" in capsys.readouterr().err


# --- the judge


def test_people_as_a_judge(key: dict[str, Any]) -> None:
    write_json("l.json", key, lambda k, turn: ("unscored", "", "") if k == 3 else as_judged(k, turn))
    assert take("l.json") == 0
    judge = PeopleJudge.read(FINAL)
    assert isinstance(judge, Judge)
    labels = read_labels(FINAL)
    for label in labels:
        here = judge.of_cell(*label.place.cell)
        (turn,) = seen([label.place]).values()
        assert turn is not None
        (found,) = here.judge([turn])
        assert (found.label, found.state) == (label.label, label.state)
        assert found.evidence.get("cause") == (None if label.label else "cannot_say")
        assert found.evidence["labeller"] == "ab"
        changed = Turn(turn.query, turn.answer, turn.text + "!", turn.finish_reason)
        (missing,) = here.judge([changed])
        assert (missing.state, missing.evidence) == ("unscored", {"cause": "not_labelled"})
        n_here = sum(other.place.cell == label.place.cell for other in labels)
        assert here.strays([changed]) == n_here
        assert here.strays([turn]) < n_here
        (elsewhere,) = judge.of_cell("nobody", "gsm8k", "baseline", 0.0).judge([turn])
        assert elsewhere.evidence == {"cause": "not_labelled"}


def _label(**change: Any) -> PeopleLabel:
    turn = Turn("q", "a", "u", "stop")
    row: dict[str, Any] = {
        "model": "m",
        "dataset": "d",
        "perturbation": "baseline",
        "temperature": 1.0,
        "item": "i",
        "sample": 0,
        "text_sha256": sha256_text("u"),
        "turn_sha256": turn_sha256(turn),
        "label": "generic",
        "state": "scored",
        "reacts_to": None,
        "labeller": "ab",
        "note": "",
        "weight": 1.0,
        "sheet": "s",
        "decision": "single",
    }
    return PeopleLabel.model_validate(row | change)


def test_one_text_with_two_labels_is_not_decided() -> None:
    turn = Turn("q", "a", "u", "stop")
    judge = PeopleJudge([_label(), _label(sample=1, label="unrelated")], "1")
    assert judge.judge([turn])[0].evidence == {"cause": "disagreement"}
    assert PeopleJudge([_label(), _label(sample=1)], "1").judge([turn])[0].label == "generic"


def test_a_broken_file_of_labels(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    good = _label().model_dump_json()
    for text, words in {
        f"{good}\n{good}\n": ":2: the turn m/d/baseline/1.0/i/0 stands twice",
        good.replace("generic", "nice"): ":1: label: Input should be",
        good.replace('"scored"', '"unscored"'): ":1: Value error, state 'unscored' does not go with label 'generic'",
        "[]": ":1: expected a JSON object",
    }.items():
        path.write_text(text, "utf-8")
        with pytest.raises(LabelsError) as refused:
            read_labels(path)
        assert words in str(refused.value)
    path.write_text(good, "utf-8")
    with pytest.raises(LabelsError, match="the config says 0000"):
        read_labels(path, "0" * 64)
    with pytest.raises(LabelsError, match=r"no such file.*userturn label import"):
        read_labels(tmp_path / "none.jsonl")


def test_the_config_of_a_judge() -> None:
    config = PeopleJudgeConfig.model_validate({"kind": "people", "labels": "labels/people/labels.jsonl"})
    assert config.sha256 is None
    for wrong in ({"labels": ""}, {"labels": "x", "sha256": "abc"}, {"labels": "x", "more": 1}):
        with pytest.raises(ValidationError):
            PeopleJudgeConfig.model_validate(wrong)
