"""The finished default study: run after the main job, on what it wrote (`.ci/run`, or `make check-report`)."""

from __future__ import annotations

import csv
import json
import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from userturn import grid, layout
from userturn.artefacts import read_json, read_jsonl, sha256_text
from userturn.config.load import load_study
from userturn.config.perturbations import CONTROLS
from userturn.config.study import Study
from userturn.report.chunks import unpacked
from userturn.report.figures import value_text

pytestmark = pytest.mark.main_job


@pytest.fixture(scope="module")
def study(root: Path, request: pytest.FixtureRequest) -> Study:
    assert (root / layout.REPORT).is_file(), "run `make report` first"
    patch = pytest.MonkeyPatch()
    patch.chdir(root)
    request.addfinalizer(patch.undo)
    return load_study([Path("config/config.yaml")])


def test_every_cell_is_complete(study: Study) -> None:
    for cell in grid.cells(study):
        turns = read_jsonl(cell.user_turns)
        labels = read_jsonl(cell.judgements(study.reported_judge))
        contexts = read_jsonl(layout.contexts(cell.model, cell.dataset, cell.perturbation))
        assert len(turns) == len(labels) == len(contexts) * cell.samples, cell.key
        kind = study.probe.perturbations[cell.perturbation].kind
        if kind not in {"human_followup", "other_followup"}:
            assert len(contexts) == study.datasets[cell.dataset].n_items, cell.key
        assert {row["finish_reason"] for row in turns} <= ({"control"} if kind in CONTROLS else {"stop", "length"})
        assert all((row["seed"] is None) == (cell.temperature == 0.0) for row in turns)


def test_prompts_are_what_the_renderer_makes_of_the_messages(study: Study, chat_model: Path) -> None:
    from userturn.render import load_renderer

    renderer = load_renderer(chat_model)
    for dataset in study.datasets:
        for name in ("baseline", "swapped_roles", "removed_assistant"):
            for row in read_jsonl(layout.contexts("smollm2-135m-instruct", dataset, name)):
                assert list(renderer.user_prompt(row["messages"]).token_ids) == row["prompt_token_ids"]


def test_rates_are_what_the_rows_say(study: Study) -> None:
    numbers = {row["id"]: row for row in read_jsonl(layout.NUMBERS)}
    for cell in grid.cells(study):
        labels = read_jsonl(cell.judgements(study.reported_judge))
        if labels:
            number = numbers[f"followup_rate/{cell.key}"]
            genuine = sum(row["label"] == "genuine_followup" for row in labels)
            assert (number["k"], number["n"]) == (genuine, sum(row["state"] == "scored" for row in labels))
            assert number["value"] == pytest.approx(genuine / number["n"])
            assert number["low"] <= number["value"] <= number["high"]


def test_the_judge_tells_the_floors_from_the_ceiling(study: Study) -> None:
    """Where a judge cannot, no rate of this study means anything."""
    numbers = {row["id"]: row for row in read_jsonl(layout.NUMBERS)}

    def rate(control: str, dataset: str = "mt_bench") -> float:
        return float(numbers[f"followup_rate/smollm2-135m-instruct/{dataset}/{control}/t0.0"]["value"])

    assert rate("human_followup") > max(rate("echoed_query"), rate("continued_answer"), rate("other_followup"))
    assert all(rate("echoed_query", dataset) <= 0.1 for dataset in study.datasets)


def test_texts_at_temperature_zero_repeat(study: Study) -> None:
    numbers = {row["id"]: row for row in read_jsonl(layout.NUMBERS)}
    for dataset in study.datasets:
        row = numbers[f"determinism/smollm2-135m-instruct/{dataset}/repeated_baseline/t0.0"]
        assert (row["value"], row["n"]) == (1.0, study.datasets[dataset].n_items)


def test_the_model_tells_a_users_words_from_its_own(study: Study) -> None:
    """Without a judge: a person's follow-up is likelier as a user's turn than the rest of the answer is."""
    numbers = {row["id"]: row for row in read_jsonl(layout.NUMBERS)}
    human, own = (
        numbers[f"role_log_odds/smollm2-135m-instruct/mt_bench/{control}"]
        for control in ("human_followup", "continued_answer")
    )
    assert human["low"] > own["high"]
    assert "grounding/smollm2-135m-instruct/mt_bench/human_followup" in numbers


