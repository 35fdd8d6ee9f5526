"""Files that labellers send back, JSON from the page or CSV from either sheet: read, and checked against the key."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from userturn.judges.labels import LABELS, Label
from userturn.judges.people import REACTS_TO, PeopleLabel, ReactsTo
from userturn.labelling import LabellingError
from userturn.labelling.key import Key

FORMAT = "userturn labels 1"
NOTE_CHARACTERS = 1_000
#: What stands for "cannot say".
_CANNOT_SAY = frozenset({"0", "u", "unscored", "cannot say"})
_LABELS: Mapping[str, Label] = {word: label for k, label in enumerate(LABELS, 1) for word in (label, str(k))}
_REACTS_TO: Mapping[str, ReactsTo] = {word: ground for ground in REACTS_TO for word in (ground, ground[0])}
_LABELLER = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")
#: A sheet's own formula guard in front of a note, see `userturn.labelling.sheet.csv_safe`.
_GUARD = re.compile(r"^'(?=[ \n]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])")
_MOST_FAULTS = 20


@dataclass(frozen=True)
class Returned:
    """What one labeller sent back on one sheet.

    Attributes:
        labeller: who.
        labels: a row a labelled turn.
        left_open: how many turns of the sheet have no label.
    """

    labeller: str
    labels: tuple[PeopleLabel, ...]
    left_open: int


@dataclass(frozen=True)
class _Row:
    where: str
    id: str
    label: str
    reacts_to: str
    note: str
    sheet: str
    text_sha256: str
    labeller: str


def read_returned(path: Path, key: Key, labeller: str | None = None) -> Returned:
    """Reads one returned file.

    Args:
        path: ``.json`` as the page exports it; anything else is read as CSV with a header.
        key: the key of the sheets.
        labeller: who labelled, where the file does not say.

    Raises:
        LabellingError: one line a fault, each with file and row.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise LabellingError(f"{path}: no such file") from error
    except UnicodeDecodeError as error:
        raise LabellingError(
            f"{path}: not UTF-8 (byte {error.start}): save the sheet as 'CSV UTF-8', not in the spreadsheet's own "
            "encoding"
        ) from error
    if not text.strip():
        raise LabellingError(f"{path}: the file is empty")
    rows = list(_json_rows(path, text) if text.lstrip().startswith("{") else _csv_rows(path, text))
    who = _who(path, rows, labeller)
    faults: list[str] = []
    found: dict[str, tuple[str, PeopleLabel]] = {}
    for row in rows:
        label, wrong = _label(row, key, who)
        faults += [f"{row.where}: {fault}" for fault in wrong]
        if label is None:
            continue
        first = found.setdefault(row.id, (row.where, label))
        if first[1] != label:
            faults.append(f"{row.where}: the turn {row.id} has another label at {first[0]}")
    sheets = sorted({row.sheet for row in rows if row.sheet in key.sheets})
    if len(sheets) > 1:
        faults.append(f"{path}: rows of {len(sheets)} sheets in one file ({', '.join(sheets)}): one file a sheet")
    if faults:
        more = [f"... and {len(faults) - _MOST_FAULTS} more"] if len(faults) > _MOST_FAULTS else []
        raise LabellingError("\n".join([*faults[:_MOST_FAULTS], *more]))
    return Returned(who, tuple(label for _, label in found.values()), len(key.turns) - len(found))


def _who(path: Path, rows: list[_Row], given: str | None) -> str:
    said = sorted({row.labeller.strip().lower() for row in rows} - {""})
    if len(said) > 1:
        raise LabellingError(f"{path}: labels of several labellers in one file: {', '.join(said)}")
    if given is not None and said not in ([], [given]):
        raise LabellingError(f"{path}: --labeller {given}, but the file says {said[0]}")
    who = given or (said[0] if said else "")
    if not _LABELLER.fullmatch(who):
        raise LabellingError(
            f"{path}: labeller {who!r}: give --labeller NAME: 1 to 32 of a to z, digits, dots, hyphens"
            if who
            else f"{path}: the file does not say who labelled: give --labeller NAME"
        )
    return who


