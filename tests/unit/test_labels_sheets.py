"""Sheets for labellers: deterministic, blinded, inert; and what export refuses."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1]))

from label_fixture import TEXTS, write_study
from userturn.cli import main
from userturn.config.perturbations import CONTROLS
from userturn.config.study import Study
from userturn.judges.labels import LABELS, Turn
from userturn.judges.people import turn_sha256
from userturn.labelling.guide import read_guide
from userturn.labelling.page import ASSETS, build_page
from userturn.labelling.sheet import CELL_CHARACTERS, EMPTY, NO_ANSWER, Sheet, SheetTurn, csv_safe


class Elements(HTMLParser):
    """Names of all elements and attributes of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.chdir(tmp_path)
    return write_study(tmp_path)


def export(*arguments: str) -> int:
    return main(["label", "export", *arguments])


def rows(path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(Path(path).read_bytes().decode("utf-8-sig"), newline="")))


def test_the_same_study_gives_the_same_bytes(made: Study) -> None:
    assert export("--n", "40", "a") == export("--n", "40", "b") == export("--n", "40", "--seed", "8", "c") == 0
    names = {"key.json", "sheet.csv", "sheet.html"}
    assert {path.name for path in Path("a").iterdir()} == names
    for name in names:
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes() != Path("c", name).read_bytes()


def test_labellers_learn_nothing_of_where_a_turn_comes_from(made: Study) -> None:
    assert export("--n", "60", "--labellers", "2", "--controls", "out") == 0
    names = {*made.models, *made.datasets, *made.probe.perturbations, "provisional", made.name}
    names |= {row["item"] for row in json.loads(Path("out/key.json").read_text("utf-8"))["turns"].values()}
    places = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in sorted(names)), re.IGNORECASE)
    assert places.search("about alpha-1b here")
    temperatures = re.compile(r"\bt[01]\.\d\b|temperature|finish_reason|similarity|sample", re.IGNORECASE)
    for name in ("sheet-1.csv", "sheet-2.csv", "sheet-1.html", "sheet-2.html"):
        text = Path("out", name).read_text("utf-8")
        guide = text.find('<details class="guide"')
        # the guide is the same for every turn; it may speak of judges
        text = text if guide < 0 else text[:guide] + text[text.index("</details>", guide) :]
        assert not places.search(text), name
        assert not temperatures.search(text), name
    guide_text = str(read_guide().sections)
    assert not re.search(
        "|".join(p.kind for p in made.probe.perturbations.values() if p.kind != "baseline"), guide_text
    )


def test_a_row_a_turn_with_empty_columns(made: Study) -> None:
    assert export("--n", "50", "out") == 0
    data = Path("out/sheet.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfid,query,assistant_turn,user_turn,label,reacts_to,note,sheet,text_sha256\r\n")
    found, key = rows("out/sheet.csv"), json.loads(Path("out/key.json").read_text("utf-8"))
    assert [row["id"] for row in found] != sorted(key["turns"])
    assert {row["id"] for row in found} == key["turns"].keys()
    assert len(found) == 50
    for row in found:
        assert row["label"] == row["reacts_to"] == row["note"] == ""
        turn = key["turns"][row["id"]]
        assert row["text_sha256"] == turn["text_sha256"]
        assert (row["assistant_turn"] == NO_ANSWER) == (turn["perturbation"] == "removed_assistant")
        assert {row["sheet"]} == set(key["sheets"])
        assert turn["perturbation"] not in CONTROLS
    assert key["study"]["name"] == "fixture"
    assert sum(stratum["drawn"] for stratum in key["strata"]) == 50
    drawn = {stratum["label"]: 0 for stratum in key["strata"]}
    for stratum in key["strata"]:
        drawn[stratum["label"]] += stratum["drawn"]
    assert drawn["genuine_followup"] <= 10
    assert drawn["unscored"] > 0


def test_two_labellers_get_the_same_turns_in_orders_of_their_own(made: Study) -> None:
    assert export("--n", "30", "--second", "out") == 0
    first, second = ([row["id"] for row in rows(f"out/sheet-{k}.csv")] for k in (1, 2))
    assert first != second
    assert sorted(first) == sorted(second)
    assert len(json.loads(Path("out/key.json").read_text("utf-8"))["sheets"]) == 2


def test_cells_never_become_formulas() -> None:
    for text in ("=1+1", "+1", "-1", "@x", "\t=1", "  =1", "\n=1", "\uff1d1"):
        assert csv_safe(text).startswith("'")
    assert csv_safe("1 = 1") == "1 = 1"
    assert csv_safe("\r=1") == "⟦U+000D⟧=1"
    assert csv_safe("a\u202eb\x00") == "a⟦U+202E⟧b⟦U+0000⟧"
    long = csv_safe("x" * 40_000)
    assert long.endswith("⟦10000 more characters⟧")
    assert len(long) < CELL_CHARACTERS + 30


