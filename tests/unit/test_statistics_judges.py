from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa

from userturn.statistics import (
    Agreement,
    Estimate,
    ItemCounts,
    agreement,
    corrected_effect,
    detectable_difference,
    false_positive_floor,
    power,
    prediction_powered,
    rogan_gladen,
)


def rows(table: list[list[int]], names: str) -> tuple[list[str], list[str]]:
    first, second = [], []
    for i, line in enumerate(table):
        for j, count in enumerate(line):
            first += [names[i]] * count
            second += [names[j]] * count
    return first, second


def measured(table: list[list[int]], names: str, resamples: int = 400) -> Agreement:
    return agreement(*rows(table, names), categories=list(names), positive=names[-1], resamples=resamples, seed=1)


def limits(found: Estimate) -> tuple[float, float]:
    assert found.interval is not None
    return found.interval.low, found.interval.high


# kappa, alpha and AC1 computed with irrCAC 0.4 (Conger for two judges is Cohen's kappa) and krippendorff 0.9
REFERENCE: list[tuple[list[list[int]], str, float, float, float]] = [
    (
        [[118, 5], [2, 0]],
        "yn",
        -0.02339,
        -0.02469,
        0.94078,
    ),  # the paradox: raw 94 %
    ([[20, 5], [10, 15]], "yn", 0.40000, 0.40000, 0.40594),
    ([[45, 15], [25, 15]], "yn", 0.13043, 0.12527, 0.26606),
    ([[44, 5, 1], [7, 20, 3], [9, 5, 6]], "xyz", 0.49153, 0.48974, 0.57597),
    ([[985, 6], [4, 5]], "np", 0.49500, 0.49520, 0.98980),
]


@pytest.mark.parametrize(("table", "names", "kappa", "alpha", "ac1"), REFERENCE)
def test_agreement_equals_the_reference_programs(
    table: list[list[int]], names: str, kappa: float, alpha: float, ac1: float
) -> None:
    found = measured(table, names)
    total = sum(map(sum, table))
    assert found.raw.value == pytest.approx(sum(table[i][i] for i in range(len(table))) / total)
    assert found.kappa.value == pytest.approx(kappa, abs=6e-6)
    assert found.kappa.value == pytest.approx(float(cohens_kappa(np.array(table)).kappa))
    assert found.alpha.value == pytest.approx(alpha, abs=6e-6)
    assert found.ac1.value == pytest.approx(ac1, abs=6e-6)
    last = len(table) - 1
    ends = sum(table[last]) + sum(line[last] for line in table)
    assert found.positive is not None
    assert found.positive.value == pytest.approx(2 * table[last][last] / ends)
    assert found.table == tuple(map(tuple, table))


def test_alpha_equals_krippendorffs_worked_examples() -> None:
    # Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, examples A (0.095) and B (0.692)
    for one, two, alpha in (("0100000010", "1110010000", 0.095), ("aabbdcccedda", "babbbccceddd", 0.692)):
        found = agreement(list(one), list(two), resamples=50, seed=1)
        assert found.alpha.value == pytest.approx(alpha, abs=5e-4)


def test_agreement_intervals_agree_with_the_reference_program() -> None:
    # irrCAC's asymptotic limits for the 3 x 3 table: kappa (0.348, 0.635), AC1 (0.441, 0.711)
    found = measured([[44, 5, 1], [7, 20, 3], [9, 5, 6]], "xyz", resamples=4000)
    assert limits(found.kappa) == (pytest.approx(0.348, abs=0.02), pytest.approx(0.635, abs=0.02))
    assert limits(found.ac1) == (pytest.approx(0.441, abs=0.02), pytest.approx(0.711, abs=0.02))


def test_one_class_is_defined() -> None:
    found = agreement(["n"] * 40, ["n"] * 40, categories=["n", "p"], positive="p", seed=1)
    assert found.raw.value == 1.0 and found.ac1.value == 1.0
    assert limits(found.raw)[0] < 0.95 and limits(found.ac1)[0] < 0.95
    for undefined in (found.kappa, found.alpha):
        assert undefined.value is None and "0 / 0" in undefined.notes[0]
    assert found.positive is not None and found.positive.value is None
    alone = agreement(["n"] * 3, ["n"] * 3, positive="p", resamples=50, seed=1)
    assert alone.ac1.value == 1.0 and alone.positive is not None and alone.positive.value is None


def test_perfect_agreement_on_two_classes_keeps_an_interval() -> None:
    found = measured([[30, 0], [0, 10]], "np")
    assert found.kappa.value == pytest.approx(1.0)
    low, high = limits(found.kappa)
    assert 0.5 < low < 1.0 and high == pytest.approx(1.0)


