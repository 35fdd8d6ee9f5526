"""The report as text: deterministic, inert, complete, and every number with its id."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

sys.path.append(str(Path(__file__).resolve().parents[1]))

from report_fixture import (
    DATASETS,
    HOSTILE,
    ITEMS,
    LONG,
    MODELS,
    build,
    facts,
    number,
    numbers,
    odd_numbers,
    study,
    transcripts,
)
from userturn.report import plots
from userturn.report.build import ASSETS, SCRIPTS, STYLES, page_script
from userturn.report.choices import choices, published
from userturn.report.chunks import Chunks, packed, unpacked
from userturn.report.data import Numbers
from userturn.report.figures import details, format_value, interval_text, p_text, value_text
from userturn.report.figures import number as shown_number
from userturn.report.inert import excerpt, script_json, visible, visible_text
from userturn.report.table import COLUMNS, csv_bytes, metadata
from userturn.report.transcripts import BUCKETS, Words, add_cell, add_contexts, word_hash, words_of


class Page(HTMLParser):
    """Elements and attributes of the page, and the text of scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[dict[str, str | None], str]] = []
        self.text: list[str] = []
        self._raw: dict[str, str | None] | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._raw = {"tag": tag, **dict(attrs)} if tag in {"script", "style"} else None

    def handle_data(self, data: str) -> None:
        if self._raw is not None:
            self.raw.append((self._raw, data))
        self.text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in {"script", "style"}:
            self._raw = None


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_same_input_gives_same_bytes(html: str, tmp_path: Path) -> None:
    assert build(tmp_path).encode("utf-8") == html.encode("utf-8")
    page, again = build(tmp_path / "a", beside=True), build(tmp_path / "b", beside=True)
    assert page == again
    files = [{path.name: path.read_bytes() for path in (tmp_path / x / "report_files").iterdir()} for x in "ab"]
    assert files[0] == files[1]
    assert len(files[0]) > 100


def _stored(page: Page, name: str) -> Any:
    return json.loads(next(text for about, text in page.raw if about.get("id") == name))


def test_data_lies_in_the_page_or_beside_it(page: Page, tmp_path: Path) -> None:
    inside, outside = page, Page(build(tmp_path, beside=True))
    catalogues = [_stored(one, "catalogue") for one in (inside, outside)]
    assert catalogues[0]["cells"] == catalogues[1]["cells"]
    pieces = _stored(inside, "chunks")
    assert not [about for about, _ in outside.raw if about.get("id") == "chunks"]
    for name, data in pieces.items():
        assert (tmp_path / "report_files" / f"{name}.js").read_text() == f'userturnChunk("{name}","{data}")\n'
    rows = [row for cell in catalogues[0]["cells"] for name, _ in cell["chunks"] for row in unpacked(pieces[name])]
    assert [(row[0], row[2]) for row in rows] == [(row["item"], row["text"]) for row in transcripts()]
    assert [row[5][0][0] for row in rows] == [row["label"] or "unscored" for row in transcripts()]
    policies = [
        next(a["content"] or "" for t, a in one.tags if a.get("http-equiv") == "Content-Security-Policy")
        for one in (inside, outside)
    ]
    assert "strict-dynamic" not in policies[0]
    assert "trusted-types 'none'" in policies[0]
    assert "trusted-types userturn-files" in policies[1]


def test_the_index_of_words_finds_every_word_and_item(tmp_path: Path) -> None:
    page = Page(build(tmp_path, beside=True))
    catalogue = _stored(page, "catalogue")

    def read(name: str) -> Any:
        return unpacked((tmp_path / "report_files" / f"{name}.js").read_text().split('"')[3])

    assert len(catalogue["words"]["buckets"]) == BUCKETS
    for term in ("second", "megabyte", "item gsm8k-one/two 100%#?"):
        value = word_hash(term)
        places = read(catalogue["words"]["buckets"][value % BUCKETS]).get(str(value), [])
        found = {catalogue["words"]["pieces"][place] for place in places}
        wanted = {
            name
            for cell in catalogue["cells"]
            for name, _ in cell["chunks"]
            if any(term in words_of(row[2]) or term == f"item {row[0]}" for row in read(name))
        }
        assert found == wanted
        assert wanted


