"""How fast a study of thousands of files is sealed and restored, beside a bare ``dvc add`` of the same folders.

``python benchmarks/seal_speed.py`` makes up a study (no text in it is a result), seals it, seals it again, pushes it to
a folder, restores it elsewhere and verifies it, as a person would: each a start of the command line. The ratio is to
``dvc add data results`` as a program, on a copy, in the same run.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from userturn import grid, layout
from userturn.artefacts import jsonl_bytes
from userturn.config.load import load_study
from userturn.provenance import dvc

_SOURCE = {"kind": "file", "path": "weights.bin", "sha256": "0" * 64}
_ENDED = 1_700_000_000.0


def make_study(root: Path, files: int) -> int:
    """Writes a study of about as many artefacts.

    Args:
        root: a new folder.
        files: user turns and judgements in all.

    Returns:
        How many artefacts were written.
    """
    temperatures = [round(0.1 * step, 1) for step in range(10)]
    per_model = 2 * 5 * 6 * len(temperatures)
    config = {
        "name": "made-up",
        "seed": 7,
        "models": {f"model-{n}": {"source": _SOURCE} for n in range(max(1, round(files / per_model)))},
        "datasets": {f"set-{n}": {"source": _SOURCE, "reader": "gsm8k", "n_items": 20} for n in range(5)},
        "probe": {
            "samples": 1,
            "perturbations": {
                "baseline": {"kind": "baseline", "temperatures": temperatures},
                **{
                    f"shuffled-{n}": {"kind": "shuffled_context", "draw": n, "temperatures": temperatures}
                    for n in range(5)
                },
            },
        },
        "judges": {"provisional": {"kind": "provisional", "embedder": _SOURCE}},
        "reported_judge": "provisional",
    }
    file = root / "config" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump(config))
    study = load_study([file])
    count = 0
    for cell in grid.cells(study):
        for path in (cell.user_turns, cell.judgements("provisional")):
            rows = [{"item": f"{n}", "sample": 0, "text": f"{path} {n} " + "word " * 40} for n in range(20)]
            _write(root, path, jsonl_bytes(rows))
            count += 1
    _write(root, layout.dataset("set-0"), jsonl_bytes([{"item": "0"}]))
    _write(root, layout.NUMBERS, jsonl_bytes([{"id": "a", "value": 0.5}]))
    _write(root, layout.REPORT, b"<!doctype html>\n")
    manifest = {"spec": study.model_dump(mode="json"), "outputs": [], "run": {}}
    _write(root, layout.manifest("report"), json.dumps(manifest).encode())
    return count + 4


def _write(root: Path, path: Path, data: bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)
    # Snakemake's records are as long as they are in a real study: the shell command and the spec stand in each
    name = base64.urlsafe_b64encode(path.as_posix().encode()).decode()
    (root / layout.JOB_RECORDS).mkdir(parents=True, exist_ok=True)
    record = {"rule": "made_up", "endtime": _ENDED, "shellcmd": f"{path} " * 120}
    (root / layout.JOB_RECORDS / name).write_text(json.dumps(record))


def timed(root: Path, *words: str) -> tuple[float, float]:
    """Seconds on the clock and on the processor of a Python program in a folder."""
    start, used = time.perf_counter(), _processor_seconds()
    done = subprocess.run([sys.executable, "-m", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return time.perf_counter() - start, _processor_seconds() - used


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Prints the times and the ratio; exits with 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=6000)
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        work = Path(name)
        root, bare, elsewhere = work / "study", work / "bare", work / "elsewhere"
        count = make_study(root, options.files)
        for top in ("data", "results"):
            shutil.copytree(root / top, bare / top)
        dvc.prepare(bare)
        os.environ.update(DVC_NO_ANALYTICS="1", DVC_SITE_CACHE_DIR=str(work / "index"))
        figures = {"dvc add": timed(bare, "dvc", "add", "-q", "data", "results")}
        figures["seal"] = timed(root, "userturn.cli", "seal")
        figures["seal again"] = timed(root, "userturn.cli", "seal")
        with (root / dvc.CONFIG).open("a") as stream:
            stream.write(f"['remote \"here\"']\n    url = {work / 'remote'}\n")
        figures["push"] = timed(root, "userturn.cli", "seal", "--remote", "here")
        for path in (*dvc.SETTINGS, Path("config/config.yaml"), *(dvc.pointer(top) for top in layout.TRACKED)):
            (elsewhere / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / path, elsewhere / path)
        figures["restore"] = timed(elsewhere, "userturn.cli", "restore", "--remote", "here")
        figures["verify"] = timed(elsewhere, "userturn.cli", "verify")
    print(f"{count:,} artefacts")
    for what, (clock, processor) in figures.items():
        print(f"{what:<12} {clock:6.1f} s, {processor:5.1f} s of the processor")
    ratio = figures["seal"][0] / figures["dvc add"][0]
    print(f"seal / dvc add  {ratio:.2f}")
    sys.exit(not (figures["seal"][0] <= 10 and figures["restore"][0] <= 10 and ratio <= 2))


if __name__ == "__main__":
    main()
