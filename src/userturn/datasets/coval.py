"""CoVal (OpenAI 2025): value-sensitive prompts, for which people ranked candidate responses."""

from collections.abc import Iterable, Iterator

from userturn.datasets.items import Item, Row

DATASET = "coval"


def items(rows: Iterable[Row], _seed: int) -> Iterator[tuple[Row, Item]]:
    """Reads rows ``{"prompt_id", "prompt": {"messages"}}`` of the configuration ``comparisons``.

    The candidate responses and their assessments are left out: the model under study answers by itself. A
    conversation that does not end with a user turn has no query and is left out.

    Args:
        rows: the rows in file order.
        _seed: not needed.

    Yields:
        Items ``coval-<prompt_id>`` without a reference; a ``developer`` message becomes the system message.

    Raises:
        DatasetError: naming the line and what was expected.
    """
    for row in rows:
        messages = row.inner("prompt").conversation("messages", last=None)
        if messages[-1]["role"] != "user":
            continue
        yield (
            row,
            {
                "item": f"{DATASET}-{row.text('prompt_id')}",
                "messages": messages,
                "reference": None,
                "meta": {"turns": len(messages), "source_index": row.index},
            },
        )
