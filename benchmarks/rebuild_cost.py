"""What it costs to build single cells again, and whether they come out the same.

``python benchmarks/rebuild_cost.py [--cells 10] [--seed 1]`` in the folder of a finished study draws cells by a seed,
one of each perturbation first, and runs ``userturn rebuild`` for each. It prints the seconds of each beside its share
of the recorded generation job (by tokens), and exits with 1 if a cell is not identical.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from userturn.provenance.lineage import Job, Lineage


def drawn(cells: list[str], count: int, seed: int) -> list[str]:
    """Cells in a random order, one of each perturbation first.

    Args:
        cells: all cells.
        count: how many.
        seed: of the order.
    """
    order = np.random.Generator(np.random.PCG64(seed)).permutation(sorted(cells)).tolist()
    firsts = list({cell.split("/")[2]: cell for cell in reversed(order)}.values())
    return [*firsts, *(cell for cell in order if cell not in firsts)][:count]


def shares(jobs: list[Job]) -> Iterator[tuple[str, float]]:
    """Seconds of the recorded job that fall to each cell by its tokens, model load included in proportion."""
    for job in jobs:
        run = job.manifest.run
        seconds = (dt.datetime.fromisoformat(run.ended) - dt.datetime.fromisoformat(run.started)).total_seconds()
        tokens = {cell: facts["n_tokens"] for cell, facts in job.manifest.facts["cells"].items() if facts["sampling"]}
        for cell, count in tokens.items():
            yield cell, seconds * count / max(sum(tokens.values()), 1)


def main() -> int:
    """Prints the measurements.

    Returns:
        0 if every cell is identical, 1 otherwise.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    share = dict(shares([job for job in Lineage(Path()).jobs() if job.manifest.stage == "user_turns"]))
    wrong = 0
    for cell in drawn(list(share), given.cells, given.seed):
        command = [str(Path(sys.executable).parent / "userturn"), "rebuild", cell, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.stdout:
            print(f"{cell}: {done.stderr.strip()}")
            wrong += 1
            continue
        facts = json.loads(done.stdout)
        wrong += not facts["identical"]
        state = "identical" if facts["identical"] else "DIFFERS"
        print(f"{state:9}  {facts['seconds']:6.1f} s, share of the job {share[cell]:5.1f} s  {cell}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
