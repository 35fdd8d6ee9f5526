"""Makes the page: one HTML file that opens from disk, asks for nothing and runs only its own script."""

from __future__ import annotations

import base64
import hashlib
import zlib
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from userturn.layout import REPORT_FILES
from userturn.report import about, contrasts, sections
from userturn.report.before import before
from userturn.report.choices import PAPER, PAPER_MODELS, choices, published
from userturn.report.chunks import NAME_LENGTH, Chunks
from userturn.report.data import Numbers, ReportData, Row
from userturn.report.figures import RAW, details, number, title
from userturn.report.inert import SHOWN_CHARACTERS, finalize, script_json
from userturn.report.judges import judges
from userturn.report.training import training
from userturn.report.transcripts import COUNTED

ASSETS = Path(__file__).resolve().parent / "assets"
#: The page's script, in the order in which its parts use each other.
SCRIPTS = ("core.js", "store.js", "turns.js", "items.js", "numbers.js", "browse.js", "plots.js", "page.js")
STYLES = ("style.css", "data.css")
#: Numbers whose details are in one piece of data.
DETAILS_A_CHUNK = 400
#: The only thing that may make an address of a script, in a page with files beside it.
POLICY = "userturn-files"


def _source_hash(text: str) -> str:
    """A hash source of a Content-Security-Policy: https://www.w3.org/TR/CSP3/#grammardef-hash-source."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def content_security_policy(script: str, style: str, *, files: bool = False) -> str:
    """A policy that allows exactly one script and one style sheet, both inline, and no request at all.

    Args:
        script: the script.
        style: the style sheet.
        files: whether data lies in files beside the page. A page opened from disk may not fetch and cannot check
            digests of scripts, so its script may then load others (``strict-dynamic``), but only from addresses that
            its one trusted-types policy makes: names of files in the folder beside the page.
    """
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_source_hash(script)}" + (" 'strict-dynamic'" if files else ""),
            f"style-src {_source_hash(style)}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            f"trusted-types {POLICY if files else chr(39) + 'none' + chr(39)}",
        ]
    )


def asset(folder: Path, name: str) -> str:
    """A script or style sheet of ours, the same on every system."""
    return (folder / name).read_text("utf-8").replace("\r\n", "\n")


def page_script() -> str:
    """The page's one script: its parts in one scope."""
    return "".join(['"use strict";\n(() => {\n', *(asset(ASSETS, name) for name in SCRIPTS), "})();\n"])


def page_environment(folder: Path) -> Environment:
    """The template engine of a self-contained page: everything is escaped, nothing may be missing.

    Args:
        folder: where the page's template lies.
    """
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def add_details(rows: list[Row], chunks: Chunks) -> list[str]:
    """Packs what tooltip and panel show of each number; a number's piece follows from its id.

    Args:
        rows: the study's numbers.
        chunks: where the pieces go.

    Returns:
        The pieces; a number is in the one at position CRC-32 of its id modulo their number.
    """
    pieces: list[dict[str, Any]] = [{} for _ in range(max(1, -(-len(rows) // DETAILS_A_CHUNK)))]
    for row in rows:
        pieces[zlib.crc32(str(row["id"]).encode()) % len(pieces)][str(row["id"])] = details(row)
    return [chunks.add(piece) for piece in pieces]


def build_report(data: ReportData, chunks: Chunks) -> str:
    """Renders the page. The same data gives the same text.

    Args:
        data: what the page shows.
        chunks: the pieces of data that the catalogue names; details of numbers and the index of words are added,
            and it is settled whether all are in the page or beside it.

    Returns:
        The HTML, which encodes to UTF-8 whatever the models wrote.

    Raises:
        KeyError: if a row, the study or the facts lack a field that the page needs.
        ValueError: if two numbers share an id.
    """
    numbers = Numbers(data.numbers)
    limit = int(data.study["report"]["inline_mb"] * 1e6)
    catalogue = {
        **{key: value for key, value in data.catalogue.items() if key not in {"words", "tokens"}},
        "numbers": add_details(numbers.all(), chunks),
        "words": None if chunks.total <= limit else data.catalogue["words"].write(chunks),
        "labels": list(COUNTED),
        "folder": REPORT_FILES.name,
        "name_length": NAME_LENGTH,
        "shown_characters": SHOWN_CHARACTERS,
        "raw": list(RAW),
        "policy": POLICY,
        "simulated": data.facts["engine"].get("name") == "simulated",
    }
    inline = chunks.settle(limit)
    script, style = page_script(), "".join(asset(ASSETS, name) for name in STYLES)
    environment = page_environment(ASSETS)
    environment.filters["words"] = sections.words
    environment.filters["g"] = lambda value: f"{value:g}"
    environment.filters["thousands"] = lambda value: f"{value:,}"
    groups = groupby(choices(data.study, data.facts), key=lambda choice: choice.status)
    return environment.get_template("page.html.j2").render(
        csp=content_security_policy(script, style, files=inline is None),
        # both are our own files, with no closing tag in them (tested)
        script=Markup(script),
        style=Markup(style),
        study=data.study,
        paper=PAPER,
        paper_models=PAPER_MODELS,
        level=f"{100 * data.study['statistics']['level']:g} %",
        simulated=catalogue["simulated"],
        headline=sections.headline(data.study, numbers),
        scatter=sections.accuracy_against_followup(data.study, numbers),
        decoupling=[(title(row), number(row, "interval")) for row in numbers.of("decoupling")],
        associations=contrasts.associations(data.study, numbers),
        curves=sections.temperature_curves(data.study, numbers),
        slopes=contrasts.slopes(data.study, numbers),
        effects=contrasts.effects(data.study, numbers),
        contrasts=contrasts.effects(data.study, numbers, contrasts=True),
        likelihood=contrasts.likelihood(data.study, numbers),
        composition=sections.composition(data.study, numbers),
        judges=judges(data.study, data.facts, numbers),
        extras=about.extras(numbers),
        training=training(data.study, numbers, data.trained),
        before=before(data.before, numbers),
        excluded=about.exclusions(data.facts["exclusions"]),
        cost=about.cost(data.catalogue["tokens"]),
        facts=about.facts(data.facts),
        choices=[(status, list(group)) for status, group in groups],
        published=[(one, sections.beside_the_paper(data.study, numbers, one.ours)) for one in published(data.study)],
        filters=about.filters(data.study, COUNTED),
        turns=sum(sum(cell["counts"]) for cell in data.catalogue["cells"]),
        all_turns=sum(cell["n"] for cell in data.catalogue["cells"]),
        beside=inline is None,
        folder=REPORT_FILES.name,
        others=about.others(numbers),
        catalogue=script_json(catalogue),
        chunks=None if inline is None else script_json(inline),
    )
