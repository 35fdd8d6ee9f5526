"""The report in a real Chromium, opened from disk as a reader would."""

from __future__ import annotations

import csv
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1]))

sync_api = pytest.importorskip("playwright.sync_api")

from report_fixture import HOSTILE, ITEMS, LONG, build, numbers, transcripts  # noqa: E402
from userturn.report.figures import value_text  # noqa: E402
from userturn.report.inert import visible_text  # noqa: E402

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path (Debian: apt-get install chromium)"),
]

RATE = "followup_rate/alpha-1b/gsm8k/baseline/t0.7"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    build(folder)
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def address_beside(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same page with its data in files beside it."""
    folder = tmp_path_factory.mktemp("beside")
    build(folder, beside=True)
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    # no sandbox: containers run the tests as root
    with (
        sync_api.sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=180_000) as found,
    ):
        yield found


class Opened:
    """A page, with everything it said and asked for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: self.asked.append(request.url))


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Opened]:
    with browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as context:
        one = Opened(context.new_page())
        one.page.goto(address)
        yield one


def _ready(page: Any) -> Any:
    """The list of transcripts, once the search that was asked for last is shown."""
    page.wait_for_function("() => document.getElementById('shown').textContent.includes('user turns')")
    return page.locator("#turns > .turn")


def _counts(page: Any, text: str) -> None:
    """Waits until the page says how many turns there are.

    With its data beside it a page shows what it finds in a short while, and goes on when asked.
    """
    for _ in range(60):
        page.wait_for_function("() => !document.getElementById('shown').textContent.startsWith('searching')")
        said = page.locator("#shown").inner_text()
        if said.startswith(text):
            return
        if said.startswith("the first") and page.locator("#more").is_visible():
            page.locator("#more").click()
        page.wait_for_timeout(250)
    raise AssertionError(f"the page says {said!r}, not {text!r}")


def _open_item(page: Any, address: str, row: dict[str, Any], *, sample: bool = True) -> Any:
    parts = [row["model"], row["dataset"], row["item"]]
    if sample:
        parts += [row["perturbation"], f"t{row['temperature']:g}", str(row["sample"])]
    page.goto(f"{address}#item/" + "/".join(quote(part, safe="") for part in parts))
    page.wait_for_selector("#panel .cards")
    return page.get_by_role("dialog")


def test_it_loads_silently_asks_for_nothing_and_runs_no_text(opened: Opened, address: str) -> None:
    page = opened.page
    _ready(page)
    page.locator("#more").click()
    for turn in page.locator("#turns > .turn").all()[:20]:
        turn.locator("summary").first.click()
    page.wait_for_function("() => document.querySelectorAll('#turns .body').length === 20")
    assert opened.said == []
    assert opened.asked == [address]
    assert page.title() == "userturn · study fixture"


def test_hostile_texts_are_shown_as_they_are_and_do_nothing(opened: Opened, address: str) -> None:
    page = opened.page
    for text in (*HOSTILE, LONG):
        row = next(row for row in transcripts() if row["text"] == text)
        _open_item(page, address, row)
        page.wait_for_selector(".wanted .generated .said")
        body = page.locator(".wanted .generated .said").text_content()
        if len(text) <= 20_000:
            assert body == visible_text(text)
        else:
            assert body == f"{text[:20_000]}⟦{len(text) - 20_000} more characters⟧"
    page.locator(".wanted .generated .rest").click()
    assert page.locator(".wanted .generated .said").text_content() == LONG
    assert page.title() == "userturn · study fixture"
    assert page.locator("#panel script, #panel img, #panel iframe, #panel b, #turns b, #panel svg").count() == 0
    assert opened.said == []


def test_every_number_shows_its_own_value(opened: Opened) -> None:
    known = {row["id"]: value_text(row) for row in numbers()}
    shown = opened.page.evaluate(
        "() => [...document.querySelectorAll('[data-number-id] > [data-field=value]')]"
        ".map((node) => [node.parentElement.dataset.numberId, node.textContent])"
    )
    assert dict(shown) == known
    assert all(known[number_id] == text for number_id, text in shown)


def test_the_policy_stops_what_is_not_ours(opened: Opened) -> None:
    page = opened.page
    page.evaluate("() => { const s = document.createElement('style'); s.textContent = 'h1 {display: none}';"
                  " document.head.append(s); }")  # fmt: skip
    assert page.locator("h1").is_visible()
    assert any("Content Security Policy" in text for text in opened.said)
    with pytest.raises(sync_api.Error, match="TrustedHTML"):
        page.evaluate("() => { document.body.innerHTML = '<p>x</p>'; }")


