"""The seeded choice of items."""

from collections.abc import Sequence

from userturn.datasets.items import DatasetError, Item
from userturn.seeds import derive


def choose(items: Sequence[Item], n_items: int | None, seed: int, dataset: str) -> list[Item]:
    """Chooses items so that a larger choice starts with the smaller one.

    Every item has a rank, a keyed hash of study seed, dataset and item id; the first ``n_items`` by rank are
    taken, in rank order. The choice depends neither on the order of ``items`` nor on other datasets, and
    removing an item that was not chosen does not change it.

    Args:
        items: all items of the dataset, ids unique.
        n_items: how many to take; None takes all (in rank order too).
        seed: the study seed.
        dataset: the dataset's name in the study.

    Returns:
        The chosen items.

    Raises:
        DatasetError: ``n_items`` is below 1, or more than there are; ids are not unique.
    """
    if len({item["item"] for item in items}) != len(items):
        raise DatasetError(f"{dataset}: item ids are not unique")
    if n_items is not None and n_items < 1:
        raise DatasetError(f"{dataset}: n_items must be at least 1, or null for all {len(items)} items, got {n_items}")
    if n_items is not None and n_items > len(items):
        raise DatasetError(f"{dataset}: n_items is {n_items}, but there are only {len(items)} items")
    ranked = sorted(items, key=lambda item: (derive(seed, "choose", dataset, item["item"], bits=256), item["item"]))
    return ranked[:n_items]
