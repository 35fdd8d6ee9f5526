"""Learning curves: what a trainer logs, as rows that are the same in every repetition."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from userturn.artefacts import Row

#: Decimals kept: far above what equal hardware and versions differ by, which is nothing.
DECIMALS = 6

#: What a trainer logs, and what it is called here. Times, counts of tokens since the start and the like are left out.
_KNOWN: Mapping[str, str] = {
    "loss": "loss",
    "eval_loss": "held_out_loss",
    "learning_rate": "learning_rate",
    "grad_norm": "grad_norm",
    "mean_token_accuracy": "token_accuracy",
    "eval_mean_token_accuracy": "held_out_token_accuracy",
    "entropy": "entropy",
    "kl": "kl",
    "reward": "reward",
    "reward_std": "reward_std",
    "completions/mean_length": "completion_tokens",
    "completions/clipped_ratio": "completions_cut",
}
_TERM_PREFIX, _TERM_SUFFIX = "rewards/", "/mean"


def rows(history: Iterable[Mapping[str, Any]]) -> list[Row]:
    """One row a logged step and kind, in the order of the steps.

    Args:
        history: a trainer's ``state.log_history``.

    Returns:
        Rows with ``step`` and whatever was measured there; means of a reward's terms as ``reward_<term>``.
    """
    by_step: dict[int, Row] = {}
    for entry in history:
        found = {name: value for key, value in entry.items() if (name := _name(key)) is not None}
        measured = {name: round(float(value), DECIMALS) + 0.0 for name, value in found.items() if _finite(value)}
        if measured:
            step = int(entry["step"])
            by_step.setdefault(step, {"step": step}).update(measured)
    return [by_step[step] for step in sorted(by_step)]


def _name(key: str) -> str | None:
    if key.startswith(_TERM_PREFIX) and key.endswith(_TERM_SUFFIX):
        return f"reward_{key.removeprefix(_TERM_PREFIX).removesuffix(_TERM_SUFFIX)}"
    return _KNOWN.get(key)


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def summary(curve: Iterable[Row]) -> dict[str, dict[str, float]]:
    """First, last, lowest and highest value of each measure."""
    found: dict[str, list[float]] = {}
    for row in curve:
        for name, value in row.items():
            if name != "step":
                found.setdefault(name, []).append(value)
    return {
        name: {"first": values[0], "last": values[-1], "lowest": min(values), "highest": max(values)}
        for name, values in sorted(found.items())
    }
