"""Numbers of the judges themselves: errors on the gold set, agreement with each other, corrected rates and effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from userturn import layout
from userturn.artefacts import Row
from userturn.judges.labels import GENUINE, LABELS
from userturn.numbers.row import BASELINE, CellName, ReadRows, Settings, number
from userturn.statistics import (
    Estimate,
    ItemCounts,
    agreement,
    corrected_effect,
    false_positive_floor,
    macro_f1,
    rate,
    rogan_gladen,
)

Counts = Mapping[CellName, ItemCounts]
#: (right, size) on the gold set's positives and negatives.
Errors = tuple[tuple[int, int], tuple[int, int]]


def gold_labels(rows: Sequence[Row]) -> dict[str, Row]:
    """Final labels of the gold set by turn."""
    return {row["id"]: row for row in rows}


def errors(judged: Sequence[Row], gold: Mapping[str, Row]) -> Errors:
    """Hits among positives and rejections among negatives; turns that the judge left unscored count in neither."""
    return _errors(_against(gold, judged))


@dataclass(frozen=True)
class Labelled:
    """A turn whose label is known, and the label that a judge gave it; None where it is unscored."""

    item: str
    truth: str
    given: str | None


def _against(gold: Mapping[str, Row], judged: Sequence[Row]) -> list[Labelled]:
    return [Labelled(row["item"], gold[row["id"]]["label"], row["label"]) for row in judged]


def _errors(rows: Sequence[Labelled]) -> Errors:
    hits = [row.given == GENUINE for row in rows if row.given is not None and row.truth == GENUINE]
    rejected = [row.given != GENUINE for row in rows if row.given is not None and row.truth != GENUINE]
    return (sum(hits), len(hits)), (sum(rejected), len(rejected))


def _scored(
    quantity: str, judge: str, rows: Sequence[Labelled], sources: Sequence[Path], settings: Settings
) -> Iterator[Row]:
    """Sensitivity, specificity, macro-F1 and the confusion matrix, with items (or conversations) as clusters."""

    def share(id: str, of: Sequence[Labelled], label: str, about: str, *, right: bool = True, **more: str) -> Row:
        counts = ItemCounts.from_rows(
            (row.item, None if row.given is None else (row.given == label) is right) for row in of
        )
        return number(
            id,
            {"judge": judge, **more},
            rate(counts, **settings.arguments(id)),
            settings,
            unit="proportion",
            sources=sources,
            selector={"known": about, "column": "label", "positive": label if right else f"not {label}"},
        )

    genuine = [row for row in rows if row.truth == GENUINE]
    others = [row for row in rows if row.truth != GENUINE]
    yield share(f"{quantity}sensitivity/{judge}", genuine, GENUINE, GENUINE)
    yield share(f"{quantity}specificity/{judge}", others, GENUINE, f"not {GENUINE}", right=False)
    _, specificity = _errors(rows)
    id = f"{quantity}floor/{judge}"
    yield number(
        id,
        {"judge": judge},
        false_positive_floor(specificity, level=settings.level),
        settings,
        unit="proportion",
        sources=sources,
        selector={"known": f"not {GENUINE}", "column": "label", "positive": GENUINE},
    )
    for truth in LABELS:
        of = [row for row in rows if row.truth == truth]
        for given in LABELS if of else ():
            id = f"{quantity}confusion/{judge}/{truth}/{given}"
            yield share(id, of, given, truth, truth=truth, given=given)
    id = f"{quantity}macro_f1/{judge}"
    scored = [row for row in rows if row.given is not None]
    found = macro_f1(
        [row.truth for row in scored],
        [str(row.given) for row in scored],
        [row.item for row in scored],
        **settings.arguments(id),
    )
    yield number(
        id,
        {"judge": judge},
        replace(found, n_unscored=len(rows) - len(scored)),
        settings,
        unit="F1",
        sources=sources,
        selector={"known": "label", "column": "label", "over": "labels"},
    )


def on_gold(judges: Sequence[str], gold_path: Path, settings: Settings, read: ReadRows) -> Iterator[Row]:
    """How each judge does on the gold set."""
    gold = gold_labels(read(gold_path))
    for judge in judges:
        path = layout.gold(judge)
        yield from _scored("", judge, _against(gold, read(path)), [path, gold_path], settings)


def on_held_out(judges: Sequence[str], settings: Settings, read: ReadRows) -> Iterator[Row]:
    """How each classifier of a trained judge does on conversations that it was not fitted on."""
    for judge in judges:
        path = layout.judge_held_out(judge)
        rows = read(path)
        for name in rows[0]["given"] if rows else ():
            known = [Labelled(row["group"], row["label"], row["given"][name]) for row in rows]
            yield from _scored("held_out_", f"{judge}/{name}", known, [path], settings)


def annotators(gold_path: Path, settings: Settings, read: ReadRows) -> Iterator[Row]:
    """Agreement of the two independent labellings of the gold set."""
    rows = read(gold_path)
    yield from _agreements(
        "gold/first/second",
        [row["first"] for row in rows],
        [row["second"] for row in rows],
        [row["item"] for row in rows],
        [gold_path],
        settings,
    )


def between(judges: Sequence[str], cells: Sequence[CellName], settings: Settings, read: ReadRows) -> Iterator[Row]:
    """Agreement of each pair of judges over all turns that both labelled; an item of a model is a cluster."""
    if len(judges) < 2:
        return
    labels: dict[str, list[str | None]] = {judge: [] for judge in judges}
    items: list[str] = []
    for cell in sorted(cells):
        for judge in judges:
            rows = sorted(read(cell.judgements(judge)), key=lambda row: (row["item"], row["sample"]))
            labels[judge] += [row["label"] for row in rows]
        items += [f"{cell.model}/{row['item']}" for row in rows]
    for one, other in combinations(judges, 2):
        sources = [cell.judgements(judge) for cell in sorted(cells) for judge in (one, other)]
        yield from _agreements(f"{one}/{other}", labels[one], labels[other], items, sources, settings)


def _agreements(
    pair: str,
    first: Sequence[str | None],
    second: Sequence[str | None],
    items: Sequence[str],
    sources: Sequence[Path],
    settings: Settings,
) -> Iterator[Row]:
    id = f"agreement/{pair}"
    found = agreement(first, second, items=items, categories=LABELS, positive=GENUINE, **settings.arguments(id))
    measures: dict[str, Estimate | None] = {
        "raw": found.raw,
        "kappa": found.kappa,
        "alpha": found.alpha,
        "ac1": found.ac1,
        "positive": found.positive,
    }
    for name, estimate in measures.items():
        if estimate is not None:
            yield number(
                f"agreement_{name}/{pair}",
                {"pair": pair},
                estimate,
                settings,
                unit="proportion" if name == "raw" else "agreement",
                sources=sources,
                selector={"column": "label", "between": pair, "measure": name},
            )


def corrected(counts: Counts, known: Errors, settings: Settings, gold: Sequence[Path]) -> Iterator[Row]:
    """Rates and effects with the reported judge's errors taken out, the gold set's uncertainty carried along.

    Args:
        counts: judged counts of each cell.
        known: the reported judge's errors on the gold set.
        settings: judge, level, resamples, seed.
        gold: the artefacts that the errors come from.
    """
    sensitivity, specificity = known
    about: dict[str, Any] = {"sensitivity": list(sensitivity), "specificity": list(specificity)}
    for cell, counted in counts.items():
        id = f"corrected_rate/{cell.key}"
        done = rogan_gladen(counted, sensitivity, specificity, **settings.arguments(id))
        yield number(
            id,
            cell.labels(settings.judge),
            done.corrected,
            settings,
            unit="proportion",
            sources=[cell.judgements(settings.judge), *gold],
            selector={"column": "label", "positive": GENUINE, **about},
        )
        base = CellName(cell.model, cell.dataset, BASELINE, cell.temperature)
        if cell.perturbation == BASELINE or base not in counts:
            continue
        id = f"corrected_effect/{cell.key}"
        yield number(
            id,
            cell.labels(settings.judge),
            corrected_effect(counted, counts[base], sensitivity, specificity, **settings.arguments(id)),
            settings,
            unit="difference of proportions",
            sources=[cell.judgements(settings.judge), base.judgements(settings.judge), *gold],
            selector={"column": "label", "positive": GENUINE, "paired_by": "item", "minus": base.key, **about},
        )
