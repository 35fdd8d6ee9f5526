"""People's labels as a judge: the labels that `userturn label import` stored, given for the turns they were made for.

A `Turn` says nothing of its cell, so a label is found by the digest of what its labeller saw: query, assistant turn
shown and user turn. A label made for another text is therefore never given; `PeopleJudge.strays` counts such labels.
`PeopleJudge.of_cell` narrows the judge to the labels of one cell, so that a turn of another cell with the very same
texts stays unlabelled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from userturn.artefacts import ArtefactError, iter_jsonl
from userturn.files import sha256_file
from userturn.judges.labels import JSON, Judgement, Label, State, Turn

#: What a genuine follow-up is grounded in.
ReactsTo = Literal["answer", "query", "both"]
REACTS_TO: tuple[ReactsTo, ...] = get_args(ReactsTo)

#: How a stored label came about; `disagreement`: labellers differ and nobody has adjudicated yet.
Decision = Literal["single", "agreed", "adjudicated", "disagreement"]

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Labeller = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._+-]{0,127}$")]

_RATIONALE: dict[Decision, str] = {
    "single": "One person labelled it.",
    "agreed": "The people who labelled it agree.",
    "adjudicated": "The people who labelled it differed; it was adjudicated.",
    "disagreement": "The people who labelled it differ, and nobody has adjudicated.",
}


class LabelsError(ValueError):
    """A file of people's labels cannot be used: says which file and line, and what was expected."""


class Place(NamedTuple):
    """Where a user turn stands in a study."""

    model: str
    dataset: str
    perturbation: str
    temperature: float
    item: str
    sample: int

    @property
    def cell(self) -> tuple[str, str, str, float]:
        """Model, dataset, perturbation and temperature."""
        return self[:4]


def turn_sha256(turn: Turn) -> str:
    """Hex sha256 of what a labeller sees of a turn: query, assistant turn shown, user turn."""
    # ASCII, since a lone surrogate has no UTF-8 bytes
    seen = json.dumps([turn.query, turn.answer, turn.text], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(seen.encode("ascii")).hexdigest()


class PeopleLabel(BaseModel):
    """One row of a file of people's labels: one user turn."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    model: str
    dataset: str
    perturbation: str
    temperature: float
    item: str
    sample: int = Field(ge=0)
    text_sha256: Digest
    """Digest of the user turn's text."""
    turn_sha256: Digest
    """Digest of everything that was shown, see `turn_sha256`."""
    label: Label | None
    state: State
    reacts_to: ReactsTo | None
    """Only of a genuine follow-up."""
    labeller: Labeller
    """Who labelled; several names are joined with ``+``."""
    note: str
    weight: float = Field(gt=0)
    """Turns of the study that this one stands for: turns of its stratum over turns drawn from it."""
    sheet: str
    """The sheet that the label was made on."""
    decision: Decision

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.state == "scored") != (self.label is not None):
            raise ValueError(f"state {self.state!r} does not go with label {self.label!r}")
        if self.reacts_to is not None and self.label != "genuine_followup":
            raise ValueError(f"reacts_to is for genuine_followup, the label is {self.label!r}")
        return self

    @property
    def place(self) -> Place:
        """Where the turn stands in the study."""
        return Place(self.model, self.dataset, self.perturbation, self.temperature, self.item, self.sample)


def read_labels(path: Path, sha256: str | None = None) -> list[PeopleLabel]:
    """Reads a file of people's labels.

    Args:
        path: canonical JSON Lines, as `userturn label import` writes them.
        sha256: of the whole file; checked where it is given.

    Raises:
        LabelsError: the file is missing or has another digest, a line is wrong, or a turn stands twice.
    """
    if sha256 is not None and path.is_file() and (found := sha256_file(path)) != sha256:
        raise LabelsError(f"{path}: sha256 is {found}, the config says {sha256}")
    rows: dict[Place, PeopleLabel] = {}
    try:
        for line, row in enumerate(iter_jsonl(path), start=1):
            try:
                label = PeopleLabel.model_validate(row)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                key = ".".join(str(part) for part in first["loc"])
                raise LabelsError(f"{path}:{line}: {key + ': ' if key else ''}{first['msg']}") from None
            if label.place in rows:
                raise LabelsError(f"{path}:{line}: the turn {'/'.join(map(str, label.place))} stands twice")
            rows[label.place] = label
    except ArtefactError as error:
        raise LabelsError(f"{error}; people's labels are made with `userturn label import`") from error
    return list(rows.values())


class PeopleJudge:
    """Gives people's labels; a turn that nobody labelled is `unscored` with the cause `not_labelled`.

    So a rate counts only the labelled turns. They are a stratified sample: a rate over them estimates nothing about
    all turns unless it is weighted (`PeopleLabel.weight`).
    """

    name = "people"
    provisional = False

    def __init__(self, labels: Iterable[PeopleLabel], version: str) -> None:
        """Takes labels, at most one a turn.

        Args:
            labels: as `read_labels` gives them.
            version: changes with the labels: the digest of their file.
        """
        self.version = version
        self._labels = tuple(labels)
        self._by_turn: dict[str, list[PeopleLabel]] = {}
        for label in self._labels:
            self._by_turn.setdefault(label.turn_sha256, []).append(label)

    @classmethod
    def read(cls, path: Path, sha256: str | None = None) -> PeopleJudge:
        """The judge of a file of labels.

        Raises:
            LabelsError: see `read_labels`.
        """
        return cls(read_labels(path, sha256), sha256_file(path)[:16])

    def of_cell(self, model: str, dataset: str, perturbation: str, temperature: float) -> PeopleJudge:
        """The same judge with the labels of one cell."""
        cell = (model, dataset, perturbation, temperature)
        return PeopleJudge((label for label in self._labels if label.place.cell == cell), self.version)

    def strays(self, turns: Iterable[Turn]) -> int:
        """How many of the labels fit none of the turns: they were made for texts that are no longer there."""
        here = {turn_sha256(turn) for turn in turns}
        return sum(label.turn_sha256 not in here for label in self._labels)

    def judge(self, turns: Sequence[Turn]) -> list[Judgement]:
        """See `Judge.judge`."""
        return [self._judgement(self._by_turn.get(turn_sha256(turn), [])) for turn in turns]

    def _judgement(self, found: Sequence[PeopleLabel]) -> Judgement:
        if not found:
            return Judgement("unscored", None, {"cause": "not_labelled"}, "Nobody has labelled it.")
        if len({label.label for label in found}) > 1:
            # two samples of an item may have one text; whoever labelled them differently did not decide
            return Judgement("unscored", None, {"cause": "disagreement"}, "The same text has two labels.")
        first = found[0]
        evidence: dict[str, JSON] = {"decision": first.decision, "labeller": first.labeller}
        if first.state == "unscored":
            evidence["cause"] = "disagreement" if first.decision == "disagreement" else "cannot_say"
        else:
            evidence["reacts_to"] = first.reacts_to if len({label.reacts_to for label in found}) == 1 else None
        return Judgement(first.state, first.label, evidence, _RATIONALE[first.decision])
