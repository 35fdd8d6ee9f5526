"""Numbers that set a trained variant against its base, and the guards that tell a real gain from a hollow one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from userturn import layout
from userturn.artefacts import Row
from userturn.judges.labels import GENUINE
from userturn.numbers.row import BASELINE, CellName, Definition
from userturn.numbers.shard import Shard
from userturn.numbers.tables import LabelTable
from userturn.statistics import Estimate, ItemCounts, mean, paired_effect

#: Shown for a variant and for its base, so that they can be compared.
GUARDS = ("question_rate", "closing_question_rate", "turn_words", "distinct_bigrams")


def _base_counts(shard: Shard, cell: CellName) -> tuple[ItemCounts, int] | None:
    """Genuine follow-ups of the base's cell and how many rows are excluded; None where it has no turns."""
    rows = shard.read(cell.judgements(shard.settings.judge))
    if not rows:
        return None
    table = LabelTable.of(rows, shard.inputs.ledger.keep(*cell.shard, (cell.perturbation, cell.temperature)))
    return table.label(GENUINE), table.excluded


def effects_of(shard: Shard, base: str) -> Iterator[Definition]:
    """A variant minus its base, paired by item: follow-up rate in every cell, and how much of a gain is grounded.

    Args:
        shard: of the variant.
        base: the model that it was trained from.
    """
    judge = shard.settings.judge
    found: dict[CellName, tuple[ItemCounts, int]] = {}
    for cell, counts in shard.counts.items():
        other = replace(cell, model=base)
        based = _base_counts(shard, other)
        if based is None:
            continue
        found[cell] = based
        yield Definition(
            f"effect_posttrain/{cell.key}",
            cell.labels(judge) | {"base": base},
            partial(paired_effect, counts, based[0]),
            unit="difference of proportions",
            sources=[cell.judgements(judge), other.judgements(judge)],
            selector={"column": "label", "positive": GENUINE, "paired_by": "item", "minus": other.key},
            excluded=shard.excluded(cell) + based[1],
        )
    yield from _grounded(shard, base, found)


def accuracy_of(shard: Shard, base: str) -> Iterator[Definition]:
    """Task accuracy of a variant minus that of its base, paired by item; nothing where nothing is scored."""
    model, dataset = shard.name
    rows, excluded = shard.scores
    if all(row["correct"] is None for row in rows):
        return
    keep = shard.inputs.ledger.keep(base, dataset)
    every = shard.read(layout.scores(base, dataset))
    theirs = [row for row in every if keep(row)]
    yield Definition(
        f"accuracy_posttrain/{model}/{dataset}",
        {"model": model, "dataset": dataset, "base": base},
        partial(paired_effect, _correct(rows), _correct(theirs)),
        unit="difference of proportions",
        sources=[layout.scores(model, dataset), layout.scores(base, dataset)],
        selector={"column": "correct", "positive": True, "paired_by": "item", "minus": f"{base}/{dataset}"},
        excluded=excluded + len(every) - len(theirs),
    )


def _correct(rows: Sequence[Row]) -> ItemCounts:
    return ItemCounts.from_rows((row["item"], row["correct"]) for row in rows)


def _grounded(shard: Shard, base: str, found: Mapping[CellName, tuple[ItemCounts, int]]) -> Iterator[Definition]:
    """The gain under baseline minus the gain where the answer was changed: what of it is tied to the answer."""
    judge = shard.settings.judge
    for cell in found:
        plain = replace(cell, perturbation=BASELINE)
        if cell == plain or plain not in found:
            continue
        cells = [plain, cell, replace(plain, model=base), replace(cell, model=base)]
        rates = [
            _rates(counts) for counts in (shard.counts[plain], shard.counts[cell], found[plain][0], found[cell][0])
        ]
        shared = sorted(set.intersection(*(set(one) for one in rates)))
        gains = {item: (rates[0][item] - rates[2][item]) - (rates[1][item] - rates[3][item]) for item in shared}
        yield Definition(
            f"posttrain_grounding/{cell.key}",
            cell.labels(judge) | {"base": base},
            partial(mean, gains),
            unit="difference of proportions",
            sources=[one.judgements(judge) for one in cells],
            selector={"column": "label", "positive": GENUINE, "paired_by": "item", "of": [one.key for one in cells]},
            excluded=shard.excluded(plain, cell) + found[plain][1] + found[cell][1],
        )


def _rates(counts: ItemCounts) -> dict[str, float]:
    known = zip(counts.items, counts.positives, counts.scored, strict=True)
    return {item: float(k / m) for item, k, m in known if m}


def trainings(variants: Sequence[str], read: Callable[[Any], Sequence[Row]]) -> Iterator[Definition]:
    """First and last value of everything that a variant's training logged: what the report prints of its curve.

    Args:
        variants: models that the study trained.
        read: reads the rows of an artefact.
    """
    for variant in variants:
        path = layout.training_curve(variant)
        rows = read(path)
        for measure in dict.fromkeys(key for row in rows for key in row if key != "step"):
            points = [row for row in rows if measure in row]
            for which, row in (("first", points[0]), ("last", points[-1])):
                yield Definition(
                    f"training_{which}/{variant}/{measure}",
                    {"model": variant, "measure": measure, "step": row["step"]},
                    partial(_logged, float(row[measure])),
                    unit="nats per token" if measure in _LOSSES else "logged value",
                    sources=[path],
                    selector={"column": measure, "step": row["step"]},
                )


_LOSSES = ("loss", "held_out_loss", "entropy", "kl")


def _logged(value: float, **_: Any) -> Estimate:
    return Estimate(value, None, None, 1, 1, 0, 0, notes=("one training, one seed: no interval",))


Bases = Mapping[str, str]
"""The base of each variant."""


def _of_variant(build: Callable[[Shard, str], Iterator[Definition]]) -> Callable[[Shard, Bases], Iterator[Definition]]:
    def built(shard: Shard, bases: Bases) -> Iterator[Definition]:
        base = bases.get(shard.name[0])
        return iter(()) if base is None else build(shard, base)

    return built


def _guarded(shard: Shard, bases: Bases) -> Iterator[Definition]:
    if shard.name[0] not in {*bases, *bases.values()}:
        return iter(())
    # imported here: what reads texts takes a third of a second to load, and an audit of most numbers needs none of it
    from userturn.numbers.guards import guards

    return guards(shard)


#: What gives the numbers of one model and dataset in a study with variants, with the quantities that each gives.
OF_SHARD: tuple[tuple[Callable[[Shard, Bases], Iterator[Definition]], tuple[str, ...]], ...] = (
    (_of_variant(effects_of), ("effect_posttrain", "posttrain_grounding")),
    (_of_variant(accuracy_of), ("accuracy_posttrain",)),
    (_guarded, GUARDS),
)
#: Quantities of `trainings`.
LOGGED = ("training_first", "training_last")
#: Quantities that a study has only with variants.
OF_VARIANTS = frozenset(LOGGED) | {quantity for _, quantities in OF_SHARD for quantity in quantities}
