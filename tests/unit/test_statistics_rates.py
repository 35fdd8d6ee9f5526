from __future__ import annotations

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from userturn.statistics import Estimate, ItemCounts, determinism, rate
from userturn.statistics.intervals import NAME_WILSON, effective_size, modified_wilson
from userturn.statistics.rates import NAME_BOOTSTRAP
from userturn.statistics.resample import draw, kinds, percentile, ratio_percentile, resampled, total


def counts(positives: list[int], samples: int) -> ItemCounts:
    return ItemCounts.from_arrays(positives, [samples] * len(positives))


def clustered(seed: int, n_items: int, samples: int, p: float, rho: float) -> ItemCounts:
    rng = np.random.default_rng(seed)
    strength = (1 - rho) / rho
    lots = rng.beta(p * strength, (1 - p) * strength, size=n_items)
    return ItemCounts.from_arrays(rng.binomial(samples, lots), [samples] * n_items)


def limits(found: Estimate) -> tuple[float, float]:
    assert found.interval is not None
    return found.interval.low, found.interval.high


def test_zero_of_n_has_a_wilson_interval_on_items_and_the_bootstrap_beside_it() -> None:
    found = rate(counts([0] * 50, 10), seed=1)
    assert (found.value, found.k, found.n, found.n_items) == (0.0, 0, 500, 50)
    low, high = limits(found)
    assert low == 0.0
    assert high == pytest.approx(proportion_confint(0, 50, method="wilson")[1])
    assert found.interval is not None and found.interval.method == NAME_WILSON
    assert found.bootstrap is not None and (found.bootstrap.low, found.bootstrap.high) == (0.0, 0.0)
    assert any("bootstrap" in note for note in found.notes)


def test_n_of_n_mirrors_zero_of_n() -> None:
    low, high = limits(rate(counts([10] * 50, 10), seed=1))
    none = limits(rate(counts([0] * 50, 10), seed=1))
    assert high == 1.0
    assert low == pytest.approx(1.0 - none[1])


def test_one_of_n_with_one_sample_is_the_published_modified_wilson() -> None:
    # Brown, Cai and DasGupta (2001): lower limit chi2(.05; 2) / (2 * 50) = 0.00102587
    low, high = limits(rate(counts([1, *[0] * 49], 1), seed=1))
    assert low == pytest.approx(0.5 * stats.chi2.ppf(0.05, 2) / 50)
    assert low == pytest.approx(0.00102587, abs=1e-8)
    assert high == pytest.approx(proportion_confint(1, 50, method="wilson")[1])


def test_wilson_published_value_where_no_limit_is_rare() -> None:
    # Newcombe (1998), table I: 81/263 by the score method without continuity correction: 0.2553 to 0.3662
    low, high = modified_wilson(81 / 263, 263, 0.95)
    assert (float(low), float(high)) == (pytest.approx(0.2553, abs=5e-5), pytest.approx(0.3662, abs=5e-5))


def test_one_item_many_samples_is_as_uncertain_as_one_row() -> None:
    found = rate(counts([4], 10), seed=1)
    assert found.value == 0.4
    low, high = limits(found)
    assert low < 0.1 and high > 0.8
    assert effective_size(np.array([4]), np.array([10])) == pytest.approx(1.0)


def test_one_row() -> None:
    low, high = limits(rate(counts([1], 1), seed=1))
    assert high == 1.0 and 0.0 < low < 0.25


def test_all_unscored_and_no_rows_are_defined() -> None:
    found = rate(ItemCounts.from_arrays([0, 0], [0, 0], [3, 4]), seed=1)
    assert (found.value, found.interval, found.bootstrap) == (None, None, None)
    assert (found.n, found.n_items, found.n_unscored, found.bounds) == (0, 0, 7, (0.0, 1.0))
    assert found.notes == ("no row was scored",)
    assert rate(ItemCounts.from_arrays([], []), seed=1).notes == ("there are no rows",)


def test_unscored_rows_give_worst_case_bounds_and_leave_the_rate() -> None:
    found = rate(ItemCounts.from_arrays([1, 2, 0], [2, 2, 0], [0, 1, 5]), seed=1)
    assert found.value == 0.75
    assert found.bounds == (3 / 10, 9 / 10)
    assert (found.n, found.n_items, found.n_unscored) == (4, 2, 6)


