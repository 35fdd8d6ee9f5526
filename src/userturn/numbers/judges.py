"""Numbers of the judges themselves: errors on the gold set, agreement with each other, corrected rates and effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from userturn import layout
from userturn.artefacts import Row
from userturn.judges.labels import GENUINE, LABELS
from userturn.numbers.inputs import Inputs
from userturn.numbers.row import BASELINE, CellName, Definition, ReadRows
from userturn.numbers.shard import Pairs, Shard
from userturn.statistics import (
    Agreement,
    Estimate,
    ItemCounts,
    ItemTables,
    agreement_of,
    corrected_effect,
    false_positive_floor,
    macro_f1,
    rate,
    rogan_gladen,
)

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


def _scored(quantity: str, judge: str, rows: Sequence[Labelled], sources: Sequence[Path]) -> Iterator[Definition]:
    """Sensitivity, specificity, macro-F1 and the confusion matrix, with items (or conversations) as clusters."""

    def share(
        id: str, of: Sequence[Labelled], label: str, about: str, *, right: bool = True, **more: str
    ) -> Definition:
        counts = ItemCounts.from_rows(
            (row.item, None if row.given is None else (row.given == label) is right) for row in of
        )
        return Definition(
            id,
            {"judge": judge, **more},
            partial(rate, counts),
            unit="proportion",
            sources=sources,
            selector={"known": about, "column": "label", "positive": label if right else f"not {label}"},
        )

    genuine = [row for row in rows if row.truth == GENUINE]
    others = [row for row in rows if row.truth != GENUINE]
    yield share(f"{quantity}sensitivity/{judge}", genuine, GENUINE, GENUINE)
    yield share(f"{quantity}specificity/{judge}", others, GENUINE, f"not {GENUINE}", right=False)
    yield Definition(
        f"{quantity}floor/{judge}",
        {"judge": judge},
        lambda *, level, **_: false_positive_floor(_errors(rows)[1], level=level),
        unit="proportion",
        sources=sources,
        selector={"known": f"not {GENUINE}", "column": "label", "positive": GENUINE},
    )
    for truth in LABELS:
        of = [row for row in rows if row.truth == truth]
        for given in LABELS if of else ():
            yield share(f"{quantity}confusion/{judge}/{truth}/{given}", of, given, truth, truth=truth, given=given)
    yield Definition(
        f"{quantity}macro_f1/{judge}",
        {"judge": judge},
        partial(_macro_f1, rows),
        unit="F1",
        sources=sources,
        selector={"known": "label", "column": "label", "over": "labels"},
    )


def _macro_f1(rows: Sequence[Labelled], **how: Any) -> Estimate:
    scored = [row for row in rows if row.given is not None]
    found = macro_f1(
        [row.truth for row in scored], [str(row.given) for row in scored], [row.item for row in scored], **how
    )
    return replace(found, n_unscored=len(rows) - len(scored))


def on_gold(judges: Sequence[str], gold_path: Path, read: ReadRows) -> Iterator[Definition]:
    """How each judge does on the gold set."""
    for judge in judges:
        path = layout.gold(judge)
        yield from _scored("", judge, _against(gold_labels(read(gold_path)), read(path)), [path, gold_path])


def on_held_out(judges: Sequence[str], read: ReadRows) -> Iterator[Definition]:
    """How each classifier of a trained judge does on conversations that it was not fitted on."""
    for judge in judges:
        path = layout.judge_held_out(judge)
        rows = read(path)
        for name in rows[0]["given"] if rows else ():
            known = [Labelled(row["group"], row["label"], row["given"][name]) for row in rows]
            yield from _scored("held_out_", f"{judge}/{name}", known, [path])


def annotators(gold_path: Path, read: ReadRows) -> Iterator[Definition]:
    """Agreement of the two independent labellings of the gold set."""

    def tables() -> ItemTables:
        rows = read(gold_path)
        first, second, items = ([row[key] for row in rows] for key in ("first", "second", "item"))
        return ItemTables.of(first, second, items=items, categories=LABELS)

    yield from _agreements("gold/first/second", tables, [gold_path])


def between(inputs: Inputs, tables: Callable[[], Pairs]) -> Iterator[Definition]:
    """Agreement of each pair of judges over all turns that both labelled; an item of a model is a cluster.

    Args:
        inputs: cells and judges.
        tables: of all shards; called only where a number is computed.
    """
    cells = sorted(inputs.cells)
    pairs = [(one, other) for n, one in enumerate(inputs.judges) for other in inputs.judges[n + 1 :]]
    for pair in pairs if cells else ():
        sources = [cell.judgements(judge) for cell in cells for judge in pair]
        yield from _agreements("/".join(pair), lambda pair=pair: tables()[pair], sources)  # type: ignore[misc]


def _agreements(pair: str, tables: Callable[[], ItemTables], sources: Sequence[Path]) -> Iterator[Definition]:
    id = f"agreement/{pair}"

    @cache
    def found(level: float, resamples: int, seed: int) -> Agreement:
        return agreement_of(tables(), positive=GENUINE, level=level, resamples=resamples, seed=seed)

    def measure(name: str, level: float, resamples: int, seed: int) -> Estimate:
        estimate: Estimate = getattr(found(level, resamples, seed), name)
        return estimate

    for name in ("raw", "kappa", "alpha", "ac1", "positive"):
        yield Definition(
            f"agreement_{name}/{pair}",
            {"pair": pair},
            partial(measure, name),
            unit="proportion" if name == "raw" else "agreement",
            sources=sources,
            selector={"column": "label", "between": pair, "measure": name},
            seeded_by=id,
        )


def known_errors(judge: str, read: ReadRows) -> Errors:
    """A judge's errors on the gold set."""
    return errors(read(layout.gold(judge)), gold_labels(read(layout.GOLD_LABELS)))


def corrected(shard: Shard, known: Errors) -> Iterator[Definition]:
    """Rates and effects with the reported judge's errors taken out, the gold set's uncertainty carried along.

    Args:
        shard: one model and dataset.
        known: the reported judge's errors on the gold set.
    """
    sensitivity, specificity = known
    judge = shard.settings.judge
    gold = [layout.gold(judge), layout.GOLD_LABELS]
    about: dict[str, Any] = {"sensitivity": list(sensitivity), "specificity": list(specificity)}
    for cell, counted in shard.counts.items():
        yield Definition(
            f"corrected_rate/{cell.key}",
            cell.labels(judge),
            partial(_corrected_rate, counted, known),
            unit="proportion",
            sources=[cell.judgements(judge), *gold],
            selector={"column": "label", "positive": GENUINE, **about},
            excluded=shard.excluded(cell),
        )
        base = CellName(cell.model, cell.dataset, BASELINE, cell.temperature)
        if cell.perturbation == BASELINE or base not in shard.counts:
            continue
        yield Definition(
            f"corrected_effect/{cell.key}",
            cell.labels(judge),
            partial(corrected_effect, counted, shard.counts[base], sensitivity, specificity),
            unit="difference of proportions",
            sources=[cell.judgements(judge), base.judgements(judge), *gold],
            selector={"column": "label", "positive": GENUINE, "paired_by": "item", "minus": base.key, **about},
            excluded=shard.excluded(cell, base),
        )


def _corrected_rate(counted: ItemCounts, known: Errors, **how: Any) -> Estimate:
    return rogan_gladen(counted, *known, **how).corrected
