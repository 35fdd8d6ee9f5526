"""Writes what people read about the config from the typed model: the documented default YAML and the JSON schema."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from userturn.artefacts import write_text
from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.study import Study

_HEADER = """\
# The embedded default study. This file is written by `userturn config write` from the typed model in
# src/userturn/config (a test fails when the two drift): to change the default study edit default_study.py there; for a
# study of your own copy this file and run
#   snakemake --cores all results/report.html --configfile my-study.yaml
# Values left out take the defaults shown. Unknown keys are refused.
# yaml-language-server: $schema=config.schema.json
"""
_WIDTH = 116


def schema_text() -> str:
    """The JSON schema of a study config."""
    return json.dumps(Study.model_json_schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def default_yaml() -> str:
    """The default study as YAML: every key with its description, defaults spelled out."""
    study = Study.model_validate(DEFAULT_STUDY)
    return _HEADER + "\n".join(_section(study, 0, set())) + "\n"


def _comment(text: str | None, indent: int) -> Iterator[str]:
    plain = " ".join((text or "").split())
    if plain:
        prefix = " " * indent + "# "
        yield from textwrap.wrap(plain, _WIDTH, initial_indent=prefix, subsequent_indent=prefix)


def _section(section: BaseModel, indent: int, documented: set[tuple[type, str]]) -> Iterator[str]:
    """Lines of a section; a field that was described once is not described again further down."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if (type(section), name) not in documented:
            if indent == 0:
                yield ""
            yield from _comment(field.description, indent)
            documented.add((type(section), name))
        yield from _value(name, value, indent, documented)


def _value(name: str, value: Any, indent: int, documented: set[tuple[type, str]]) -> Iterator[str]:
    pad = " " * indent
    if isinstance(value, BaseModel):
        yield f"{pad}{name}:"
        yield from _section(value, indent + 2, documented)
    elif isinstance(value, dict) and value:
        yield f"{pad}{name}:"
        for key, item in value.items():
            yield from _value(key, item, indent + 2, documented)
    else:
        text = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True).strip()
        yield f"{pad}{name}: {text.removesuffix('...').strip()}"


def write(folder: Path) -> list[Path]:
    """Writes ``config.yaml`` and ``config.schema.json`` into a folder and returns their paths."""
    files = {folder / "config.yaml": default_yaml(), folder / "config.schema.json": schema_text()}
    for path, text in files.items():
        write_text(path, text)
    return list(files)
