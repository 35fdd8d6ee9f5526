"""Makes the page: one HTML file that opens from disk, asks for nothing and runs only its own script."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from userturn.report import sections
from userturn.report.choices import PAPER, PAPER_MODELS, choices, published
from userturn.report.data import Numbers, ReportData
from userturn.report.figures import details
from userturn.report.inert import finalize, script_json, visible_text
from userturn.report.judges import judges

ASSETS = Path(__file__).resolve().parent / "assets"


def _source_hash(text: str) -> str:
    """A hash source of a Content-Security-Policy: https://www.w3.org/TR/CSP3/#grammardef-hash-source."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def content_security_policy(script: str, style: str) -> str:
    """A policy that allows exactly one script and one style sheet, both inline, and no request at all."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_source_hash(script)}",
            f"style-src {_source_hash(style)}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def asset(folder: Path, name: str) -> str:
    """A script or style sheet of ours, the same on every system."""
    return (folder / name).read_text("utf-8").replace("\r\n", "\n")


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


def build_report(data: ReportData) -> str:
    """Renders the page. The same data gives the same text.

    Args:
        data: what the page shows.

    Returns:
        The HTML, which encodes to UTF-8 whatever the models wrote.

    Raises:
        KeyError: if a row, the study or the facts lack a field that the page needs.
        ValueError: if two numbers share an id.
    """
    numbers = Numbers(data.numbers)
    script, style = asset(ASSETS, "page.js"), asset(ASSETS, "style.css")
    environment = page_environment(ASSETS)
    environment.filters["words"] = sections.words
    environment.filters["g"] = lambda value: f"{value:g}"
    return environment.get_template("page.html.j2").render(
        csp=content_security_policy(script, style),
        # both are our own files, with no closing tag in them (tested)
        script=Markup(script),
        style=Markup(style),
        study=data.study,
        paper=PAPER,
        paper_models=PAPER_MODELS,
        level=f"{100 * data.study['statistics']['level']:g} %",
        simulated=data.facts["engine"].get("name") == "simulated",
        headline=sections.headline(data.study, numbers),
        scatter=sections.accuracy_against_followup(data.study, numbers),
        curves=sections.temperature_curves(data.study, numbers),
        effects=sections.effects(data.study, numbers),
        contrasts=sections.effects(data.study, numbers, contrasts=True),
        likelihood=sections.likelihood(data.study, numbers),
        composition=sections.composition(data.study, numbers),
        transcripts=sections.transcripts(data.transcripts),
        judges=judges(data.study, data.facts, numbers),
        facts=sections.facts(data.facts),
        choices=choices(data.study, data.facts),
        published=published(data.study),
        others=sections.others(numbers),
        details=script_json({visible_text(str(row["id"])): _visible(details(row)) for row in numbers.all()}),
    )


def _visible(value: object) -> object:
    """Spells out invisible controls in every text of a JSON value."""
    if isinstance(value, str):
        return visible_text(value)
    if isinstance(value, dict):
        return {key: _visible(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_visible(inner) for inner in value]
    return value
