"""GSM8K (Cobbe et al. 2021, arXiv 2110.14168): grade-school word problems with a number as the answer."""

import re
from collections.abc import Iterator

from userturn.datasets.items import Item, Row, rows, unique, user

DATASET = "gsm8k"

_NUMBER = re.compile(r"(-?)\$?(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d+))?")


def canonical_number(text: str) -> str | None:
    """Returns a number in one spelling, or None if the text is no number.

    No separators, no leading or trailing zeros, no ``-0``:
    ``"1,450,000"`` becomes ``"1450000"``, ``"-3.50"`` becomes ``"-3.5"``.
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None or not match[0].isascii():
        return None
    sign, whole, fraction = (
        match[1],
        match[2].replace(",", "").lstrip("0") or "0",
        (match[3] or "").rstrip("0"),
    )
    value = f"{whole}.{fraction}" if fraction else whole
    return value if value == "0" else sign + value


def _reference(row: Row) -> str:
    answer = row.text("answer")
    _, marker, final = answer.rpartition("####")
    number = canonical_number(final) if marker else None
    if number is None:
        raise row.fail("a number after '####' at the end of 'answer'", final.strip() if marker else answer[-40:])
    return number


def _items(data: bytes) -> Iterator[tuple[Row, Item]]:
    for row in rows(data, DATASET):
        doc = row.inner("doc")
        yield (
            row,
            {
                "item": f"{DATASET}-{row.index:04d}",
                "messages": user(doc.text("question")),
                "reference": {"answer": _reference(doc)},
                "meta": {"source_index": row.index},
            },
        )


def read(data: bytes) -> list[Item]:
    """Reads lines ``{"doc": {"question", "answer"}}``, gzipped or not.

    The ``label`` beside ``doc`` is wrong for negative numbers; the number after ``####`` in ``answer`` is the
    reference.

    Args:
        data: the file.

    Returns:
        Items ``gsm8k-0000`` on, in file order, each with ``reference = {"answer": canonical number}``.

    Raises:
        DatasetError: naming the line and what was expected.
    """
    return unique(_items(data))