def test_every_hostile_text_is_a_safe_cell(made: Study) -> None:
    assert export("--n", "1000", "--controls", "out") == 0
    texts = [row["user_turn"] for row in rows("out/sheet.csv")]
    assert len(texts) > 150
    assert EMPTY in texts
    assert not [
        text for text in texts if text.lstrip()[:1] in ("=", "+", "-", "@") or "\x00" in text or "\u202e" in text
    ]
    # what stays readable stays as it is
    assert any("\n" in text for text in texts)


def test_the_page_is_one_inert_file(made: Study) -> None:
    assert export("--n", "1000", "--controls", "out") == 0
    html = Path("out/sheet.html").read_text("utf-8")
    assert "default-src &#39;none&#39;" in html
    assert "trusted-types &#39;none&#39;" in html
    assert len(re.findall(r"<script\b", html)) == 2
    found = Elements(html)
    assert not found.tags & {"img", "iframe", "svg", "link", "object", "a", "form"}
    assert not [name for name in found.attributes if name.startswith("on") or name in {"src", "href", "style"}]
    assert not {"\u202e", "\u2066", "\u200b", "\x00", "\ufeff"} & set(html)
    for key, label in enumerate(LABELS, start=1):
        assert f'data-label="{label}" aria-pressed="false" aria-keyshortcuts="{key}"' in html
    assert "Can I use honey instead of sugar?" in html


def test_assets_close_nothing_and_parse_no_markup() -> None:
    script = (ASSETS / "label_page.js").read_text("utf-8")
    assert not re.search(r"</(?:script|style)|<!--", script + (ASSETS / "label_page.css").read_text("utf-8"))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|fetch\(|XMLHttp", script)


def test_the_page_takes_lone_surrogates() -> None:
    sheet = Sheet(1, (SheetTurn("t0", Turn("q \ud800", None, "fine", "stop")),), guide_sha256="0")
    page = build_page(sheet, read_guide())
    assert "⟦U+D800⟧" in page
    assert "No assistant turn was shown." in page
    page.encode("utf-8")


def test_the_guide_defines_every_label() -> None:
    guide = read_guide()
    definitions = str(guide.sections["Definitions"])
    assert all(label in definitions for label in LABELS)
    cases = [block for block in guide.sections["Boundary cases"] if block.rows]
    assert sum(len(block.rows) for block in cases) >= 15


def test_a_digest_of_what_is_shown_tells_texts_apart() -> None:
    turns = [
        Turn("q", "a", "u", "stop"),
        Turn("q", None, "u", "stop"),
        Turn("q", "", "u", "stop"),
        Turn("qa", "", "u", "stop"),
    ]
    assert len({turn_sha256(turn) for turn in turns}) == 4
    assert turn_sha256(turns[0]) == turn_sha256(Turn("q", "a", "u", "length"))
    assert len(TEXTS) > 10


def test_refusals(made: Study, capsys: pytest.CaptureFixture[str]) -> None:
    assert export("--n", "20", "out") == 0
    assert re.search(r"20 of \d+ user turns, 56 of 56 cells finished", capsys.readouterr().out)
    for arguments, words in {
        ("--judge", "nobody", "x"): ("--judge nobody", "known: other, provisional"),
        ("--n", "21", "out"): ("out/key.json is there and differs",),
    }.items():
        assert export(*arguments) == 1
        said = capsys.readouterr().err
        assert all(word in said for word in words), said
    # the same export again changes nothing, a filled sheet is never written over
    assert export("--n", "20", "out") == 0
    Path("out/sheet.csv").write_text("filled", "utf-8")
    assert export("--n", "20", "out") == 1
    assert Path("out/sheet.csv").read_text("utf-8") == "filled"
    with pytest.raises(SystemExit) as left:
        export("--n", "0", "x")
    assert left.value.code == 2


def test_a_study_that_has_not_run(made: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in Path("results").rglob("*.jsonl"):
        path.unlink()
    assert export("out") == 1
    assert "no cell of the study fixture is finished here" in capsys.readouterr().err


def test_artefacts_of_another_version(made: Study, capsys: pytest.CaptureFixture[str]) -> None:
    for path in Path("data/contexts").rglob("*.jsonl"):
        path.write_text(path.read_text("utf-8").replace("shown_answer", "old_name"), "utf-8")
    assert export("out") == 1
    assert "made anew by running the workflow" in capsys.readouterr().err
