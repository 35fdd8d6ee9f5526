from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from userturn.statistics import ItemCounts, paired_effect
from userturn.statistics.effects import MIN_DIFFERING, NAME_HYBRID
from userturn.statistics.rates import NAME_BOOTSTRAP

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        # by path: "coverage" is also the name of a package
        spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def noise(share: float, draws: int) -> float:
    return 2.5 * math.sqrt(share * (1 - share) / draws)


@pytest.mark.parametrize(
    ("design", "rho", "p"),
    [
        ((50, 1), 0.0, 0.01),
        ((50, 1), 0.3, 0.5),
        ((100, 10), 0.3, 0.005),
        ((100, 10), 0.6, 0.001),
        ((100, 10), 0.6, 0.05),
        ((200, 5), 0.6, 0.01),
        ((200, 5), 0.3, 0.05),
    ],
)
def test_chosen_interval_of_a_rate_covers(
    benchmark: Callable[[str], ModuleType], design: tuple[int, int], rho: float, p: float
) -> None:
    found = benchmark("coverage").point(7, design, rho=rho, p=p, draws=400)
    assert found["chosen"] >= 0.93 - noise(0.93, 400)
    if p >= 0.05:
        assert found["chosen"] <= 0.99
    if p <= 0.01:
        assert found["item bootstrap"] < 0.9


@pytest.mark.parametrize(
    ("items", "samples", "rates", "rho", "pairing"),
    [
        (50, 1, (0.0, 0.005), 0.3, 0.5),
        (50, 1, (0.2, 0.3), 0.3, 0.0),
        (100, 10, (0.005, 0.005), 0.6, 0.0),
        (100, 10, (0.01, 0.05), 0.6, 0.0),
        (200, 5, (0.2, 0.2), 0.3, 0.5),
    ],
)
def test_chosen_interval_of_an_effect_covers_and_the_test_keeps_its_size(
    benchmark: Callable[[str], ModuleType],
    items: int,
    samples: int,
    rates: tuple[float, float],
    rho: float,
    pairing: float,
) -> None:
    key = {"items": items, "samples": samples, "rho": rho, "pairing": pairing, "draws": 150}
    found = benchmark("coverage_effects").effect_point(3, {**key, "baseline": rates[0], "treated": rates[1]})
    assert found["chosen"] >= 0.93 - noise(0.93, 150)
    if rates[0] == rates[1]:
        assert found["rejected"] <= 0.05 + noise(0.05, 150)
    if rates == (0.0, 0.005):
        assert found["item bootstrap"] < 0.5
    if samples > 1 and pairing == 0.0:
        assert found["unpaired Wald"] < 0.85


@pytest.mark.parametrize(("differing", "method"), [(MIN_DIFFERING - 1, NAME_HYBRID), (MIN_DIFFERING, NAME_BOOTSTRAP)])
def test_bootstrap_of_an_effect_is_trusted_later_than_that_of_a_rate(differing: int, method: str) -> None:
    # trusted from 15 on, as a rate's is, it covers 0.92 at 100 x 10 rows, 0.01 to 0.05
    treated, rows = np.array([3] * differing + [0] * (100 - differing)), np.full(100, 10)
    found = paired_effect(ItemCounts.from_arrays(treated, rows), ItemCounts.from_arrays(0 * treated, rows), seed=1)
    assert MIN_DIFFERING == 30
    assert found.interval is not None and found.interval.method == method
    assert found.bootstrap is not None and found.bootstrap.method == NAME_BOOTSTRAP


def test_ratio_and_corrected_rate_cover(benchmark: Callable[[str], ModuleType]) -> None:
    module = benchmark("coverage_effects")
    design = {"items": 100, "samples": 5, "rho": 0.3, "draws": 60}
    assert module.ratio_point(1, {**design, "baseline": 0.05, "treated": 0.1})["chosen"] >= 0.93 - noise(0.93, 60)
    corrected = module.corrected_point(1, {**design, "rate": 0.01})
    assert corrected["chosen"] >= 0.93 - noise(0.93, 60)
    assert corrected["uncorrected"] < 0.8


