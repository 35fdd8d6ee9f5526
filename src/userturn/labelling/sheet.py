"""Sheets: what a labeller gets. A blind id, three texts, and nothing about where a turn comes from."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from userturn import layout
from userturn.artefacts import canonical, sha256_text
from userturn.config.study import Study
from userturn.judges.labels import Turn
from userturn.judges.people import PeopleLabel, Place, turn_sha256
from userturn.labelling import LabellingError
from userturn.labelling.key import Key, KeyStratum, KeyTurn, Origin
from userturn.labelling.sample import Sample
from userturn.report.inert import visible_text
from userturn.seeds import derive

COLUMNS = ("id", "query", "assistant_turn", "user_turn", "label", "reacts_to", "note", "sheet", "text_sha256")
#: Stands before the empty columns of a sheet for adjudication.
GIVEN = "labels_given"
NO_ANSWER = "⟦no assistant turn is shown⟧"
EMPTY = "⟦empty⟧"
#: Longest cell, in characters: spreadsheets spoil cells of more than 32,767.
CELL_CHARACTERS = 30_000
#: First characters that a spreadsheet takes for a formula: https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@dataclass(frozen=True)
class SheetTurn:
    """One turn as its labeller sees it; ``given``: the labels that differ, in an adjudication."""

    id: str
    turn: Turn
    given: tuple[str, ...] = ()

    @property
    def text_sha256(self) -> str:
        """Digest of the user turn's text."""
        return sha256_text(self.turn.text)


@dataclass(frozen=True)
class Sheet:
    """Turns in the order of one labeller.

    Attributes:
        number: which labeller it is for, from 1.
        turns: the turns in their order.
        adjudication: whether it asks for the final label of turns whose labels differ.
    """

    number: int
    turns: tuple[SheetTurn, ...]
    adjudication: bool = False
    guide_sha256: str = field(default="", kw_only=True)

    @cached_property
    def id(self) -> str:
        """Digest of everything on the sheet; a letter first, or a spreadsheet may take it for a number."""
        rows = [[one.id, turn_sha256(one.turn), *one.given] for one in self.turns]
        parts = [self.number, self.adjudication, self.guide_sha256, rows]
        return "s" + hashlib.sha256(canonical(parts).encode()).hexdigest()[:16]


def csv_safe(text: str) -> str:
    """A text as a spreadsheet's cell: no control characters, not too long, never a formula."""
    shown = visible_text(text)
    if len(shown) > CELL_CHARACTERS:
        shown = f"{shown[:CELL_CHARACTERS]}⟦{len(shown) - CELL_CHARACTERS} more characters⟧"
    return f"'{shown}" if shown.lstrip(" \n").startswith(_FORMULA) else shown


