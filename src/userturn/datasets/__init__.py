"""Readers that turn a dataset's own bytes into items, and the seeded choice among them."""

from userturn.datasets.choice import choose
from userturn.datasets.items import DatasetError, Item
from userturn.datasets.registry import READERS, Reader

__all__ = ["READERS", "DatasetError", "Item", "Reader", "choose"]
