"""How two files differ: the first row that does, how many do, and for numbers by how much.

Everything shown here may have been written by a model: values are quoted with every control character spelled out.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from userturn import layout
from userturn.artefacts import Row, canonical
from userturn.report.inert import visible_text

_BEFORE, _AFTER = 24, 56
_CHUNK = 1 << 20


@dataclass(frozen=True)
class FirstDifference:
    """The first place where two files differ."""

    where: str
    """``line 3`` or ``byte 1024``, and the row's name where it has one."""
    field: str | None
    here: str | None
    """The value here, quoted around the first difference; None where there is none."""
    there: str | None


@dataclass(frozen=True)
class Shift:
    """How far numbers moved."""

    compared: int
    """Numbers that both have."""
    moved: int
    """Of these, with another value."""
    largest: float | None
    """Largest absolute shift of a value."""
    largest_id: str | None
    outside: int
    """Numbers of which one interval no longer contains the other's value."""


@dataclass(frozen=True)
class Difference:
    """How one file differs between two studies."""

    path: str
    rows_here: int | None = None
    rows_there: int | None = None
    differing: int | None = None
    """Rows that both have, with another content."""
    only_here: int | None = None
    only_there: int | None = None
    first: FirstDifference | None = None
    shift: Shift | None = None
    note: str | None = None


def shown(text: str) -> str:
    """One line of text that is safe on a terminal."""
    return visible_text(text.replace("\n", "⏎").replace("\t", "⇥"))


def compare(path: str, here: Path, there: Path) -> Difference:
    """Says how two files of one name differ.

    Args:
        path: the name that both go by in a study.
        here: the one file.
        there: the other.
    """
    if path.endswith(".jsonl"):
        a, b = _rows(here), _rows(there)
        if a is not None and b is not None:
            return _compare_rows(path, a, b)
    if path.endswith(".json"):
        first = _first_key(_json(here), _json(there))
        if first is not None:
            return Difference(path, first=first)
    return _compare_bytes(path, here, there)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        return None


def _rows(path: Path) -> list[Row] | None:
    """The rows; None where the file is not JSON Lines (any more)."""
    found = []
    for line in path.read_bytes().split(b"\n"):
        if line:
            try:
                row = json.loads(line)
            except ValueError:
                return None
            if not isinstance(row, dict):
                return None
            found.append(row)
    return found


def _keys(rows: Sequence[Row]) -> list[Hashable]:
    """What names each row: its id, its item and sample, or else its line."""
    for names in (("id",), ("item", "sample"), ("item", "text_id"), ("item",)):
        keys = [tuple(row.get(name) for name in names) for row in rows]
        if all(isinstance(part, str | int) for key in keys for part in key) and len(set(keys)) == len(keys):
            return [key[0] if len(key) == 1 else key for key in keys]
    return list(range(1, len(rows) + 1))


def _compare_rows(path: str, here: list[Row], there: list[Row]) -> Difference:
    keys_here, keys_there = _keys(here), _keys(there)
    mine, theirs = dict(zip(keys_here, here, strict=True)), dict(zip(keys_there, there, strict=True))
    differing = [key for key in mine if key in theirs and mine[key] != theirs[key]]
    only_here, only_there = [k for k in mine if k not in theirs], [k for k in theirs if k not in mine]
    first = None
    for number, (a, b) in enumerate(zip_longest(keys_here, keys_there), start=1):
        if a != b or mine[a] != theirs[b]:
            first = _first_row(f"line {number}", a, b, mine.get(a), theirs.get(b))
            break
    moved = None
    if Path(path) == layout.NUMBERS:
        moved = _shift([(mine[key], theirs[key]) for key in mine if key in theirs])
    note = None if first else "the same rows, written otherwise"
    return Difference(
        path,
        len(here),
        len(there),
        len(differing),
        len(only_here),
        len(only_there),
        first=first,
        shift=moved,
        note=note,
    )


