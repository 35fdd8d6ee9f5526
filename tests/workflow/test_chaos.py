"""Kills at random moments: the small version of `benchmarks/chaos.py`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.timeout(1200)]


def test_kills_cost_no_byte_no_cell_and_leave_nothing_behind(root: Path, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("chaos", root / "benchmarks/chaos.py")
    assert spec is not None
    assert spec.loader is not None
    chaos = importlib.util.module_from_spec(spec)
    sys.modules["chaos"] = chaos
    spec.loader.exec_module(chaos)
    config, files = chaos.study(0.2, items=2)
    outcome = chaos.bombard(tmp_path, config, files, kills=3, seed=3)
    assert sum(outcome.kills.values()) == 3
    assert outcome.rounds >= 1
    assert set(outcome.cells) == {outcome.undisturbed_cells}
    assert outcome.differing == []
    assert outcome.orphans == 0
    assert outcome.regenerated == 0
    assert outcome.fine
