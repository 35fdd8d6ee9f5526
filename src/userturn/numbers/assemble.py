"""All numbers of a study, and each of them alone, from rows that are read through a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from userturn import layout
from userturn.artefacts import Row
from userturn.numbers import posttrain
from userturn.numbers.cells import accuracies, cell_numbers, cut_rate
from userturn.numbers.contrasts import associations, decouplings, effects, slopes
from userturn.numbers.families import adjusted
from userturn.numbers.inputs import Inputs
from userturn.numbers.judges import Errors, annotators, between, corrected, known_errors, on_gold, on_held_out
from userturn.numbers.likelihood import likelihoods
from userturn.numbers.repeats import repeats
from userturn.numbers.row import Definition, ReadRows, Settings
from userturn.numbers.shard import Pairs, Shard, Summary, joined_pairs
from userturn.processes import spread

Known = Errors | None
"""The reported judge's errors on the gold set; None where they are not measured."""


def _corrected(shard: Shard, known: Known) -> Iterator[Definition]:
    return corrected(shard, known) if known is not None else iter(())


def _of_variants(
    build: Callable[[Shard, Mapping[str, str]], Iterator[Definition]],
) -> Callable[[Shard, Known], Iterator[Definition]]:
    return lambda shard, _: build(shard, dict(shard.inputs.variants))


#: What gives the numbers of one model and dataset, with the quantities that each gives.
OF_SHARD: tuple[tuple[Callable[[Shard, Known], Iterator[Definition]], tuple[str, ...]], ...] = (
    (lambda shard, _: repeats(shard), ("determinism",)),
    (lambda shard, _: likelihoods(shard), ("role_log_odds", "role_share", "grounding", "grounding_share")),
    (lambda shard, _: accuracies(shard), ("accuracy", "accuracy_strict", "accuracy_loose")),
    (lambda shard, _: cut_rate(shard), ("assistant_cut_rate",)),
    (lambda shard, _: cell_numbers(shard), ("followup_rate", "unscored_rate", "grounded_share", "label_share")),
    (lambda shard, _: effects(shard), ("effect", "effect_ratio")),
    (lambda shard, _: slopes(shard), ("temperature_slope",)),
    (lambda shard, _: associations(shard), ("association",)),
    (_corrected, ("corrected_rate", "corrected_effect")),
    *((_of_variants(build), quantities) for build, quantities in posttrain.OF_SHARD),
)


def _across(
    inputs: Inputs, settings: Settings, read: ReadRows, pairs: Callable[[], Pairs], summary: Callable[[], Summary]
) -> Iterator[Definition]:
    """The numbers that no single shard has: judges on the gold set, agreement, decoupling."""
    yield from posttrain.trainings([variant for variant, _ in inputs.variants], read)
    yield from on_held_out(inputs.trained, read)
    yield from on_gold(inputs.measured, layout.GOLD_LABELS, read)
    if inputs.measured:
        yield from annotators(layout.GOLD_LABELS, read)
    yield from between(inputs, pairs)
    if inputs.cells:
        yield from decouplings(summary(), settings)


def assemble(
    inputs: Inputs,
    settings: Settings,
    read: ReadRows,
    *,
    processes: int = 1,
    on_done: Callable[[int], None] = lambda done: None,
) -> list[Row]:
    """All numbers of a study, sorted by id.

    Args:
        inputs: the study's parts.
        settings: judge, level, resamples, seed, confirmatory family.
        read: reads the rows of an artefact; with several processes a function of a module, as each of them calls it.
        processes: that share the shards.
        on_done: called with 1 for each shard that is done.

    Raises:
        LedgerError: a line of the ledger of exclusions matches no row.
    """
    known = known_errors(settings.judge, read) if settings.judge in inputs.measured else None
    shards = list(inputs.shards())
    rows: list[Row] = []
    summaries: list[Summary] = []
    tables: list[Pairs] = []
    work = partial(_shard, settings=settings, known=known, read=read)
    for found, summary, pairs, met in spread(work, shards, processes, preload=["userturn.numbers"]):
        rows += found
        summaries.append(summary)
        tables.append(pairs)
        inputs.ledger.met.update(met)
        on_done(1)
    inputs.ledger.check_met()
    whole, pairs = Summary.joined(summaries), joined_pairs(tables)
    rows += [one.row(settings) for one in _across(inputs, settings, read, lambda: pairs, lambda: whole)]
    return sorted(adjusted(rows, settings.confirmatory), key=lambda row: str(row["id"]))


_Done = tuple[list[Row], Summary, Pairs, set[int]]


def _shard(inputs: Inputs, settings: Settings, known: Known, read: ReadRows) -> _Done:
    shard = Shard(inputs, settings, read, paired=True)
    rows = [one.row(settings) for build, _ in OF_SHARD for one in build(shard, known)]
    return rows, shard.summary(), shard.pairs, inputs.ledger.met


def definition(id: str, sources: list[Path], inputs: Inputs, settings: Settings, read: ReadRows) -> Definition | None:
    """One number alone, from its own sources and no other artefact.

    Args:
        id: of the number.
        sources: its artefacts, as its row names them.
        inputs: the whole study's parts.
        settings: judge, level, resamples, seed.
        read: reads the rows of an artefact.

    Returns:
        The definition; None where this study has no such number from these sources.
    """
    quantity = id.partition("/")[0]
    needed = inputs.behind(set(sources))
    if quantity not in posttrain.OF_VARIANTS:
        # a curve is read for its own numbers only
        needed = replace(needed, variants=())
    paired = quantity.startswith("agreement_")
    shards = [Shard(one, settings, read, paired=paired) for one in needed.shards()]
    builders = [build for build, quantities in OF_SHARD if quantity in quantities]
    found: Iterator[Definition]
    if builders:
        known = known_errors(settings.judge, read) if layout.GOLD_LABELS in sources else None
        found = (one for shard in shards for build in builders for one in build(shard, known))
    elif sources == [layout.GOLD_LABELS]:
        found = annotators(layout.GOLD_LABELS, read)
    else:
        found = _across(
            needed,
            settings,
            read,
            lambda: joined_pairs([shard.pairs for shard in shards]),
            lambda: Summary.joined([shard.summary() for shard in shards]),
        )
    return next((one for one in found if one.id == id), None)
