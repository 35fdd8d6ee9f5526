"""What an item is, and how the lines of a file are read without guessing."""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypedDict, cast

from userturn.messages import ROLES, Message, Role

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
        meta: small facts worth showing, such as a category. Where a person wrote a next turn it stands in
            ``human_followup``, and in ``human_answer`` the answer that it followed, where there was one.
    """

    item: str
    messages: list[Message]
    reference: dict[str, Any] | None
    meta: dict[str, Any]


class Row:
    """One JSON object of a file or row of a table, whose errors name the line or row.

    A field that is null is as good as not there: tables have no other way to leave one out.

    Attributes:
        index: zero-based position among the rows.
        line: one-based number of the line or row.
        unit: what ``line`` counts.
    """

    def __init__(
        self,
        dataset: str,
        index: int,
        line: int,
        fields: Mapping[str, Any],
        unit: Literal["line", "row", "entry"] = "line",
    ) -> None:
        self.index = index
        self.line = line
        self.unit = unit
        self._dataset = dataset
        self._fields = {name: value for name, value in fields.items() if value is not None}

    def fail(self, expected: str, given: object) -> DatasetError:
        """Words an error about this line."""
        shown = repr(given)
        shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
        return DatasetError(f"{self._dataset}, {self.unit} {self.line}: expected {expected}, got {shown}")

    @property
    def names(self) -> list[str]:
        """The names of the fields, sorted."""
        return sorted(self._fields)

    def has(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return name in self._fields

    def either(self, name: str, other: str) -> str:
        """The second of two names of one field where only that one is there, else the first."""
        return other if not self.has(name) and self.has(other) else name

    def optional(self, name: str) -> Any:
        """A field's value as it is, or None."""
        return self._fields.get(name)

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

    def digits(self, name: str) -> int:
        """Returns an integer of at least 0 that may also be spelled as a text of digits."""
        value = self._get(name, "an integer")
        if isinstance(value, str) and value.isascii() and value.isdigit():
            return int(value)
        return self.integer(name)

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
        return Row(self._dataset, self.index, self.line, value, self.unit)

    def conversation(self, name: str, last: Role | None = "user") -> list[Message]:
        """Returns a field that must be a list of messages.

        Fields of a message besides role and content are left out; the role ``developer`` is read as ``system``.

        Args:
            name: the field.
            last: who must have spoken last; None where anybody may have.
        """
        messages = [self._message(name, place, message) for place, message in enumerate(self.objects(name))]
        if not messages:
            raise self.fail(f"at least one message in {name!r}", messages)
        if last is not None and messages[-1]["role"] != last:
            raise self.fail(f"role {last!r} in the last message of {name!r}", messages[-1]["role"])
        return messages

    def _message(self, name: str, place: int, message: Mapping[str, Any]) -> Message:
        role, content = message.get("role"), message.get("content")
        role = "system" if role == "developer" else role
        if role not in ROLES:
            raise self.fail(f"role {' or '.join(map(repr, ROLES))} in {name}[{place}]", role)
        if not isinstance(content, str) or not content.strip():
            raise self.fail(f"a non-empty text in {name}[{place}].content", content)
        return {"role": cast(Role, role), "content": content}


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


def table(fields: Iterable[Mapping[str, Any]], dataset: str) -> Iterator[Row]:
    """Yields the rows of a table, as the ``datasets`` library gives them.

    Args:
        fields: name and value of the columns of each row.
        dataset: name used in errors.

    Raises:
        DatasetError: there is no row.
    """
    index = -1
    for index, row in enumerate(fields):
        yield Row(dataset, index, index + 1, row, "row")
    if index < 0:
        raise DatasetError(f"{dataset}: expected rows, got an empty table")


def array(data: bytes, dataset: str) -> Iterator[Row]:
    """Yields the objects of a file that is one JSON array, or JSON Lines (see `rows`).

    Args:
        data: the file, not compressed where it is an array.
        dataset: name used in errors.

    Raises:
        DatasetError: neither, or an entry is no object.
    """
    if data.lstrip()[:1] != b"[":
        yield from rows(data, dataset)
        return
    try:
        values = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{dataset}: expected one JSON array or JSON Lines ({error})") from error
    if not values:
        raise DatasetError(f"{dataset}: expected objects, got an empty array")
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise DatasetError(f"{dataset}, entry {index + 1}: expected one JSON object, got {type(value).__name__}")
        yield Row(dataset, index, index + 1, value, "entry")


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
            raise row.fail(f"an id not used before ({row.unit} {first} has it)", item["item"])
        collected.append(item)
    return collected


def user(content: str) -> list[Message]:
    """Returns a conversation of one user query."""
    return [{"role": "user", "content": content}]
