"""The key of a set of sheets: which turn each blind id stands for. Labellers must not see it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from userturn.artefacts import ArtefactError, read_json
from userturn.judges.people import Digest, Place
from userturn.labelling import LabellingError

WARNING = "Not for labellers: this file undoes the blinding. Keep it until their labels are imported."


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class KeyTurn(_Part):
    """What a blind id stands for."""

    model: str
    dataset: str
    perturbation: str
    temperature: float
    item: str
    sample: int
    text_sha256: Digest
    turn_sha256: Digest
    answer_shown: bool
    """Whether an assistant turn was shown."""
    weight: float

    @property
    def place(self) -> Place:
        """Where the turn stands in the study."""
        return Place(self.model, self.dataset, self.perturbation, self.temperature, self.item, self.sample)


class KeyStratum(_Part):
    """What a stratum held and gave."""

    label: str
    model: str
    perturbation: str
    temperatures: str
    available: int
    drawn: int


class Origin(_Part):
    """The study that a sample was drawn from."""

    name: str
    seed: int
    sha256: Digest
    """Digest of the whole config, defaults filled in."""


class Key(_Part):
    """The key of a set of sheets."""

    format: Literal["userturn label key 1"] = "userturn label key 1"
    kind: Literal["labels", "adjudication"]
    warning: str = WARNING
    study: Origin | None = None
    """None for an adjudication: its turns come from labels, not from a draw."""
    judge: str
    """The judge whose labels made the strata; for an adjudication: whose labels are adjudicated."""
    seed: int
    """Of the draw and of the orders."""
    rule: str
    """The allocation in words."""
    guide_sha256: Digest
    """Digest of the guide that the page shows: docs/labels.md."""
    strata: tuple[KeyStratum, ...] = ()
    sheets: dict[str, int]
    """Sheet id to the number of the labeller it is for."""
    turns: dict[str, KeyTurn] = Field(min_length=1)
    """Blind id to turn."""


def read_key(path: Path) -> Key:
    """Reads a key.

    Raises:
        LabellingError: the file is missing or is no key.
    """
    try:
        return Key.model_validate(read_json(path))
    except ArtefactError as error:
        raise LabellingError(f"{error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise LabellingError(f"{path}: not a key that `userturn label` wrote: {where}: {first['msg']}") from None
