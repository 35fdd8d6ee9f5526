"""MT-Bench (Zheng et al. 2023, arXiv 2306.05685): two-turn conversations written by people."""

from collections.abc import Iterator

from userturn.datasets.items import Item, Row, rows, unique, user

DATASET = "mt_bench"


def _items(data: bytes) -> Iterator[tuple[Row, Item]]:
    for row in rows(data, DATASET):
        question, turns = row.integer("question_id"), row.texts("turns")
        if len(turns) != 2:
            raise row.fail("two user turns in 'turns'", len(turns))
        yield (
            row,
            {
                "item": f"{DATASET}-{question}",
                "messages": user(turns[0]),
                "reference": None,
                "meta": {
                    "category": row.text("category"),
                    "second_turn": turns[1],
                    "source_index": row.index,
                },
            },
        )


def read(data: bytes) -> list[Item]:
    """Reads lines ``{"question_id", "category", "turns": [first, second]}``.

    The first turn is the query. The second was written before any answer was seen; it is kept in
    ``meta.second_turn``.

    Args:
        data: the file, gzipped or not.

    Returns:
        Items ``mt_bench-<question_id>`` in file order, without a reference.

    Raises:
        DatasetError: naming the line and what was expected.
    """
    return unique(_items(data))
