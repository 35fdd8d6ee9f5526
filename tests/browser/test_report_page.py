"""The report in a real Chromium, opened from disk as a reader would."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1]))

sync_api = pytest.importorskip("playwright.sync_api")

from report_fixture import report_data, transcripts  # noqa: E402
from userturn.report.build import build_report  # noqa: E402

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
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(build_report(report_data()), "utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    # no sandbox: containers run the tests as root
    with (
        sync_api.sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as found,
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


def _turns(page: Any) -> Any:
    return page.locator(".turn:visible")


def test_it_loads_silently_asks_for_nothing_and_runs_no_text(opened: Opened, address: str) -> None:
    page = opened.page
    for turn in page.locator(".turn").all()[:12]:
        turn.locator("summary").first.click()
    page.wait_for_timeout(200)
    assert opened.said == []
    assert opened.asked == [address]
    assert page.title() == "userturn · study fixture"
    assert page.locator(".turn pre").first.is_visible()


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
    assert tip.is_visible()
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
    assert not tip.is_visible()
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
    page.wait_for_timeout(250)
    assert not tip.is_visible()
    page.locator(f"#temperature g[data-number-id='{RATE}'] .mark").hover()
    assert "Genuine-followup rate · alpha-1b · gsm8k · baseline" in tip.inner_text()


def test_panel_opens_with_enter_and_gives_focus_back(opened: Opened) -> None:
    page = opened.page
    page.locator(f"#headline [data-number-id='{RATE}']").focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog")
    assert panel.is_visible()
    for text in (f"userturn audit {RATE}", f"results/judgements/provisional/{RATE}.jsonl", "Seed"):
        assert text in panel.inner_text()
    page.keyboard.press("Escape")
    assert not panel.is_visible()
    assert page.evaluate("() => document.activeElement.dataset.numberId") == RATE
    assert opened.said == []


def test_filters_and_search_of_transcripts(opened: Opened) -> None:
    page, rows = opened.page, transcripts()
    assert _turns(page).count() == len(rows)
    page.locator("#filter-dataset").select_option("gsm8k")
    page.locator("#filter-perturbation").select_option("swapped_roles")
    wanted = [r for r in rows if r["dataset"] == "gsm8k" and r["perturbation"] == "swapped_roles"]
    assert _turns(page).count() == len(wanted) > 0
    assert page.locator("#shown").inner_text() == f"{len(wanted)} of {len(rows)} transcripts"
    page.locator("#filter-temperature").select_option("1")
    assert _turns(page).count() == len([r for r in wanted if r["temperature"] == 1.0])
    page.get_by_role("button", name="Show all").click()
    page.locator("#filter-label").select_option("unscored")
    assert _turns(page).count() == len([r for r in rows if r["state"] == "unscored"])
    page.get_by_role("button", name="Show all").click()
    page.locator("#search").fill("SECOND step")
    assert 0 < _turns(page).count() < len(rows)
    page.locator("#search").fill("no such words anywhere")
    assert page.locator("#shown").inner_text() == f"0 of {len(rows)} transcripts"


def test_permanent_links(opened: Opened, address: str) -> None:
    page, row = opened.page, transcripts()[3]
    page.goto(f"{address}#number/{RATE}")
    assert RATE in page.get_by_role("dialog").inner_text()
    page.get_by_role("link", name="Transcripts of this cell").click()
    assert not page.get_by_role("dialog").is_visible()
    page.wait_for_function("() => document.getElementById('shown').textContent.startsWith('1 of')")
    assert "alpha-1b/gsm8k/baseline/t0.7" in (_turns(page).first.text_content() or "")
    page.goto(f"{address}#{quote('item/' + row['cell'] + '/' + row['item'] + '/0')}")
    page.wait_for_function("() => document.querySelectorAll('.turn[open]').length === 1")
    assert row["cell"] in page.locator(".turn[open]").inner_text()
    page.goto(f"{address}#cell/nobody/gsm8k/baseline/t0.7")
    page.wait_for_function("() => document.getElementById('shown').textContent.includes('no transcripts')")
    assert _turns(page).count() == 0
    assert opened.said == []


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
    pdf = opened.page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 50_000
    assert opened.said == []


def test_without_scripts_the_page_still_tells_everything(browser: Any, address: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(address)
        assert page.locator(".turn").count() == len(transcripts())
        assert page.locator("#headline .num").first.is_visible()
        assert page.locator("#perturbations svg.plot").count() == 4
