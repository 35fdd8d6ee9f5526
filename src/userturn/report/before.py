"""The section that sets the study against an earlier one: which numbers moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from userturn.compare.pairs import Pair, compare
from userturn.compare.words import METHOD, interval, p_value, shift, shift_interval, summary, value
from userturn.report.data import Numbers, Row
from userturn.report.figures import number, title
from userturn.report.inert import visible

#: Rows of the table; the rest is a matter for `userturn diff`.
SHOWN = 60


@dataclass(frozen=True)
class Moved:
    """One number that moved: texts of the earlier study, and this study's own element."""

    title: str
    before: Markup
    now: Markup
    shift: str
    p_adjusted: str
    significant: bool


@dataclass(frozen=True)
class Before:
    """The whole section."""

    summary: list[str]
    method: str
    rows: list[Moved]
    more: int


def before(earlier: Sequence[Row] | None, numbers: Numbers) -> Before | None:
    """The section; None for a study that is set against none.

    Args:
        earlier: rows of the earlier ``numbers.jsonl``.
        numbers: this study's numbers.
    """
    if earlier is None:
        return None
    here = {str(row["id"]): row for row in numbers.all()}
    found = compare(map(dict, earlier), map(dict, here.values()))
    moved = [pair for pair in found.pairs if pair.status == "beyond" or pair.significant]
    rows = [_row(pair, here[pair.id]) for pair in moved[:SHOWN]]
    return Before(summary(found), METHOD, rows, len(moved) - len(rows))


def _row(pair: Pair, row: Row) -> Moved:
    text = f"{value(pair.a, pair.decimals)} {interval(pair.a, pair.decimals)}"
    return Moved(
        title=title(row),
        before=visible(text.strip()),
        now=number(row, "interval"),
        shift=f"{shift(pair)} {shift_interval(pair)}".strip(),
        p_adjusted=p_value(pair.p_adjusted),
        significant=pair.significant,
    )
