"""`userturn audit NUMBER`: where a number comes from, down to sources and code, with every file hashed again.

The number is computed anew from the rows that its selector names and compared with `results/numbers.jsonl` and with
what the report shows. `--rows` shows the rows behind it, `--item` everything about one item. Exit code 0: verified;
1: something is not as recorded (each fault names the file); 2: no such number or item.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from userturn.commands.refusal import Refusal, WrongUsage

if TYPE_CHECKING:
    from userturn.provenance.audit import Audit, Auditor
    from userturn.provenance.lineage import Job

HELP = "where a number comes from: recomputed, every file re-hashed, down to sources and code"
_ROWS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "number", metavar="NUMBER", help="id of the number, as results/numbers.jsonl and the report have it"
    )
    parser.add_argument(
        "--rows", action="store_true", help=f"also the rows behind it (the first {_ROWS} on a terminal)"
    )
    parser.add_argument("--item", metavar="ITEM", help="also everything that led from this item to the number")
    parser.add_argument("--json", action="store_true", help="for machines; with --rows or --item all the rows")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    from userturn.provenance import ProvenanceError
    from userturn.provenance.audit import Auditor, UnknownNumber

    try:
        auditor = Auditor(Path())
        found = auditor.audit(options.number)
        rows = list(_rows(auditor, found.number, options.item)) if options.rows or options.item else []
    except UnknownNumber as error:
        raise WrongUsage(f"{error}") from error
    except ProvenanceError as error:
        raise Refusal(f"{error}") from error
    if options.json:
        print(json.dumps(_facts(found) | {"rows": [{"path": path, "row": row} for path, row in rows]}, sort_keys=True))
    else:
        print("\n".join(_page(found)))
        print("\n".join(_shown_rows(rows)), end="\n" if rows else "")
    return 0 if found.verified else 1


def _rows(auditor: Auditor, number: dict[str, Any], item: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    from userturn.artefacts import ArtefactError
    from userturn.provenance.rows import behind, items_of

    try:
        found = list(behind(auditor.root, number, auditor.lineage, item))
    except ArtefactError as error:
        raise Refusal(f"{error}") from error
    if item is not None and not found:
        known = items_of(auditor.root, number)
        raise WrongUsage(f"no item {item!r} behind this number; its items: {', '.join(known[:20]) or 'none'}")
    yield from found


def _facts(audit: Audit) -> dict[str, Any]:
    return {
        "verified": audit.verified,
        "number": audit.number,
        "recomputed": audit.recomputed,
        "shown": audit.shown,
        "faults": list(audit.faults),
        "notes": list(audit.notes),
        "files": [asdict(file) for file in audit.files],
        "jobs": [
            {"manifest": job.path, "code_is_here": audit.code_now.get(job.name), **job.manifest.model_dump(mode="json")}
            for job in audit.jobs
        ],
        "sources": [dict(source) for source in audit.sources],
    }


def _page(audit: Audit) -> Iterator[str]:
    from userturn.provenance.record import is_manifest
    from userturn.report import figures
    from userturn.report.inert import visible_text as safe

    row = audit.recomputed or audit.number
    yield f"number    {safe(audit.number['id'])}"
    yield f"value     {figures.value_text(row)}  {figures.interval_text(row)}  ({row['method'] or 'no interval'})"
    yield (
        f"rows      {row['k']} of {row['n']} in {row['n_items']} items; {row['n_unscored']} unscored, "
        f"{row['n_excluded']} excluded; seed {row['seed']}"
    )
    if row["p_value"] is not None:
        yield f"test      {row['test']}: p {row['p_value']:.3g}, adjusted {row['p_adjusted']:.3g} ({row['family']})"
    yield f"selector  {safe(json.dumps(row['selector'], ensure_ascii=True, sort_keys=True))}"
    yield f"report    {audit.shown} parts of it are shown, " + (
        "compared" if audit.shown else "or the page is not there"
    )
    for entry in _exclusions(audit):
        yield f"excluded  {safe(entry)}"
    yield ""
    yield "chain (nearest first; every file hashed again)"
    for file in audit.files:
        mark = "FAULT" if file.faults else "ok"
        origin = f"  by {file.made_by}" if file.made_by else "  a manifest" if is_manifest(file.path) else "  provided"
        yield f"  {mark:5} {(file.sha256 or 'missing')[:12]:12} {safe(file.path)}{origin}"
    yield ""
    yield "jobs"
    for job in audit.jobs:
        yield from (f"  {line}" for line in _job(job, audit))
    yield ""
    yield "sources"
    for source in audit.sources:
        state = "FAULT" if source.get("fault") else "ok" if source["at_hand"] else "not at hand"
        yield f"  {state:11} {str(source['pin'])[:16]} {safe(source['what'])}"
    yield ""
    yield from (f"note      {safe(note)}" for note in audit.notes)
    yield from (f"FAULT     {safe(fault)}" for fault in audit.faults)
    yield f"result    {'verified' if audit.verified else f'{len(audit.faults)} faults: NOT verified'}"


def _exclusions(audit: Audit) -> Iterator[str]:
    from userturn.exclusions import Exclusion, describe

    for job in audit.jobs:
        for entry in job.manifest.facts.get("exclusions", ()) if job.manifest.stage == "analyse" else ():
            yield f"{describe(Exclusion.model_validate(entry))}: {entry['reason']}"


def _job(job: Job, audit: Audit) -> Iterator[str]:
    manifest, run = job.manifest, job.manifest.run
    same = audit.code_now.get(job.name)
    code = "" if same is None else " (the code here)" if same else " (the code here is another)"
    commit = "no git" if run.git is None else run.git.commit[:12] + (" with changes" if run.git.dirty else "")
    lock = f", lock {manifest.lock.file} {manifest.lock.sha256[:12]}" if manifest.lock else ""
    yield (
        f"{job.name}: {run.started} to {run.ended} on {run.host} ({run.processor}, {run.accelerator or 'no card'})"
        + (f", SLURM job {run.slurm_job_id}" if run.slurm_job_id else "")
    )
    yield f"  code {manifest.code.digest}{code}, commit {commit}{lock}"
    engine, template = manifest.facts.get("engine"), manifest.facts.get("template")
    if isinstance(engine, dict):
        versions = ", ".join(f"{name} {version}" for name, version in engine.get("versions", {}).items())
        yield f"  engine {engine.get('name') or engine.get('config', {}).get('name')}: {versions or 'see the manifest'}"
    if isinstance(template, dict):
        yield f"  template {template.get('family')} {str(template.get('sha256'))[:12]}"
    seed = manifest.spec.get("seed")
    if seed is not None:
        yield f"  study seed {seed}"


def _shown_rows(rows: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    from userturn.provenance.rows import without_token_ids
    from userturn.report.inert import visible_text as safe

    last = None
    for path, row in islice(rows, _ROWS):
        if path != last:
            yield f"\n{path}"
            last = path
        yield "  " + safe(json.dumps(without_token_ids(row), ensure_ascii=False, sort_keys=True))
    if len(rows) > _ROWS:
        yield f"\n… {len(rows) - _ROWS} more rows; --rows --json gives all, --item one item"
