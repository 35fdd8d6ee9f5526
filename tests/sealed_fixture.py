"""A made-up finished study on disk, as Snakemake leaves it: for the tests of sealing, restoring and verifying."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import yaml

from userturn import grid, layout
from userturn.artefacts import write_json, write_jsonl, write_text
from userturn.config.load import load_study
from userturn.config.study import Study
from userturn.files import sha256_file

CONFIG = Path("config/config.yaml")
HOSTILE = "\x1b[31mred\x1b[0m \u202e tfel \x07 and\nmore"
_SOURCE = {"kind": "file", "path": "weights.bin", "sha256": "0" * 64}
RAW = {
    "name": "made-up",
    "seed": 7,
    "models": {"alpha": {"source": _SOURCE}},
    "datasets": {name: {"source": _SOURCE, "reader": name, "n_items": 3} for name in ("gsm8k", "mt_bench")},
    "probe": {
        "samples": 2,
        "perturbations": {
            "baseline": {"kind": "baseline", "temperatures": [0.0, 1.0]},
            "shuffled_context": {"kind": "shuffled_context", "temperatures": [0.0]},
        },
    },
    "judges": {"provisional": {"kind": "provisional", "embedder": _SOURCE}},
    "reported_judge": "provisional",
}
WEIGHTS = layout.model_folder("alpha") / "model.safetensors"
CELL = layout.user_turns("alpha", "gsm8k", "baseline", "t1.0")
JUDGED = layout.judgements("provisional", "alpha", "gsm8k", "baseline", "t1.0")
TURNS_MANIFEST = layout.manifest("user_turns", "alpha")


def number(id: str, value: float) -> dict[str, Any]:
    return {"id": id, "value": value, "low": value - 0.1, "high": value + 0.1}


def make_study(root: Path) -> Study:
    """Writes a finished study into a folder."""
    (root / "config").mkdir(parents=True, exist_ok=True)
    (root / CONFIG).write_text(yaml.safe_dump(RAW))
    (root / "envs").mkdir(exist_ok=True)
    (root / "envs" / "workflow.lock").write_text("package==1.0\n")
    study = load_study([root / CONFIG])
    (root / WEIGHTS).parent.mkdir(parents=True)
    (root / WEIGHTS).write_bytes(bytes(range(256)) * 64)
    write_json(root / layout.model("alpha"), {"weights_sha256": "1" * 64})
    job(root, "model", ["alpha"], [layout.model("alpha")], also=[WEIGHTS])
    for dataset in study.datasets:
        path = layout.dataset(dataset)
        write_jsonl(root / path, [{"item": f"{dataset}-{i}", "messages": [HOSTILE]} for i in range(3)])
        job(root, "dataset", [dataset], [path])
        path = layout.contexts("alpha", dataset, "baseline")
        write_jsonl(root / path, [{"item": f"{dataset}-{i}", "prompt": f"prompt {i}"} for i in range(3)])
        job(root, "contexts", ["alpha", dataset], [path])
    cells = grid.cells(study)
    for cell in cells:
        named = [{"item": f"{cell.dataset}-{i}", "sample": k} for i in range(3) for k in range(cell.samples)]
        write_jsonl(root / cell.user_turns, [row | {"text": f"{HOSTILE} {n}"} for n, row in enumerate(named)])
        write_jsonl(root / cell.judgements("provisional"), [row | {"label": "generic"} for row in named])
    job(root, "user_turns", ["alpha"], [cell.user_turns for cell in cells])
    job(root, "judge", ["provisional", "alpha"], [cell.judgements("provisional") for cell in cells])
    write_jsonl(root / layout.NUMBERS, [number(f"followup_rate/{i}", i / 10) for i in range(5)])
    job(root, "analyse", [], [layout.NUMBERS])
    write_text(root / layout.REPORT, "<!doctype html><p data-number-id='followup_rate/0'>0.0</p>\n")
    job(root, "report", [], [layout.REPORT], spec=study.model_dump(mode="json"), reads=[TURNS_MANIFEST])
    return study


def job(
    root: Path,
    stage: str,
    names: list[str],
    outputs: list[Path],
    *,
    also: list[Path] = [],  # noqa: B006
    reads: list[Path] = [],  # noqa: B006
    spec: dict[str, Any] | None = None,
    ended: float = 1_700_000_000.0,
) -> None:
    """What a job leaves besides its outputs: its manifest and Snakemake's records."""
    manifest = layout.manifest(stage, *names)

    def facts(paths: list[Path]) -> list[dict[str, Any]]:
        return [
            {"path": p.as_posix(), "bytes": (root / p).stat().st_size, "sha256": sha256_file(root / p)} for p in paths
        ]

    content = {
        "stage": stage,
        "spec": spec or {},
        "inputs": facts(reads),
        "outputs": facts([*outputs, *also]),
        "run": {"ended": ended, "host": "somewhere"},
    }
    write_json(root / manifest, content)
    for path in [*outputs, manifest]:
        record = root / layout.JOB_RECORDS / base64.urlsafe_b64encode(path.as_posix().encode()).decode()
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps({"rule": stage, "starttime": ended - 5, "endtime": ended}))


def contents(root: Path) -> dict[str, bytes]:
    """Everything that a seal holds, and what it leaves in the folder."""
    tops = (*layout.TRACKED, layout.JOB_RECORDS)
    files = [file for top in tops for file in (root / top).rglob("*") if file.is_file()]
    files += [file for file in root.glob("*.dvc") if file.is_file()]
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in files}