def _label(row: _Row, key: Key, labeller: str) -> tuple[PeopleLabel | None, list[str]]:
    """The label of a row, None where it is open or wrong, and what is wrong with it."""
    word, ground_word = row.label.strip().lower(), row.reacts_to.strip().lower()
    if row.sheet not in key.sheets:
        known = ", ".join(sorted(key.sheets))
        return None, [f"sheet {row.sheet!r} is not one of this key's ({known}): wrong key, or a changed sheet"]
    turn = key.turns.get(row.id)
    if turn is None:
        return None, [f"unknown id {row.id!r}: the key has no such turn"]
    if row.text_sha256 != turn.text_sha256:
        return None, [f"text_sha256 of {row.id} is {row.text_sha256[:12]!r}…, the key says {turn.text_sha256[:12]}…"]
    if not word:
        return None, ([f"reacts_to {ground_word!r} without a label"] if ground_word else [])
    if word not in _LABELS and word not in _CANNOT_SAY:
        return None, [
            f"unknown label {row.label!r}; allowed: {', '.join(f'{k} {name}' for k, name in enumerate(LABELS, 1))}, "
            "0 unscored (cannot say)"
        ]
    label = _LABELS.get(word)
    ground = _REACTS_TO.get(ground_word)
    if ground_word and ground is None:
        return None, [f"unknown reacts_to {row.reacts_to!r}; allowed: {', '.join(REACTS_TO)} (a, q, b)"]
    wrong = []
    if label == "genuine_followup" and ground is None:
        wrong.append(f"a genuine_followup needs reacts_to: {', '.join(REACTS_TO)}")
    if label != "genuine_followup" and ground is not None:
        wrong.append(f"reacts_to is for genuine_followup, the label is {label or 'unscored'}")
    if ground in ("answer", "both") and not turn.answer_shown:
        wrong.append(f"reacts_to {ground!r}, but no assistant turn was shown: only 'query' is possible")
    if key.kind == "adjudication" and not row.note.strip():
        wrong.append("an adjudicated label needs its reason in note")
    if len(row.note) > NOTE_CHARACTERS:
        wrong.append(f"the note has {len(row.note)} characters, at most {NOTE_CHARACTERS} are kept")
    if wrong:
        return None, wrong
    where = turn.model_dump(exclude={"answer_shown"})
    return (
        PeopleLabel(
            **where,
            label=label,
            state="scored" if label else "unscored",
            reacts_to=ground,
            labeller=labeller,
            note=" ".join(row.note.split()),
            sheet=row.sheet,
            decision="adjudicated" if key.kind == "adjudication" else "single",
        ),
        [],
    )


def _json_rows(path: Path, text: str) -> Iterator[_Row]:
    try:
        value: Any = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise LabellingError(f"{path}: not JSON: {error}") from error
    if value.get("format") != FORMAT:
        raise LabellingError(f"{path}: format is {value.get('format')!r}, expected {FORMAT!r}")
    sheet, labeller, labels = (value.get(name) for name in ("sheet", "labeller", "labels"))
    if not isinstance(sheet, str) or not isinstance(labeller, str) or not isinstance(labels, list):
        raise LabellingError(f"{path}: sheet and labeller must be texts, labels must be a list")
    for number, row in enumerate(labels, start=1):
        where = f"{path}: label {number}"
        if not isinstance(row, dict):
            raise LabellingError(f"{where}: expected an object, found {type(row).__name__}")
        missing = [name for name in ("id", "state", "label", "text_sha256") if name not in row]
        if missing:
            raise LabellingError(f"{where}: without {', '.join(missing)}")
        parts = {name: row.get(name) for name in ("id", "label", "reacts_to", "note", "text_sha256")}
        wrong = [name for name, part in parts.items() if not isinstance(part, (str, type(None)))]
        if wrong or row["state"] not in ("scored", "unscored", "open"):
            raise LabellingError(f"{where}: {', '.join(wrong) or 'state'}: not as the page writes it")
        if (row["state"] == "scored") != (row["label"] is not None):
            raise LabellingError(f"{where}: state {row['state']!r} does not go with label {row['label']!r}")
        word = "unscored" if row["state"] == "unscored" else parts["label"] or ""
        texts = {name: part or "" for name, part in parts.items()} | {"label": word}
        yield _Row(where=where, sheet=sheet, labeller=labeller, **texts)


def _csv_rows(path: Path, text: str) -> Iterator[_Row]:
    header_line = text.splitlines()[0]
    # spreadsheets of many countries write semicolons
    delimiter = max(",;\t", key=header_line.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(reader)]
        needed = ("id", "label", "reacts_to", "sheet", "text_sha256")
        missing = [name for name in needed if name not in header]
        if missing:
            raise LabellingError(f"{path}: line 1: no column {', '.join(missing)}; found: {', '.join(header)[:200]}")
        twice = sorted({name for name in header if name and header.count(name) > 1})
        if twice:
            raise LabellingError(f"{path}: line 1: columns twice: {', '.join(twice)}")
        for number, cells in enumerate(reader, start=2):
            if not any(cell.strip() for cell in cells):
                continue
            where = f"{path}: row {number} (line {reader.line_num})"
            if len(cells) > len(header):
                raise LabellingError(f"{where}: {len(cells)} cells, the header has {len(header)}")
            row = dict(zip(header, [*cells, *[""] * (len(header) - len(cells))], strict=True))
            yield _Row(
                where=where,
                id=row["id"].strip(),
                label=row["label"],
                reacts_to=row["reacts_to"],
                note=_GUARD.sub("", row.get("note", "")),
                sheet=row["sheet"].strip(),
                text_sha256=row["text_sha256"].strip().lower(),
                labeller=row.get("labeller", ""),
            )
    except csv.Error as error:
        raise LabellingError(f"{path}: line {reader.line_num}: not CSV: {error}") from error
