"""What difference a design can see, by simulation (for ``userturn power``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from userturn.statistics.effects import sign_flip_test
from userturn.statistics.intervals import modified_wilson
from userturn.statistics.resample import generator
from userturn.statistics.types import FloatArray, Interval

TABLE = 20_000
"""Size of the table of item propensities that the simulated items are picked from."""


@dataclass(frozen=True)
class Power:
    """The chance that a paired comparison of this design finds this difference.

    Attributes:
        power: share of simulated studies with p < alpha.
        interval: of that share, from the number of simulations.
        n_items: items of the design.
        samples: user turns an item and condition.
        rate: follow-up rate in the baseline.
        difference: true difference of rates.
        icc: intraclass correlation of the rows of one item.
        pairing: share of items that keep their rank of propensity between the conditions.
        alpha: level of the test.
    """

    power: float
    interval: Interval
    n_items: int
    samples: int
    rate: float
    difference: float
    icc: float
    pairing: float
    alpha: float


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}; allowed is {low} to {high}")


def _propensities(rng: np.random.Generator, rate: float, icc: float) -> FloatArray:
    """Sorted beta-binomial propensities of items, mean ``rate``, intraclass correlation ``icc``."""
    if icc == 0.0 or rate in (0.0, 1.0):
        return np.full(TABLE, rate)
    if icc == 1.0:
        return (np.arange(TABLE) >= round(TABLE * (1.0 - rate))).astype(np.float64)
    strength = (1.0 - icc) / icc
    drawn = np.sort(rng.beta(rate * strength, (1.0 - rate) * strength, size=TABLE))
    mean = drawn.mean()
    return np.clip(drawn * (rate / mean), 0.0, 1.0) if mean > 0 else np.full(TABLE, rate)


def power(
    n_items: int,
    samples: int,
    rate: float,
    icc: float,
    difference: float,
    *,
    alpha: float = 0.05,
    pairing: float = 0.5,
    simulations: int = 1_000,
    seed: int,
) -> Power:
    """Simulates paired studies and tests each with the test that the study reports.

    Args:
        n_items: items, at least 1.
        samples: user turns an item and condition, at least 1.
        rate: baseline rate.
        icc: intraclass correlation within an item and condition, 0 to 1.
        difference: true rate under the perturbation minus ``rate``.
        alpha: two-sided level.
        pairing: share of items whose propensity keeps its rank between conditions, 0 to 1.
        simulations: studies to simulate.
        seed: of the simulation.

    Returns:
        The power with its simulation error.

    Raises:
        ValueError: on a design that cannot be.
    """
    for name, count in (("n_items", n_items), ("samples", samples), ("simulations", simulations)):
        if count < 1:
            raise ValueError(f"{name} is {count}; at least 1 is needed")
    for name, share in (
        ("rate", rate),
        ("icc", icc),
        ("pairing", pairing),
        ("rate + difference", rate + difference),
    ):
        _check(name, share, 0.0, 1.0)
    _check("alpha", alpha, 1e-6, 0.5)
    rng = generator(seed)
    base, changed = _propensities(rng, rate, icc), _propensities(rng, rate + difference, icc)
    found = 0
    for start in range(0, simulations, 250):
        size = (min(250, simulations - start), n_items)
        first = rng.integers(TABLE, size=size)
        second = np.where(rng.random(size) < pairing, first, rng.integers(TABLE, size=size))
        differences = rng.binomial(samples, changed[second]) - rng.binomial(samples, base[first])
        found += sum(sign_flip_test(row, seed=seed)[0] < alpha for row in differences.astype(np.int64))
    share = found / simulations
    low, high = modified_wilson(share, simulations, 0.95)
    interval = Interval(float(low), float(high), "modified Wilson", 0.95)
    return Power(share, interval, n_items, samples, rate, difference, icc, pairing, alpha)


def detectable_difference(
    n_items: int,
    samples: int,
    rate: float,
    icc: float,
    *,
    target: float = 0.8,
    alpha: float = 0.05,
    pairing: float = 0.5,
    simulations: int = 500,
    seed: int,
) -> Power | None:
    """The smallest rise over ``rate`` that the design sees with the wanted power.

    Found by bisection to 1/500 of the room left.

    Args:
        n_items: items.
        samples: user turns an item and condition.
        rate: baseline rate.
        icc: intraclass correlation.
        target: wanted power.
        alpha: two-sided level.
        pairing: as :func:`power`.
        simulations: for each difference tried.
        seed: the same for each difference, so that the search is monotone up to simulation error.

    Returns:
        The power at that difference; None if not even a rise to 1 is seen so often.

    Raises:
        ValueError: on a design that cannot be.
    """

    def at(difference: float) -> Power:
        return power(
            n_items,
            samples,
            rate,
            icc,
            difference,
            alpha=alpha,
            pairing=pairing,
            simulations=simulations,
            seed=seed,
        )

    _check("target", target, 0.0, 1.0)
    low, high, best = 0.0, 1.0 - rate, at(1.0 - rate)
    if best.power < target:
        return None
    while high - low > (1.0 - rate) / 500:
        middle = (low + high) / 2
        tried = at(middle)
        if tried.power >= target:
            high, best = middle, tried
        else:
            low = middle
    return best
