"""`userturn render`: how a model's chat template is used, with the special tokens visible.

Shows what the renderer found (family, user header, end marker, stops) and one prompt of each kind, so that a person
can check a new model in seconds. Line breaks show as ⏎, other control characters as ⟦U+…⟧.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from userturn.commands import options as shared
from userturn.commands.refusal import Refusal

if TYPE_CHECKING:
    from userturn.messages import Message
    from userturn.render import Prompt, Renderer

HELP = "show how a model is prompted, with its special tokens visible"

_QUERY = "What is the capital of France?"
_ANSWER = "The capital of France is Paris."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    shared.add_configfile(parser)
    parser.add_argument("--model", metavar="M", help="a model of the study: its folder and its settings")
    parser.add_argument("--folder", type=Path, help="a model folder: alone, or in place of the folder of --model")
    parser.add_argument("--prefix", choices=["stripped", "retained"], help="default: as in the config, or stripped")
    parser.add_argument("--thinking", choices=["true", "false"], help="the template's enable_thinking")
    parser.add_argument(
        "--template-kwarg", action="append", default=[], metavar="NAME=VALUE", help="a further template variable"
    )
    parser.add_argument("--item", metavar="N", help="an item of the study: its number, from 1, or its id")
    parser.add_argument("--dataset", metavar="D", help="the dataset of --item (default: the study's first)")
    parser.add_argument("--text", metavar="Q", help="a query of your own")
    parser.add_argument("--answer", metavar="A", help="the answer to it")
    parser.add_argument("--json", action="store_true", help="for machines, with all token ids")


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    _check(options)
    folder, settings = _settings(options)
    messages, answer, origin = _conversation(options)
    renderer = _load(folder, settings)
    from userturn.render import HostileContentError, TemplateNotProbeable

    try:
        prompts = {
            "assistant": renderer.assistant_prompt(messages),
            "user": renderer.user_prompt([*messages, {"role": "assistant", "content": answer}]),
        }
    except (TemplateNotProbeable, HostileContentError) as error:
        raise Refusal(f"{folder}: {error}") from error
    spelled = _spelling(folder)
    facts = _facts(folder, renderer, prompts, spelled) | {"answer_from": origin}
    print(json.dumps(facts, ensure_ascii=False, sort_keys=True) if options.json else _page(facts))
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.model is None and options.folder is None:
        raise Refusal("nothing to render: give --model M (a model of the study) or --folder F (a model folder)")
    if options.item is not None and (options.text is not None or options.answer is not None):
        raise Refusal("--item brings its own query and answer: give either --item or --text and --answer")
    if options.dataset is not None and options.item is None:
        raise Refusal("--dataset names the dataset of --item: give --item too")


def _settings(options: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """The model folder and the renderer's arguments, those of the command line before those of the config."""
    from userturn import layout

    settings: dict[str, Any] = {}
    folder = options.folder
    if options.model is not None:
        study = shared.load(options.configfile)
        if options.model not in study.models:
            raise Refusal(f"{options.model!r} is no model of this study; known: {', '.join(study.models)}")
        config = study.models[options.model]
        settings = {
            "prefix": config.prefix or study.probe.prefix,
            "thinking": config.thinking,
            "template_kwargs": dict(config.template_kwargs),
            "extra_stop_token_ids": tuple(config.extra_stop_token_ids),
        }
        if folder is None:
            folder = layout.model_folder(options.model)
            if not folder.is_dir():
                made = layout.model(options.model)
                raise Refusal(f"{folder} is not there yet; make it with: snakemake --cores all {made}")
    if options.prefix is not None:
        settings["prefix"] = options.prefix
    if options.thinking is not None:
        settings["thinking"] = options.thinking == "true"
    for pair in options.template_kwarg:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise Refusal(f"--template-kwarg {pair!r}: expected NAME=VALUE")
        settings.setdefault("template_kwargs", {})[name] = value
    return folder, settings


def _load(folder: Path, settings: Mapping[str, Any]) -> Renderer:
    # transformers would tell on stderr that torch is not here, which a tokenizer does not need
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    from userturn.render import TemplateNotProbeable, load_renderer

    if not (folder / "tokenizer.json").is_file():
        raise Refusal(f"{folder}: no model folder with a tokenizer.json")
    try:
        return load_renderer(folder, **settings)
    except (TemplateNotProbeable, ValueError, OSError) as error:
        raise Refusal(f"{folder}: {error}") from error