@pytest.mark.parametrize("pairing", [0.0, 0.5, 1.0])
def test_simulated_pairs_have_the_rates_and_correlations_asked_for(
    benchmark: Callable[[str], ModuleType], pairing: float
) -> None:
    module = benchmark("coverage_effects")
    many = 4_000
    rng = np.random.default_rng(1)
    one, two, rates = module.draw_pairs(rng, (many, 1), (0.2, 0.3), 0.3, pairing, 5)
    assert rates == (pytest.approx(0.2, abs=1e-4), pytest.approx(0.3, abs=1e-4))
    assert one.mean() == pytest.approx(0.2, abs=0.01) and two.mean() == pytest.approx(0.3, abs=0.015)
    lots = module.propensities(0.2, 0.3)
    assert lots.var() == pytest.approx(0.3 * 0.2 * 0.8, rel=0.01)
    # with this many rows an item's share is its propensity
    one, two, _ = module.draw_pairs(rng, (many, 100_000), (0.2, 0.3), 0.3, pairing, 1)
    assert stats.spearmanr(one[0], two[0])[0] == pytest.approx(pairing, abs=0.05)


def test_a_cell_is_computed_once_whatever_the_order_of_its_items(benchmark: Callable[[str], ModuleType]) -> None:
    module = benchmark("coverage_cells")
    cells = np.array([[0, 2, 1], [1, 1, 1], [2, 1, 0], [1, 0, 2]])
    seen: list[tuple[int, ...]] = []

    def function(cell: np.ndarray) -> tuple[float, ...]:
        seen.append(tuple(cell.tolist()))
        return float(cell @ [1, 10, 100]), 0.0

    values = module.for_each_distinct(cells, function)
    assert seen == [(0, 1, 2), (1, 1, 1)]
    assert values[:, 0].tolist() == [210.0, 111.0, 210.0, 210.0]


def test_missing_limits_cover_nothing(benchmark: Callable[[str], ModuleType]) -> None:
    low, high = np.array([0.0, np.nan, 0.2, 0.1]), np.array([0.1, np.nan, 0.3, 0.1])
    assert benchmark("coverage_cells").coverage(low, high, 0.1) == 0.5


def test_finished_points_are_kept_and_others_are_not_taken_for_them(
    benchmark: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    module = benchmark("coverage_cells")
    calls: list[tuple[int, float]] = []

    def compute(number: int, key: dict[str, float]) -> dict[str, float]:
        calls.append((number, key["draws"]))
        return {"x": key["p"] * 2}

    keys = [{"p": 0.1, "draws": 10}, {"p": 0.2, "draws": 10}]
    kept = tmp_path / "rows.jsonl"
    first = module.points(iter(keys), compute, kept)
    assert module.points(iter(keys), compute, kept) == first == [{**k, "x": k["p"] * 2} for k in keys]
    module.points(iter([{"p": 0.2, "draws": 20}]), compute, kept)
    assert calls == [(0, 10), (1, 10), (0, 20)]


def test_only_the_marked_block_of_a_page_is_replaced(benchmark: Callable[[str], ModuleType], tmp_path: Path) -> None:
    module = benchmark("coverage_cells")
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- t:begin -->\nold\n<!-- t:end -->\nb\n", encoding="utf-8")
    module.replace_block(page, "t", "new")
    assert page.read_text(encoding="utf-8") == "a\n<!-- t:begin -->\nnew\n<!-- t:end -->\nb\n"
    with pytest.raises(ValueError, match="no block between <!-- u:begin -->"):
        module.replace_block(page, "u", "new")


def test_peers_that_are_not_installed_are_named(
    benchmark: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = benchmark("coverage_peers")
    monkeypatch.setattr(module, "PACKAGES", {"no_such_module": "no-such-tool"})
    assert module.versions() == {}
    with pytest.raises(ModuleNotFoundError, match="needs one of no-such-tool"):
        module.intervals()