def test_bootstrap_is_chosen_where_it_works() -> None:
    found = rate(clustered(3, 200, 5, 0.2, 0.3), seed=1)
    assert found.interval == found.bootstrap
    assert found.interval is not None and found.interval.method == NAME_BOOTSTRAP
    assert found.notes == ()


def test_bootstrap_agrees_with_scipy() -> None:
    data = clustered(5, 150, 5, 0.2, 0.4)
    mine = rate(data, resamples=40_000, seed=1).bootstrap
    theirs = stats.bootstrap(
        (data.positives / data.scored,),
        np.mean,
        n_resamples=10_000,
        batch=500,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert mine is not None
    assert mine.low == pytest.approx(theirs.low, abs=0.003)
    assert mine.high == pytest.approx(theirs.high, abs=0.003)


def test_bootstrap_of_one_sample_an_item_is_the_binomial_distribution() -> None:
    mine = rate(counts([1] * 30 + [0] * 70, 1), seed=4).bootstrap
    assert mine is not None
    expected = stats.binom.ppf([0.025, 0.975], 100, 0.3) / 100
    assert (mine.low, mine.high) == (pytest.approx(expected[0]), pytest.approx(expected[1]))


def test_exact_bootstrap_is_the_limit_of_the_drawn_one() -> None:
    data = clustered(6, 120, 4, 0.1, 0.4)
    kind, frequency = kinds(data.positives, data.scored)
    drawn = resampled(frequency, 100_000, 1, lambda f: (f @ kind[:, 0]) / (f @ kind[:, 1]))
    sampled = percentile(drawn, 0.9, "x")
    exact = ratio_percentile(data.positives, data.scored, level=0.9, resamples=1, seed=1, method="x")
    assert sampled is not None and exact is not None
    assert (exact.low, exact.high) == (
        pytest.approx(sampled.low, abs=1.01 / 480),
        pytest.approx(sampled.high, abs=1.01 / 480),
    )


def test_effective_size_of_independent_and_of_identical_rows() -> None:
    rng = np.random.default_rng(0)
    free = rng.binomial(5, 0.3, size=4000)
    assert effective_size(free, np.full(4000, 5)) == pytest.approx(20_000, rel=0.06)
    same = 5 * rng.binomial(1, 0.3, size=4000)
    assert effective_size(same, np.full(4000, 5)) == pytest.approx(4000, rel=0.01)


def test_effective_size_matches_the_beta_binomial_design_effect() -> None:
    data = clustered(1, 20_000, 5, 0.2, 0.3)
    expected = 100_000 / (1 + (5 - 1) * 0.3)
    assert effective_size(data.positives, data.scored) == pytest.approx(expected, rel=0.04)


def test_same_bytes_again_and_independent_of_row_and_item_order() -> None:
    rng = np.random.default_rng(0)
    rows = [(f"i{i}", bool(rng.random() < 0.3) if rng.random() < 0.9 else None) for i in range(40) for _ in range(5)]
    shuffled = [rows[i] for i in rng.permutation(len(rows))]
    first = json.dumps(asdict(rate(ItemCounts.from_rows(rows), seed=9)))
    assert json.dumps(asdict(rate(ItemCounts.from_rows(rows), seed=9))) == first
    assert json.dumps(asdict(rate(ItemCounts.from_rows(shuffled), seed=9))) == first
    # the law of the bootstrap is computed: no seed is in it
    assert json.dumps(asdict(rate(ItemCounts.from_rows(rows), seed=10))) == first


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=40))
def test_every_rate_lies_in_its_interval_and_bounds(rows: list[tuple[int, int, int]]) -> None:
    k, m, u = (np.array(column) for column in zip(*rows, strict=True))
    found = rate(ItemCounts.from_arrays(np.minimum(k, m), m, u), resamples=200, seed=0)
    if found.value is None:
        assert m.sum() == 0
        return
    low, high = limits(found)
    assert 0.0 <= low <= found.value <= high <= 1.0
    assert found.bounds is not None and found.bounds[0] <= found.value <= found.bounds[1]
    assert all(math.isfinite(x) for x in (low, high))


