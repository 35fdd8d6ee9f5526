"""GPQA (Rein et al. 2023, arXiv 2311.12022): graduate-level questions with four choices.

The authors ask not to publish items in plain text: the registry says so (``publish_items``).
"""

import string
from collections.abc import Iterable, Iterator

from userturn.datasets.items import Item, Row, user
from userturn.seeds import derive

DATASET = "gpqa"

_CORRECT = "Correct Answer"
_WRONG = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
#: What stands below the choices; the wording is ours.
INSTRUCTION = 'Which choice is correct? End with "The answer is (X)." where X is its letter.'


def order(seed: int, item: str, n: int) -> list[int]:
    """Returns the shuffled order of an item's choices: it depends on the study seed and the item's id alone.

    Args:
        seed: the study seed.
        item: the item's id.
        n: how many choices there are.

    Returns:
        A permutation of ``range(n)``; where 0, the correct one, stands is uniform over seeds.
    """
    return sorted(range(n), key=lambda choice: derive(seed, "choices", item, choice, bits=256))


def items(rows: Iterable[Row], seed: int) -> Iterator[tuple[Row, Item]]:
    """Reads rows with the columns of the authors' file, such as ``Question`` and ``Record ID``.

    Args:
        rows: the rows in file order.
        seed: the study seed; it shuffles the choices.

    Yields:
        Items ``gpqa-<record id>``: the question, lettered choices and an instruction;
        ``reference = {"answer": letter, "choices": texts in the order shown}``.

    Raises:
        DatasetError: naming the line and what was expected.
    """
    for row in rows:
        item = f"{DATASET}-{row.text('Record ID').strip()}"
        written = [row.text(name).strip() for name in (_CORRECT, *_WRONG)]
        shuffled = order(seed, item, len(written))
        choices = [written[choice] for choice in shuffled]
        shown = "\n".join(
            f"({letter}) {choice}" for letter, choice in zip(string.ascii_uppercase, choices, strict=False)
        )
        meta = {
            key: row.optional(name)
            for key, name in {
                "domain": "High-level domain",
                "subdomain": "Subdomain",
                "canary": "Canary String",
            }.items()
            if row.has(name)
        }
        yield (
            row,
            {
                "item": item,
                "messages": user(f"{row.text('Question').strip()}\n\n{shown}\n\n{INSTRUCTION}"),
                "reference": {"answer": string.ascii_uppercase[shuffled.index(0)], "choices": choices},
                "meta": {**meta, "source_index": row.index},
            },
        )
