"""A made-up finished study on disk for the tests of labelling: two models, hostile texts, every label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from report_fixture import HOSTILE, study
from userturn import grid, layout
from userturn.artefacts import jsonl_bytes
from userturn.config.perturbations import CONTROLS
from userturn.config.study import Study
from userturn.judges.labels import LABELS

ITEMS = 4
TEXTS = [
    # an artefact is UTF-8, so it holds no lone surrogates
    *[text for text in HOSTILE if not any("\ud800" <= c <= "\udfff" for c in text)],
    '=HYPERLINK("https://example.org")',
    "  +1+1",
    "@SUM(A1)",
    "",
    "Could you show the second step again?",
    "Thanks!\n\n\tBye",
]


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    """As the artefacts are written, but without forcing every file to disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jsonl_bytes(rows))


def _text(k: int) -> str:
    return TEXTS[k % len(TEXTS)]


def write_study(folder: Path) -> Study:
    """Writes ``config/config.yaml`` and the artefacts that labelling reads; all but one cell are finished."""
    made = Study.model_validate(study())
    (folder / "config").mkdir()
    (folder / "config" / "config.yaml").write_text(yaml.safe_dump(study()), "utf-8")
    for dataset in made.datasets:
        rows: list[dict[str, Any]] = [
            {"item": f"{dataset}-{i:03d}", "messages": [{"role": "user", "content": f"Query {i}: {_text(i)}"}]}
            for i in range(ITEMS)
        ]
        write_jsonl(folder / layout.dataset(dataset), rows)
    k = 0
    for cell in grid.cells(made)[:-1]:
        kind = made.probe.perturbations[cell.perturbation].kind
        items = [f"{cell.dataset}-{i:03d}" for i in range(ITEMS)]
        write_jsonl(
            folder / layout.contexts(cell.model, cell.dataset, cell.perturbation),
            [
                {
                    "item": item,
                    "shown_answer": None if kind == "removed_assistant" else f"Answer {i}. {_text(i + 3)}",
                }
                for i, item in enumerate(items)
            ],
        )
        turns, labels = [], []
        for item in items:
            for sample in range(cell.samples):
                k += 1
                where = {"item": item, "sample": sample}
                finish = "control" if kind in CONTROLS else "stop"
                turns.append({**where, "text": f"{_text(k)}{k if k % 3 else ''}", "finish_reason": finish})
                # half of all turns are genuine follow-ups, one label is rare
                label = LABELS[0] if k % 2 else (*LABELS[1:6], None)[k // 2 % 6]
                state = "scored" if label else "unscored"
                labels.append({**where, "label": label, "state": state, "evidence": {}, "rationale": ""})
        labels[0] |= {"label": "degenerate", "state": "scored"}
        write_jsonl(folder / cell.user_turns, turns)
        write_jsonl(folder / cell.judgements("provisional"), labels)
    return made
