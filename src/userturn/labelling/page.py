"""The page that people label on: one HTML file that opens from disk, asks for nothing and runs only its own script."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from userturn.judges.labels import DEFINITIONS, LABELS
from userturn.judges.people import REACTS_TO
from userturn.labelling.guide import Guide
from userturn.labelling.sheet import Sheet
from userturn.report.build import asset, content_security_policy, page_environment
from userturn.report.inert import script_json, visible

ASSETS = Path(__file__).resolve().parent / "assets"


def build_page(sheet: Sheet, guide: Guide) -> str:
    """Renders a sheet. The same sheet gives the same text, which encodes to UTF-8 whatever the models wrote.

    Args:
        sheet: the turns in the labeller's order.
        guide: what is at hand while labelling.
    """
    script, style = asset(ASSETS, "label_page.js"), asset(ASSETS, "label_page.css")
    environment = page_environment(ASSETS)
    environment.filters["visible"] = visible
    return environment.get_template("label_page.html.j2").render(
        csp=content_security_policy(script, style),
        # both are our own files, with no closing tag in them (tested)
        script=Markup(script),
        style=Markup(style),
        sheet=sheet,
        guide=guide,
        labels=[(str(key), label, DEFINITIONS[label]) for key, label in enumerate(LABELS, start=1)],
        facts=script_json(
            {
                "sheet": sheet.id,
                "adjudication": sheet.adjudication,
                "labels": list(LABELS),
                "reacts_to": list(REACTS_TO),
                "turns": [
                    {"id": one.id, "text_sha256": one.text_sha256, "answer_shown": one.turn.answer is not None}
                    for one in sheet.turns
                ],
            }
        ),
    )
