"""Intervals that two evaluation tools give by their own functions, for ``coverage.py --peers``.

The tools are not among the locks: ``pip install lm-eval==0.4.13 inspect_ai==0.3.285`` into an environment of
its own that also sees ``userturn`` (numpy, scipy, statsmodels and ``PYTHONPATH=src`` are enough). One that is
missing is left out. Every scored row is a sample of the tool; a clustered metric gets the item as its cluster.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from coverage_cells import Counts

Interval = Callable[[Counts, int], tuple[float, ...]]
"""Positives by item and rows an item to the two limits."""
PACKAGES = {"lm_eval": "lm-eval", "inspect_ai": "inspect_ai"}


def versions() -> dict[str, str]:
    """The tools that are installed here, by module, with their versions."""
    return {
        module: importlib.metadata.version(package)
        for module, package in PACKAGES.items()
        if importlib.util.find_spec(module) is not None
    }


def _outcomes(positives: Counts, samples: int) -> list[tuple[int, float]]:
    """Item and score of each row."""
    return [(i, float(j < k)) for i, k in enumerate(positives.tolist()) for j in range(samples)]


def lm_eval_intervals() -> dict[str, Interval]:
    """Value ± 1.96 of the standard error that the harness itself picks for a mean, whatever its bootstrap setting."""
    from lm_eval.api.metrics import mean, stderr_for_metric

    error = stderr_for_metric(mean, bootstrap_iters=100_000)

    def limits(positives: Counts, samples: int) -> tuple[float, ...]:
        scores = [score for _, score in _outcomes(positives, samples)]
        value, reach = mean(scores), 1.959964 * error(scores)
        return value - reach, value + reach

    return {"lm-eval stderr": limits}


def inspect_intervals() -> tuple[dict[str, Interval], dict[str, Interval]]:
    """The tool's metrics ``ci`` and ``ci_wilson``, each without and with clusters.

    Returns:
        Closed forms, and bootstraps of 1,000 resamples (the tool's default).
    """
    from inspect_ai.scorer import SampleScore, Score, ci, ci_wilson

    def limits(metric: Any) -> Interval:
        def interval(positives: Counts, samples: int) -> tuple[float, ...]:
            rows = [
                SampleScore(score=Score(value=score), sample_id=i, sample_metadata={"item": item})
                for i, (item, score) in enumerate(_outcomes(positives, samples))
            ]
            # the tool resamples with numpy's global generator: there is no other way to repeat a run
            np.random.seed(int(positives.sum()))
            found = metric(rows)
            return float(found["lower"]), float(found["upper"])

        return interval

    closed = {
        "inspect ci": limits(ci()),
        "inspect ci, cluster": limits(ci(cluster="item")),
        "inspect Wilson": limits(ci_wilson()),
        "inspect Wilson, cluster": limits(ci_wilson(cluster="item")),
    }
    drawn = {
        "inspect bootstrap": limits(ci(method="bootstrap")),
        "inspect bootstrap, cluster": limits(ci(method="bootstrap", cluster="item")),
    }
    return closed, drawn


def intervals() -> tuple[dict[str, Interval], dict[str, Interval]]:
    """The intervals of the tools that are installed.

    Returns:
        Closed forms and bootstraps, by name of the column.

    Raises:
        ModuleNotFoundError: if neither tool is installed.
    """
    there = versions()
    if not there:
        raise ModuleNotFoundError(f"--peers needs one of {', '.join(PACKAGES.values())} in this environment")
    closed: dict[str, Interval] = lm_eval_intervals() if "lm_eval" in there else {}
    drawn: dict[str, Interval] = {}
    if "inspect_ai" in there:
        more, drawn = inspect_intervals()
        closed = {**closed, **more}
    return closed, drawn
