"""`userturn label`: people label user turns, and their labels become a judge.

`export` draws a blinded, stratified sample and writes a sheet for each labeller (CSV, and a page that works offline
with the keyboard) and a key, which labellers must not see. `import` checks what they send back and stores it under
labels/JUDGE in the checkout. `adjudicate` writes a sheet of the turns on which they differ.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from userturn.commands import options as shared
from userturn.commands.refusal import Refusal

if TYPE_CHECKING:
    from userturn.labelling.key import Key
    from userturn.labelling.sheet import Sheet
    from userturn.labelling.store import Store
    from userturn.statistics.types import Estimate

HELP = "label user turns by people: export a blinded sheet, import labels, adjudicate"

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    export = actions.add_parser("export", help="draw a blinded, stratified sample and write sheets for labellers")
    shared.add_configfile(export)
    size = export.add_mutually_exclusive_group()
    size.add_argument("--n", type=_positive, default=300, metavar="N", help="turns in all (default: 300)")
    size.add_argument("--per-stratum", type=_positive, metavar="K", help="K turns of every stratum instead")
    export.add_argument("--seed", type=int, help="of the draw and the orders (default: the study's seed)")
    export.add_argument("--judge", metavar="J", help="whose labels make the strata (default: the reported judge)")
    export.add_argument(
        "--labellers",
        type=_positive,
        default=1,
        metavar="K",
        help="a sheet each for K labellers, in orders of their own",
    )
    export.add_argument("--second", action="store_const", const=2, dest="labellers", help="the same as --labellers 2")
    export.add_argument("--controls", action="store_true", help="also the controls, whose user turns no model wrote")
    export.add_argument("out", type=Path, metavar="OUT", help="folder for the sheets and the key")

    back = actions.add_parser("import", help="check labels that came back and store them as a judge")
    back.add_argument("files", nargs="+", type=Path, metavar="FILE", help="JSON or CSV, a file a labeller")
    back.add_argument("--key", type=Path, required=True, metavar="KEY", help="key.json of the sheets")
    back.add_argument("--name", type=_name, required=True, metavar="JUDGE", help="name of the judge: labels/JUDGE")
    back.add_argument("--labeller", metavar="NAME", help="who labelled, where a CSV sheet does not say")
    back.add_argument("--adjudication", action="store_true", help="the files hold final labels, each with its reason")
    back.add_argument("--replace", action="store_true", help="a labeller's new label replaces an old one")

    settle = actions.add_parser("adjudicate", help="write a sheet of the turns on which labellers differ")
    settle.add_argument("--name", type=_name, required=True, metavar="JUDGE", help="name of the judge: labels/JUDGE")
    settle.add_argument("--seed", type=int, default=0, help="of the ids and orders (default: 0)")
    settle.add_argument("out", type=Path, metavar="OUT", help="folder for the sheet and the key")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    from userturn.labelling import LabellingError

    actions: Mapping[str, Callable[[argparse.Namespace], None]] = {
        "export": _export,
        "import": _import,
        "adjudicate": _adjudicate,
    }
    try:
        actions[options.action](options)
    except LabellingError as error:
        raise Refusal(f"{error}") from error
    return 0


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a judge: a to z, digits, dots, hyphens, at most 64")
    return text


def _export(options: argparse.Namespace) -> None:
    from userturn.labelling.guide import read_guide
    from userturn.labelling.sample import draw
    from userturn.labelling.sheet import label_sheets
    from userturn.labelling.turns import frame, seen

    study = shared.load(options.configfile)
    judge = options.judge or study.reported_judge
    seed = study.seed if options.seed is None else options.seed
    guide = read_guide()
    found = frame(study, judge, controls=options.controls)
    sample = draw(found.strata, seed, n=options.n, per_stratum=options.per_stratum)
    places = [place for place, _ in sample.turns]
    sheets, key = label_sheets(
        study, judge, sample, seen(places), seed=seed, labellers=options.labellers, guide_sha256=guide.sha256
    )
    _write(options.out, sheets, key)
    available, drawn = Counter[str](), Counter[str]()
    for stratum, (there, taken) in sample.strata.items():
        available[stratum.label] += there
        drawn[stratum.label] += taken
    empty = sum(taken == 0 for _, taken in sample.strata.values())
    print(f"{len(places)} of {sum(available.values())} user turns, {found.finished} of {found.cells} cells finished")
    print(f"allocation: {sample.rule}")
    for label, there in available.items():
        print(f"  {label:<24}{drawn[label]:>6} of {there}")
    if empty:
        print(f"note: {empty} of {len(sample.strata)} strata gave no turn; a larger --n reaches them")
    print(f"give labellers the sheets only; keep {options.out / 'key.json'} to yourself")


def _adjudicate(options: argparse.Namespace) -> None:
    from userturn.labelling.guide import read_guide
    from userturn.labelling.sheet import adjudication_sheet
    from userturn.labelling.store import read_store
    from userturn.labelling.turns import seen

    store = read_store(options.name)
    if len(store.by_labeller) < 2:
        raise Refusal(
            f"{store.folder}: labels of {len(store.by_labeller)} labellers, adjudication needs two: "
            "import both sheets first"
        )
    _print_agreement(store)
    differing = store.differing()
    if not differing:
        print("nothing to adjudicate: no turn has labels that differ")
        return
    guide = read_guide()
    sheet, key = adjudication_sheet(
        options.name, differing, seen(differing), seed=options.seed, guide_sha256=guide.sha256
    )
    _write(options.out, [sheet], key)
    print(f"{len(differing)} turns to adjudicate; import with --adjudication --key {options.out / 'key.json'}")


def _write(out: Path, sheets: list[Sheet], key: Key) -> None:
    """Writes sheets and key; what is there already and differs may hold somebody's labels, so it is refused."""
    from userturn.artefacts import canonical, write_bytes
    from userturn.labelling.guide import read_guide
    from userturn.labelling.page import build_page
    from userturn.labelling.sheet import csv_bytes

    guide = read_guide()
    files = {"key.json": (canonical(key.model_dump(mode="json")) + "\n").encode()}
    for sheet in sheets:
        stem = "sheet" if len(sheets) == 1 else f"sheet-{sheet.number}"
        files |= {f"{stem}.csv": csv_bytes(sheet), f"{stem}.html": build_page(sheet, guide).encode()}
    for name, data in files.items():
        path = out / name
        if path.exists() and path.read_bytes() != data:
            raise Refusal(f"{path} is there and differs; it may hold labels: choose another folder")
    for name, data in files.items():
        write_bytes(out / name, data)
        print(out / name)