def test_words_are_runs_of_letters_and_digits() -> None:
    assert words_of("It's 2nd_step, ÉTÉ 数学!") == {"it", "s", "2nd", "step", "été", "数学"}
    # the value of PKZIP's CRC-32 check
    assert word_hash("123456789") == 0xCBF43926


def test_pieces_are_packed_alike_and_addressed_by_content(tmp_path: Path) -> None:
    assert packed({"b": 1, "a": "\ud800 é"}) == packed({"a": "\ud800 é", "b": 1})
    assert packed(1)[4:8] == bytes(4)
    chunks = Chunks(tmp_path)
    assert chunks.add([1]) == chunks.add([1]) != chunks.add([2])
    assert len(list(tmp_path.iterdir())) == 2
    assert chunks.settle(10_000) == {name: chunks.path(name).read_text().split('"')[3] for name in sorted(chunks.sizes)}
    assert chunks.settle(chunks.total - 1) is None
    assert chunks.beside == sorted(chunks.sizes)


def test_cells_are_cut_into_pieces_and_counted(tmp_path: Path) -> None:
    chunks = Chunks(tmp_path)
    turns = [{"item": f"i{n}", "sample": 0, "text": "", "finish_reason": "stop"} for n in range(4_500)]
    blocks = {row["item"]: n // 200 for n, row in enumerate(turns)}
    one = {
        (row["item"], 0): {"state": "scored", "label": "generic", "rationale": None, "evidence": None} for row in turns
    }
    two = {key: row | {"label": "unrelated"} for key, row in list(one.items())[:7]}
    cell = add_cell(turns, [one, two], blocks, chunks, Words(), shown=True)
    assert [n for _, n in cell["chunks"]] == [2_000, 2_000, 500]
    assert cell["differ"] == 7
    assert sum(cell["counts"]) == 4_500
    rows = [{"item": f"i{n}", "prompt": "", "messages": [], "changes": {}} for n in range(401)]
    names, where = add_contexts(rows, chunks, shown=True)
    assert (len(names), where["i0"], where["i399"], where["i400"]) == (3, 0, 1, 2)


def test_policy_allows_exactly_the_inline_script_and_style(page: Page) -> None:
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; ")
    for kind in ("script", "style"):
        blocks = [text for about, text in page.raw if about["tag"] == kind and about.get("type") is None]
        assert len(blocks) == 1
        assert kind == "style" or blocks[0] == page_script()
        digest = base64.b64encode(hashlib.sha256(blocks[0].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_markup_comes_from_the_template_alone(page: Page, html: str) -> None:
    assert "<img" not in html
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"img", "iframe", "object", "embed", "link", "base", "video", "audio", "b"}
    assert [a.get("id") or a.get("type") for t, a in page.tags if t == "script"] == ["catalogue", "chunks", None]
    for tag, attributes in page.tags:
        assert "style" not in attributes, (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert not [name for name in attributes if name == "src"]
        for name in ("href", "action", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)


def test_hostile_texts_reach_the_page_as_data_alone(page: Page, html: str) -> None:
    data = {text for about, text in page.raw if about.get("type") == "application/json"}
    shown = "".join(text for text in page.text if text not in data)
    assert len(data) == 2
    assert not [one for one in (*HOSTILE, *ITEMS) if one in shown]
    assert not re.search("[\x00-\x08\x0b-\x1f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]", html)
    names = _stored(page, "chunks")
    texts = {row[2] for cell in _stored(page, "catalogue")["cells"] for row in unpacked(names[cell["chunks"][0][0]])}
    assert texts >= {*HOSTILE, LONG}


def test_every_number_is_on_the_page_with_its_own_digits(page: Page, html: str) -> None:
    known = {row["id"]: row for row in numbers()}
    assert {a["data-number-id"] for t, a in page.tags if t == "button" and "data-number-id" in a} == set(known)
    assert {a["data-number-id"] for _, a in page.tags if "data-number-id" in a} == set(known)
    catalogue, pieces = _stored(page, "catalogue"), _stored(page, "chunks")
    stored = {}
    for place, name in enumerate(catalogue["numbers"]):
        piece = unpacked(pieces[name])
        assert all(word_hash(number_id) % len(catalogue["numbers"]) == place for number_id in piece)
        stored |= piece
    assert set(stored) == set(known)
    shown = re.findall(r'data-number-id="([^"]+)"><span class="v" data-field="value">([^<]+)</span>', html)
    assert {number_id for number_id, _ in shown} == set(known)
    for number_id, digits in shown:
        assert digits == value_text(known[number_id])


def test_structure_is_accessible(page: Page) -> None:
    tags = [tag for tag, _ in page.tags]
    assert tags.count("h1") == tags.count("main") == tags.count("header") == tags.count("footer") == 1
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert tags.count("table") == tags.count("caption") > 5
    assert all("scope" in a for t, a in page.tags if t == "th")
    assert all(a.get("aria-label") for t, a in page.tags if t == "svg" and a.get("role") == "img")
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))


def test_a_zero_is_shown_as_measured_with_its_bound() -> None:
    zero = number("followup_rate/m/d/baseline/t0.0", {"model": "m"}, 0, 32)
    element = shown_number(zero)
    assert 'class="num zero"' in element
    assert re.sub("<[^>]+>", "", element) == "0.000 upper limit 0.094 0 of 32"
    assert "not measured" in shown_number(None)


def test_a_task_without_a_scorer_says_so() -> None:
    row = number("accuracy/m/mt_bench", {"model": "m"}, 0, 0)
    assert re.sub("<[^>]+>", "", shown_number(row)) == "not defined: no row was scored"
    assert 'data-number-id="accuracy/m/mt_bench"' in shown_number(row)


def test_details_say_how_a_number_came_about() -> None:
    row = next(row for row in numbers() if row["id"].startswith("effect/"))
    told = details(row)
    assert dict(told["short"])["Method"] == "Newcombe hybrid score on n_eff"
    assert dict(told["short"])["p-value"] == "0.031, adjusted <0.001 (exact sign-flip test)"
    assert told["title"] == "Effect of the perturbation · alpha-1b · gsm8k · shuffled context · T = 0"
    assert told["audit"] == f"userturn audit {row['id']}"
    assert told["cell"] == "/".join(row["id"].split("/")[1:])
    undefined = details(numbers()[-1])
    assert dict(undefined["short"])["Value"] == "not defined: Two models say nothing about a correlation."
    assert dict(undefined["short"])["Bootstrap"] == "not defined here"
    assert undefined["cell"] is None


@pytest.mark.parametrize(
    ("value", "decimals", "signed", "text"),
    [
        (0.0625, 3, False, "0.062"),
        (-0.0004, 3, True, "0.000"),
        (-0.25, 2, True, "−0.25"),
        (0.25, 2, True, "+0.25"),
        (0.0, 3, True, "0.000"),
        (1.0, 1, False, "1.0"),
    ],
)
def test_format_value(value: float, decimals: int, signed: bool, text: str) -> None:
    assert format_value(value, decimals, signed=signed) == text


def test_small_p_values_are_bounds() -> None:
    assert [p_text(p) for p in (None, 0.0, 0.00099, 0.001, 1.0)] == [
        "–",
        "<0.001",
        "<0.001",
        "0.001",
        "1.000",
    ]


def test_intervals_of_differences_are_never_shortened() -> None:
    row = number("effect/x", {}, 0, 4, value=0.0, low=0.0, high=0.5, unit="difference of proportions")
    assert interval_text(row, short=True) == "[0.000, +0.500]"


@given(st.text(alphabet=st.characters(), max_size=60))
def test_visible_loses_nothing_and_adds_no_markup(text: str) -> None:
    html = visible(text)
    assert Markup(re.sub('<span class="ctl">|</span>', "", html)).unescape() == visible_text(text)
    assert not re.search("<(?!/?span)", html)
    html.encode("utf-8")


@given(st.text())
def test_script_json_is_inert_and_reversible(text: str) -> None:
    written = script_json({"t": text})
    assert not set(written) & set("<>&\u2028\u2029")
    assert json.loads(written) == {"t": text}


def test_excerpt_is_one_line() -> None:
    assert excerpt("a\n\n b\tc") == "a b c"
    assert excerpt("y" * 500).endswith("y…")


def test_ids_given_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="accuracy/alpha-1b/gsm8k"):
        Numbers([numbers()[0], numbers()[0]])


