"""IFBench (Pyatkin et al. 2025, arXiv 2507.02833): as IFEval, with instructions that no model was tuned on."""

from collections.abc import Iterable, Iterator

from userturn.datasets.ifeval import verifiable
from userturn.datasets.items import Item, Row

DATASET = "ifbench"


def items(rows: Iterable[Row], _seed: int) -> Iterator[tuple[Row, Item]]:
    """Reads rows ``{"key", "prompt", "instruction_id_list", "kwargs"}``, the key a text of digits or a number.

    Args:
        rows: the rows in file order.
        _seed: not needed.

    Yields:
        Items ``ifbench-<key>``; the reference holds what the verifiers take, nulls left out.

    Raises:
        DatasetError: naming the line and what was expected.
    """
    for row in rows:
        yield row, verifiable(row, DATASET, row.digits("key"))
