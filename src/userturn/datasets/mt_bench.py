"""MT-Bench (Zheng et al. 2023, arXiv 2306.05685): two-turn conversations written by people."""

from collections.abc import Iterable, Iterator

from userturn.datasets.items import Item, Row, user

DATASET = "mt_bench"


def items(rows: Iterable[Row], _seed: int) -> Iterator[tuple[Row, Item]]:
    """Reads rows ``{"question_id", "category", "turns": [first, second]}``; on the hub ``prompt_id`` and ``prompt``.

    The first turn is the query. The second was written before any answer was seen; it is kept in
    ``meta.second_turn``, and as the person's follow-up in ``meta.human_followup``.

    Args:
        rows: the rows in file order.
        _seed: not needed.

    Yields:
        Items ``mt_bench-<question_id>``, without a reference.

    Raises:
        DatasetError: naming the line and what was expected.
    """
    for row in rows:
        question = row.integer(row.either("question_id", "prompt_id"))
        name = row.either("turns", "prompt")
        turns = row.texts(name)
        if len(turns) != 2:
            raise row.fail(f"two user turns in {name!r}", len(turns))
        yield (
            row,
            {
                "item": f"{DATASET}-{question}",
                "messages": user(turns[0]),
                "reference": None,
                "meta": {
                    "category": row.text("category"),
                    "second_turn": turns[1],
                    "human_followup": turns[1],
                    "source_index": row.index,
                },
            },
        )