def test_numbers_that_no_section_knows_are_still_shown(html: str, tmp_path: Path) -> None:
    assert 'id="others"' in html
    assert "correlation/all" in html
    without = [row for row in numbers() if row["quantity"] != "correlation"]
    assert 'id="others"' not in build(tmp_path, numbers=without)


def test_simulated_studies_say_so_and_validated_judges_lose_the_warning(html: str, tmp_path: Path) -> None:
    assert "SIMULATED:" not in html
    assert '<body class="simulated"' not in html
    simulated = build(tmp_path, numbers=[], transcripts=[], facts=facts() | {"engine": {"name": "simulated"}})
    assert "<title>SIMULATED" in simulated
    assert "No number here is a finding" in simulated
    assert "The judge is provisional." in html
    checked = facts() | {"judges": {"provisional": {"version": "2", "provisional": False}}}
    assert "The judge is provisional." not in build(tmp_path, numbers=[], transcripts=[], facts=checked)


def test_an_empty_study_is_still_a_page(tmp_path: Path) -> None:
    page = build(tmp_path, numbers=[], transcripts=[])
    assert "not measured" in page
    assert "shows no transcripts" in page


def test_choices_keep_what_the_paper_says_apart() -> None:
    by_topic = {choice.topic: choice for choice in choices(study(), facts())}
    assert by_topic["Probe"].status == "INFERRED"
    assert by_topic["Metric"].status == "CONFIRMED"
    ours = [
        "Prefix",
        "Judge",
        "Temperatures",
        "Perturbation: shuffled context",
        "Perturbation: appended question",
    ]
    assert {by_topic[topic].status for topic in ours} == {"OURS"}
    assert by_topic["Judge"].differs
    assert "What <else>?" in by_topic["Perturbation: appended question"].here
    assert "16 of 100" in by_topic["Datasets"].here
    statuses = [choice.status for choice in choices(study(), facts())]
    assert statuses == sorted(statuses, key=["CONFIRMED", "INFERRED", "OURS"].index)
    assert all(choice.here and choice.paper for choice in by_topic.values())