def test_the_page_never_scrolls_sideways(opened: Opened) -> None:
    page = opened.page
    page.evaluate("() => document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for width in (360, 400, 768, 1280, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_tooltip_by_keyboard(opened: Opened) -> None:
    page = opened.page
    number = page.locator(f"#headline [data-number-id='{RATE}']")
    number.scroll_into_view_if_needed()
    # the number before it, then one step with the key: focus comes from the keyboard
    page.locator(f"#headline [data-number-id='{RATE.replace('t0.7', 't0.0')}']").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.dataset.numberId") == RATE
    tip = page.get_by_role("tooltip")
    tip.wait_for()  # what it shows is unpacked first
    assert number.get_attribute("aria-describedby") == "tip"
    for text in (
        "95 % interval",
        "Wilson on n_eff",
        "of 32 user turns, 16 items",
        "Unscored",
        "percentile, over items",
    ):
        assert text in tip.inner_text()
    page.keyboard.press("Escape")
    tip.wait_for(state="hidden")
    assert number.get_attribute("aria-describedby") is None


def test_tooltip_by_pointer_in_tables_and_figures(opened: Opened) -> None:
    page = opened.page
    tip = page.get_by_role("tooltip")
    page.locator(f"#headline [data-number-id='{RATE}']").hover()
    assert "T = 0.7" in tip.inner_text()
    # the pointer may move onto the tooltip without losing it
    tip.hover()
    page.wait_for_timeout(250)
    assert tip.is_visible()
    page.locator("#temperature-h").hover()
    tip.wait_for(state="hidden")
    page.locator(f"#temperature g[data-number-id='{RATE}'] .mark").hover()
    assert "Genuine-followup rate · alpha-1b · gsm8k · baseline" in tip.inner_text()


def test_panel_opens_with_enter_and_gives_focus_back(opened: Opened) -> None:
    page = opened.page
    page.locator(f"#headline [data-number-id='{RATE}']").focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog")
    page.wait_for_selector("#panel .rows .turn")
    source = "results/judgements/provisional/alpha-1b/gsm8k/baseline/t0.7.jsonl"
    for text in (f"userturn audit {RATE}", source, "Seed"):
        assert text in panel.text_content()
    page.keyboard.press("Escape")
    panel.wait_for(state="hidden")
    assert page.evaluate("() => document.activeElement.dataset.numberId") == RATE
    assert opened.said == []


def test_a_panel_shows_three_of_each_kind_and_how_to_rebuild(opened: Opened) -> None:
    """Two clicks from the page: the rate and how sure, the texts, which judge said so, the command."""
    page = opened.page
    page.locator(f"#headline [data-number-id='{RATE}']").click()
    panel = page.get_by_role("dialog")
    page.wait_for_selector("#panel .rows .turn")
    for text in ("95 % interval", "userturn rebuild alpha-1b/gsm8k/baseline/t0.7", "Share of the user turns"):
        assert text in panel.inner_text()
    assert panel.locator(".rows h4").all_inner_texts() == ["genuine followup", "not genuine followup"]
    panel.locator(".rows .turn").first.click()
    page.wait_for_selector("#panel .rows .judges")
    said = panel.locator(".rows .judges").first.inner_text()
    assert "provisional (counted in the rates)" in said
    assert "other" in said
    rows = [row for row in transcripts() if row["cell"] == "alpha-1b/gsm8k/baseline/t0.7"]
    label = rows[0]["label"]
    panel.get_by_label("label").select_option(label)
    page.wait_for_function("() => document.querySelectorAll('#panel .rows .turn').length === 1")
    assert panel.locator(".rows .turn").get_attribute("data-label") == label


def test_an_effect_shows_both_cells_and_an_accuracy_its_answers(opened: Opened, address: str) -> None:
    page = opened.page
    page.goto(f"{address}#number/accuracy/alpha-1b/gsm8k")
    panel = page.get_by_role("dialog")
    page.wait_for_selector("#panel .rows a")
    panel.locator(".rows a").first.click()
    page.wait_for_selector("#panel .cards")
    assert visible_text(f"Item gsm8k-{ITEMS[0]}") == panel.get_by_role("heading", level=2).inner_text()
    assert "right, read as <4>" in panel.inner_text()
    page.go_back()
    page.wait_for_selector("#panel .number-view")
    assert "Accuracy" in panel.get_by_role("heading", level=2).inner_text()
    page.go_back()
    page.wait_for_function("() => !document.getElementById('panel').open")
    assert opened.said == []


@pytest.mark.parametrize("where", ["inside", "beside"])
def test_filters_and_search_of_transcripts(browser: Any, address: str, address_beside: str, where: str) -> None:
    with browser.new_context(reduced_motion="reduce") as context:
        opened = Opened(context.new_page())
        page, rows = opened.page, transcripts()
        page.goto(address if where == "inside" else address_beside)
        first = _ready(page).count()
        _counts(page, f"{len(rows)} of {len(rows)} user turns, the first {first} shown")
        # as many as a short while gives, where they are beside the page
        assert first == 30 if where == "inside" else 0 < first <= 30
        page.locator("#more").click()
        turns = "document.querySelectorAll('#turns > .turn').length"
        page.wait_for_function(f"() => {turns} === 60" if where == "inside" else f"() => {turns} > {first}")
        page.locator("#filter-dataset").select_option("gsm8k")
        page.locator("#filter-perturbation").select_option("swapped_roles")
        wanted = [r for r in rows if r["dataset"] == "gsm8k" and r["perturbation"] == "swapped_roles"]
        _counts(page, f"{len(wanted)} of {len(rows)}")
        page.locator("#filter-temperature").select_option("1")
        _counts(page, f"{len([r for r in wanted if r['temperature'] == 1.0])} of {len(rows)}")
        page.get_by_role("button", name="Show all").click()
        page.locator("#filter-label").select_option("unscored")
        _counts(page, f"{len([r for r in rows if r['label'] is None])} of {len(rows)}")
        page.locator("#filter-judges").select_option("differ")
        _counts(page, f"0 of {len(rows)}")
        page.get_by_role("button", name="Show all").click()
        page.locator("#search").fill("SECOND step")
        found = [r for r in rows if "second step" in r["text"]]
        _counts(page, f"{len(found)} of {len(rows)}")
        assert all("second step" in text for text in _ready(page).locator(".excerpt").all_inner_texts())
        page.locator("#item").fill(found[0]["item"])
        _counts(page, f"{len([r for r in found if r['item'] == found[0]['item']])} of {len(rows)}")
        page.locator("#search").fill("nosuchword anywhere")
        _counts(page, f"0 of {len(rows)}")
        assert opened.said == []


def test_a_missing_file_is_named(browser: Any, tmp_path: Path) -> None:
    build(tmp_path, beside=True)
    for path in (tmp_path / "report_files").iterdir():
        path.unlink()
    with browser.new_context() as context:
        page = context.new_page()
        page.goto((tmp_path / "report.html").as_uri())
        page.wait_for_selector("#turns [role=alert]")
        assert "copy the page together with its folder" in page.locator("#turns").inner_text()


def test_only_files_of_the_page_can_be_loaded(browser: Any, address_beside: str) -> None:
    with browser.new_context() as context:
        opened = Opened(context.new_page())
        page = opened.page
        page.goto(address_beside)
        _ready(page)
        assert {url.rsplit("/", 2)[-2] for url in opened.asked[1:]} == {"report_files"}
        with pytest.raises(sync_api.Error, match="TrustedScriptURL"):
            page.evaluate("() => { document.createElement('script').src = 'https://example.org/x.js'; }")
        with pytest.raises(sync_api.Error, match="disallowed"):
            page.evaluate("() => { trustedTypes.createPolicy('mine', { createScriptURL: (x) => x }); }")


def test_permanent_links(opened: Opened, address: str) -> None:
    page, row = opened.page, transcripts()[3]
    page.goto(f"{address}#number/{RATE}")
    page.wait_for_selector("#panel .number-view")
    assert RATE in page.get_by_role("dialog").inner_text()
    page.get_by_role("link", name="All in the browser of transcripts").click()
    page.wait_for_function("() => !document.getElementById('panel').open")
    _counts(page, "2 of")
    assert "baseline · T = 0.7" in (page.locator("#turns > .turn").first.text_content() or "")
    panel = _open_item(page, address, row)
    page.wait_for_selector(".wanted[open] .body")
    assert row["cell"] in panel.locator(".wanted").inner_text()
    assert panel.locator(".card").count() == len(
        {r["cell"] for r in transcripts() if r["cell"].startswith("alpha-1b/gsm8k")}
    )
    page.goto(f"{address}#cell/nobody/gsm8k/baseline/t0.7")
    page.wait_for_function("() => document.getElementById('shown').textContent.includes('no transcripts')")
    assert page.locator("#turns > .turn").count() == 0
    page.goto(f"{address}#number/no/such/number")
    page.wait_for_function("() => document.getElementById('panel-title').textContent === 'Not in this page'")
    page.goto(f"{address}#item/%E0%A4%A/x/y")
    page.wait_for_function("() => document.getElementById('panel-body').textContent.includes('%E0%A4%A')")
    assert opened.said == []


def test_the_context_stands_as_the_model_saw_it(opened: Opened, address: str) -> None:
    page, row = opened.page, transcripts()[0]
    panel = _open_item(page, address, row)
    panel.locator(".wanted .exact > summary").click()
    prompt = panel.locator(".wanted pre.prompt")
    assert prompt.text_content() == visible_text(row["prompt"])
    assert prompt.locator(".marker").count() == 0
    panel.locator(".wanted").get_by_label("highlight special tokens").check()
    assert prompt.locator(".marker").all_inner_texts() == ["<|im_start|>", "<|im_end|>", "<|im_start|>"]
    assert prompt.text_content() == visible_text(row["prompt"])


def test_back_opens_a_closed_panel_again(opened: Opened) -> None:
    page = opened.page
    page.locator(f"#headline [data-number-id='{RATE}']").click()
    page.wait_for_selector("#panel .number-view")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    assert "#" not in page.url
    page.go_back()
    page.wait_for_function("() => document.getElementById('panel').open")
    page.go_back()
    page.wait_for_function("() => !document.getElementById('panel').open")


def test_figures_are_saved_as_drawing_and_as_data(opened: Opened) -> None:
    page = opened.page
    figure = page.locator("#temperature figure").first
    with page.expect_download() as started:
        figure.get_by_role("button", name="as SVG").click()
    drawing = ElementTree.fromstring(Path(started.value.path()).read_text("utf-8"))
    fills = {node.get("fill") for node in drawing.iter() if node.tag.endswith("circle")}
    assert fills
    assert all(fill and fill.startswith("rgb(") for fill in fills)
    with page.expect_download() as started:
        figure.get_by_role("button", name="as CSV").click()
    table = list(csv.DictReader(Path(started.value.path()).read_text("utf-8").splitlines()))
    known = {row["id"]: row for row in numbers()}
    assert len(table) == 6
    assert all(float(row["value"]) == known[row["id"]]["value"] for row in table)
    assert opened.said == []


def test_axe_finds_nothing_serious(browser: Any, tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    # one model and few numbers: axe looks at every element, and the rest is more of the same
    kept = [
        row for row in numbers() if row["labels"].get("dataset") == "gsm8k" and row["labels"]["model"] == "alpha-1b"
    ]
    build(tmp_path, numbers=kept)
    # axe evaluates its own source, which the page's policy forbids
    with browser.new_context(bypass_csp=True, reduced_motion="reduce") as context:
        page = context.new_page()
        page.goto((tmp_path / "report.html").as_uri())
        _ready(page)
        page.locator("#turns > .turn").first.click()
        page.wait_for_selector("#turns .body")

        def check(**options: Any) -> None:
            found = axe.run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
            serious = [one for one in found if one["impact"] in ("serious", "critical")]
            assert serious == [], [(one["id"], one["nodes"][0]["html"]) for one in serious]

        check()
        page.get_by_label("Theme", exact=True).select_option("dark")
        check(runOnly=["color-contrast"])
        page.evaluate(f"() => {{ location.hash = '#number/{RATE}'; }}")
        page.wait_for_selector("#panel .rows .turn")
        check()


def test_theme_follows_the_system_and_the_reader(opened: Opened) -> None:
    page = opened.page

    def background() -> str:
        return str(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))

    assert background() == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    dark = background()
    assert dark != "rgb(255, 255, 255)"
    page.get_by_label("Theme", exact=True).select_option("light")
    assert background() == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="light")
    page.get_by_label("Theme", exact=True).select_option("dark")
    assert background() == dark


