"""Numbers of the likelihood probe: whether known user turns are tied to the answer, and to the user's role."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from userturn import layout
from userturn.numbers.row import Definition
from userturn.numbers.shard import Shard
from userturn.statistics import ItemCounts, mean, rate

#: Quantity and, for shares, its quantity; the condition that is set against the user role after the control's context.
_CONTRASTS = (("role_log_odds", "role_share", "assistant"), ("grounding", "grounding_share", "shuffled"))


def likelihoods(shard: Shard) -> Iterator[Definition]:
    """Means in nats a token, and shares of items where the user role, or the own answer, makes the text likelier."""
    for model, dataset in shard.inputs.scored:
        path = layout.likelihood(model, dataset)
        rows, excluded = shard.kept(shard.read(path))
        for control in dict.fromkeys(row["control"] for row in rows):
            for quantity, share, other in _CONTRASTS:
                known = [row for row in rows if row["control"] == control and row[other] is not None]
                if not known:
                    continue
                # rounded, as what is summed here is
                differences = {row["item"]: round(row["user"] - row[other], 6) for row in known}
                per_token = {row["item"]: differences[row["item"]] / row["n_tokens"] for row in known}
                shared: dict[str, Any] = {
                    "labels": {"model": model, "dataset": dataset, "perturbation": control},
                    "sources": [path],
                    "excluded": excluded,
                }
                selector = {"control": control, "column": "user", "minus": other}
                yield Definition(
                    f"{quantity}/{model}/{dataset}/{control}",
                    estimate=partial(mean, per_token),
                    unit="nats per token",
                    selector=selector | {"per": "n_tokens"},
                    **shared,
                )
                yield Definition(
                    f"{share}/{model}/{dataset}/{control}",
                    estimate=partial(
                        rate, ItemCounts.from_rows((item, value > 0) for item, value in differences.items())
                    ),
                    unit="proportion",
                    selector=selector | {"positive": "greater than 0"},
                    **shared,
                )
