"""GSM8K (Cobbe et al. 2021, arXiv 2110.14168): grade-school word problems with a number as the answer."""

import re
from collections.abc import Iterable, Iterator

from userturn.datasets.items import Item, Row, user

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


def items(rows: Iterable[Row], _seed: int) -> Iterator[tuple[Row, Item]]:
    """Reads rows ``{"question", "answer"}``, as they are on the hub or each inside a ``doc``.

    The ``label`` beside ``doc`` is wrong for negative numbers; the number after ``####`` in ``answer`` is the
    reference.

    Args:
        rows: the rows in file order.
        _seed: not needed.

    Yields:
        Items ``gsm8k-0000`` on, each with ``reference = {"answer": canonical number}``.

    Raises:
        DatasetError: naming the line and what was expected.
    """
    for row in rows:
        doc = row if row.has("question") else row.inner("doc")
        yield (
            row,
            {
                "item": f"{DATASET}-{row.index:04d}",
                "messages": user(doc.text("question")),
                "reference": {"answer": _reference(doc)},
                "meta": {"source_index": row.index},
            },
        )