def _first_row(line: str, key_a: Hashable, key_b: Hashable, a: Row | None, b: Row | None) -> FirstDifference:
    if key_a != key_b or a is None or b is None:
        return FirstDifference(line, "row", None if a is None else _name(key_a), None if b is None else _name(key_b))
    where = line if isinstance(key_a, int) else f"{line}, {_name(key_a)}"
    first = _first_key(a, b)
    assert first is not None, "the rows differ"
    return FirstDifference(where, first.field, first.here, first.there)


def _name(key: Hashable) -> str:
    return shown(" ".join(map(str, key)) if isinstance(key, tuple) else f"{key}")


def _first_key(a: Any, b: Any, name: str = "") -> FirstDifference | None:
    """The first place, by sorted keys, where two JSON values differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            inside = f"{name}.{key}" if name else f"{key}"
            if key not in a or key not in b:
                here, there = (_quoted(side.get(key)) if key in side else None for side in (a, b))
                return FirstDifference("", shown(inside), here, there)
            found = _first_key(a[key], b[key], inside)
            if found:
                return found
        return None
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = (_first_key(x, y, f"{name}[{index}]") for index, (x, y) in enumerate(zip(a, b, strict=True)))
        return next((found for found in pairs if found), None)
    if a == b and type(a) is type(b):
        return None
    left, right = (value if isinstance(value, str) else _text(value) for value in (a, b))
    start = _first_difference(left, right)
    return FirstDifference("", shown(name), _excerpt(left, start), _excerpt(right, start))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _quoted(value: Any) -> str:
    return _excerpt(value if isinstance(value, str) else _text(value), 0)


def _first_difference(a: Sequence[Any], b: Sequence[Any]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _excerpt(text: str, start: int) -> str:
    low, high = max(0, start - _BEFORE), start + _AFTER
    part = shown(text[low:high])
    return f"{'…' if low else ''}{part}{'…' if high < len(text) else ''}"


def _shift(pairs: Sequence[tuple[Row, Row]]) -> Shift:
    shifts: list[tuple[float, str]] = []
    outside = 0
    for a, b in pairs:
        x, y = a.get("value"), b.get("value")
        if (x is None) != (y is None):
            outside += 1  # a number that one side could not compute
        elif isinstance(x, int | float) and isinstance(y, int | float) and x != y:
            shifts.append((abs(float(x) - float(y)), f"{a.get('id')}"))
            outside += not (_contains(a, y) and _contains(b, x))
    largest = max(shifts, default=None)
    return Shift(
        len(pairs),
        sum(canonical({"v": a.get("value")}) != canonical({"v": b.get("value")}) for a, b in pairs),
        largest[0] if largest else None,
        shown(largest[1]) if largest else None,
        outside,
    )


def _contains(row: Row, value: float) -> bool:
    low, high = row.get("low"), row.get("high")
    return low is None or high is None or bool(low <= value <= high)


def _compare_bytes(path: str, here: Path, there: Path) -> Difference:
    offset = 0
    with here.open("rb") as a, there.open("rb") as b:
        while True:
            x, y = a.read(_CHUNK), b.read(_CHUNK)
            if x != y:
                offset += _first_difference(x, y)
                break
            if not x:
                return Difference(path, note="the same bytes")
            offset += len(x)
    sizes = (here.stat().st_size, there.stat().st_size)
    left, right = (_bytes_at(file, offset) for file in (here, there))
    note = None if sizes[0] == sizes[1] else f"{sizes[0]:,} bytes here, {sizes[1]:,} there"
    return Difference(path, first=FirstDifference(f"byte {offset}", None, left, right), note=note)


def _bytes_at(path: Path, offset: int) -> str | None:
    low = max(0, offset - _BEFORE)
    with path.open("rb") as stream:
        stream.seek(low)
        found = stream.read(_BEFORE + _AFTER)
    return shown(found.decode("utf-8", "backslashreplace")) if found[offset - low :] else None