def test_published_figures_are_not_compared_with_other_models() -> None:
    assert all("Not comparable" in one.comparable for one in published(study()))
    with_qwen = study() | {"models": {"qwen3.5-2b": {}}}
    assert all("qwen3.5-2b" in one.comparable for one in published(with_qwen))


def _numbers_in(svg: str, pattern: str) -> list[float]:
    return [float(found) for found in re.findall(pattern, svg)]


def test_forest_puts_the_value_between_the_ends_and_zero_in_the_middle() -> None:
    dot = plots.Dot(0.1, -0.1, 0.2, 0, "effect/x")
    svg = plots.forest([plots.ForestRow("row <1>", (dot,))], 0.2, "label", "axis")
    zero = _numbers_in(svg, r'class="axis" x1="([\d.]+)"')[0]
    ends = re.search(r'class="interval" x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)"', svg)
    centre = _numbers_in(svg, r'cx="([\d.]+)"')[0]
    assert ends is not None
    low, high = float(ends[1]), float(ends[2])
    assert zero - low == pytest.approx(centre - zero, abs=0.02)
    assert high - zero == pytest.approx(2 * (centre - zero), abs=0.02)
    assert "row &lt;1&gt;" in svg
    assert "style=" not in svg


def test_stacked_widths_are_shares() -> None:
    row = plots.BarRow(
        "g", "T 0", tuple(plots.Segment(share, i, "X", f"n{i}") for i, share in enumerate([0.25, 0.0, 0.75]))
    )
    widths = _numbers_in(plots.stacked([row], "label"), r'width="([\d.]+)"')
    assert len(widths) == 2
    assert widths[1] == pytest.approx(3 * widths[0], abs=0.05)


