from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from userturn.statistics import mean


def values(numbers: list[float]) -> dict[str, float]:
    return {f"i{n:03d}": value for n, value in enumerate(numbers)}


def test_interval_is_students_and_bootstrap_is_scipys() -> None:
    given = np.random.default_rng(5).normal(0.4, 1.0, 40)
    found = mean(values(given.tolist()), seed=1, resamples=20_000)
    wanted = stats.ttest_1samp(given, 0.0).confidence_interval(0.95)
    assert found.interval is not None
    assert found.bootstrap is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((wanted.low, wanted.high))
    scipys = stats.bootstrap(
        (given,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(2)
    ).confidence_interval
    assert (found.bootstrap.low, found.bootstrap.high) == pytest.approx((scipys.low, scipys.high), abs=0.02)


def test_the_test_is_exact_where_all_flips_can_be_tried() -> None:
    # all of eight values positive: the two extreme of 256 assignments of signs
    found = mean(values([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]), seed=1)
    assert found.p_value == pytest.approx(2 / 256)
    assert found.test == "exact sign-flip permutation"
    assert mean(values([0.1] * 30), seed=1).test == "sign-flip permutation"


def test_none_and_one() -> None:
    assert mean({}, seed=1).value is None
    one = mean({"a": 2.5}, seed=1)
    assert (one.value, one.interval, one.p_value, one.n_items) == (2.5, None, None, 1)
    with pytest.raises(ValueError, match="finite"):
        mean({"a": float("inf")}, seed=1)


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=12), st.randoms())
def test_the_order_of_items_changes_nothing(numbers: list[float], random: object) -> None:
    items = list(values(numbers).items())
    random.shuffle(items)  # type: ignore[attr-defined]
    assert mean(dict(items), seed=3, resamples=50) == mean(values(numbers), seed=3, resamples=50)
