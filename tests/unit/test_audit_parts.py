"""What an audit reads: the page's numbers, the chain of manifests, rows, pinned sources, the code that ran."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from userturn import manifest
from userturn.artefacts import write_json, write_jsonl
from userturn.provenance.audit import UnknownNumber, find
from userturn.provenance.lineage import Lineage, pinned_sources
from userturn.provenance.rebuild import UnknownCell, find_cell
from userturn.provenance.rows import behind
from userturn.provenance.shown import fields, wrongly_shown
from userturn.report.figures import number as shown_number

ROW: dict[str, Any] = {
    "id": "followup_rate/m/d/baseline/t0.0",
    "quantity": "followup_rate",
    "labels": {"model": "m", "dataset": "d", "perturbation": "baseline", "temperature": 0.0, "judge": "j"},
    "value": 0.4375,
    "low": 0.231,
    "high": 0.668,
    "method": "Wilson",
    "unit": "proportion",
    "decimals": 3,
    "k": 7,
    "n": 16,
    "n_items": 16,
    "n_unscored": 0,
    "p_value": None,
    "p_adjusted": None,
    "notes": [],
    "sources": ["results/judgements/j/m/d/baseline/t0.0.jsonl"],
}


def page(body: str) -> str:
    return f"<p>before</p>{body}<p>after 0.999</p>"


def test_what_the_page_shows_is_compared() -> None:
    html = str(shown_number(ROW))
    assert dict(fields(html, ROW["id"])) == {"value": "0.438", "interval": "[0.231, 0.668]", "count": "7 of 16"}
    assert wrongly_shown(page(html * 2), ROW) == (6, [])
    parts, wrong = wrongly_shown(page(html + html.replace("0.438", "0.538")), ROW)
    assert parts == 6
    assert wrong == ["shows value '0.538', the number is '0.438'"]
    assert wrongly_shown(page(html.replace("7 of 16", "8 of 16")), ROW)[1]
    assert wrongly_shown(page(html.replace("t0.0", "t0.01")), ROW) == (0, []), "an id is no prefix of another"


def test_a_number_without_a_value_is_compared_too() -> None:
    row = ROW | {"value": None, "low": None, "high": None, "n": 0, "k": 0}
    html = str(shown_number(row))
    assert wrongly_shown(page(html), row) == (1, [])
    assert wrongly_shown(page(html), ROW)[1]


def test_near_ids_are_named() -> None:
    rows = [ROW, ROW | {"id": "accuracy/m/d"}]
    assert find(rows, ROW["id"]) is ROW
    with pytest.raises(UnknownNumber, match=r"2 numbers\); near ones:\n  followup_rate/m/d/baseline/t0.0"):
        find(rows, "followup_rate/m/d/baseline/t0.1")
    with pytest.raises(UnknownNumber, match="accuracy/m/d"):
        find(rows, "accuracy")
    with pytest.raises(UnknownNumber, match="no number 'zzzz'"):
        find(rows, "zzzz")


def write_manifest(
    stage: str, name: str, inputs: list[str], outputs: dict[str, list[str] | None], **facts: object
) -> None:
    made = manifest.build(
        stage,
        spec={"seed": 1},
        code={"digest": "c", "modules": {}},
        lock=None,
        inputs=[Path(one) for one in inputs],
        outputs={Path(one): origins and [Path(o) for o in origins] for one, origins in outputs.items()},
        facts=facts,
        started=dt.datetime(2026, 11, 30, tzinfo=dt.UTC),
    )
    write_json(Path("results/manifests") / stage / f"{name}.json", made)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two cells of one shard, each from its own context; an item in all of them."""
    monkeypatch.chdir(tmp_path)
    contexts = ["data/contexts/m/d/a.jsonl", "data/contexts/m/d/b.jsonl"]
    turns = ["results/user_turns/m/d/a/t0.0.jsonl", "results/user_turns/m/d/b/t0.0.jsonl"]
    judged = ["results/judgements/j/m/d/a/t0.0.jsonl", "results/judgements/j/m/d/b/t0.0.jsonl"]
    for path in (*contexts, *turns, *judged, "data/datasets/d.jsonl"):
        write_jsonl(Path(path), [{"item": item, "of": path} for item in ("i-1", "i-2")])
    write_json(Path("data/models/m/model.json"), {"files": {}})
    Path("data/models/m/weights").write_bytes(b"w")
    model = ["data/models/m/model.json", "data/models/m/weights"]
    write_manifest("dataset", "d", [], {"data/datasets/d.jsonl": None})
    write_manifest("model", "m", [], dict.fromkeys(model))
    write_manifest("contexts", "m", ["data/datasets/d.jsonl"], dict.fromkeys(contexts))
    write_manifest(
        "user_turns",
        "m",
        [*contexts, model[0]],
        {turn: [context, model[0]] for turn, context in zip(turns, contexts, strict=True)},
        cells={},
    )
    write_manifest("judge", "m", turns, {one: [turn] for one, turn in zip(judged, turns, strict=True)})
    return tmp_path


