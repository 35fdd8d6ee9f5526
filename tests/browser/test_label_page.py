"""The labelling page in a real Chromium: twenty turns from the keyboard, a reload, an export, an import."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1]))

sync_api = pytest.importorskip("playwright.sync_api")

from label_fixture import write_study  # noqa: E402
from userturn.cli import main  # noqa: E402
from userturn.judges.labels import LABELS  # noqa: E402
from userturn.judges.people import read_labels  # noqa: E402
from userturn.labelling.turns import seen  # noqa: E402

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path (Debian: apt-get install chromium)"),
]

FINAL = Path("labels/people/labels.jsonl")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    # no sandbox: containers run the tests as root
    with (
        sync_api.sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=180_000) as found,
    ):
        yield found


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    with browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True) as found:
        # a browser may start slowly beside a running engine
        found.set_default_timeout(120_000)
        yield found


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a finished study and sheets of 20 turns for two labellers."""
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path)
    assert main(["label", "export", "--n", "20", "--labellers", "2", "out"]) == 0
    return tmp_path


class Opened:
    """A page of a sheet, with everything it said and asked for."""

    def __init__(self, context: Any, path: Path, name: str | None = "AB") -> None:
        self.page = context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.address = path.resolve().as_uri()
        self.page.goto(self.address)
        if name:
            self.page.keyboard.type(name)
            self.page.keyboard.press("Enter")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def leave_dialog(self) -> None:
        """Chromium closes a dialog some time after the key."""
        self.press("Escape")
        self.page.wait_for_function("() => !document.querySelector('dialog[open]')")

    @property
    def turn(self) -> str:
        """Id of the turn shown."""
        assert self.page.locator("article:visible").count() == 1
        return str(self.page.locator("article:visible").get_attribute("data-id"))

    def shows(self, text: str) -> bool:
        return text in self.page.locator("body").inner_text()

    def label(self, k: int) -> tuple[str | None, str | None]:
        """Labels the turn shown from the keyboard; returns label and what it reacts to."""
        if k % 8 == 7:
            self.press("u" if k % 2 else "0")
            return None, None
        label = LABELS[k % 8]
        answered = self.page.locator("article:visible .absent", has_text="No assistant turn").count() == 0
        self.press(str(k % 8 + 1))
        if label != "genuine_followup":
            return label, None
        if answered:
            self.press("b")
        return label, "both" if answered else "query"

    def download(self, key: str, folder: Path) -> Path:
        with self.page.expect_download() as started:
            self.press(key)
        path = folder / started.value.suggested_filename
        started.value.save_as(path)
        return path


def test_twenty_turns_from_the_keyboard(context: Any, study: Path) -> None:
    opened = Opened(context, study / "out" / "sheet-1.html")
    page, given = opened.page, {}
    for k in range(9):
        here = opened.turn
        given[here] = opened.label(k)
    assert opened.shows("9 of 20 labelled, 9 in this session")
    before = opened.turn

    page.reload()
    assert opened.turn == before
    assert opened.shows("9 of 20 labelled, 0 in this session")
    assert opened.shows("Welcome back: 9 of 20 labelled")
    opened.press("k")
    assert page.locator("#labels [aria-pressed=true]").count() == 1
    opened.press("n")
    page.keyboard.type("=odd 1j\u202e")
    opened.press("Enter", "j")
    for k in range(9, 20):
        here = opened.turn
        given[here] = opened.label(k)
    assert opened.shows("20 of 20 labelled, 11 in this session")
    assert opened.shows("All 20 turns are labelled: press e to export.")
    assert len(given) == 20

    exported = opened.download("e", study)
    assert exported.name == "labels-ab.json"
    assert main(["label", "import", str(exported), "--key", "out/key.json", "--name", "people"]) == 0
    as_json = FINAL.read_bytes()
    key = json.loads((study / "out" / "key.json").read_text("utf-8"))["turns"]
    stored = {label.place: label for label in read_labels(FINAL)}
    assert len(stored) == 20
    for id, (label, reacts_to) in given.items():
        turn = key[id]
        found = next(
            one for one in stored.values() if one.turn_sha256 == turn["turn_sha256"] and one.item == turn["item"]
        )
        assert (found.label, found.reacts_to, found.labeller) == (label, reacts_to, "ab")
    assert [one.note for one in stored.values() if one.note] == ["=odd 1j\u202e"]

    shutil.rmtree(study / "labels")
    exported = opened.download("c", study)
    assert exported.name == "labels-ab.csv"
    assert main(["label", "import", str(exported), "--key", "out/key.json", "--name", "people"]) == 0
    assert FINAL.read_bytes() == as_json
    assert opened.said == []
    assert [address for address in opened.asked if not address.startswith("blob:")] == [opened.address] * 2