def test_zeros_are_hollow_in_figures() -> None:
    dots = [(0.0, plots.Dot(0.0, 0.0, 0.1, 0, "a", zero=True)), (1.0, plots.Dot(0.2, 0.1, 0.3, 0, "b"))]
    assert plots.curve([dots], 0.3, "l", "x", "y").count("mark hollow") == 1


@pytest.mark.parametrize(
    ("highest", "limit"), [(0.0, 0.05), (0.05, 0.05), (0.11, 0.2), (0.51, 0.8), (0.9, 1.0), (3.0, 1.0)]
)
def test_rate_limit(highest: float, limit: float) -> None:
    assert plots.rate_limit(highest) == limit


def test_assets_hold_nothing_that_the_policy_forbids() -> None:
    script = page_script()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|fetch\(|</s", script
    )
    assert {path.name for path in ASSETS.glob("*.js")} == set(SCRIPTS)
    assert {path.name for path in ASSETS.glob("*.css")} == set(STYLES)
    assert all("</" not in (ASSETS / name).read_text("utf-8") for name in STYLES)
    assert all(len((ASSETS / name).read_text("utf-8").splitlines()) < 400 for name in SCRIPTS)
    everything = "".join(path.read_text("utf-8") for path in sorted(ASSETS.glob("*")))
    assert not re.search(r"https?://|url\(|@import", everything)


def test_fixture_covers_what_it_should() -> None:
    rows: list[dict[str, Any]] = transcripts()
    assert {row["text"] for row in rows} >= {*HOSTILE, LONG}
    assert None in {row["label"] for row in rows}


def test_contrasts_and_controls_stand_apart_from_the_perturbations(html: str) -> None:
    page = html
    sections = {
        name: page.split(f'<section id="{name}"')[1].split("</section>")[0] for name in ("perturbations", "controls")
    }
    for name in ("instructed", "human followup", "echoed query", "continued answer", "other followup"):
        row = f'<th scope="row">{name}</th>'
        assert row in sections["controls"]
        assert row not in sections["perturbations"]
    assert '<th scope="row">shuffled context</th>' in sections["perturbations"]
    assert '<th scope="row">shuffled context</th>' not in sections["controls"]


def test_texts_of_a_dataset_that_is_not_to_be_published_stay_out_of_the_page(tmp_path: Path) -> None:
    rows = [
        row | {"text": "again SECRET", "prompt": "SECRET", "messages": [{"role": "user", "content": "SECRET"}]}
        for row in transcripts()[:4]
    ]
    for beside in (False, True):
        for shown in (True, False):
            folder = tmp_path / f"{beside}{shown}"
            build(folder, beside=beside, shown=shown, transcripts=rows)
            data = [path.read_text().split('"')[3] for path in (folder / "report_files").iterdir()]
            written = "".join(json.dumps(unpacked(one)) for one in data)
            assert ("SECRET" in written) is shown
            assert (str(word_hash("secret")) in written) is (shown and beside)