def test_the_chain_follows_each_output_to_its_own_inputs(study: Path) -> None:
    links = {link.path: link for link in Lineage(study).chain(["results/judgements/j/m/d/a/t0.0.jsonl"])}
    artefacts = [path for path in links if "manifests" not in path]
    assert artefacts == [
        "results/judgements/j/m/d/a/t0.0.jsonl",
        "results/user_turns/m/d/a/t0.0.jsonl",
        "data/contexts/m/d/a.jsonl",
        "data/models/m/model.json",
        "data/datasets/d.jsonl",
        "data/models/m/weights",
    ]
    assert len(links) == len(artefacts) + 5, "each job's manifest is part of it"
    turn = links["results/user_turns/m/d/a/t0.0.jsonl"]
    assert turn.job is not None
    assert turn.job.name == "user_turns/m"
    assert set(turn.expected) == {"user_turns/m wrote", "judge/m read"}
    assert len(set(turn.expected.values())) == 1


def test_a_damaged_manifest_is_a_fault_and_not_the_end(study: Path) -> None:
    path = study / "results/manifests/judge/m.json"
    path.write_text(path.read_text().replace('"stage"', '"stange"'))
    lineage = Lineage(study)
    assert list(lineage.faults) == ["results/manifests/judge/m.json"]
    assert lineage.maker("results/user_turns/m/d/a/t0.0.jsonl") is not None


def test_rows_of_one_item_come_from_every_artefact_of_the_chain(study: Path) -> None:
    row = {"sources": ["results/judgements/j/m/d/a/t0.0.jsonl"]}
    found = list(behind(study, row, Lineage(study), "i-2"))
    assert [path.split("/")[1] for path, _ in found] == ["judgements", "user_turns", "contexts", "datasets"]
    assert {one["item"] for _, one in found} == {"i-2"}
    assert len(list(behind(study, row, Lineage(study), None))) == 2


def test_cells_are_found_by_name(study: Path) -> None:
    lineage = Lineage(study)
    assert find_cell(lineage, "m/d/a/t0.0") == "results/user_turns/m/d/a/t0.0.jsonl"
    with pytest.raises(UnknownCell, match=r"\(2 cells\); near ones:\n  m/d/[ab]/t0.0"):
        find_cell(lineage, "m/d/c/t0.0")


def test_pinned_sources_are_found_anywhere_in_a_spec() -> None:
    wheel = {"kind": "wheel", "package": "p", "version": "1", "sha256": "a" * 64, "member": "p/x"}
    file = {"kind": "file", "path": "x.jsonl", "sha256": "b" * 64}
    spec = {"source": wheel, "training": {"x": {"source": file}}, "kind": "file", "list": [{"kind": "baseline"}]}
    assert [
        source.model_dump(include=set(one)) for source, one in zip(pinned_sources(spec), (wheel, file), strict=True)
    ] == [
        wheel,
        file,
    ]