def test_moves_corrections_and_what_is_asked_of_a_follow_up(context: Any, study: Path) -> None:
    opened = Opened(context, study / "out" / "sheet-1.html")
    page = opened.page
    first = opened.turn
    opened.press("ArrowRight")
    second = opened.turn
    opened.press("ArrowLeft", "j", "k")
    assert opened.turn == first != second
    assert page.evaluate("() => document.activeElement.id") == f"h-{first}"
    opened.press("q")
    assert opened.shows("press 1 first")
    opened.press("1")
    status = page.get_by_role("status")
    assert status.get_attribute("aria-live") == "polite"
    if page.locator("#grounds").is_visible():
        assert opened.turn == first
        assert opened.shows("0 of 20 labelled")
        opened.press("a")
    assert opened.shows("1 of 20 labelled")
    opened.press("k", "2")
    assert opened.shows("1 of 20 labelled")
    opened.press("k", "x")
    assert opened.shows("0 of 20 labelled")
    # nothing happens with a modifier, in the note, or when single keys are off
    opened.press("Control+3", "n")
    page.keyboard.type("35")
    opened.press("Escape")
    assert opened.shows("0 of 20 labelled")
    opened.press("?")
    page.get_by_label("Single keys act").uncheck()
    opened.leave_dialog()
    opened.press("4")
    assert opened.shows("0 of 20 labelled")
    # a labeller without single keys clicks
    page.get_by_role("button", name="generic").click()
    assert opened.shows("1 of 20 labelled")
    assert opened.said == []


def test_an_unfinished_sheet_can_be_exported_and_a_name_is_asked(context: Any, study: Path) -> None:
    opened = Opened(context, study / "out" / "sheet-2.html", name=None)
    opened.page.keyboard.type("no name!")
    opened.press("Enter")
    assert opened.shows("Use 1 to 32 letters")
    opened.leave_dialog()
    opened.press("5", "e")
    assert opened.page.get_by_role("dialog").is_visible()
    opened.page.keyboard.type("cd")
    with opened.page.expect_download() as started:
        opened.press("Enter")
    started.value.save_as(study / "back.json")
    assert opened.shows("1 of 20 turns, 19 still open")
    assert main(["label", "import", "back.json", "--key", "out/key.json", "--name", "people"]) == 0
    assert [(label.label, label.labeller) for label in read_labels(FINAL)] == [("generic", "cd")]


def test_hostile_texts_are_shown_and_do_nothing(context: Any, study: Path) -> None:
    assert main(["label", "export", "--n", "80", "--controls", "all"]) == 0
    opened = Opened(context, study / "all" / "sheet.html")
    page = opened.page
    key = json.loads((study / "all" / "key.json").read_text("utf-8"))["turns"]
    texts = [turn.text for turn in seen({_place(turn) for turn in key.values()}).values() if turn]
    everything = page.locator("main").text_content() or ""
    assert any("<script>" in text for text in texts)
    assert "<script>document.title = 'owned'</script>" in everything
    assert "⟦U+202E⟧" in everything
    assert "\u202e" not in everything
    for _ in range(40):
        opened.press("j")
    assert page.title().startswith("Label user turns")
    assert page.locator("article img, article script, article svg, article a, article iframe").count() == 0
    with pytest.raises(sync_api.Error, match="TrustedHTML"):
        page.evaluate("() => { document.body.innerHTML = '<p>x</p>'; }")
    assert [text for text in opened.said if "Trusted" not in text] == []
    assert opened.asked == [opened.address]


def _place(turn: dict[str, Any]) -> Any:
    from userturn.labelling.key import KeyTurn

    return KeyTurn.model_validate(turn).place


def test_adjudication_wants_a_reason(context: Any, study: Path) -> None:
    for number, name, keys in ((1, "ab", ("3",)), (2, "cd", ("3",))):
        opened = Opened(context, study / "out" / f"sheet-{number}.html", name)
        for _ in range(20):
            opened.press(*keys)
        # they differ on the last turn of the second sheet
        if number == 2:
            opened.press("4")
        path = opened.download("e", study)
        assert main(["label", "import", str(path), "--key", "out/key.json", "--name", "people"]) == 0
    assert main(["label", "adjudicate", "--name", "people", "final"]) == 0
    opened = Opened(context, study / "final" / "sheet.html", "ef")
    given = opened.page.locator(".given li").all_inner_texts()
    assert sorted(given) == ["continues_as_assistant", "meta_reasoning"]
    opened.press("4")
    assert opened.shows("0 of 1 labelled")
    opened.page.keyboard.type("It plans its reply.")
    opened.press("Enter")
    assert opened.shows("1 of 1 labelled")
    path = opened.download("e", study)
    arguments = [str(path), "--adjudication", "--key", "final/key.json", "--name", "people"]
    assert main(["label", "import", *arguments]) == 0
    settled = [label for label in read_labels(FINAL) if label.decision == "adjudicated"]
    assert [(label.label, label.note) for label in settled] == [("meta_reasoning", "It plans its reply.")]
    assert opened.said == []


def test_no_width_scrolls_sideways_and_themes_differ(context: Any, study: Path) -> None:
    page = Opened(context, study / "out" / "sheet-1.html").page
    page.keyboard.press("g")
    for width in (360, 768, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    colours = []
    for theme in ("light", "dark"):
        page.get_by_label("Theme").select_option(theme)
        colours.append(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
    assert colours[0] == "rgb(255, 255, 255)" != colours[1]


def test_without_scripts_the_turns_can_be_read(browser: Any, study: Path) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto((study / "out" / "sheet-1.html").as_uri())
        assert page.locator("article:visible").count() == 20
        assert page.get_by_text("This page needs its script").is_visible()