def test_likelihoods_stand_in_a_table_of_their_own(html: str, tmp_path: Path) -> None:
    config = study()
    config["probe"]["likelihood"] = {"controls": ["human_followup"], "against": "shuffled_context"}
    model, dataset = next(iter(config["models"])), next(iter(config["datasets"]))
    labels = {"model": model, "dataset": dataset, "perturbation": "human_followup"}
    id = f"role_log_odds/{model}/{dataset}/human_followup"
    row = number(id, labels, 3, 8, value=0.25, low=0.1, high=0.4, unit="nats per token")
    page = build(tmp_path, study=config, numbers=[*numbers(), row])
    assert 'id="likelihood"' in page
    assert "+0.250" in page
    assert 'id="likelihood"' not in html


def test_the_table_holds_every_number_and_no_formula() -> None:
    rows = [*numbers(), number("=1+1", {"model": "@SUM(A1)", "dataset": "-2"}, 1, 4, notes=["+3", "\t=x"])]
    table = csv_bytes(rows).decode("utf-8")
    read = list(csv.DictReader(io.StringIO(table, newline="")))
    assert [row["id"] for row in read[:-1]] == [row["id"] for row in numbers()]
    assert list(read[0]) == list(COLUMNS) == [c["name"] for c in metadata("numbers.csv")["tableSchema"]["columns"]]
    assert [read[-1][key] for key in ("id", "model", "dataset", "notes")] == [
        "'=1+1", "'@SUM(A1)", "'-2", "'+3 | \N{SYMBOL FOR HORIZONTAL TABULATION}=x"
    ] or read[-1]["notes"].startswith("'+3")  # fmt: skip
    for row, original in zip(read, rows, strict=True):
        assert row["value"] == ("" if original["value"] is None else str(original["value"]))
    undefined = next(row for row in read if row["id"] == "correlation/all")
    assert (undefined["value"], undefined["temperature"]) == ("", "1.0")


#: Every case in which a rate is odd, with what a reader sees.
ODD: list[tuple[str, dict[str, Any], str]] = [
    ("0 of n", number("r/0n", {}, 0, 48), "0.000 upper limit 0.062 0 of 48"),
    ("1 of n", number("r/1n", {}, 1, 48), "0.021 [0.000, 0.052] 1 of 48"),
    ("n of n", number("r/nn", {}, 48, 48, low=0.926), "1.000 lower limit 0.926 48 of 48"),
    ("one item", number("r/1i", {}, 1, 1, n_items=1, low=0.05), "1.000 lower limit 0.050 1 of 1"),
    (
        "all unscored",
        number("r/un", {}, 0, 0, n_unscored=48, notes=["no row was scored"]),
        "not defined: no row was scored",
    ),
    (
        "no value",
        number("r/no", {}, 3, 48, value=None, low=None, high=None, notes=["one class only; kappa is 0/0"]),
        "not defined: one class only",
    ),
    ("no reason", number("r/nr", {}, 3, 48, value=None, low=None, high=None), "not defined"),
    ("no interval", number("r/ni", {}, 1, 4, low=None, high=None, method=None), "0.250 no interval 1 of 4"),
    ("no rows", number("r/nx", {}, 0, 0, n_items=0), "not defined: no row was scored"),
]


@pytest.mark.parametrize(("row", "text"), [(row, text) for _, row, text in ODD], ids=[name for name, _, _ in ODD])
def test_odd_rates_read_well(row: dict[str, Any], text: str) -> None:
    assert re.sub("<[^>]+>", "", shown_number(row)) == text
    assert text.startswith(details(row)["short"][0][1])


