"""Agreement of two judges, chance-corrected in several ways because rare labels mislead each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from userturn.statistics.rates import NAME_BOOTSTRAP, rate
from userturn.statistics.resample import MIN_INFORMATIVE, check_level, kinds, percentile, resampled, total
from userturn.statistics.types import Estimate, FloatArray, IntArray, Interval, ItemCounts

NAME_HELD = "limits of raw agreement, chance agreement held"
Measure = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Agreement:
    """Agreement of two judges on the same user turns.

    Attributes:
        raw: share of rows with the same label.
        kappa: Cohen's kappa (1960).
        alpha: Krippendorff's alpha, nominal (2011).
        ac1: Gwet's AC1 (2008).
        positive: Dice agreement on the positive label, 2a / (2a + b + c); None without a positive label.
        categories: the labels, in the order of ``table``.
        table: rows by label of the first judge (rows) and of the second (columns).
    """

    raw: Estimate
    kappa: Estimate
    alpha: Estimate
    ac1: Estimate
    positive: Estimate | None
    categories: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]


def _parts(table: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    n = table.sum(axis=(-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = table / n[..., None, None]
    observed = np.trace(share, axis1=-2, axis2=-1)
    return n, observed, share.sum(axis=-1), share.sum(axis=-2)


def _corrected(observed: FloatArray, chance: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(1.0 - chance > 1e-12, (observed - chance) / (1.0 - chance), np.nan)


def _kappa_chance(table: FloatArray) -> FloatArray:
    _, _, first, second = _parts(table)
    return cast("FloatArray", (first * second).sum(axis=-1))


def _alpha_chance(table: FloatArray) -> FloatArray:
    n, _, first, second = _parts(table)
    values = (first + second) * n[..., None]
    pairs = 2.0 * n * (2.0 * n - 1.0)
    return cast("FloatArray", (values * (values - 1.0)).sum(axis=-1) / pairs)


def _ac1_chance(table: FloatArray) -> FloatArray:
    _, _, first, second = _parts(table)
    mean = (first + second) / 2.0
    return cast("FloatArray", (mean * (1.0 - mean)).sum(axis=-1) / (table.shape[-1] - 1))


def _measure(chance: Measure) -> Measure:
    def measure(table: FloatArray) -> FloatArray:
        return _corrected(_parts(table)[1], chance(table))

    return measure


def _dice(jaccard: float) -> float:
    return 2.0 * jaccard / (1.0 + jaccard)


def _dice_interval(interval: Interval | None) -> Interval | None:
    if interval is None:
        return None
    method = f"{interval.method}, of a / (a + b + c)"
    return Interval(_dice(interval.low), _dice(interval.high), method, interval.level)


@dataclass(frozen=True)
class ItemTables:
    """Pairs of labels of two judges, counted by item.

    Attributes:
        tables: shape (n_items, q, q), rows by label of the first judge and of the second; q is at least 2.
        items: sorted ids.
        categories: the labels.
        n_unscored: rows without a label of both.
    """

    tables: IntArray
    items: tuple[str, ...]
    categories: tuple[str, ...]
    n_unscored: int

    @classmethod
    def of(
        cls,
        labels_a: Sequence[str | None],
        labels_b: Sequence[str | None],
        *,
        items: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
    ) -> ItemTables:
        """Counts rows; arguments as `agreement`.

        Raises:
            ValueError: on unequal lengths or a label that is not among ``categories``.
        """
        return _tabulate(labels_a, labels_b, items, categories)

    @classmethod
    def joined(cls, parts: Sequence[ItemTables]) -> ItemTables:
        """The tables of several sets of rows; an item may stand in more than one.

        Raises:
            ValueError: without any part, or where their labels differ.
        """
        if len({part.categories for part in parts}) != 1:
            raise ValueError("tables of the same labels are needed, at least one")
        order = sorted({item for part in parts for item in part.items})
        place = {item: i for i, item in enumerate(order)}
        whole = np.zeros((len(order), *parts[0].tables.shape[1:]), dtype=np.int64)
        for part in parts:
            # an item stands once in each part, so that no addition is lost
            whole[[place[item] for item in part.items]] += part.tables
        return cls(whole, tuple(order), parts[0].categories, sum(part.n_unscored for part in parts))


def _tabulate(
    labels_a: Sequence[str | None],
    labels_b: Sequence[str | None],
    items: Sequence[str] | None,
    categories: Sequence[str] | None,
) -> ItemTables:
    if len(labels_a) != len(labels_b) or (items is not None and len(items) != len(labels_a)):
        sizes = (len(labels_a), len(labels_b), "-" if items is None else len(items))
        raise ValueError(f"labels_a, labels_b and items have lengths {sizes}; they must be equal")
    ids = [f"{i:08d}" for i in range(len(labels_a))] if items is None else list(items)
    seen = {x for x in (*labels_a, *labels_b) if x is not None}
    names = tuple(sorted(str(x) for x in seen)) if categories is None else tuple(categories)
    if seen - set(names):
        raise ValueError(f"label {min(seen - set(names))!r} is not among the categories {list(names)}")
    place = {name: i for i, name in enumerate(names)}
    q = max(2, len(names))
    rows = [
        (item, place[a], place[b])
        for item, a, b in zip(ids, labels_a, labels_b, strict=True)
        if a is not None and b is not None
    ]
    order = tuple(sorted({item for item, _, _ in rows}))
    where = {item: i for i, item in enumerate(order)}
    tables = np.zeros((len(order), q, q), dtype=np.int64)
    for item, first, second in rows:
        tables[where[item], first, second] += 1
    return ItemTables(tables, order, names, len(ids) - len(rows))


def _chance_corrected(
    tables: IntArray, raw: Estimate, base: Estimate, *, level: float, resamples: int, seed: int
) -> list[Estimate]:
    """Kappa, alpha and AC1 from shared resamples of items."""
    chances = (_kappa_chance, _alpha_chance, _ac1_chance)
    q = tables.shape[-1]
    kind, frequency = kinds(tables.reshape(-1, q * q))

    def statistic(frequencies: IntArray) -> FloatArray:
        drawn = total(frequencies, kind).reshape(-1, q, q).astype(np.float64)
        return np.column_stack([_measure(c)(drawn) for c in chances])

    drawn = resampled(frequency, resamples, seed, statistic)
    whole = tables.sum(axis=0).astype(np.float64)
    same, size = np.trace(tables, axis1=1, axis2=2), tables.sum(axis=(1, 2))
    informative = min(int(np.count_nonzero(same)), int(np.count_nonzero(same < size)))
    found = []
    for column, chance in enumerate(chances):
        expected, value = float(chance(whole)), float(_measure(chance)(whole))
        if np.isnan(value):
            note = "one label throughout: 0 / 0, not defined; read raw agreement and AC1"
            found.append(replace(base, notes=(note,)))
            continue
        boot = percentile(drawn[:, column], level, NAME_BOOTSTRAP)
        interval = boot
        notes: tuple[str, ...] = ()
        if (informative < MIN_INFORMATIVE or boot is None) and raw.interval is not None:
            limits = (raw.interval.low, raw.interval.high)
            low, high = ((limit - expected) / (1.0 - expected) for limit in limits)
            interval = Interval(max(-1.0, low), min(1.0, high), NAME_HELD, level)
            notes = (f"{informative} informative items, fewer than {MIN_INFORMATIVE}: bootstrap not trusted",)
        found.append(replace(base, value=value, interval=interval, bootstrap=boot, notes=notes))
    return found


def _undefined_positive(base: Estimate) -> Estimate:
    note = "neither judge gave the positive label: agreement on it is not defined"
    return replace(base, k=0, notes=(note,))


def _positive(
    tables: IntArray,
    place: int,
    base: Estimate,
    items: tuple[str, ...],
    *,
    level: float,
    resamples: int,
    seed: int,
) -> Estimate:
    """Dice is a monotone function of a / (a + b + c), which is a rate with intervals of its own."""
    both = tables[:, place, place]
    either = tables[:, place, :].sum(axis=1) + tables[:, :, place].sum(axis=1) - both
    counts = ItemCounts(items, both, either, np.zeros_like(both))
    found = rate(counts, level=level, resamples=resamples, seed=seed)
    if found.value is None:
        return _undefined_positive(base)
    return replace(
        base,
        value=_dice(found.value),
        interval=_dice_interval(found.interval),
        bootstrap=_dice_interval(found.bootstrap),
        k=int(both.sum()),
        notes=found.notes,
    )


def agreement(
    labels_a: Sequence[str | None],
    labels_b: Sequence[str | None],
    *,
    items: Sequence[str] | None = None,
    categories: Sequence[str] | None = None,
    positive: str | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int,
) -> Agreement:
    """Measures of agreement between two judges with intervals from a bootstrap over items.

    Args:
        labels_a: labels of the first judge, one a user turn; None is unscored.
        labels_b: labels of the second judge of the same turns.
        items: the item of each turn; each turn its own item if absent.
        categories: all labels that could be given (AC1 depends on their number); those seen, sorted, if
            absent.
        positive: the label whose agreement is reported apart.
        level: nominal coverage.
        resamples: of the bootstrap.
        seed: of this number; the measures share their resamples.

    Returns:
        All measures. Where both judges use one and the same label throughout, kappa and alpha are 0 / 0
        and have the value None with a note, while raw agreement and AC1 are 1.

    Raises:
        ValueError: on unequal lengths or a label that is not among ``categories``.
    """
    rows = ItemTables.of(labels_a, labels_b, items=items, categories=categories)
    return agreement_of(rows, positive=positive, level=level, resamples=resamples, seed=seed)


def agreement_of(
    rows: ItemTables, *, positive: str | None = None, level: float = 0.95, resamples: int = 10_000, seed: int
) -> Agreement:
    """As `agreement`, from rows that are counted already.

    Args:
        rows: pairs of labels by item.
        positive: the label whose agreement is reported apart.
        level: nominal coverage.
        resamples: of the bootstrap.
        seed: of this number.
    """
    check_level(level)
    tables, order, names, n_unscored = rows.tables, rows.items, rows.categories, rows.n_unscored
    same = np.trace(tables, axis1=1, axis2=2).astype(np.int64)
    size = tables.sum(axis=(1, 2))
    whole = tables.sum(axis=0)
    n, k = int(size.sum()), int(same.sum())
    base = Estimate(None, None, None, n, len(order), k, n_unscored)
    counts = ItemCounts(order, same, size, np.zeros_like(size))
    raw = rate(counts, level=level, resamples=resamples, seed=seed)
    raw = replace(raw, n_unscored=n_unscored)
    found = [replace(base, notes=("no turn has a label from both judges",))] * 3
    apart = None
    if n:
        found = _chance_corrected(tables, raw, base, level=level, resamples=resamples, seed=seed)
    if positive is not None and n:
        apart = _undefined_positive(base)
        if positive in names:
            apart = _positive(tables, names.index(positive), base, order, level=level, resamples=resamples, seed=seed)
    elif positive is not None:
        apart = found[0]
    table = tuple(tuple(int(c) for c in line[: len(names)]) for line in whole[: len(names)])
    return Agreement(raw, found[0], found[1], found[2], apart, names, table)