def _import(options: argparse.Namespace) -> None:
    from userturn.files import sha256_file
    from userturn.judges.people import turn_sha256
    from userturn.labelling.key import read_key
    from userturn.labelling.returned import read_returned
    from userturn.labelling.store import add, read_store, write_store
    from userturn.labelling.turns import seen

    key = read_key(options.key)
    if (key.kind == "adjudication") != options.adjudication:
        raise Refusal(
            f"{options.key}: a key of {key.kind}; "
            + ("give --adjudication with it" if key.kind == "adjudication" else "leave --adjudication out")
        )
    if options.adjudication and key.judge != options.name:
        raise Refusal(f"{options.key}: adjudicates labels of {key.judge}, not of --name {options.name}")
    returned = [read_returned(path, key, options.labeller) for path in options.files]
    store = add(read_store(options.name), key, returned, replace=options.replace)
    for path, one in zip(options.files, returned, strict=True):
        unscored = sum(label.state == "unscored" for label in one.labels)
        print(f"{path}: {one.labeller}: {len(one.labels)} labels ({unscored} cannot say), {one.left_open} turns open")
    paths = write_store(store, key)
    for path in paths:
        print(path)
    turns = seen(label.place for one in returned for label in one.labels)
    moved = sum(
        (turn := turns[label.place]) is not None and turn_sha256(turn) != label.turn_sha256
        for one in returned
        for label in one.labels
    )
    if moved:
        print(f"note: {moved} labels are of texts that the study has made anew since; they count for none of its turns")
    if len(store.by_labeller) > 1:
        _print_agreement(store)
        if open_ := len(store.differing()):
            print(f"{open_} turns differ: userturn label adjudicate --name {options.name} OUT")
    counts = Counter(label.label or f"unscored ({label.decision})" for label in store.resolved())
    print(f"labels of {sum(counts.values())} turns: {', '.join(f'{k} {n}' for k, n in sorted(counts.items()))}")
    print(f"as a judge of a study:\n  judges:\n    {options.name}:\n      kind: people\n      labels: {store.final}")
    print(f"      sha256: {sha256_file(store.final)}")


def _print_agreement(store: Store) -> None:
    for (first, second), found in store.agreements().items():
        print(f"agreement of {first} and {second} on {found.raw.n} turns (a stratified sample, not all turns):")
        measures = {
            "raw": found.raw,
            "Cohen's kappa": found.kappa,
            "Krippendorff's alpha": found.alpha,
            "Gwet's AC1": found.ac1,
            "on genuine_followup": found.positive,
        }
        for name, estimate in measures.items():
            print(f"  {name:<24}{_estimate(estimate)}")
        if found.raw.n_unscored:
            print(f"  {'left out':<24}{found.raw.n_unscored} turns that one of them cannot say")


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None or estimate.value is None:
        return "not defined" + (f": {'; '.join(estimate.notes)}" if estimate else "")
    if estimate.interval is None:
        return f"{estimate.value:.3f}"
    return (
        f"{estimate.value:.3f} [{estimate.interval.low:.3f}, {estimate.interval.high:.3f}] {estimate.interval.method}"
    )