def test_unscored_and_empty() -> None:
    found = agreement(["a", None, "b", "a"], ["a", "b", None, "b"], resamples=50, seed=1)
    assert (found.raw.n, found.raw.n_unscored, found.raw.value) == (2, 2, 0.5)
    nothing = agreement([None], ["a"], positive="a", seed=1)
    assert nothing.kappa.value is None and nothing.raw.n_unscored == 1
    assert nothing.positive is not None and nothing.positive.value is None
    assert agreement([], [], seed=1).raw.value is None


def test_items_are_the_unit_of_resampling() -> None:
    first = ["a"] * 40 + ["b"] * 40
    second = (["a"] * 20 + ["b"] * 20) * 2
    loose = agreement(first, second, resamples=2000, seed=1)
    tight = agreement(first, second, items=[f"i{i // 10}" for i in range(80)], resamples=2000, seed=1)
    assert loose.raw.value == tight.raw.value
    assert limits(tight.raw)[1] - limits(tight.raw)[0] > limits(loose.raw)[1] - limits(loose.raw)[0]
    order = np.random.default_rng(0).permutation(80)
    mixed = agreement(
        [first[i] for i in order],
        [second[i] for i in order],
        items=[f"i{i // 10}" for i in order],
        resamples=2000,
        seed=1,
    )
    assert json.dumps(asdict(mixed)) == json.dumps(asdict(tight))


def test_agreement_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="lengths"):
        agreement(["a"], [], seed=1)
    with pytest.raises(ValueError, match="'c' is not among"):
        agreement(["c"], ["a"], categories=["a", "b"], seed=1)


def counts(positives: object, samples: int = 1) -> ItemCounts:
    k = np.asarray(positives)
    return ItemCounts.from_arrays(k, np.full(k.size, samples))


def test_rogan_gladen_worked_example() -> None:
    # the example of epiR's epi.prev: 23 of 150 positive, sensitivity .96, specificity .89: 5.1 %
    found = rogan_gladen(counts([1] * 23 + [0] * 127), (96, 100), (89, 100), resamples=2000, seed=1)
    assert found.corrected.value == pytest.approx((23 / 150 + 0.89 - 1) / 0.85)
    assert found.corrected.value == pytest.approx(0.051, abs=5e-4)
    low, high = limits(found.corrected)
    assert low == 0.0 and 0.12 < high < 0.18
    assert found.above_floor is False


def test_a_perfect_known_judge_changes_nothing() -> None:
    raw = counts([1] * 30 + [0] * 70)
    found = rogan_gladen(raw, (10**9, 10**9), (10**9, 10**9), resamples=500, seed=1)
    assert found.corrected.value == pytest.approx(0.3)
    expected = (0.3 * 100 + 1.92073) / (100 + 3.84146)
    reach = 1.959964 * (expected * (1 - expected) / 103.84146) ** 0.5
    assert limits(found.corrected)[0] == pytest.approx(expected - reach, abs=0.01)  # Agresti-Coull


def test_one_percent_with_specificity_99_corrects_to_zero_and_is_below_the_floor() -> None:
    found = rogan_gladen(counts([1] * 5 + [0] * 495), (90, 100), (198, 200), resamples=500, seed=1)
    assert found.corrected.value == 0.0 and found.above_floor is False
    assert found.floor.value == pytest.approx(0.01)
    assert limits(found.floor)[1] > 0.01
    clear = rogan_gladen(counts([1] * 100 + [0] * 400), (90, 100), (198, 200), resamples=500, seed=1)
    assert clear.above_floor is True


def test_correction_is_refused_where_it_has_no_meaning() -> None:
    raw = counts([1, 0, 0])
    assert rogan_gladen(raw, (1, 2), (1, 2), resamples=50, seed=1).corrected.value is None
    assert rogan_gladen(raw, (0, 0), (5, 5), resamples=50, seed=1).corrected.value is None
    assert rogan_gladen(counts([0], 0), (5, 5), (5, 5), resamples=50, seed=1).corrected.value is None
    assert false_positive_floor((0, 0)).value is None
    with pytest.raises(ValueError, match="specificity"):
        rogan_gladen(raw, (1, 2), (3, 2), seed=1)


def test_corrected_rate_covers_with_small_gold_sets() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(80):
        k = rng.binomial(300, 0.05 * 0.9 + 0.95 * 0.02)
        found = rogan_gladen(
            counts([1] * k + [0] * (300 - k)),
            (int(rng.binomial(60, 0.9)), 60),
            (int(rng.binomial(200, 0.98)), 200),
            resamples=20,
            seed=1,
        )
        low, high = limits(found.corrected)
        hits += low <= 0.05 <= high
    assert hits / 80 >= 0.93 - 0.06


