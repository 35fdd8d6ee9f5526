"""Overhead of the workflow over the bare engine: user turns of a finished study, generated both ways in one run.

    .envs/workflow/bin/python benchmarks/generation_overhead.py [--repeats N]

Needs `results/` of a finished study in this folder. The workflow's side is `snakemake` itself, from planning to
manifest, in a scratch copy without finished cells; the bare side is one process with one `LLM.generate` call. Both
load the model. Prints seconds and the ratio, and checks that both wrote the same texts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from userturn import grid, layout, specs
from userturn.config.load import load_study
from userturn.config.perturbations import CONTROLS
from userturn.environments import engine_python


def digest(study, shard: grid.Shard, folder: Path) -> str:
    """Digest of all texts of a shard, in the order in which they were asked for."""
    texts = [
        json.loads(line)["text"]
        for cell in grid.cells_of(study, shard)
        if study.probe.perturbations[cell.perturbation].kind not in CONTROLS
        for line in (folder / cell.user_turns).read_text("utf-8").split("\n")
        if line
    ]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def main() -> int:
    """Measures and prints; returns 1 where the texts differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configfile", type=Path, default=Path("config/config.yaml"))
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    study = load_study([options.configfile])
    (shard,) = grid.shards(study)
    threads = len(os.sched_getaffinity(0))
    wanted = [cell.user_turns.as_posix() for cell in grid.cells_of(study, shard)]
    ratios = []
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory(dir=".") as name:
            scratch = Path(name)
            for entry in Path().iterdir():
                if entry.name in {"data", "results"}:
                    shutil.copytree(entry, scratch / entry.name, copy_function=os.link)
                elif entry.name == ".snakemake":
                    shutil.copytree(entry, scratch / entry.name)
                elif entry.name not in {".git", ".userturn", "logs", scratch.name}:
                    (scratch / entry.name).symlink_to(entry.resolve())
            shutil.rmtree(scratch / layout.RESULTS / "user_turns")
            command = [str(Path(sys.executable).parent / "snakemake"), *wanted, "--cores", "all", "--quiet", "all"]
            command += ["--configfile", str(options.configfile)]
            start = time.monotonic()
            subprocess.run(command, cwd=scratch, check=True)
            workflow = time.monotonic() - start
            made = digest(study, shard, scratch)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as spec:
            spec.write(specs.user_turns(study, shard, ""))
            spec.flush()
            script = [engine_python(), "benchmarks/bare_generation.py", shard.model, spec.name, str(threads)]
            start = time.monotonic()
            done = subprocess.run(script, check=True, stdout=subprocess.PIPE, text=True)
            bare = time.monotonic() - start
        (said,) = [line.split() for line in done.stdout.splitlines() if line.startswith("digest ")]
        ratios.append(workflow / bare)
        print(f"workflow {workflow:.1f} s, bare {bare:.1f} s, ratio {ratios[-1]:.3f}, {said[2]} turns", flush=True)
        if not made == said[1] == digest(study, shard, Path()):
            print("the texts differ", file=sys.stderr)
            return 1
    print(f"median ratio {statistics.median(ratios):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
