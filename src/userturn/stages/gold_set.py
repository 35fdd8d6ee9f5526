"""Stage `gold_set`: the gold set, checked: labelled turns on which judges are measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from userturn import job, layout
from userturn.artefacts import Row, write_jsonl
from userturn.judges.labels import LABELS
from userturn.messages import Role
from userturn.sources import Source, SourceCache, fetch, origin, read_member


class Spec(job.JobSpec):
    """Turns and labels."""

    turns: Source
    labels: Source


class GoldError(ValueError):
    """The gold set cannot be used: says which file and line, and what is wrong."""


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    role: Role
    content: str


class _Turn(BaseModel):
    """What a judge may see of a turn. Where the turn comes from (model, perturbation, temperature) is left out."""

    model_config = ConfigDict(extra="ignore", strict=True)

    id: str
    item: str
    messages: list[_Message] = Field(min_length=1)
    shown_answer: str | None
    text: str
    finish_reason: str


def _rows(source: Source, what: str, keys: tuple[str, ...], job: job.Job) -> Iterator[Row]:
    cache = SourceCache.default()
    fetch(source, cache=cache, progress=job.say)
    for line, text in enumerate(read_member(source, cache).decode("utf-8").split("\n"), 1):
        if not text.strip():
            continue
        try:
            row: Row = json.loads(text)
        except ValueError as error:
            raise GoldError(f"{what}, line {line}: no JSON: {error}") from None
        if not isinstance(row, dict):
            raise GoldError(f"{what}, line {line}: no object; each row has {', '.join(keys)}")
        missing = [key for key in keys if key not in row]
        if missing:
            raise GoldError(f"{what}, line {line}: {', '.join(missing)} missing; each row has {', '.join(keys)}")
        yield row


def joined(turns: list[Row], labels: list[Row]) -> list[Row]:
    """Labels with the item that each turn belongs to, sorted by turn.

    Raises:
        GoldError: a turn without a label or the other way round, one twice, an unknown label, a disagreement of the
            two labellings without a reason.
    """
    items = {row["id"]: row["item"] for row in turns}
    ids = [row["id"] for row in labels]
    if len(items) != len(turns) or len(set(ids)) != len(ids) or set(ids) != set(items):
        odd = sorted(set(ids) ^ set(items))[:5] or ["an id stands twice"]
        raise GoldError(f"turns and labels do not belong together: {', '.join(odd)}")
    for row in labels:
        unknown = [row[key] for key in ("label", "first", "second") if row[key] not in LABELS]
        if unknown:
            raise GoldError(f"{row['id']}: label {unknown[0]!r}; allowed are {', '.join(LABELS)}")
        if row["first"] != row["second"] and not row["reason"]:
            raise GoldError(f"{row['id']}: the two labellings differ and no reason of the final one is given")
    keys = ("id", "label", "reacts_to", "first", "second", "reason")
    return sorted(
        ({key: row[key] for key in keys} | {"item": items[row["id"]]} for row in labels), key=lambda row: str(row["id"])
    )


def shown(turns: list[Row]) -> list[Row]:
    """The turns as judges see them, sorted by id.

    Raises:
        GoldError: a field is not what it should be, or the conversation does not end with the query.
    """
    seen = []
    for row in turns:
        try:
            turn = _Turn.model_validate(row)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise GoldError(f"{row['id']}: {place}: {first['msg']}") from None
        if turn.messages[-1].role != "user":
            raise GoldError(f"{turn.id}: messages: the last one is the user's query, not of {turn.messages[-1].role}")
        seen.append(turn.model_dump(mode="json"))
    return sorted(seen, key=lambda row: str(row["id"]))


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``data/gold/turns.jsonl`` and ``data/gold/labels.jsonl``."""
    turns = list(_rows(spec.turns, "gold.turns", tuple(_Turn.model_fields), job))
    labels = list(_rows(spec.labels, "gold.labels", ("id", "label", "reacts_to", "first", "second", "reason"), job))
    rows = joined(turns, labels)
    write_jsonl(layout.GOLD_TURNS, shown(turns))
    write_jsonl(layout.GOLD_LABELS, rows)
    job.wrote(layout.GOLD_TURNS, layout.GOLD_LABELS)
    job.say(f"{len(rows)} labelled turns")
    texts = hashlib.sha256("\n".join(str(row["text"]) for row in turns).encode("utf-8", "replace")).hexdigest()
    job.facts = {"turns": origin(spec.turns), "labels": origin(spec.labels), "n": len(rows), "texts_sha256": texts}


if __name__ == "__main__":
    job.main("gold_set", Spec, run)
