"""`userturn diff A B`: which numbers moved between two studies, how surely, and what differs in how they were made.

Exit code 0: no number moved beyond an interval; 1: some did; 2: there is nothing to compare.
"""

from __future__ import annotations

import argparse
import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from userturn.commands.refusal import WrongUsage

if TYPE_CHECKING:
    from userturn.compare.causes import Causes
    from userturn.compare.pairs import Comparison, Pair
    from userturn.compare.study import Study

HELP = "which numbers moved between two studies, and what differs in how they were made"

#: Numbers that the terminal's table shows; ``--json`` and ``--html`` have all.
ROWS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    for name, which in (("a", "the study before"), ("b", "the study after")):
        parser.add_argument(
            name, type=Path, metavar=name.upper(), help=f"{which}: its folder, sealed record or numbers.jsonl"
        )
    parser.add_argument("--only", metavar="PATTERN", help="only numbers whose id fits, such as 'effect/*'")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write a page that opens from disk")
    parser.add_argument("--json", action="store_true", help="for machines, complete")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    from userturn.artefacts import ArtefactError, write_text
    from userturn.compare.causes import causes
    from userturn.compare.pairs import compare
    from userturn.compare.study import NoStudyError, open_study

    try:
        a, b = open_study(options.a), open_study(options.b)
        compared = compare(a.numbers, b.numbers)
    except (NoStudyError, ArtefactError, ValueError) as error:
        raise WrongUsage(f"{error}") from error
    if not compared.pairs:
        raise WrongUsage(f"{a.path} and {b.path} have no number in common: they differ in models, datasets or contexts")
    if options.only is not None:
        compared = compared.only(options.only)
        if not (compared.pairs or compared.only_a or compared.only_b):
            raise WrongUsage(f"--only {options.only!r} fits no number; ids are like {a.numbers[0]['id']!r}")
    found = causes(a, b)
    if options.html is not None:
        from userturn.compare.page import build_page

        write_text(options.html, build_page(a, b, compared, found))
    if options.json:
        print(json.dumps(_document(a, b, compared, found), sort_keys=True))
    else:
        for line in _lines(a, b, compared, found):
            print(_plain(line))
    return 1 if compared.counts["beyond"] else 0


def _document(a: Study, b: Study, compared: Comparison, found: Causes) -> dict[str, object]:
    from userturn.compare.pairs import FALSE_SHARE, INTERVAL

    return {
        **{
            side: {"path": f"{one.path}", "study": one.name, "n_numbers": len(one.numbers), "simulated": one.simulated}
            for side, one in (("a", a), ("b", b))
        },
        "interval": INTERVAL,
        "false_share": FALSE_SHARE,
        "counts": compared.counts,
        "pairs": [{**asdict(pair), "significant": pair.significant} for pair in compared.pairs],
        "only_a": compared.only_a,
        "only_b": compared.only_b,
        "families": compared.families,
        "causes": asdict(found),
    }


def _lines(a: Study, b: Study, compared: Comparison, found: Causes) -> Iterator[str]:
    from userturn.compare import words

    for side, one in (("A", a), ("B", b)):
        simulated = ", SIMULATED" if one.simulated else ""
        yield f"{side}  {one.path} ({one.name or 'a study'}{simulated})"
    yield ""
    yield from words.summary(compared)
    moved = compared.of("beyond", "within", "undecided")
    if moved:
        yield ""
        yield from _table(moved[:ROWS])
        if len(moved) > ROWS:
            yield f"{len(moved) - ROWS:,} more that moved less: --json and --html have all"
    for side, ids in (("A", compared.only_a), ("B", compared.only_b)):
        if ids:
            yield ""
            yield f"only in {side}"
            yield from (f"  {id}" for id in ids[:ROWS])
            if len(ids) > ROWS:
                yield f"  and {len(ids) - ROWS:,} more"
    yield ""
    yield from _causes(found)
    yield ""
    yield words.METHOD
    yield from found.notes


def _table(pairs: Sequence[Pair]) -> Iterator[str]:
    from userturn.compare import words

    header = ("number", "A", "", "B", "", "shift", "", "half-widths", "p", "adjusted", "")
    rows = [header]
    for pair in pairs:
        note = "; ".join(pair.notes) or ("beyond" if pair.status == "beyond" else "")
        rows.append(
            (
                pair.id,
                words.value(pair.a, pair.decimals),
                words.interval(pair.a, pair.decimals),
                words.value(pair.b, pair.decimals),
                words.interval(pair.b, pair.decimals),
                words.shift(pair),
                words.shift_interval(pair),
                words.half_widths(pair),
                words.p_value(pair.p_value),
                words.p_value(pair.p_adjusted) + (" *" if pair.significant else ""),
                note,
            )
        )
    yield from _columns(rows)


def _causes(found: Causes) -> Iterator[str]:
    from userturn.compare import words
    from userturn.compare.causes import KINDS

    if found.differences:
        yield "what differs in how they were made"
        rows = [
            (f"  {KINDS[one.kind]}", words.short(one.what), words.short(one.a), "->", words.short(one.b), one.note)
            for one in found.differences
        ]
        yield from _columns(rows)
    elif found.outputs:
        yield "nothing that their manifests tell differs in how they were made"
    parted = next((one for one in found.outputs if one.differ), None)
    if parted is not None:
        yield (
            f"the first stage that wrote other files: {parted.stage} "
            f"({parted.differ:,} of {parted.same + parted.differ:,} differ)"
        )


def _columns(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _plain(text: str) -> str:
    """The text without anything that a terminal would obey or hide: such characters are named."""
    return "".join(
        f"<U+{ord(character):04X}>" if unicodedata.category(character)[0] == "C" else character for character in text
    )