def test_wider_at_a_higher_level() -> None:
    data = clustered(2, 100, 5, 0.02, 0.3)
    narrow, wide = limits(rate(data, level=0.8, seed=1)), limits(rate(data, level=0.99, seed=1))
    assert wide[0] <= narrow[0] and narrow[1] < wide[1]


def test_refusals_name_what_was_given() -> None:
    with pytest.raises(ValueError, match="3 positives among 2"):
        ItemCounts.from_arrays([3], [2])
    with pytest.raises(ValueError, match="negative"):
        ItemCounts.from_arrays([0], [-1])
    with pytest.raises(ValueError, match="distinct"):
        ItemCounts.from_arrays([0, 0], [1, 1], items=["a", "a"])
    with pytest.raises(ValueError, match="whole"):
        ItemCounts.from_arrays([0.5], [1])
    with pytest.raises(ValueError, match="shape"):
        ItemCounts.from_arrays([0, 1], [1])
    with pytest.raises(ValueError, match="level is 95"):
        rate(counts([1], 1), level=95, seed=1)
    with pytest.raises(ValueError, match="seed is -1"):
        rate(counts([1], 1), seed=-1)
    with pytest.raises(ValueError, match="resamples is 0"):
        rate(counts([1], 1), resamples=0, seed=1)


def test_counts_are_canonical_and_read_only() -> None:
    data = ItemCounts.from_arrays([1, 2], [2, 2], items=["b", "a"])
    assert data.items == ("a", "b") and data.positives.tolist() == [2, 1]
    with pytest.raises(ValueError, match="read-only"):
        data.positives[0] = 5


@pytest.mark.parametrize("sizes", [[1] * 100, [60, 30, 10]], ids=["items are picked", "kinds are counted"])
def test_draws_are_bounded_in_memory_and_do_not_depend_on_the_chunk(
    sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    frequency = np.array(sizes)
    whole = np.concatenate(list(draw(frequency, 500, 3)))
    monkeypatch.setattr("userturn.statistics.resample.CHUNK_CELLS", 1000)
    monkeypatch.setattr("userturn.statistics.resample.CHUNK_PICKS", 1000)
    chunks = list(draw(frequency, 500, 3))
    assert max(chunk.size for chunk in chunks) <= 1000
    assert np.array_equal(np.concatenate(chunks), whole)
    assert np.all(whole.sum(axis=1) == 100)


@pytest.mark.parametrize("sizes", [[12, 5, 2, 1], [70, 30, 20]], ids=["items are picked", "kinds are counted"])
def test_draws_have_the_multinomial_law(sizes: list[int]) -> None:
    frequency = np.array(sizes)
    n, share = frequency.sum(), frequency / frequency.sum()
    drawn = np.concatenate(list(draw(frequency, 40_000, 11))).astype(float)
    covariance = n * (np.diag(share) - np.outer(share, share))
    assert drawn.mean(axis=0) == pytest.approx(frequency, abs=5 * np.sqrt(covariance.max() / 40_000))
    assert np.cov(drawn.T) == pytest.approx(covariance, rel=0.05, abs=0.05)


def test_totals_are_exact_beyond_what_floats_hold() -> None:
    frequencies = np.array([[3, 1], [0, 4]])
    assert total(frequencies, np.array([5, -7])).tolist() == [8, -28]
    assert total(frequencies, np.array([2**53 + 1, 0])).tolist() == [3 * (2**53 + 1), 0]


def test_percentile_refuses_when_too_many_resamples_are_undefined() -> None:
    values = np.concatenate([np.ones(90), np.full(10, np.nan)])
    assert percentile(values, 0.95, "x") is None
    assert percentile(values, 0.90, "x") is not None
    assert resampled(np.array([3]), 7, 0, lambda f: f[:, 0].astype(float)).tolist() == [3.0] * 7


def test_determinism_counts_items_whose_texts_repeat() -> None:
    texts = {"a": ["x", "x"], "b": ["x", "y"], "c": ["x", None], "d": ["x"], "e": ["z", "z", "z"]}
    found = determinism(texts, seed=1)
    assert (found.k, found.n, found.n_unscored) == (2, 3, 2)
