"""How the turns of ``gold/turns.jsonl`` were drawn from a finished run of ``gold/study.yaml``.

Run in the folder of that run: ``python gold/draw.py > gold/turns.jsonl``. 26 turns of each generated cell, then turns
of labels that the provisional judge gave rarely; a text stands once after a context; the order is drawn too.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

MODEL, SEED, OF_EACH_CELL = "smollm2-135m-instruct", 20261129, 26
CONTROLS = {"human_followup", "echoed_query", "continued_answer", "other_followup"}
MORE = {"generic": 4, "degenerate": 8, "restates_prompt": 14}


def rows(path: Path) -> list[dict]:
    """The rows of an artefact."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def main() -> None:
    """Writes the turns to standard output."""
    rng = random.Random(SEED)
    items = {row["item"]: row for row in rows(Path("data/datasets/gold.jsonl"))}
    drawn, rest = [], []
    for path in sorted(Path(f"results/user_turns/{MODEL}/gold").rglob("*.jsonl")):
        perturbation, temperature = path.parent.name, path.stem
        if perturbation in CONTROLS:
            continue
        contexts = {row["item"]: row for row in rows(Path(f"data/contexts/{MODEL}/gold/{perturbation}.jsonl"))}
        judged = Path(f"results/judgements/provisional/{MODEL}/gold/{perturbation}/{temperature}.jsonl")
        labels = {(row["item"], row["sample"]): row["label"] for row in rows(judged)}
        turns = rows(path)
        rng.shuffle(turns)
        for place, turn in enumerate(turns):
            row = {
                "perturbation": perturbation,
                "temperature": float(temperature[1:]),
                "item": turn["item"],
                "sample": turn["sample"],
                "model": MODEL,
                "messages": items[turn["item"]]["messages"],
                "shown_answer": contexts[turn["item"]]["shown_answer"],
                "text": turn["text"],
                "finish_reason": turn["finish_reason"],
            }
            (drawn if place < OF_EACH_CELL else rest).append((row, labels[turn["item"], turn["sample"]]))
    for label, n in MORE.items():
        pool = [one for one in rest if one[1] == label]
        rng.shuffle(pool)
        drawn += pool[:n]
    found: dict[tuple, dict] = {}
    for row, _ in drawn:
        found.setdefault((row["messages"][-1]["content"], row["shown_answer"], row["text"]), row)
    chosen = list(found.values())
    rng.shuffle(chosen)
    for number, row in enumerate(chosen, 1):
        line = json.dumps(row | {"id": f"turn-{number:03d}"}, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
