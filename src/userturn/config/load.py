"""From files and overrides to a checked `Study`, with errors for the person who wrote the config."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from userturn.config.judging import EmbeddedJudge, LlmJudge
from userturn.config.posttrain import sources as training_sources
from userturn.config.study import Study
from userturn.exclusions import LedgerError, read_ledger
from userturn.sources import HubSource, Source, SourceCache, SourceError, check_cached
from userturn.sources.config import PIN_ME


class ConfigError(ValueError):
    """A config that cannot be run: names the key, what was given and what is allowed."""


class _StrictLoader(yaml.SafeLoader):
    """A YAML loader that refuses a key that stands twice: PyYAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[Hashable, int] = {}
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if key in seen:
                raise ConfigError(f"line {line}: the key {key!r} stands twice (first in line {seen[key]})")
            seen[key] = line
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads one config file as a mapping.

    Raises:
        ConfigError: if the file is missing, is not YAML, is not a mapping or repeats a key.
    """
    try:
        # the loader derives from SafeLoader: it builds plain values only
        value = yaml.load(path.read_text("utf-8"), Loader=_StrictLoader)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such config file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 (byte {error.start})") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected keys and values, found {type(value).__name__}")
    return value


def _location(error: ErrorDetails, config: object) -> list[str]:
    """The keys that lead to a fault, without the tags that pydantic puts in for members of unions."""
    *parents, last = error["loc"] or ("config",)
    keys = []
    node: Any = config
    for part in parents:
        if isinstance(node, list):
            node = node[int(part)]
        elif isinstance(node, Mapping) and part in node:
            node = node[part]
        else:
            continue
        keys.append(str(part))
    return [*keys, str(last)]


def _explain(error: ErrorDetails, config: object) -> str:
    key = ".".join(_location(error, config))
    given = error.get("input")
    # what may hold a key is not repeated
    shown = "" if isinstance(given, Mapping) or error["type"] == "secret" else f" (given: {given!r})"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        return f"{key}: unknown key{shown}"
    if error["type"] == "missing":
        return f"{key}: required, but not given"
    return f"{key}: {message}{shown}"


def validate(config: Mapping[str, Any]) -> Study:
    """Checks a config mapping against the typed model.

    Raises:
        ConfigError: with one line for each fault.
    """
    try:
        return Study.model_validate(config)
    except ValidationError as error:
        details = error.errors(include_url=False)
        faults = [_explain(detail, config) for detail in details]
        allowed = _allowed_keys(details)
        raise ConfigError("\n".join(faults + allowed)) from None


def _allowed_keys(errors: Sequence[ErrorDetails]) -> list[str]:
    """For unknown keys at places that the model knows: what could stand there."""
    lines = []
    for error in errors:
        if error["type"] == "extra_forbidden":
            keys = _keys_at([str(part) for part in error["loc"][:-1]])
            if keys:
                lines.append(f"  allowed there: {', '.join(keys)}")
    return lines


def _keys_at(location: Sequence[str]) -> list[str]:
    schema = Study.model_json_schema()
    node: dict[str, Any] = schema
    for part in location:
        node = _resolve(schema, node)
        if "oneOf" in node or "anyOf" in node:
            options = [_resolve(schema, option) for option in node.get("oneOf", node.get("anyOf", []))]
            tagged = [o for o in options if o.get("properties", {}).get("kind", {}).get("const") == part]
            if tagged:
                node = tagged[0]
                continue
            node = next((o for o in options if o.get("type") == "object"), {})
        named = next(iter(node.get("patternProperties", {}).values()), node.get("additionalProperties"))
        node = node.get("properties", {}).get(part) or named or {}
        if not isinstance(node, dict):
            return []
    return sorted(_resolve(schema, node).get("properties", {}))


def _resolve(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    reference = node.get("$ref")
    return schema["$defs"][reference.rsplit("/", 1)[1]] if reference else node


def named_sources(study: Study) -> dict[str, Source]:
    """Every source of a study by its key."""
    named = {f"models.{n}.source": m.source for n, m in study.models.items() if m.source is not None}
    for name, model in study.models.items():
        if model.posttrain is not None:
            named |= {f"models.{name}.posttrain.{key}": one for key, one in training_sources(model.posttrain).items()}
    named |= {f"datasets.{n}.source": d.source for n, d in study.datasets.items()}
    for name, judge in study.judges.items():
        if judge.weights is not None:
            key = "transport.source" if isinstance(judge, LlmJudge) else "embedder"
            named[f"judges.{name}.{key}"] = judge.weights
        if isinstance(judge, EmbeddedJudge):
            named |= {f"judges.{name}.training.{n}.source": t.source for n, t in judge.training.items()}
    if study.gold is not None:
        named |= {"gold.turns": study.gold.turns, "gold.labels": study.gold.labels}
    return named


def open_revisions(study: Study) -> list[str]:
    """Keys of the revisions that are yet to be pinned."""
    return [
        f"{key}.revision"
        for key, source in named_sources(study).items()
        if isinstance(source, HubSource) and source.revision == PIN_ME
    ]


def check_sources(study: Study, cache: SourceCache) -> None:
    """Refuses sources that cannot be right, before anything runs.

    That is an open revision, a missing file, a digest that does not fit.

    Raises:
        ConfigError: naming the key of the source.
    """
    unpinned = open_revisions(study)
    if unpinned:
        raise ConfigError(
            f"{len(unpinned)} revisions say '{PIN_ME}': {', '.join(unpinned)}; fill them in where the hub can be "
            "reached with: userturn pin --configfile FILE"
        )
    faults = []
    for key, source in named_sources(study).items():
        try:
            check_cached(source, cache)
        except SourceError as error:
            faults.append(f"{key}: {error}")
    if faults:
        raise ConfigError("\n".join(faults))


def check_config(config: Mapping[str, Any], files: Sequence[Path], *, sources: bool = True) -> Study:
    """Checks a config as Snakemake has merged it, and the files it came from.

    Args:
        config: the merged config.
        files: the config files, read again with a stricter loader (a key that stands twice is refused).
        sources: also check what can be checked of the sources without fetching anything.

    Raises:
        ConfigError: with one line for each fault.
    """
    for file in files:
        read_yaml(file)
    study = validate(config)
    if sources:
        check_sources(study, SourceCache.default())
        check_exclusions(study)
    return study


def check_exclusions(study: Study) -> None:
    """Refuses a ledger of exclusions that cannot be read, or that names what the study does not have.

    Raises:
        ConfigError: naming the line.
    """
    try:
        ledger = read_ledger(Path(study.exclusions) if study.exclusions else None)
    except LedgerError as error:
        raise ConfigError(f"exclusions: {error}") from error
    known = {"dataset": set(study.datasets), "model": set(study.models), "perturbation": set(study.probe.perturbations)}
    for number, entry in enumerate(ledger.entries, start=1):
        for part, names in known.items():
            given = getattr(entry, part)
            if given is not None and given not in names:
                raise ConfigError(
                    f"exclusions: {study.exclusions}:{number}: {part} {given!r} is not in this study; known: "
                    + ", ".join(sorted(names))
                )


def load_study(files: Sequence[Path]) -> Study:
    """Reads and checks a study; later files override single keys of earlier ones.

    Raises:
        ConfigError: see `read_yaml` and `validate`.
    """
    merged: dict[str, Any] = {}
    for file in files:
        merged = _merge(merged, read_yaml(file))
    return validate(merged)


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result
