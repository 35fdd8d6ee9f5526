"""The numbers as a table for spreadsheets, with a dictionary of its columns (W3C's CSV on the Web)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from userturn.labelling.sheet import csv_safe
from userturn.report.data import Row

#: Column: type, meaning.
COLUMNS: dict[str, tuple[str, str]] = {
    "id": ("string", "The number's id; `userturn audit ID` checks it."),
    "quantity": ("string", "What is measured; docs/statistics.md defines it."),
    "model": ("string", "The model, where the number is one model's."),
    "dataset": ("string", "The dataset, where the number is one dataset's."),
    "perturbation": ("string", "What was done to the context."),
    "temperature": ("number", "The temperature of sampling."),
    "label": ("string", "The label, where the number is one label's."),
    "judge": ("string", "The judge whose labels are counted."),
    "value": ("number", "The value; empty where it is not defined (see notes)."),
    "low": ("number", "Lower end of the interval."),
    "high": ("number", "Upper end of the interval."),
    "level": ("number", "Level of the interval."),
    "method": ("string", "How the interval is computed."),
    "bootstrap_low": ("number", "Lower end of the bootstrap interval over items."),
    "bootstrap_high": ("number", "Upper end of the bootstrap interval over items."),
    "bound_low": ("number", "The value if every unscored row were negative."),
    "bound_high": ("number", "The value if every unscored row were positive."),
    "k": ("integer", "Positive rows, where the value is a share."),
    "n": ("integer", "Scored rows."),
    "n_items": ("integer", "Items that the rows belong to."),
    "n_unscored": ("integer", "Rows that were not scored; never part of n."),
    "p_value": ("number", "The raw p-value."),
    "p_adjusted": ("number", "The p-value adjusted within its family."),
    "test": ("string", "The test."),
    "family": ("string", "The family of tests."),
    "unit": ("string", "The unit of value and interval."),
    "n_excluded": ("integer", "Rows that the ledger of exclusions leaves out; never part of n."),
    "simulated": ("boolean", "Whether a program made the texts up: such a number says nothing of any model."),
    "notes": ("string", "What a reader should know, separated by ' | '."),
}


def _cells(row: Row) -> list[Any]:
    pairs = {
        "bootstrap": (row.get("bootstrap") or {}).get,
        "bound": dict(zip(("low", "high"), row.get("bounds") or (None, None), strict=True)).get,
    }
    values = {**row["labels"], **row, "notes": " | ".join(str(note) for note in row.get("notes") or ())}
    for name, get in pairs.items():
        values |= {f"{name}_{end}": get(end) for end in ("low", "high")}
    return [csv_safe(value) if isinstance(value, str) else value for value in map(values.get, COLUMNS)]


def csv_bytes(numbers: Sequence[Row], *, simulated: bool = False) -> bytes:
    """The numbers as CSV (RFC 4180, UTF-8), one a line; no cell is a formula.

    Args:
        numbers: rows of ``numbers.jsonl``.
        simulated: whether the study's texts were made up.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    marked = {"simulated": "true" if simulated else "false"}
    writer.writerows(_cells({**row, **marked}) for row in numbers)
    return stream.getvalue().encode("utf-8", "surrogatepass")


def metadata(name: str) -> dict[str, Any]:
    """The dictionary of the table's columns: https://www.w3.org/TR/tabular-metadata/.

    Args:
        name: the table's file name.
    """
    return {
        "@context": "http://www.w3.org/ns/csvw",
        "url": name,
        "dc:title": "Numbers of a study",
        "dialect": {"encoding": "utf-8", "header": True},
        "tableSchema": {
            "primaryKey": "id",
            "columns": [
                {
                    "name": column,
                    "titles": column,
                    "datatype": kind,
                    "dc:description": meaning,
                    "required": column == "id",
                }
                for column, (kind, meaning) in COLUMNS.items()
            ],
        },
    }
