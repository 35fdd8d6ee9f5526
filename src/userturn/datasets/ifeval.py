"""IFEval (Zhou et al. 2023, arXiv 2311.07911): prompts with instructions that a program can verify."""

from collections.abc import Iterator

from userturn.datasets.items import Item, Row, rows, unique, user

DATASET = "ifeval"


def _items(data: bytes) -> Iterator[tuple[Row, Item]]:
    for row in rows(data, DATASET):
        key, prompt = row.integer("key"), row.text("prompt")
        instructions, arguments = row.texts("instruction_id_list"), row.objects("kwargs")
        if len(arguments) != len(instructions):
            raise row.fail(f"{len(instructions)} objects in 'kwargs', one an instruction", len(arguments))
        # Other editions of the file spell an argument that is not there as null.
        given = [{name: value for name, value in entry.items() if value is not None} for entry in arguments]
        yield (
            row,
            {
                "item": f"{DATASET}-{key}",
                "messages": user(prompt),
                "reference": {
                    "key": key,
                    "instruction_id_list": instructions,
                    "kwargs": given,
                    "prompt": prompt,
                },
                "meta": {"source_index": row.index},
            },
        )


def read(data: bytes) -> list[Item]:
    """Reads lines ``{"key", "prompt", "instruction_id_list", "kwargs"}``.

    Args:
        data: the file, gzipped or not.

    Returns:
        Items ``ifeval-<key>`` in file order; the reference holds what the verifiers take, nulls left out.

    Raises:
        DatasetError: naming the line and what was expected.
    """
    return unique(_items(data))
