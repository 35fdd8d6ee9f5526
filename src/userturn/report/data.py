"""What the report is made from: plain values of a study's artefacts, nothing that changes between runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from userturn.layout import temperature_key

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ReportData:
    """Everything that the page shows.

    Attributes:
        study: the whole config as plain values, defaults filled in.
        numbers: rows of ``results/numbers.jsonl``; ids are unique.
        catalogue: where the transcripts are, see `userturn.stages.report.catalogue`; ``words`` is the index of words.
        trained: by variant of a model: ``summary`` and ``curve`` of its training.
        before: rows of an earlier study's ``numbers.jsonl``; None where the study is set against none.
        facts: ``versions``, ``models``, ``datasets``, ``judges``, ``engine``, ``lock`` and ``code``.
    """

    study: Mapping[str, Any]
    numbers: Sequence[Row]
    catalogue: Mapping[str, Any]
    facts: Mapping[str, Any]
    trained: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    before: Sequence[Row] | None = None


class Numbers:
    """The rows of ``numbers.jsonl`` by id; remembers which were shown, so that none is left out."""

    def __init__(self, rows: Sequence[Row]) -> None:
        """Indexes the rows.

        Raises:
            ValueError: if an id stands twice.
        """
        self._rows = {str(row["id"]): row for row in rows}
        if len(self._rows) != len(rows):
            ids = [str(row["id"]) for row in rows]
            raise ValueError(f"numbers: ids given twice: {sorted({i for i in ids if ids.count(i) > 1})[:5]}")
        self._shown: set[str] = set()

    def get(self, quantity: str, *labels: str | float) -> Row | None:
        """The row ``quantity/label/…``, None where the study has no such row; a temperature is a number."""
        parts = [temperature_key(label) if isinstance(label, (int, float)) else label for label in labels]
        number_id = "/".join([quantity, *parts])
        if number_id in self._rows:
            self._shown.add(number_id)
        return self._rows.get(number_id)

    def of(self, *quantities: str) -> list[Row]:
        """All rows of these quantities, in the order given; they count as shown."""
        found = [row for row in self._rows.values() if row["quantity"] in quantities]
        self._shown.update(str(row["id"]) for row in found)
        return found

    def rest(self) -> list[Row]:
        """Rows that no call of `get` has asked for, in the order given."""
        return [row for number_id, row in self._rows.items() if number_id not in self._shown]

    def all(self) -> list[Row]:
        """All rows, in the order given."""
        return list(self._rows.values())
