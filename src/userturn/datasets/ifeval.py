"""IFEval (Zhou et al. 2023, arXiv 2311.07911): prompts with instructions that a program can verify."""

from collections.abc import Iterable, Iterator
from typing import Any

from userturn.datasets.items import Item, Row, user

DATASET = "ifeval"


def arguments(row: Row, instructions: list[str]) -> list[dict[str, Any]]:
    """Returns what each instruction takes, from ``kwargs``.

    Editions of the files spell an argument that is not there as null, and a whole number as 5.0 where a table had a
    column of mixed numbers: both are put right, so that every edition gives the same reference.

    Args:
        row: a row with ``kwargs``.
        instructions: the ids that the arguments belong to.

    Raises:
        DatasetError: there is not one object an instruction.
    """
    given = row.objects("kwargs")
    if len(given) != len(instructions):
        raise row.fail(f"{len(instructions)} objects in 'kwargs', one an instruction", len(given))
    return [{name: _whole(value) for name, value in entry.items() if value is not None} for entry in given]


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def verifiable(row: Row, dataset: str, key: int) -> Item:
    """Returns the item of a row ``{"prompt", "instruction_id_list", "kwargs"}``; the reference is what verifiers take.

    Args:
        row: the row.
        dataset: first part of the item's id.
        key: second part.
    """
    prompt, instructions = row.text("prompt"), row.texts("instruction_id_list")
    return {
        "item": f"{dataset}-{key}",
        "messages": user(prompt),
        "reference": {
            "key": key,
            "instruction_id_list": instructions,
            "kwargs": arguments(row, instructions),
            "prompt": prompt,
        },
        "meta": {"source_index": row.index},
    }


def items(rows: Iterable[Row], _seed: int) -> Iterator[tuple[Row, Item]]:
    """Reads rows ``{"key", "prompt", "instruction_id_list", "kwargs"}``.

    Args:
        rows: the rows in file order.
        _seed: not needed.

    Yields:
        Items ``ifeval-<key>``; the reference holds what the verifiers take, nulls left out.

    Raises:
        DatasetError: naming the line and what was expected.
    """
    for row in rows:
        yield row, verifiable(row, DATASET, row.integer("key"))