def test_figures_say_where_nothing_is_defined() -> None:
    assert "not defined" in plots.forest([plots.ForestRow("r", (), undefined=(1,))], 0.2, "l", "a")
    assert "not defined" in plots.curve([[]], 0.3, "l", "x", "y", gaps=[(0.0, 0), (1.0, 1)])
    assert "no user turns" in plots.stacked([plots.BarRow("g", "T 0", ())], "l")


def test_a_study_of_odd_numbers_is_a_whole_page(tmp_path: Path) -> None:
    html = build(tmp_path, numbers=odd_numbers())
    page = Page(html)
    raw = {text for _, text in page.raw}
    text = " ".join("".join(text for text in page.text if text not in raw).split())
    for words in (
        "0.000 upper limit 0.062 0 of 48",
        "1.000 lower limit 0.926 48 of 48",
        "1.000 lower limit 0.050 1 of 1",
        "not defined: no row was scored",
        "not defined: no shared item",
        "not defined: the baseline has no positive",
    ):
        assert words in text, words
    assert not re.search(r"\b(None|nan|NaN|undefined)\b", text)
    assert html.count('class="plot"') > 8


def test_the_ledger_of_exclusions_is_shown(html: str, tmp_path: Path) -> None:
    section = html[html.index('<section id="exclusions"') :].partition("</section>")[0]
    assert "a reviewer, 2026-11-30" in section
    assert "&lt;b&gt;wrong reference" in section
    assert "<b>" not in section
    assert '<a href="#exclusions">' in html
    assert 'id="exclusions"' not in build(tmp_path, facts=facts() | {"exclusions": []})


def test_an_earlier_study_is_set_beside_this_one(html: str, tmp_path: Path) -> None:
    assert 'id="before"' not in html
    rate = next(row for row in numbers() if row["quantity"] == "followup_rate" and row["value"] is not None)
    moved = {**rate, "value": 0.0 if rate["value"] > 0.5 else 1.0, "k": 0 if rate["value"] > 0.5 else rate["n"]}
    moved |= {"low": moved["value"], "high": moved["value"]}
    earlier = [moved if row["id"] == rate["id"] else row for row in numbers()]
    page = build(tmp_path, before=earlier)
    section = page[page.index('<section id="before"') :].partition("</section>")[0]
    assert "1 moved beyond an interval" in section
    assert section.count("<tr>") == 2
    assert f'data-number-id="{rate["id"]}"' in section
    same = build(tmp_path, before=numbers())
    assert (
        "moved beyond"
        not in same[same.index('<section id="before"') :].partition("</section>")[0].partition("<p class")[0]
    )


def test_a_trained_variant_stands_beside_its_base(html: str, tmp_path: Path) -> None:
    assert 'id="posttraining"' not in html
    base, variant = MODELS[:2]
    config = study()
    config["models"][variant] = {**config["models"][variant], "posttrain": {"base": base, "method": "sft", "data": {}}}
    rate = next(row for row in numbers() if row["quantity"] == "followup_rate" and row["value"] is not None)
    gain = {
        **rate,
        "id": f"effect_posttrain/{variant}/{DATASETS[0]}/baseline/t0.0",
        "quantity": "effect_posttrain",
        "labels": {"model": variant, "dataset": DATASETS[0], "perturbation": "baseline", "temperature": 0.0},
        "unit": "difference of proportions",
    }
    curve = [{"step": 0, "held_out_loss": 3.5}, {"step": 1, "loss": 3.0}, {"step": 2, "loss": 2.0}]
    trained = {variant: {"summary": {"flags": ["<b>the judge was trained on these"], "data": {}}, "curve": curve}}
    page = build(tmp_path, study=config, numbers=[*numbers(), gain], trained=trained)
    section = page[page.index('<section id="posttraining"') :].partition("</section>")[0]
    assert f"{variant}: sft on {base}" in section
    assert f'data-number-id="{gain["id"]}"' in section
    assert "&lt;b&gt;the judge" in section
    assert "<polyline" in section
    assert '<a href="#posttraining">' in page
