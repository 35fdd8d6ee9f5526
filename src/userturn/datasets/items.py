"""What an item is, and how the lines of a file are read without guessing."""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypedDict

from userturn.messages import Message

_GZIP_MAGIC = b"\x1f\x8b"
_SHOWN = 80


class DatasetError(ValueError):
    """A dataset's bytes are not what its reader expects, or cannot give what was asked for."""


class Item(TypedDict):
    """One question of a dataset.

    Attributes:
        item: ``<dataset>-<native id>``, unique within the dataset.
        messages: the conversation up to and including the user query.
        reference: what a scorer needs, or None.
        meta: small facts worth showing, such as a category.
    """

    item: str
    messages: list[Message]
    reference: dict[str, Any] | None
    meta: dict[str, Any]


class Row:
    """One parsed JSON object of a file, whose errors name the line.

    Attributes:
        index: zero-based position among the rows of the file.
        line: one-based line number.
    """

    def __init__(self, dataset: str, index: int, line: int, fields: Mapping[str, Any]) -> None:
        self.index = index
        self.line = line
        self._dataset = dataset
        self._fields = fields

    def fail(self, expected: str, given: object) -> DatasetError:
        """Words an error about this line."""
        shown = repr(given)
        shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
        return DatasetError(f"{self._dataset}, line {self.line}: expected {expected}, got {shown}")

    def _get(self, name: str, expected: str) -> Any:
        if name not in self._fields:
            raise self.fail(f"a field {name!r} ({expected})", sorted(self._fields))
        return self._fields[name]

    def text(self, name: str) -> str:
        """Returns a field that must be a text with something in it."""
        value = self._get(name, "a text")
        if not isinstance(value, str) or not value.strip():
            raise self.fail(f"a non-empty text in {name!r}", value)
        return value

    def integer(self, name: str) -> int:
        """Returns a field that must be an integer of at least 0."""
        value = self._get(name, "an integer")
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.fail(f"an integer of at least 0 in {name!r}", value)
        return value

    def texts(self, name: str) -> list[str]:
        """Returns a field that must be a list of at least one non-empty text."""
        value = self._get(name, "a list of texts")
        if not isinstance(value, list) or not value or not all(isinstance(v, str) and v.strip() for v in value):
            raise self.fail(f"a list of non-empty texts in {name!r}", value)
        return value

    def objects(self, name: str) -> list[dict[str, Any]]:
        """Returns a field that must be a list of JSON objects."""
        value = self._get(name, "a list of objects")
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.fail(f"a list of objects in {name!r}", value)
        return value

    def inner(self, name: str) -> "Row":
        """Returns a field that must be a JSON object, as a row of the same line."""
        value = self._get(name, "an object")
        if not isinstance(value, dict):
            raise self.fail(f"an object in {name!r}", value)
        return Row(self._dataset, self.index, self.line, value)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def rows(data: bytes, dataset: str) -> Iterator[Row]:
    r"""Yields the JSON objects of a JSON Lines file, gzipped or not.

    Lines end at ``\n`` only: texts may hold other characters that Python counts as line ends. A final line
    end is optional.

    Args:
        data: the file.
        dataset: name used in errors.

    Raises:
        DatasetError: the bytes are no gzip or no UTF-8, a line is empty or no JSON object (with its number),
            or there is no line at all.
    """
    if data.startswith(_GZIP_MAGIC):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise DatasetError(f"{dataset}: the gzip data is damaged: {error}") from error
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    if not lines:
        raise DatasetError(f"{dataset}: expected JSON Lines, got an empty file")
    for index, line in enumerate(lines):
        number = index + 1
        try:
            value = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            shown = line[:_SHOWN].decode("utf-8", errors="replace")
            raise DatasetError(
                f"{dataset}, line {number}: expected one JSON object, got {shown!r} ({error})"
            ) from error
        if not isinstance(value, dict):
            raise DatasetError(f"{dataset}, line {number}: expected one JSON object, got {type(value).__name__}")
        yield Row(dataset, index, number, value)


def unique(items: Iterable[tuple[Row, Item]]) -> list[Item]:
    """Collects items, refusing a second one with the same id.

    Raises:
        DatasetError: naming the id and both lines.
    """
    seen: dict[str, int] = {}
    collected: list[Item] = []
    for row, item in items:
        first = seen.setdefault(item["item"], row.line)
        if first != row.line:
            raise row.fail(f"an id not used before (line {first} has it)", item["item"])
        collected.append(item)
    return collected


def user(content: str) -> list[Message]:
    """Returns a conversation of one user query."""
    return [{"role": "user", "content": content}]