def csv_bytes(sheet: Sheet) -> bytes:
    """The sheet as CSV: RFC 4180, UTF-8 with a byte order mark, without which Excel reads another encoding."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    at = COLUMNS.index("label")
    writer.writerow([*COLUMNS[:at], *([GIVEN] if sheet.adjudication else []), *COLUMNS[at:]])
    for one in sheet.turns:
        answer = NO_ANSWER if one.turn.answer is None else csv_safe(one.turn.answer or EMPTY)
        texts = [one.id, csv_safe(one.turn.query or EMPTY), answer, csv_safe(one.turn.text or EMPTY)]
        given = [" / ".join(one.given)] if sheet.adjudication else []
        writer.writerow([*texts, *given, "", "", "", sheet.id, one.text_sha256])
    return stream.getvalue().encode("utf-8-sig")


def blind_id(seed: int, kind: str, place: Place) -> str:
    """An id that says nothing of the place; a letter first, or a spreadsheet may take it for a number."""
    temperature = layout.temperature_key(place.temperature)
    parts = (*place[:3], temperature, place.item, place.sample)
    return f"{kind[0]}{derive(seed, 'blind', kind, *parts, bits=48):012x}"


def _sheets(turns: Sequence[SheetTurn], seed: int, labellers: int, guide: str, adjudication: bool) -> list[Sheet]:
    def order(number: int) -> tuple[SheetTurn, ...]:
        return tuple(sorted(turns, key=lambda one: derive(seed, "order", number, one.id)))

    return [Sheet(k, order(k), adjudication, guide_sha256=guide) for k in range(1, labellers + 1)]


def _key_turn(place: Place, turn: Turn, weight: float) -> KeyTurn:
    return KeyTurn(
        **place._asdict(),
        text_sha256=sha256_text(turn.text),
        turn_sha256=turn_sha256(turn),
        answer_shown=turn.answer is not None,
        weight=weight,
    )


def study_sha256(study: Study) -> str:
    """Digest of the whole config, defaults filled in."""
    return sha256_text(canonical(study.model_dump(mode="json")))


def label_sheets(
    study: Study,
    judge: str,
    sample: Sample,
    seen: Mapping[Place, Turn | None],
    *,
    seed: int,
    labellers: int,
    guide_sha256: str,
) -> tuple[list[Sheet], Key]:
    """The sheets of a sample, one a labeller, and their key.

    Args:
        study: the study that the sample was drawn from.
        judge: whose labels made the strata.
        sample: the turns drawn.
        seen: what a labeller sees of each turn.
        seed: of the ids and the orders.
        labellers: how many people label every turn.
        guide_sha256: digest of the guide.

    Raises:
        LabellingError: judgements name a turn that the study does not hold.
    """
    turns, keyed = [], {}
    for place, weight in sample.turns:
        turn = seen[place]
        if turn is None:
            raise LabellingError(
                f"{'/'.join(map(str, place))}: judged, but its user turn, context or item is not there: judgements "
                "and user turns are of different runs; run the workflow again"
            )
        one = SheetTurn(blind_id(seed, "turn", place), turn)
        turns.append(one)
        keyed[one.id] = _key_turn(place, turn, weight)
    sheets = _sheets(turns, seed, labellers, guide_sha256, adjudication=False)
    key = Key(
        kind="labels",
        study=Origin(name=study.name, seed=study.seed, sha256=study_sha256(study)),
        judge=judge,
        seed=seed,
        rule=sample.rule,
        guide_sha256=guide_sha256,
        strata=tuple(
            KeyStratum(**stratum._asdict(), available=available, drawn=drawn)
            for stratum, (available, drawn) in sample.strata.items()
        ),
        sheets={sheet.id: sheet.number for sheet in sheets},
        turns=keyed,
    )
    return sheets, key


def label_words(label: PeopleLabel) -> str:
    """A label as an adjudicator sees it."""
    if label.label is None:
        return "cannot say"
    return f"{label.label} ({label.reacts_to})" if label.reacts_to else label.label


def adjudication_sheet(
    judge: str,
    differing: Mapping[Place, Sequence[PeopleLabel]],
    seen: Mapping[Place, Turn | None],
    *,
    seed: int,
    guide_sha256: str,
) -> tuple[Sheet, Key]:
    """The sheet of turns whose labels differ: the labels in an order that does not say whose they are.

    Raises:
        LabellingError: the artefacts no longer hold a text that was labelled.
    """
    turns, keyed, gone = [], {}, []
    for place, labels in differing.items():
        turn = seen[place]
        if turn is None or any(label.turn_sha256 != turn_sha256(turn) for label in labels):
            gone.append("/".join(map(str, place)))
            continue
        id = blind_id(seed, "adjudication", place)
        ranked = sorted(labels, key=lambda label: derive(seed, "given", id, label.labeller))
        turns.append(SheetTurn(id, turn, tuple(label_words(label) for label in ranked)))
        keyed[id] = _key_turn(place, turn, labels[0].weight)
    if gone:
        raise LabellingError(
            f"{len(gone)} of {len(differing)} turns no longer have the texts that were labelled, the first is "
            f"{gone[0]}: bring back the study's artefacts first"
        )
    (sheet,) = _sheets(turns, seed, 1, guide_sha256, adjudication=True)
    key = Key(
        kind="adjudication",
        judge=judge,
        seed=seed,
        rule="every turn whose labels differ",
        guide_sha256=guide_sha256,
        sheets={sheet.id: 1},
        turns=keyed,
    )
    return sheet, key
