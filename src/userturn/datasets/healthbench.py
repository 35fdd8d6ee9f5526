"""HealthBench (Arora et al. 2025, arXiv 2505.08775): health conversations with physicians' rubrics."""

from collections.abc import Iterable, Iterator

from userturn.datasets.english import is_english
from userturn.datasets.items import Item, Row

DATASET = "healthbench"


def items(rows: Iterable[Row], _seed: int) -> Iterator[tuple[Row, Item]]:
    """Reads rows ``{"prompt_id", "prompt": messages, "rubrics", "example_tags", "canary"}``.

    Conversations whose user turns together are not English (see `is_english`) are left out. Multi-turn ones are
    kept whole; their earlier user turns are partly synthetic, so none counts as a person's follow-up.

    Args:
        rows: the rows in file order.
        _seed: not needed.

    Yields:
        Items ``healthbench-<prompt_id>`` with ``reference = {"rubrics": [{"criterion", "points", "tags"}]}``. The
        benchmark's canary stays in ``meta.canary``.

    Raises:
        DatasetError: naming the line and what was expected.
    """
    for row in rows:
        messages = row.conversation("prompt")
        if not is_english("\n".join(message["content"] for message in messages if message["role"] == "user")):
            continue
        meta = {"canary": row.text("canary")} if row.has("canary") else {}
        yield (
            row,
            {
                "item": f"{DATASET}-{row.text('prompt_id')}",
                "messages": messages,
                "reference": {"rubrics": row.objects("rubrics")},
                "meta": {
                    **meta,
                    "tags": row.texts("example_tags"),
                    "turns": len(messages),
                    "source_index": row.index,
                },
            },
        )
