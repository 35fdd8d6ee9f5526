"""All numbers of a study, from rows that are read through a function: from recorded files or from memory alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from userturn import layout
from userturn.artefacts import Row
from userturn.judges.labels import GENUINE, LABELS
from userturn.numbers.contrasts import associations, decouplings, effects, slopes
from userturn.numbers.families import adjusted
from userturn.numbers.judges import annotators, between, corrected, errors, gold_labels, on_gold, on_held_out
from userturn.numbers.likelihood import likelihoods
from userturn.numbers.repeats import repeats
from userturn.numbers.row import CellName, ReadRows, Settings, labelled, number
from userturn.statistics import ItemCounts, rate


def assemble(
    cells: Sequence[CellName],
    settings: Settings,
    read: ReadRows,
    *,
    scored: Sequence[tuple[str, str]] = (),
    repeated: Sequence[CellName] = (),
    judges: Sequence[str] = (),
    trained: Sequence[str] = (),
    measured: Sequence[str] = (),
) -> list[Row]:
    """All numbers of a study, sorted by id.

    Args:
        cells: the study's cells.
        settings: judge, level, resamples, seed, confirmatory family.
        read: reads the rows of an artefact.
        scored: models and datasets with log-probabilities of known user turns.
        repeated: cells that generate the baseline at temperature 0 once more.
        judges: all judges, whose agreement is measured.
        trained: those that were trained in the workflow.
        measured: those whose labels of the gold set are there.
    """
    read_cells = ((cell, read(cell.judgements(settings.judge))) for cell in sorted(cells))
    # a control has no turns in a dataset without human follow-ups
    judged = {cell: rows for cell, rows in read_cells if rows}
    counts = {cell: ItemCounts.from_rows(labelled(rows, GENUINE)) for cell, rows in judged.items()}
    shards = sorted({(cell.model, cell.dataset) for cell in cells})
    scores = {shard: read(layout.scores(*shard)) for shard in shards}

    rows = [row for shard in shards for row in _accuracies(*shard, scores[shard], settings)]
    rows += [_cut_rate(*shard, settings, read) for shard in shards]
    rows += [row for cell, judgements in judged.items() for row in _cell_numbers(cell, judgements, settings)]
    rows += effects(counts, settings)
    rows += slopes(counts, settings)
    rows += associations(counts, scores, settings)
    rows += decouplings(counts, scores, settings)
    rows += likelihoods(scored, settings, read)
    rows += repeats(repeated, settings, read)
    rows += between(judges, cells, settings, read)
    rows += on_held_out(trained, settings, read)
    if measured:
        rows += on_gold(measured, layout.GOLD_LABELS, settings, read)
        rows += annotators(layout.GOLD_LABELS, settings, read)
    if settings.judge in measured:
        paths = [layout.gold(settings.judge), layout.GOLD_LABELS]
        rows += corrected(counts, errors(read(paths[0]), gold_labels(read(paths[1]))), settings, paths)
    return sorted(adjusted(rows, settings.confirmatory), key=lambda row: str(row["id"]))


def _accuracies(model: str, dataset: str, scores: Sequence[Row], settings: Settings) -> Iterator[Row]:
    for quantity, column in (("accuracy", "correct"), ("accuracy_strict", "strict"), ("accuracy_loose", "loose")):
        if quantity != "accuracy" and all(row[column] is None for row in scores):
            continue
        id = f"{quantity}/{model}/{dataset}"
        yield number(
            id,
            {"model": model, "dataset": dataset},
            rate(ItemCounts.from_rows((row["item"], row[column]) for row in scores), **settings.arguments(id)),
            settings,
            unit="proportion",
            sources=[layout.scores(model, dataset)],
            selector={"column": column, "positive": True},
        )


def _cut_rate(model: str, dataset: str, settings: Settings, read: ReadRows) -> Row:
    """Share of assistant turns that were cut at the longest length: a low accuracy may come from there."""
    path = layout.assistant_turns(model, dataset)
    id = f"assistant_cut_rate/{model}/{dataset}"
    counts = ItemCounts.from_rows((row["item"], row["finish_reason"] == "length") for row in read(path))
    return number(
        id,
        {"model": model, "dataset": dataset},
        rate(counts, **settings.arguments(id)),
        settings,
        unit="proportion",
        sources=[path],
        selector={"column": "finish_reason", "positive": "length"},
    )


def _cell_numbers(cell: CellName, judgements: Sequence[Row], settings: Settings) -> Iterator[Row]:
    labels = cell.labels(settings.judge)

    def share(id: str, rows: Iterable[tuple[str, bool | None]], selector: Row, **more: str) -> Row:
        estimate = rate(ItemCounts.from_rows(rows), **settings.arguments(id))
        sources = [cell.judgements(settings.judge)]
        return number(id, labels | more, estimate, settings, unit="proportion", sources=sources, selector=selector)

    yield share(f"followup_rate/{cell.key}", labelled(judgements, GENUINE), {"column": "label", "positive": GENUINE})
    yield share(
        f"unscored_rate/{cell.key}",
        ((row["item"], row["state"] == "unscored") for row in judgements),
        {"column": "state", "positive": "unscored"},
    )
    # a judge that claims what a turn reacts to, and is checked
    grounded = [row for row in judgements if row["label"] == GENUINE and "grounding" in row.get("evidence", {})]
    if grounded:
        yield share(
            f"grounded_share/{cell.key}",
            ((row["item"], row["evidence"]["grounding"] == "verified") for row in grounded),
            {"label": GENUINE, "column": "evidence.grounding", "positive": "verified"},
        )
    for label in LABELS:
        yield share(
            f"label_share/{cell.key}/{label}",
            labelled(judgements, label),
            {"column": "label", "positive": label},
            label=label,
        )
