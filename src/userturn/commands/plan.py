"""`userturn plan`: what a study will cost, before anything runs.

Counts cells, jobs, prompts and tokens and estimates time and accelerator-hours, offline and in seconds, also for a
study whose sources are not pinned yet. Lengths and speeds that runs have measured take the place of assumptions.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from userturn.commands import options as shared

if TYPE_CHECKING:
    from userturn.plan import Plan

HELP = "cells, jobs, prompts, tokens and accelerator-hours, before anything runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    shared.add_configfile(parser)
    parser.add_argument("--assumed", action="store_true", help="do not use what earlier runs have measured")
    parser.add_argument("--json", action="store_true", help="for machines")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    from userturn.config.load import open_revisions
    from userturn.measured import measure
    from userturn.plan import plan

    study = shared.load(options.configfile)
    made = plan(study, None if options.assumed else measure(study))
    unpinned = open_revisions(study)
    if options.json:
        print(json.dumps({**asdict(made), "n_jobs": made.n_jobs, "unpinned": unpinned}, sort_keys=True))
    else:
        print(_page(made, unpinned))
    return 0


def _page(plan: Plan, unpinned: list[str]) -> str:
    lines = [
        f"study    {plan.study}" + (" (SIMULATED: a program makes the texts up)" if plan.simulated else ""),
        f"cells    {plan.cells:,}",
        f"jobs     {plan.n_jobs:,} ({', '.join(f'{rule} {n}' for rule, n in plan.jobs.items())})",
        f"prompts  {plan.tokens.prompts:,}",
        f"tokens   {_count(plan.tokens.prompt)} in prompts ({_count(plan.tokens.computed)} to be read by the engine), "
        f"{_count(plan.tokens.new)} new (at most {_count(plan.tokens.at_most)})",
        "",
        *_table(plan),
        "",
        f"accelerator-hours  {_number(plan.accelerator_hours)}",
        f"wall-clock         {shared.duration(plan.seconds_in_turn)} one job at a time; "
        f"{shared.duration(plan.seconds_at_once)} "
        "with all shards at once" + (f" on {plan.cards_at_once} cards" if plan.cards_at_once else ""),
    ]
    lines += ["", *(f"measured  {sentence}" for sentence in plan.measured)] if plan.measured else [""]
    lines += [f"assumed   {sentence}" for sentence in plan.assumed]
    lines += [f"note      {note}" for model in plan.models.values() for note in model.notes]
    if unpinned:
        lines.append(f"note      {len(unpinned)} revisions are not pinned yet: run userturn pin before the study")
    return "\n".join(lines)


def _table(plan: Plan) -> list[str]:
    header = ("model", "cells", "prompts", "prompt tokens", "new tokens", "cards", "time", "card-hours")
    rows = [header]
    for name, model in plan.models.items():
        both = model.assistant_turns + model.user_turns
        rows.append(
            (
                name,
                f"{model.cells:,}",
                f"{both.prompts:,}",
                _count(both.prompt),
                _count(both.new),
                str(model.gpus),
                shared.duration(model.seconds),
                _number(model.accelerator_hours),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def _count(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f}"


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.1f}"
