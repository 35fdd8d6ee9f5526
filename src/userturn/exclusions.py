"""The ledger of exclusions: items and user turns that a person takes out of the numbers, each with a reason.

One JSON object a line: ``dataset``, ``item`` and ``reason``, and where less than the whole item is meant also
``model``, ``perturbation``, ``temperature`` and ``sample``; ``by`` and ``date`` tell who did it and when. Artefacts
keep the rows: only the numbers leave them out, and say how many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from userturn.artefacts import ArtefactError, Row, read_jsonl


class LedgerError(ValueError):
    """The ledger cannot be used: says which line, what was given and what is allowed."""


class Exclusion(BaseModel):
    """One line of the ledger."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dataset: str = Field(min_length=1)
    item: str = Field(min_length=1)
    model: str | None = None
    """Only turns of this model; null excludes the item everywhere."""
    perturbation: str | None = None
    """Only turns of this perturbation."""
    temperature: float | None = None
    """Only turns at this temperature."""
    sample: int | None = Field(default=None, ge=0)
    """Only this sample."""
    reason: str = Field(min_length=3)
    by: str | None = None
    date: str | None = Field(default=None, pattern=r"^\d{4}-\d{2}-\d{2}$")

    @property
    def whole_item(self) -> bool:
        """Whether everything about the item goes: its accuracy and likelihoods too."""
        return self.perturbation is None and self.temperature is None and self.sample is None

    def hits(self, row: Row, *, model: str, cell: tuple[str, float] | None) -> bool:
        """Whether a row of the item is excluded.

        Args:
            row: with its ``sample`` where it is a user turn's.
            model: that the row is about.
            cell: perturbation and temperature of a user turn; None for rows about the item itself.
        """
        if self.model is not None and self.model != model:
            return False
        if cell is None:
            return self.whole_item
        return (
            (self.perturbation is None or self.perturbation == cell[0])
            and (self.temperature is None or self.temperature == cell[1])
            and (self.sample is None or self.sample == row.get("sample"))
        )


@dataclass(frozen=True)
class Ledger:
    """All exclusions of a study, and which of them ever met a row."""

    entries: Sequence[Exclusion] = ()
    met: set[int] = field(default_factory=set, compare=False)

    def keep(self, model: str, dataset: str, cell: tuple[str, float] | None = None) -> Callable[[Row], bool]:
        """A test of rows: False for those that are excluded.

        Args:
            model: that the rows are about.
            dataset: that the rows are about.
            cell: perturbation and temperature where they are user turns.
        """
        relevant: dict[str, list[tuple[int, Exclusion]]] = {}
        for place, entry in enumerate(self.entries):
            if entry.dataset == dataset:
                relevant.setdefault(entry.item, []).append((place, entry))
        if not relevant:
            return lambda row: True

        def keeps(row: Row) -> bool:
            kept = True
            for place, entry in relevant.get(row["item"], ()):
                if entry.hits(row, model=model, cell=cell):
                    self.met.add(place)
                    kept = False
            return kept

        return keeps

    def check_met(self) -> None:
        """Refuses a ledger with a line that excludes nothing: it is a slip of the pen.

        Raises:
            LedgerError: names the lines.
        """
        idle = [place for place in range(len(self.entries)) if place not in self.met]
        if idle:
            lines = "; ".join(f"line {place + 1}: {describe(self.entries[place])}" for place in idle[:5])
            raise LedgerError(f"exclusions that match no row of this study: {lines}")


def describe(entry: Exclusion) -> str:
    """What a line excludes, in one phrase."""
    parts: dict[str, Any] = entry.model_dump(exclude_none=True, exclude={"reason", "by", "date"})
    return ", ".join(f"{name} {value}" for name, value in parts.items())


def read_ledger(path: Path | None) -> Ledger:
    """Reads a ledger.

    Args:
        path: the file; None for a study without exclusions.

    Raises:
        LedgerError: on a missing file or a line that is not an exclusion.
    """
    if path is None:
        return Ledger()
    entries = []
    try:
        rows = read_jsonl(path)
    except ArtefactError as error:
        raise LedgerError(f"exclusions: {error}") from error
    for number, row in enumerate(rows, start=1):
        try:
            entries.append(Exclusion.model_validate(row))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "line"
            raise LedgerError(
                f"{path}:{number}: {where}: {first['msg']} (given: {first.get('input')!r}); allowed keys: "
                + ", ".join(Exclusion.model_fields)
            ) from error
    return Ledger(tuple(entries))
