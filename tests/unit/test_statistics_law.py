from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from userturn.statistics import ItemCounts, paired_effect, rate, ratio
from userturn.statistics import law as module
from userturn.statistics.law import Axis, RatioLaw
from userturn.statistics.resample import kinds, percentile, ratio_percentile, resampled, resampled_ratios

PROBABILITIES = (0.0005, 0.025, 0.2, 0.5, 0.8, 0.975, 0.9995)
Pairs = list[tuple[int, int]]


def law_of(pairs: Pairs) -> RatioLaw:
    found = RatioLaw.of(*(np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True)))
    assert found is not None
    return found


def enumerated(pairs: Pairs) -> dict[Fraction, Fraction]:
    """Ratios of all outcomes of drawing as many items with replacement, in exact arithmetic."""
    n = len(pairs)
    found: dict[Fraction, Fraction] = {}
    for chosen in itertools.combinations_with_replacement(range(n), n):
        ways = math.factorial(n)
        for i in set(chosen):
            ways //= math.factorial(chosen.count(i))
        below = sum(pairs[i][1] for i in chosen)
        if below:
            value = Fraction(sum(pairs[i][0] for i in chosen), below)
            found[value] = found.get(value, Fraction(0)) + Fraction(ways, n**n)
    return found


def inverted(outcomes: dict[Fraction, Fraction], probability: float) -> float:
    target, reached = sum(outcomes.values()) * Fraction(probability - module.SLACK), Fraction(0)
    for value in sorted(outcomes):
        reached += outcomes[value]
        if reached >= target:
            break
    return float(value)


def thinned(seed: int, n_items: int, samples: int, p: float, kept: float = 0.9) -> ItemCounts:
    rng = np.random.default_rng(seed)
    positives = rng.binomial(samples, rng.beta(2 * p, 2 * (1 - p), n_items))
    scored = rng.binomial(samples, kept, n_items)
    k = rng.hypergeometric(positives, samples - positives, scored)
    return ItemCounts.from_arrays(k, scored, samples - scored)


small = st.lists(st.tuples(st.integers(-3, 6), st.integers(0, 5)), min_size=1, max_size=6)


@settings(max_examples=80, deadline=None)
@given(small.filter(lambda pairs: any(b for _, b in pairs)))
def test_every_quantile_is_that_of_all_outcomes(pairs: Pairs) -> None:
    outcomes, law = enumerated(pairs), law_of(pairs)
    assert law.defined == pytest.approx(float(sum(outcomes.values())), abs=1e-12)
    for p in PROBABILITIES:
        assert law.quantile(p) == inverted(outcomes, p)


@settings(max_examples=60, deadline=None)
@given(small.filter(lambda pairs: any(b for _, b in pairs)))
@example([(0, 1), (0, 1), (0, 1), (0, 2), (0, 2), (1, 3)])
def test_the_inverse_of_the_law_gives_each_outcome_its_probability(pairs: Pairs) -> None:
    outcomes, law = enumerated(pairs), law_of(pairs)
    # a fine grid of the unit interval instead of chance
    grid = (np.arange(20_000) + 0.5) / 20_000
    found, counts = np.unique(law.sample(grid), return_counts=True)
    shares = dict(zip(found.tolist(), (counts / grid.size).tolist(), strict=True))
    expected = {float(value): float(share) for value, share in outcomes.items()}
    # of each outcome, as many parts of the grid are its own as there are points of the lattice with its ratio
    assert {value for value, share in expected.items() if share > 0.01} <= set(shares)
    for value, share in shares.items():
        wanted = 1 - law.defined if math.isnan(value) else expected[value]
        assert share == pytest.approx(wanted, abs=0.005)


