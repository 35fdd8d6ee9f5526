"""From a study's artefacts to the page's pieces of data, one model and dataset at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from userturn import grid, layout
from userturn.artefacts import Row, iter_jsonl, read_jsonl
from userturn.config.study import Study
from userturn.processes import spread
from userturn.report.chunks import Chunks
from userturn.report.transcripts import Words, add_cell, add_contexts, add_scores, chosen
from userturn.seeds import derive


@dataclass
class Packed:
    """The transcripts of one model and dataset: what the catalogue says of them, and what was written."""

    cells: list[dict[str, Any]]
    contexts: dict[str, list[str]]
    scores: str
    words: Words
    sizes: dict[str, int]
    tokens: dict[str, Counter[str]]


def shards(study: Study) -> list[tuple[str, str]]:
    """Every model with every dataset: what is packed at a time."""
    return [(model, dataset) for model in study.models for dataset in study.datasets]


def sources(study: Study, model: str, dataset: str) -> set[Path]:
    """The artefacts that the transcripts of a model and dataset are made from."""
    cells = list(grid.cells_of(study, grid.Shard(model, (dataset,), (model, dataset))))
    return {
        layout.assistant_turns(model, dataset),
        layout.scores(model, dataset),
        *(layout.contexts(model, dataset, name) for name in study.probe.perturbations),
        *(cell.user_turns for cell in cells),
        *(cell.judgements(judge) for cell in cells for judge in study.judges),
    }


def pack(place: tuple[str, str], study: Study, folder: Path) -> Packed:
    """Packs the transcripts of a model and dataset, a cell at a time.

    Args:
        place: the model and the dataset.
        study: the study.
        folder: where the pieces go.
    """
    model, dataset = place
    shown = study.datasets[dataset].shows_items
    chunks = Chunks(folder)
    tokens = {"assistant turns": Counter[str](), "user turns": Counter[str]()}
    for row in iter_jsonl(layout.assistant_turns(model, dataset)):
        _count(tokens["assistant turns"], row)
    scores = add_scores(iter_jsonl(layout.scores(model, dataset)), chunks, shown=shown)
    found = Packed([], {}, scores, Words(), chunks.sizes, tokens)
    blocks: dict[str, dict[str, int]] = {}
    for cell in grid.cells_of(study, grid.Shard(model, (dataset,), (model, dataset))):
        if cell.perturbation not in blocks:
            rows = read_jsonl(layout.contexts(model, dataset, cell.perturbation))
            names, blocks[cell.perturbation] = add_contexts(rows, chunks, shown=shown)
            found.contexts[f"{model}/{dataset}/{cell.perturbation}"] = names
        turns = read_jsonl(cell.user_turns)
        for row in turns:
            _count(tokens["user turns"], row)
        judged = [
            {(row["item"], row["sample"]): row for row in iter_jsonl(cell.judgements(judge))}
            for judge in _judges(study)
        ]
        shown_turns = list(chosen(turns, study.report.transcripts_per_cell, _rank(study, cell)))
        found.cells.append(
            {
                "key": cell.key,
                "model": model,
                "dataset": dataset,
                "perturbation": cell.perturbation,
                "temperature": cell.temperature,
                "n": len(turns),
                **add_cell(shown_turns, judged, blocks[cell.perturbation], chunks, found.words, shown=shown),
            }
        )
    return found


def _judges(study: Study) -> list[str]:
    """The reported judge first."""
    return [study.reported_judge, *(judge for judge in study.judges if judge != study.reported_judge)]


def catalogue(
    study: Study, chunks: Chunks, *, processes: int = 1, on_done: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Packs all transcripts; a process holds no more of them than one cell.

    Args:
        study: the study.
        chunks: where the pieces go.
        processes: how many share the work.
        on_done: called for each model and dataset that is done.

    Returns:
        By what the page finds them: ``judges`` (the reported one first), ``cells``, ``contexts``, ``scores``,
        ``withheld``, ``words`` and ``tokens`` (calls, prompt tokens and generated tokens of each model).
    """
    places = shards(study)
    words = Words()
    cells: list[dict[str, Any]] = []
    contexts: dict[str, list[str]] = {}
    scores: dict[str, str] = {}
    tokens: dict[str, dict[str, Counter[str]]] = {model: {} for model in study.models}
    work = partial(pack, study=study, folder=chunks.folder)
    for (model, dataset), found in zip(places, spread(work, places, processes, preload=[__name__]), strict=True):
        cells += found.cells
        contexts |= found.contexts
        scores[f"{model}/{dataset}"] = found.scores
        words.extend(found.words)
        chunks.sizes |= found.sizes
        for part, counts in found.tokens.items():
            tokens[model].setdefault(part, Counter()).update(counts)
        on_done()
    return {
        "judges": _judges(study),
        "cells": cells,
        "contexts": contexts,
        "scores": scores,
        "withheld": [name for name, dataset in study.datasets.items() if not dataset.shows_items],
        "words": words,
        "tokens": {model: {part: dict(counts) for part, counts in parts.items()} for model, parts in tokens.items()},
    }


def _rank(study: Study, cell: grid.Cell) -> Any:
    def rank(item: str, sample: int) -> int:
        return derive(study.seed, "transcript", cell.key, item, sample)

    return rank


def _count(counts: Counter[str], row: Row) -> None:
    # a control's text was not generated
    if row["finish_reason"] != "control":
        counts["calls"] += 1
        counts["prompt tokens"] += row["n_prompt_tokens"]
        counts["generated tokens"] += row["n_tokens"]
