"""Numbers of the likelihood probe: whether known user turns are tied to the answer, and to the user's role."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from userturn import layout
from userturn.artefacts import Row
from userturn.numbers.row import ReadRows, Settings, number
from userturn.statistics import ItemCounts, mean, rate

#: Quantity and, for shares, its quantity; the condition that is set against the user role after the control's context.
_CONTRASTS = (("role_log_odds", "role_share", "assistant"), ("grounding", "grounding_share", "shuffled"))


def likelihoods(shards: Sequence[tuple[str, str]], settings: Settings, read: ReadRows) -> Iterator[Row]:
    """Means in nats a token, and shares of items where the user role, or the own answer, makes the text likelier.

    Args:
        shards: models and datasets that were scored.
        settings: level, resamples, seed.
        read: reads the rows of an artefact.
    """
    for model, dataset in shards:
        path = layout.likelihood(model, dataset)
        rows = read(path)
        for control in dict.fromkeys(row["control"] for row in rows):
            for quantity, share, other in _CONTRASTS:
                known = [row for row in rows if row["control"] == control and row[other] is not None]
                if not known:
                    continue
                # rounded, as what is summed here is
                differences = {row["item"]: round(row["user"] - row[other], 6) for row in known}
                per_token = {row["item"]: differences[row["item"]] / row["n_tokens"] for row in known}
                labels = {"model": model, "dataset": dataset, "perturbation": control}
                selector = {"control": control, "column": "user", "minus": other}
                id = f"{quantity}/{model}/{dataset}/{control}"
                yield number(
                    id,
                    labels,
                    mean(per_token, **settings.arguments(id)),
                    settings,
                    unit="nats per token",
                    sources=[path],
                    selector=selector | {"per": "n_tokens"},
                )
                id = f"{share}/{model}/{dataset}/{control}"
                counts = ItemCounts.from_rows((item, value > 0) for item, value in differences.items())
                yield number(
                    id,
                    labels,
                    rate(counts, **settings.arguments(id)),
                    settings,
                    unit="proportion",
                    sources=[path],
                    selector=selector | {"positive": "greater than 0"},
                )
