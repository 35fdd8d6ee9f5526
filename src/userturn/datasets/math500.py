"""MATH-500: 500 competition problems of MATH (Hendrycks et al. 2021, arXiv 2103.03874; Lightman et al. 2023)."""

import re
from collections.abc import Iterable, Iterator

from userturn.datasets.items import Item, Row, user

DATASET = "math500"

_SOURCE = "MATH500"


def items(rows: Iterable[Row], _seed: int) -> Iterator[tuple[Row, Item]]:
    """Reads the hub's rows ``{"problem", "answer", "unique_id"}`` or those of MMATH (Luo et al. 2025).

    MMATH has ``{"question", "answer", "gid", "data_source"}`` and other contests beside it: rows of another
    ``data_source`` than ``MATH500`` are left out. It holds only the problems whose answer is a whole number.

    Args:
        rows: the rows in file order.
        _seed: not needed.

    Yields:
        Items ``math500-<id>`` with ``reference = {"answer": LaTeX}``. The id is ``gid``, or ``unique_id`` without its
        ``.json`` and with ``-`` for ``/``: the two editions name the same problem differently.

    Raises:
        DatasetError: naming the line and what was expected.
    """
    for row in rows:
        if row.has("data_source") and row.text("data_source") != _SOURCE:
            continue
        if row.has("gid"):
            native = str(row.integer("gid"))
        else:
            native = re.sub(r"[^A-Za-z0-9_-]+", "-", row.text("unique_id").removesuffix(".json"))
        meta = {name: row.optional(name) for name in ("subject", "level") if row.has(name)}
        yield (
            row,
            {
                "item": f"{DATASET}-{native}",
                "messages": user(row.text(row.either("problem", "question"))),
                "reference": {"answer": row.text("answer").strip()},
                "meta": {**meta, "source_index": row.index},
            },
        )