#: Every element with text of its own: its colour and the first opaque background below it.
_COLOURS = """() => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const kinds = new Map();
  for (const e of document.querySelectorAll('body *:not(svg *):not(script):not(noscript)')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.checkVisibility()) continue;
    const clear = (one) => numbers(getComputedStyle(one).backgroundColor)[3] === 0;
    let below = e;
    while (below && clear(below)) below = below.parentElement;
    const back = getComputedStyle(below || document.body).backgroundColor;
    const fore = getComputedStyle(e).color;
    kinds.set(fore + back, [numbers(fore), numbers(back), e.tagName + '.' + e.className]);
  }
  return [...kinds.values()];
}"""


def _luminance(colour: list[float]) -> float:
    """Relative luminance, https://www.w3.org/TR/WCAG22/#dfn-relative-luminance, of sRGB in 0..255."""
    parts = [c / 255 for c in colour]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_has_enough_contrast(opened: Opened) -> None:
    page = opened.page
    page.evaluate("() => document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for theme in ("light", "dark"):
        page.get_by_label("Theme", exact=True).select_option(theme)
        found = page.evaluate(_COLOURS)
        assert len(found) > 5
        for fore, back, name in found:
            light, dark = sorted([_luminance(fore[:3]), _luminance(back[:3])], reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (theme, name, fore, back)


def test_it_prints(opened: Opened) -> None:
    _ready(opened.page)
    pdf = opened.page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 50_000
    assert opened.said == []


def test_without_scripts_the_page_still_tells_the_numbers(browser: Any, address: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(address)
        assert page.locator("noscript").count() == 1
        assert page.locator("#headline .num").first.is_visible()
        assert page.locator("#perturbations svg.plot").count() == 4