def test_corrected_effect_divides_by_the_judges_gain() -> None:
    treated, baseline = counts([3] * 30 + [0] * 30, 4), counts([1] * 40 + [0] * 20, 4)
    found = corrected_effect(treated, baseline, (80, 100), (190, 200), resamples=1000, seed=1)
    assert found.value == pytest.approx((90 / 240 - 40 / 240) / 0.75)
    low, high = limits(found)
    sure = corrected_effect(treated, baseline, (80_000, 100_000), (190_000, 200_000), resamples=1000, seed=1)
    assert low < limits(sure)[0] < sure.value < limits(sure)[1] < high  # type: ignore[operator]
    assert found.bootstrap is not None and found.bootstrap.low < found.value < found.bootstrap.high  # type: ignore[operator]
    assert corrected_effect(treated, baseline, (5, 10), (5, 10), resamples=50, seed=1).value is None


def test_prediction_powered_holds_or_refuses() -> None:
    refused = prediction_powered(counts([1] * 5 + [0] * 995), ((1, 0), (0, 199)))
    assert refused.value is None and "refused: 1 human positives" in refused.notes[0]
    rng = np.random.default_rng(1)
    hits, width, classical = 0, 0.0, 0.0
    for _ in range(150):
        truth = rng.random(1200) < 0.3
        judge = np.where(truth, rng.random(1200) < 0.82, rng.random(1200) < 0.15)
        gold_t, gold_j = truth[:200], judge[:200]
        table = (
            (int((gold_j & gold_t).sum()), int((gold_j & ~gold_t).sum())),
            (int((~gold_j & gold_t).sum()), int((~gold_j & ~gold_t).sum())),
        )
        found = prediction_powered(counts(judge[200:].astype(int)), table)
        low, high = limits(found)
        hits += low <= 0.3 <= high
        width += high - low
        classical += 2 * 1.96 * (gold_t.mean() * (1 - gold_t.mean()) / 200) ** 0.5
    assert hits / 150 >= 0.93 - 0.05
    assert width < 0.9 * classical


def test_power_follows_the_test() -> None:
    null = power(100, 3, 0.05, 0.3, 0.0, simulations=200, seed=1)
    assert null.power <= 0.05 + 0.04
    strong = power(100, 3, 0.05, 0.3, 0.25, simulations=200, seed=1)
    weak = power(100, 3, 0.05, 0.3, 0.05, simulations=200, seed=1)
    assert null.power < weak.power < strong.power and strong.power > 0.95
    assert strong.interval.low < strong.power <= strong.interval.high
    assert power(100, 3, 0.05, 0.3, 0.05, simulations=200, seed=1) == weak


def test_power_agrees_with_exact_mcnemar_power() -> None:
    # independent single rows: discordant pairs are binomial, and McNemar's test is exact given their number
    n, p0, p1 = 60, 0.1, 0.35
    up, down = p1 * (1 - p0), p0 * (1 - p1)
    expected = 0.0
    for m in range(1, n + 1):
        x = np.arange(m + 1)
        p_values = np.minimum(1.0, 2 * stats.binom.cdf(np.minimum(x, m - x), m, 0.5))
        rejected = stats.binom.pmf(x, m, up / (up + down))[p_values < 0.05].sum()
        expected += stats.binom.pmf(m, n, up + down) * rejected
    found = power(n, 1, p0, 0.0, p1 - p0, simulations=600, seed=3)
    assert found.power == pytest.approx(expected, abs=0.05)


def test_detectable_difference_reaches_its_target() -> None:
    found = detectable_difference(40, 2, 0.1, 0.2, simulations=40, seed=2)
    assert found is not None and found.power >= 0.8 and 0.05 < found.difference < 0.4
    assert detectable_difference(3, 1, 0.1, 0.2, simulations=50, seed=2) is None
    with pytest.raises(ValueError, match="icc is 2"):
        power(10, 1, 0.1, 2, 0.1, seed=1)
    with pytest.raises(ValueError, match="n_items is 0"):
        power(0, 1, 0.1, 0.1, 0.1, seed=1)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30))
def test_measures_stay_in_range_and_are_symmetric(pairs: list[tuple[str, str]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    one = agreement(first, second, categories=list("abc"), positive="a", resamples=50, seed=0)
    two = agreement(second, first, categories=list("abc"), positive="a", resamples=50, seed=0)
    for name in ("raw", "kappa", "alpha", "ac1", "positive"):
        a, b = getattr(one, name), getattr(two, name)
        assert a.value == (None if b.value is None else pytest.approx(b.value))
        if a.value is not None:
            assert -1.0 - 1e-9 <= a.value <= 1.0 + 1e-9
            if a.interval is not None and "held" in a.interval.method:
                assert a.interval.low - 1e-9 <= a.value <= a.interval.high + 1e-9
