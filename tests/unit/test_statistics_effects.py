from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from userturn.statistics import (
    Estimate,
    ItemCounts,
    benjamini_hochberg,
    decoupling,
    holm,
    paired_effect,
    ratio,
    sign_flip_test,
    temperature_slope,
    within_item_association,
)
from userturn.statistics.effects import NAME_HYBRID
from userturn.statistics.intervals import modified_wilson, mover_difference, mover_ratio
from userturn.statistics.resample import kinds
from userturn.statistics.trends import fit_exchangeable_logit


def counts(positives: object, samples: int) -> ItemCounts:
    k = np.asarray(positives)
    return ItemCounts.from_arrays(k, np.full(k.size, samples))


def limits(found: Estimate) -> tuple[float, float]:
    assert found.interval is not None
    return found.interval.low, found.interval.high


def test_sign_flip_equals_mcnemar_for_single_rows() -> None:
    differences = np.array([1] * 9 + [-1] * 2 + [0] * 30)
    p, name = sign_flip_test(differences, seed=0)
    assert name == "exact McNemar"
    assert p == pytest.approx(mcnemar([[10, 9], [2, 20]], exact=True).pvalue)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=2, max_size=9))
def test_sign_flip_equals_scipy_enumeration(values: list[int]) -> None:
    theirs = stats.permutation_test(
        (np.array(values, dtype=float),), np.sum, permutation_type="samples", n_resamples=np.inf
    ).pvalue
    signs = np.array(np.meshgrid(*[[-1, 1]] * len(values))).reshape(len(values), -1)
    enumerated = np.mean(np.abs(np.array(values) @ signs) >= abs(sum(values)))
    mine, _ = sign_flip_test(np.array(values), seed=0)
    assert mine == pytest.approx(enumerated)
    if sum(values):
        assert mine == pytest.approx(min(1.0, theirs), abs=1e-9)


def test_sign_flip_by_draws_agrees_with_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = np.array([3, 2, -1, 4, 1, 1, -2, 5, 2, 0, 1, 2])
    exact, _ = sign_flip_test(differences, seed=0)
    monkeypatch.setattr("userturn.statistics.effects.LARGEST_LATTICE", 1)
    drawn, name = sign_flip_test(differences, seed=0)
    assert name == "sign-flip permutation"
    assert drawn == pytest.approx(exact, abs=0.003)


def test_hybrid_interval_published_value() -> None:
    # Newcombe (1998, Statistics in Medicine 17, 873-890), method 10: 56/70 - 48/80 is 0.2000 (0.0524, 0.3339)
    one = tuple(float(x) for x in modified_wilson(56 / 70, 70, 0.95))
    two = tuple(float(x) for x in modified_wilson(48 / 80, 80, 0.95))
    low, high = mover_difference(0.8, (one[0], one[1]), 0.6, (two[0], two[1]), 0.0)
    assert (low, high) == (pytest.approx(0.0524, abs=5e-5), pytest.approx(0.3339, abs=5e-5))


def test_no_discordant_pair_still_gets_an_interval() -> None:
    found = paired_effect(counts([0] * 40, 5), counts([0] * 40, 5), seed=1)
    low, high = limits(found)
    assert (found.value, found.p_value) == (0.0, 1.0)
    assert low < -0.02 < 0.02 < high
    assert found.interval is not None and found.interval.method == NAME_HYBRID
    assert found.bootstrap is not None and (found.bootstrap.low, found.bootstrap.high) == (0.0, 0.0)


def test_full_effect_and_one_item() -> None:
    found = paired_effect(counts([5] * 30, 5), counts([0] * 30, 5), seed=1)
    low, high = limits(found)
    assert found.value == 1.0 and high == 1.0 and 0.7 < low < 1.0
    assert found.p_value == pytest.approx(2 * 0.5**30)
    one = paired_effect(counts([3], 5), counts([1], 5), seed=1)
    assert one.value == pytest.approx(0.4) and one.p_value == 1.0
    assert limits(one)[0] < -0.4