def _conversation(options: argparse.Namespace) -> tuple[list[Message], str, str]:
    """The messages up to the query, the answer to it, and where that comes from."""
    if options.item is None:
        query = options.text if options.text is not None else _QUERY
        answer = options.answer if options.answer is not None else _ANSWER
        return [{"role": "user", "content": query}], answer, "the command line" if options.answer else "an example"
    from userturn import layout
    from userturn.artefacts import read_jsonl

    study = shared.load(options.configfile)
    dataset = options.dataset or next(iter(study.datasets))
    if dataset not in study.datasets:
        raise Refusal(f"{dataset!r} is no dataset of this study; known: {', '.join(study.datasets)}")
    path = layout.dataset(dataset)
    if not path.is_file():
        raise Refusal(f"{path} is not there yet; make it with: snakemake --cores all {path}")
    rows = read_jsonl(path)
    by_id = {row["item"]: row for row in rows}
    if options.item in by_id:
        row = by_id[options.item]
    elif options.item.isdecimal() and 1 <= int(options.item) <= len(rows):
        row = rows[int(options.item) - 1]
    else:
        raise Refusal(
            f"--item {options.item!r}: {path} has the items 1 to {len(rows)}; ids such as {next(iter(by_id))!r}"
        )
    turns = layout.assistant_turns(options.model, dataset) if options.model is not None else None
    answers = {turn["item"]: turn["text"] for turn in read_jsonl(turns)} if turns and turns.is_file() else {}
    if row["item"] in answers:
        return row["messages"], answers[row["item"]], str(turns)
    return row["messages"], _ANSWER, "an example: the study has no answer to this item yet"


def _spelling(folder: Path) -> dict[int, str]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return {token_id: token for token, token_id in tokenizer.get_vocab().items()}


def _facts(
    folder: Path, renderer: Renderer, prompts: Mapping[str, Prompt], spelled: Mapping[int, str]
) -> dict[str, Any]:
    format = renderer.format
    return {
        "folder": folder.as_posix(),
        "family": format.family,
        "template_sha256": format.template_sha256,
        "prefix": renderer.prefix,
        "user_header": format.user_header,
        "user_header_token_ids": list(format.user_header_token_ids),
        "user_end": format.user_end,
        "stops": {str(i): spelled.get(i, "?") for i in format.stop_token_ids},
        "stop_strings": list(format.stop_strings),
        "assistant_header": format.assistant_header,
        "assistant_stops": {str(i): spelled.get(i, "?") for i in format.assistant_stop_token_ids},
        "notes": list(format.notes),
        "prompts": {
            turn: {"text": prompt.text, "token_ids": list(prompt.token_ids), "n_tokens": len(prompt.token_ids)}
            for turn, prompt in prompts.items()
        },
    }


def _page(facts: Mapping[str, Any]) -> str:
    def ids(stops: Mapping[str, str]) -> str:
        return ", ".join(f"{token_id} {_line(token)}" for token_id, token in stops.items()) or "none"

    lines = [
        f"folder            {_line(facts['folder'])}",
        f"family            {facts['family']} (template sha256 {facts['template_sha256'][:16]}…)",
        f"prefix            {facts['prefix']}",
        f"user header       {_line(facts['user_header'])}  token ids {facts['user_header_token_ids']}",
        f"user end          {_line(facts['user_end'])}",
        f"user stops        {ids(facts['stops'])}",
        f"stop strings      {', '.join(map(_line, facts['stop_strings'])) or 'none'}",
        f"assistant header  {_line(facts['assistant_header'])}",
        f"assistant stops   {ids(facts['assistant_stops'])}",
        f"answer            {facts['answer_from']}",
        *(f"note              {_line(note)}" for note in facts["notes"]),
    ]
    for turn, prompt in facts["prompts"].items():
        title = f"prompt for the {turn}'s turn, {prompt['n_tokens']} tokens"
        lines += ["", f"--- {title} ---", _shown(prompt["text"]), "--- end ---"]
    return "\n".join(lines)


def _line(text: str) -> str:
    return _shown(text).replace("\n", "")


def _shown(text: str) -> str:
    """A text that is safe on a terminal, with its line breaks visible."""
    from userturn.report.inert import visible_text

    return visible_text(text).replace("\t", "⇥").replace("\n", "⏎\n")
