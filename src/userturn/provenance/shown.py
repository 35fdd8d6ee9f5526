"""What the report shows of a number, read from the page itself."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from html.parser import HTMLParser

from userturn.artefacts import Row
from userturn.report import figures


class _Fields(HTMLParser):
    """Texts of the elements that carry ``data-field``."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._open: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See `HTMLParser`."""
        del tag
        name = dict(attrs).get("data-field")
        self._open.append(name)
        if name is not None:
            self.found.append((name, ""))

    def handle_endtag(self, tag: str) -> None:
        """See `HTMLParser`."""
        del tag
        if self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        """See `HTMLParser`."""
        if any(name is not None for name in self._open):
            name, text = self.found[-1]
            self.found[-1] = (name, text + data)


def fields(page: str, number_id: str) -> Iterator[tuple[str, str]]:
    """Every part of a number that the page shows, with its text.

    Args:
        page: the report's HTML.
        number_id: whose elements are read.
    """
    mark = f'data-number-id="{escape(number_id)}"'
    start = page.find(mark)
    while start >= 0:
        begin = page.rfind("<", 0, start)
        tag = page[begin + 1 : start].split(None, 1)[0]
        end = page.find(f"</{tag}>", start)
        parser = _Fields()
        parser.feed(page[begin:end] if end >= 0 else page[begin : start + 4000])
        yield from parser.found
        start = page.find(mark, start + len(mark))


def wrongly_shown(page: str, row: Row) -> tuple[int, list[str]]:
    """Compares what a page shows of a number with its row.

    Args:
        page: the report's HTML.
        row: of ``numbers.jsonl``, or recomputed.

    Returns:
        How many parts are shown, and a sentence for each that is wrong.
    """
    right = {
        "value": figures.value_text(row),
        "interval": figures.interval_text(row, short=True),
        "count": figures.count_text(row),
        "p_value": figures.p_text(row["p_value"]),
        "p_adjusted": figures.p_text(row["p_adjusted"]),
    }
    found = list(fields(page, row["id"]))
    wrong = [
        f"shows {name} {text!r}, the number is {right[name]!r}"
        for name, text in found
        if name in right and text.strip() != right[name]
    ]
    return len(found), wrong