@pytest.mark.parametrize("p", [0.005, 0.05, 0.5])
def test_limits_are_those_of_200_000_drawn_resamples(p: float) -> None:
    data = thinned(3, 120, 5, p).scored_only()
    kind, frequency = kinds(data.positives, data.scored)
    values = np.sort(resampled(frequency, 200_000, 1, lambda f: (f @ kind[:, 0]) / (f @ kind[:, 1])))
    found = rate(data, seed=1).bootstrap
    assert found is not None
    for limit, tail in ((found.low, 0.025), (found.high, 0.975)):
        # the tail lies between the drawn probabilities below and up to the limit, within five standard errors
        noise = 5 * math.sqrt(0.025 * 0.975 / 200_000)
        assert np.searchsorted(values, limit, side="left") / 200_000 - noise <= tail
        assert np.searchsorted(values, limit, side="right") / 200_000 + noise >= tail


def test_cutting_the_brackets_again_and_again_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = thinned(5, 300, 5, 0.1).scored_only()
    law = RatioLaw.of(data.positives, data.scored)
    assert law is not None
    before = [law.quantile(p) for p in PROBABILITIES]
    monkeypatch.setattr("userturn.statistics.law.MOST_SORTED", 0)
    monkeypatch.setattr("userturn.statistics.law.GUESS", np.array([40.0]))
    assert [law.quantile(p) for p in PROBABILITIES] == before
    monkeypatch.setattr("userturn.statistics.law.MOST_SORTED", 10**9)
    assert [law.quantile(p) for p in PROBABILITIES] == before


def test_a_window_loses_nothing_that_counts() -> None:
    # whole lattice by convolution without a window; one item in 400 has a long tail
    values = np.array([0] * 380 + [1] * 19 + [25], dtype=np.int64)
    axis = Axis.of(values)
    mass = np.bincount(values) / values.size
    whole = np.ones(1)
    for bit in bin(values.size)[2:]:
        whole = np.convolve(whole, whole)
        whole = np.convolve(whole, mass) if bit == "1" else whole
    sums = np.arange(whole.size)
    outside = whole[(sums < axis.first) | (sums >= axis.first + axis.size)].sum()
    assert axis.size < 500 and 0 < outside < 2 * module.CUT
    law = RatioLaw.of(values, np.ones_like(values))
    assert law is not None
    cumulated = np.cumsum(whole)
    for p in PROBABILITIES:
        assert law.quantile(p) == np.searchsorted(cumulated, p - module.SLACK) / values.size


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=60))
def test_limits_lie_within_the_items_and_on_the_lattice_in_any_order(pairs: Pairs) -> None:
    law, again = law_of(pairs), law_of(sorted(pairs))
    shares = [a / b for a, b in pairs]
    least, most = (min(b for _, b in pairs) * len(pairs), max(b for _, b in pairs) * len(pairs))
    last = -math.inf
    for p in PROBABILITIES:
        value = law.quantile(p)
        assert min(shares) <= value <= max(shares) and last <= value
        assert again.quantile(p) == value
        exact = Fraction(value).limit_denominator(most)
        assert float(exact) == value and exact.denominator <= most
        assert any(b % exact.denominator == 0 for b in range(least, most + 1))
        last = value


def test_a_constant_ratio_has_no_width() -> None:
    assert law_of([(0, 2), (0, 3), (0, 5)]).quantile(0.975) == 0.0
    assert law_of([(2, 2), (3, 3), (5, 5)]).quantile(0.025) == 1.0
    assert law_of([(1, 3), (2, 6), (3, 9)] * 30).quantile(0.5) == 1 / 3
    one = law_of([(2, 7)])
    assert (one.quantile(0.001), one.quantile(0.999), one.defined) == (2 / 7, 2 / 7, pytest.approx(1.0))


def test_nothing_and_everything_of_unequal_rows() -> None:
    for share in (0, 1):
        scored = np.array([3, 4, 5, 5, 2] * 30)
        found = rate(ItemCounts.from_arrays(share * scored, scored), seed=1).bootstrap
        assert found is not None and (found.low, found.high) == (float(share), float(share))


