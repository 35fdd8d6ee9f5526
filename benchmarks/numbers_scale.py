"""How long all numbers of a grid take, from the artefacts' files to the rows of ``numbers.jsonl``, and how much memory.

``python benchmarks/numbers_scale.py`` writes the judgements, scores and assistant turns of a simulated grid of 11
models, 5 datasets, 6 perturbations and 6 temperatures with 500 items and 5 samples (4.95 million judgements) to a
temporary folder and times `userturn.numbers.assemble`, the work of the stage `analyse`. Labels are drawn: nothing here
is a result.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import threading
import time
from itertools import product
from pathlib import Path
from typing import Self

import numpy as np
import psutil

from userturn import layout
from userturn.artefacts import read_jsonl, write_jsonl
from userturn.judges.labels import LABELS
from userturn.numbers import CellName, Inputs, Settings, assemble

PERTURBATIONS = (
    "baseline",
    "shuffled_context",
    "removed_assistant",
    "swapped_roles",
    "truncated_assistant",
    "appended_question",
)
TEMPERATURES = (0.0, 0.3, 0.6, 0.9, 1.2, 1.5)
JUDGE = "simulated"
#: What a judge says beside its label takes most of a row's bytes.
RATIONALE = "The turn asks on about the answer that is shown, in the voice of a user, and quotes a part of it."


def cells(models: int, datasets: int) -> tuple[CellName, ...]:
    """The cells of a grid.

    Args:
        models: how many.
        datasets: how many.
    """
    names = product(range(models), range(datasets), PERTURBATIONS, TEMPERATURES)
    return tuple(CellName(f"model-{m:02d}", f"dataset-{d}", p, t) for m, d, p, t in names)


def write(grid: tuple[CellName, ...], items: int, samples: int) -> int:
    """Writes what the numbers are made from into the current folder.

    Args:
        grid: the cells.
        items: in each dataset.
        samples: at each item.

    Returns:
        How many judgements there are.
    """
    written = 0
    for number, cell in enumerate(grid):
        rng = np.random.Generator(np.random.PCG64(number))
        rate = float(rng.choice([0.002, 0.01, 0.05, 0.2]))
        lots = rng.beta(rate * 2, (1 - rate) * 2, size=items)
        genuine = rng.random((items, samples)) < lots[:, None]
        others = rng.integers(1, len(LABELS), size=(items, samples))
        unscored = rng.random((items, samples)) < 0.01
        rows = [
            {
                "item": f"{cell.dataset}-{item:04d}",
                "sample": sample,
                "label": None
                if unscored[item, sample]
                else LABELS[0 if genuine[item, sample] else others[item, sample]],
                "state": "unscored" if unscored[item, sample] else "scored",
                "rationale": RATIONALE,
                "evidence": {"overlap": 0.25, "similarity": 0.5, "margin": 0.125},
            }
            for item in range(items)
            for sample in range(samples)
        ]
        write_jsonl(cell.judgements(JUDGE), rows)
        written += len(rows)
        if cell.perturbation == PERTURBATIONS[0] and cell.temperature == TEMPERATURES[0]:
            right = rng.random(items) < 0.6
            names = [f"{cell.dataset}-{item:04d}" for item in range(items)]
            scores = [
                {"item": name, "state": "scored", "correct": bool(ok), "strict": None, "loose": None}
                for name, ok in zip(names, right, strict=True)
            ]
            write_jsonl(layout.scores(*cell.shard), scores)
            write_jsonl(layout.assistant_turns(*cell.shard), [{"item": n, "finish_reason": "stop"} for n in names])
    write_jsonl(layout.GOLD_LABELS, gold("label"))
    write_jsonl(layout.gold(JUDGE), gold("given"))
    return written


def gold(which: str) -> list[dict[str, str]]:
    """A gold set with 40 of 300 turns genuine, on which the judge errs at times.

    Args:
        which: ``label`` for what is true, ``given`` for what the judge says.
    """
    rows = []
    for n in range(300):
        truth = LABELS[0] if n < 40 else LABELS[1 + n % 6]
        given = LABELS[5] if n % 13 == 0 else truth
        rows.append({"id": f"g-{n}", "item": f"g-{n}", "first": truth, "second": given, "label": truth})
        if which == "given":
            rows[-1]["label"] = given
    return rows


class Watch:
    """Wall-clock time, and the largest memory of this process and all below it, looked at five times a second."""

    def __enter__(self) -> Self:
        """Begins."""
        self.largest, self.seconds = 0, 0.0
        self._ended = threading.Event()
        self._started = time.perf_counter()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Ends."""
        self.seconds = time.perf_counter() - self._started
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        me = psutil.Process()
        while not self._ended.wait(0.2):
            used = 0
            for process in (me, *me.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    used += process.memory_info().rss
            self.largest = max(self.largest, used)


def main() -> int:
    """Prints the measurements.

    Returns:
        0 if the grid took less than 120 s and 4 GB, 1 otherwise.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=11)
    parser.add_argument("--datasets", type=int, default=5)
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        grid = cells(given.models, given.datasets)
        judgements = write(grid, given.items, given.samples)
        inputs = Inputs(grid, judges=(JUDGE,), measured=(JUDGE,))
        settings = Settings(JUDGE, 0.95, 10_000, 7, ("effect/*",))
        with Watch() as watch:
            numbers = assemble(inputs, settings, read_jsonl, processes=given.processes)
        size = sum(file.stat().st_size for file in Path(folder).rglob("*.jsonl"))
        print(
            f"SIMULATED: {len(numbers):,} numbers of {len(grid):,} cells ({judgements:,} judgements, "
            f"{size / 1e9:.2f} GB) in {watch.seconds:.0f} s on {given.processes} processes; "
            f"at most {watch.largest / 2**30:.2f} GiB together"
        )
        os.chdir("/")
    return 0 if watch.seconds < 120 and watch.largest < 4e9 else 1


if __name__ == "__main__":
    sys.exit(main())