def test_every_judge_is_measured_on_the_gold_set(study: Study) -> None:
    numbers = {row["id"]: row for row in read_jsonl(layout.NUMBERS)}
    gold = read_jsonl(layout.GOLD_LABELS)
    for judge in study.judges:
        given = {row["id"]: row["label"] for row in read_jsonl(layout.gold(judge))}
        assert set(given) == {row["id"] for row in gold}
        negatives = [row["id"] for row in gold if row["label"] != "genuine_followup"]
        rejected = sum(given[id] != "genuine_followup" for id in negatives)
        row = numbers[f"specificity/{judge}"]
        assert (row["k"], row["n"]) == (rejected, len(negatives))
    for cell in grid.cells(study):
        if read_jsonl(cell.judgements(study.reported_judge)):
            row = numbers[f"corrected_rate/{cell.key}"]
            assert row["low"] <= row["value"] <= row["high"]


def test_manifests_name_what_is_there(study: Study) -> None:
    for path in (layout.RESULTS / "manifests").rglob("*.json"):
        for entry in read_json(path)["outputs"]:
            assert Path(entry["path"]).stat().st_size == entry["bytes"], entry["path"]
            if entry["path"].endswith(".jsonl"):
                assert sha256_text(Path(entry["path"]).read_text("utf-8")) == entry["sha256"]


@pytest.mark.browser
def test_the_page_opens_from_disk(root: Path, study: Study) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    said: list[str] = []
    asked: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for width in (1280, 400):
            page: Any = browser.new_page(viewport={"width": width, "height": 900})
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            page.goto((root / layout.REPORT).as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("h1").is_visible()
        browser.close()
    assert said == []
    assert asked == [(root / layout.REPORT).as_uri()] * 2
    html = (root / layout.REPORT).read_text("utf-8")
    known = {row["id"]: value_text(row) for row in read_jsonl(layout.NUMBERS)}
    assert set(re.findall(r'data-number-id="([^"]+)"', html)) == set(known)
    shown = re.findall(r'data-number-id="([^"]+)"><span class="v" data-field="value">([^<]+)</span>', html)
    assert {number_id for number_id, _ in shown} == set(known)
    assert all(unescape(text) == known[number_id] for number_id, text in shown)
    assert len(html.encode()) < 6e6


def test_the_page_holds_every_user_turn_and_its_table_every_number(study: Study) -> None:
    html = layout.REPORT.read_text("utf-8")
    stored = {
        name: json.loads(found[1])
        for name in ("catalogue", "chunks")
        if (found := re.search(f'<script type="application/json" id="{name}">(.*?)</script>', html))
    }
    for cell, entry in zip(grid.cells(study), stored["catalogue"]["cells"], strict=True):
        rows = [row for name, _ in entry["chunks"] for row in unpacked(stored["chunks"][name])]
        assert entry["key"] == cell.key
        turns = read_jsonl(cell.user_turns)
        assert [row[:3] for row in rows] == [[turn["item"], turn["sample"], turn["text"]] for turn in turns]
        labels = [row["label"] or "unscored" for row in read_jsonl(cell.judgements(study.reported_judge))]
        assert [row[5][0][0] for row in rows] == labels
    table = csv.DictReader(layout.NUMBERS_TABLE.read_text("utf-8").splitlines())
    assert [row["id"] for row in table] == [row["id"] for row in read_jsonl(layout.NUMBERS)]


def test_every_number_is_verified_by_an_audit(study: Study) -> None:
    """Recomputed from its own rows, every file of its chain hashed, compared with each place of the page."""
    from userturn.provenance.audit import Auditor

    auditor = Auditor(Path())
    numbers = read_jsonl(layout.NUMBERS)
    assert len(numbers) > 900
    faults = [fault for row in numbers for fault in auditor.audit(row["id"]).faults]
    assert faults == []
    page = layout.REPORT.read_text("utf-8")
    shown = set(re.findall(r'<button[^>]* data-number-id="([^"]+)"', page))
    assert shown
    assert shown <= {row["id"] for row in numbers}