def test_bootstrap_of_the_effect_agrees_with_scipy() -> None:
    rng = np.random.default_rng(2)
    lots = rng.beta(1, 3, size=150)
    one, two = rng.binomial(4, np.minimum(1, lots * 1.3)), rng.binomial(4, lots)
    mine = paired_effect(counts(one, 4), counts(two, 4), resamples=40_000, seed=1)
    theirs = stats.bootstrap(
        ((one - two) / 4,),
        np.mean,
        n_resamples=10_000,
        batch=500,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert mine.interval == mine.bootstrap
    assert limits(mine) == (pytest.approx(theirs.low, abs=0.004), pytest.approx(theirs.high, abs=0.004))


def test_only_shared_items_count_and_worst_case_bounds_hold() -> None:
    treated = ItemCounts.from_arrays([1, 1, 0], [2, 2, 0], [0, 1, 2], items=["a", "b", "c"])
    baseline = ItemCounts.from_arrays([0, 1, 2], [2, 2, 2], [0, 0, 1], items=["a", "b", "d"])
    found = paired_effect(treated, baseline, seed=1)
    assert found.value == pytest.approx(0.25)
    assert (found.n, found.n_items, found.k, found.n_unscored) == (8, 2, 3, 4)
    assert found.bounds == (pytest.approx((0.5 + 1 / 3 - 0.5) / 2), pytest.approx((0.5 + 2 / 3 - 0.5) / 2))
    assert any("2 items" in note for note in found.notes)
    none = paired_effect(treated, ItemCounts.from_arrays([1], [1], items=["z"]), seed=1)
    assert none.value is None and none.notes == ("no item is scored in both conditions",)


def test_effect_reverses_with_its_arms_and_ignores_item_order() -> None:
    rng = np.random.default_rng(4)
    k1, k2 = rng.binomial(3, 0.2, 60), rng.binomial(3, 0.1, 60)
    ids = [f"q{i}" for i in range(60)]
    order = rng.permutation(60)
    one = paired_effect(counts(k1, 3), counts(k2, 3), seed=5)
    back = paired_effect(counts(k2, 3), counts(k1, 3), seed=5)
    assert back.value == -(one.value or 0.0) and back.p_value == one.p_value
    plain = ItemCounts.from_arrays(k2, [3] * 60, items=ids)
    named = paired_effect(ItemCounts.from_arrays(k1, [3] * 60, items=ids), plain, seed=5)
    mixed = paired_effect(
        ItemCounts.from_arrays(k1[order], [3] * 60, items=[ids[i] for i in order]),
        ItemCounts.from_arrays(k2, [3] * 60, items=ids),
        seed=5,
    )
    assert json.dumps(asdict(named)) == json.dumps(asdict(mixed))


def test_effect_covers_when_rare_where_the_bootstrap_does_not() -> None:
    rng = np.random.default_rng(8)
    hits = np.zeros(2)
    for _ in range(100):
        baseline = counts(rng.binomial(5, rng.beta(0.01, 1.99, 100)), 5)
        treated = counts(rng.binomial(5, rng.beta(0.04, 1.96, 100)), 5)
        found = paired_effect(treated, baseline, resamples=300, seed=1)
        assert found.interval is not None and found.bootstrap is not None
        hits += [i.low <= 0.015 <= i.high for i in (found.interval, found.bootstrap)]
    assert hits[0] / 100 >= 0.93 - 0.055
    assert hits[0] > hits[1]


def test_ratio_values_and_edges() -> None:
    found = ratio(counts([2] * 20 + [0] * 20, 4), counts([1] * 20 + [0] * 20, 4), seed=1)
    assert found.value == pytest.approx(2.0)
    assert limits(found) == (pytest.approx(2.0), pytest.approx(2.0))
    rare = ratio(counts([1] * 4 + [0] * 46, 1), counts([1] * 2 + [0] * 48, 1), seed=1)
    low, high = limits(rare)
    assert rare.value == pytest.approx(2.0) and 0.0 < low < 1.0 and high > 5.0
    assert ratio(counts([1, 0], 1), counts([0, 0], 1), seed=1).value is None
    zero = ratio(counts([0] * 30, 1), counts([1] * 3 + [0] * 27, 1), seed=1)
    assert zero.value == 0.0 and limits(zero)[0] == 0.0


def test_mover_ratio_solves_its_equation() -> None:
    # the limit R of MOVER-R is where the hybrid interval of p1 - R p2 touches 0
    low, high = mover_ratio(0.4, (0.3, 0.5), 0.2, (0.12, 0.3))
    touch_low, _ = mover_difference(0.4, (0.3, 0.5), low * 0.2, (low * 0.12, low * 0.3), 0.0)
    _, touch_high = mover_difference(0.4, (0.3, 0.5), high * 0.2, (high * 0.12, high * 0.3), 0.0)
    assert touch_low == pytest.approx(0.0, abs=1e-12) and touch_high == pytest.approx(0.0, abs=1e-12)


def temperatures(seed: int, n_items: int, samples: int, slope: float) -> dict[float, ItemCounts]:
    rng = np.random.default_rng(seed)
    level = rng.normal(-2.0, 1.2, size=n_items)
    return {
        t: counts(rng.binomial(samples, 1 / (1 + np.exp(-(level + slope * t)))), samples) for t in (0.0, 0.5, 1.0, 1.5)
    }


def test_slope_equals_statsmodels_gee_on_rows() -> None:
    data = temperatures(1, 60, 3, 0.8)
    y, x, groups = [], [], []
    for t, c in data.items():
        for i, k in enumerate(c.positives):
            y += [1] * int(k) + [0] * int(3 - k)
            x += [t] * 3
            groups += [i] * 3
    theirs = sm.GEE(
        np.array(y),
        sm.add_constant(np.array(x)),
        groups=np.array(groups),
        family=sm.families.Binomial(),
        cov_struct=sm.cov_struct.Exchangeable(),
    ).fit(maxiter=200, ctol=1e-9)
    k = np.column_stack([c.positives for c in data.values()])
    kind, frequency = kinds(k, np.full_like(k, 3))
    mine = fit_exchangeable_logit(np.array(list(data)), kind[:, :4], kind[:, 4:], frequency)
    assert mine is not None
    assert mine.coefficients == pytest.approx(np.asarray(theirs.params), abs=1e-5)
    assert np.sqrt(np.diag(mine.covariance)) == pytest.approx(np.asarray(theirs.bse), rel=1e-4)
    assert mine.correlation == pytest.approx(float(theirs.cov_struct.dep_params), abs=1e-4)
    found = temperature_slope(data, resamples=500, seed=1)
    assert found.value == pytest.approx(float(theirs.params[1]), abs=1e-5)
    assert found.p_value is not None and found.p_value < 0.01
    assert found.bootstrap is not None and found.bootstrap.low < 0.8 < found.bootstrap.high


def test_slope_bootstrap_statistic_is_the_glm_slope() -> None:
    data = temperatures(3, 50, 2, 0.5)
    k = np.array([c.positives.sum() for c in data.values()])
    theirs = sm.GLM(
        np.column_stack([k, 100 - k]), sm.add_constant(np.array(list(data))), family=sm.families.Binomial()
    ).fit()
    found = temperature_slope(data, resamples=3000, seed=1)
    assert found.bootstrap is not None
    middle = (found.bootstrap.low + found.bootstrap.high) / 2
    assert middle == pytest.approx(float(theirs.params[1]), abs=0.1)


def test_slope_edges_are_defined() -> None:
    none = {t: counts([0] * 20, 2) for t in (0.0, 1.0)}
    found = temperature_slope(none, seed=1)
    assert (found.value, found.p_value) == (None, 1.0) and "no row is positive" in found.notes[0]
    every = temperature_slope({t: counts([2] * 20, 2) for t in (0.0, 1.0)}, seed=1)
    assert every.value is None and "every row" in every.notes[0]
    apart = temperature_slope({0.0: counts([0] * 20, 2), 1.0: counts([1] * 12 + [0] * 8, 2)}, seed=1)
    assert apart.value is None and "separated" in apart.notes[0]
    assert apart.p_value == pytest.approx(2 * 0.5**12)
    assert temperature_slope({1.0: counts([1, 0], 2)}, seed=1).value is None
    assert temperature_slope({}, seed=1).value is None
    with pytest.raises(ValueError, match="temperature -1"):
        temperature_slope({-1.0: counts([1], 1)}, seed=1)


def test_decoupling_equals_scipy() -> None:
    rng = np.random.default_rng(0)
    accuracy = {f"m{i}": float(v) for i, v in enumerate(rng.random(7))}
    followup = {f"m{i}": float(v) for i, v in enumerate(rng.integers(0, 4, 7))}
    x, y = list(accuracy.values()), list(followup.values())
    spearman = decoupling(accuracy, followup, resamples=500, seed=1)
    kendall = decoupling(accuracy, followup, method="kendall", resamples=500, seed=1)
    assert spearman.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert kendall.value == pytest.approx(stats.kendalltau(x, y).statistic)
    distinct = {f"m{i}": float(v) for i, v in enumerate(rng.random(7))}
    exact = decoupling(accuracy, distinct, method="kendall", resamples=500, seed=1)
    assert exact.p_value == pytest.approx(stats.kendalltau(x, list(distinct.values()), method="exact").pvalue)
    backwards = dict(reversed(list(accuracy.items())))
    assert decoupling(backwards, followup, resamples=500, seed=1) == spearman


def test_decoupling_edges() -> None:
    two = decoupling({"a": 0.1, "b": 0.2}, {"a": 0.1, "b": 0.2}, seed=1)
    assert two.value is None and "at least 3" in two.notes[0]
    tied = decoupling({"a": 0.1, "b": 0.2, "c": 0.3}, {"a": 0.0, "b": 0.0, "c": 0.0}, seed=1)
    assert tied.value is None and "tie" in tied.notes[0]
    ladder = {f"m{i}": float(i) for i in range(11)}
    perfect = decoupling(ladder, ladder, resamples=200, seed=1)
    low, high = limits(perfect)
    assert perfect.value == 1.0 and high == 1.0 and 0.5 < low < 1.0
    three = decoupling({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2, "c": 3}, resamples=200, seed=1)
    assert three.interval is None and three.p_value == pytest.approx(2 / 6)


def test_association_within_items() -> None:
    k = np.array([3] * 20 + [0] * 20 + [1] * 20 + [0] * 20)
    data = counts(k, 3)
    correct = {item: i < 40 for i, item in enumerate(data.items)}
    found = within_item_association(correct, data, resamples=2000, seed=1)
    assert found.value == pytest.approx(0.5 - 1 / 6)
    low, high = limits(found)
    assert found.bootstrap == found.interval and 0.1 < low < found.value < high < 0.55
    assert found.p_value is not None and found.p_value < 0.01


def test_association_test_agrees_with_fisher() -> None:
    data = counts([1] * 8 + [0] * 22 + [1] * 2 + [0] * 28, 1)
    correct = {item: i < 30 for i, item in enumerate(data.items)}
    found = within_item_association(correct, data, seed=1)
    assert found.p_value == pytest.approx(stats.fisher_exact([[8, 22], [2, 28]]).pvalue, abs=0.01)
    assert limits(found)[0] < 0.2 < limits(found)[1]


def test_association_edges() -> None:
    data = counts([1, 0], 1)
    every = within_item_association(dict.fromkeys(data.items, True), data, seed=1)
    assert every.value is None and "every item is correct" in every.notes[0]
    assert within_item_association({}, data, seed=1).value is None
    zero = within_item_association({"00000000": True, "00000001": False}, counts([0, 0], 1), seed=1)
    assert zero.value == 0.0 and zero.p_value == 1.0 and limits(zero)[0] < 0 < limits(zero)[1]


def test_adjusted_p_values() -> None:
    # Holm by hand: sorted .01 .03 .04 -> .03 .06 .06; Benjamini-Hochberg: .03 .04 .04
    assert holm([0.04, None, 0.01, 0.03]) == pytest.approx([0.06, None, 0.03, 0.06])
    assert benjamini_hochberg([0.04, None, 0.01, 0.03]) == pytest.approx([0.04, None, 0.03, 0.04])
    assert holm([None]) == [None] and benjamini_hochberg([]) == []
    with pytest.raises(ValueError, match=r"1\.5"):
        holm([1.5])


@settings(max_examples=6, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_adjustment_never_lowers_and_keeps_order(p_values: list[float]) -> None:
    strict, loose = holm(p_values), benjamini_hochberg(p_values)
    for raw, a, b in zip(p_values, strict, loose, strict=True):
        assert a is not None and b is not None
        assert raw <= b + 1e-12 and b <= a + 1e-12 <= 1 + 1e-9


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1e-12, 0.001, 0.01, 0.02, 0.04, 0.3, 0.9, 1.0]) | st.floats(0, 1), min_size=1))
def test_adjustments_are_those_of_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist(), rel=1e-12)
    assert benjamini_hochberg(p_values) == pytest.approx(
        multipletests(p_values, method="fdr_bh")[1].tolist(), rel=1e-12
    )