def test_an_undefined_ratio_is_left_out_and_too_many_of_them_refused() -> None:
    # one item of ten has a denominator: (9/10)**10 of the resamples have none
    rare = [(1, 1), *[(1, 0)] * 9]
    assert law_of(rare).defined == pytest.approx(1 - 0.9**10, abs=1e-12)
    assert law_of(rare).quantile(0.5) == inverted(enumerated_binomial(10, 1), 0.5)
    columns = [np.array(column) for column in zip(*rare, strict=True)]
    given = {"resamples": 10, "seed": 1, "method": "x"}
    assert ratio_percentile(*columns, level=0.65, **given) is not None  # type: ignore[arg-type]
    assert ratio_percentile(*columns, level=0.66, **given) is None  # type: ignore[arg-type]


def enumerated_binomial(n: int, hits: int) -> dict[Fraction, Fraction]:
    """Law of n / B for B ~ binomial(n, hits / n), B > 0."""
    p = Fraction(hits, n)
    return {Fraction(n, j): math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(1, n + 1)}


def test_a_window_that_is_too_large_falls_back_to_draws() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 10**6, 60), rng.integers(1, 10**6, 60)
    assert RatioLaw.of(a, b) is None
    found = ratio_percentile(a, b, level=0.9, resamples=4000, seed=3, method="x")
    drawn = np.random.default_rng(4).multinomial(60, np.full(60, 1 / 60), size=4000)
    expected = percentile((drawn @ a) / (drawn @ b), 0.9, "x")
    assert found is not None and expected is not None
    assert (found.low, found.high) == (pytest.approx(expected.low, rel=0.02), pytest.approx(expected.high, rel=0.02))
    assert found != ratio_percentile(a, b, level=0.9, resamples=4000, seed=5, method="x")
    ratios = resampled_ratios(a, b, resamples=4000, seed=3)
    assert percentile(ratios, 0.9, "x") == found


def test_ratios_drawn_from_the_law_are_those_of_resamples() -> None:
    data = thinned(3, 120, 5, 0.2).scored_only()
    kind, frequency = kinds(data.positives, data.scored)
    drawn = resampled(frequency, 100_000, 1, lambda f: (f @ kind[:, 0]) / (f @ kind[:, 1]))
    found = resampled_ratios(data.positives, data.scored, resamples=100_000, seed=1)
    assert found.mean() == pytest.approx(drawn.mean(), abs=5 * drawn.std() * math.sqrt(2 / 100_000))
    assert found.std() == pytest.approx(drawn.std(), rel=0.02)
    for p in PROBABILITIES:
        assert np.quantile(found, p) == pytest.approx(
            np.quantile(drawn, p), abs=0.08 * drawn.std() / min(p, 1 - p) ** 0.5
        )


def test_the_window_decides_and_not_the_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    data = thinned(6, 80, 4, 0.2).scored_only()
    exact = rate(data, seed=1).bootstrap
    scaled = ratio_percentile(data.positives * 10**9, data.scored * 10**6, level=0.95, resamples=1, seed=1, method="x")
    assert exact is not None and scaled is not None
    assert (scaled.low, scaled.high) == (pytest.approx(1000 * exact.low), pytest.approx(1000 * exact.high))
    monkeypatch.setattr("userturn.statistics.law.LARGEST_WINDOW", 1)
    drawn = rate(data, seed=1, resamples=20_000).bootstrap
    assert drawn is not None and drawn != exact
    assert (drawn.low, drawn.high) == (pytest.approx(exact.low, abs=0.01), pytest.approx(exact.high, abs=0.01))


def test_effect_and_ratio_use_the_law_whatever_the_seed() -> None:
    one, two = thinned(7, 150, 4, 0.2, kept=1.0), thinned(8, 150, 4, 0.1, kept=1.0)
    for quantity in (paired_effect, ratio):
        found = [quantity(one, two, resamples=10, seed=seed).bootstrap for seed in (1, 2)]
        assert found[0] == found[1] and found[0] is not None and found[0].low < found[0].high
