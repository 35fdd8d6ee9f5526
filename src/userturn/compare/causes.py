"""What differs in how two studies were made, from the stable part of their manifests: why numbers may have moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from userturn.artefacts import Row, canonical
from userturn.compare.study import Study

Kind = Literal["study", "items", "data", "weights", "template", "engine", "judge", "code", "lock", "package"]

KINDS: Mapping[Kind, str] = {
    "study": "Config of the study",
    "items": "Items of a dataset",
    "data": "Content of a dataset",
    "weights": "Weights of a model",
    "template": "Chat template of a model",
    "engine": "Engine",
    "judge": "Judge",
    "code": "Code of a stage",
    "lock": "Lock of an environment",
    "package": "Version of a package",
}

#: Stages in the order in which data flows; others come after them.
FLOW = (
    "dataset",
    "model",
    "posttrain_data",
    "posttrain",
    "posttrain_rl",
    "judge_model",
    "assistant_turns",
    "scores",
    "contexts",
    "user_turns",
    "likelihood",
    "judge_training",
    "judge",
    "gold_set",
    "gold",
    "analyse",
    "report",
)


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same.

    Attributes:
        kind: one of `KINDS`.
        what: which key, model, stage, …
        a: as it is in A, None where A has nothing of the kind.
        b: as it is in B.
        note: what a reader must know, or empty.
    """

    kind: Kind
    what: str
    a: str | None
    b: str | None
    note: str = ""


@dataclass(frozen=True)
class Outputs:
    """What a stage wrote in both studies: how many files are the same, differ, or are in one only."""

    stage: str
    same: int
    differ: int
    only_a: int
    only_b: int


@dataclass(frozen=True)
class Causes:
    """What differs between two studies besides their numbers.

    Attributes:
        differences: in the order of `KINDS`.
        outputs: each stage's files, in the order of `FLOW`: the first that differ are where the studies part.
        notes: what could not be compared, and what it means for the tests.
    """

    differences: tuple[Difference, ...]
    outputs: tuple[Outputs, ...]
    notes: tuple[str, ...]


def causes(a: Study, b: Study) -> Causes:
    """Compares two studies' manifests and items."""
    differences = [*_items(a, b)]
    if a.manifests and b.manifests:
        facts_a, facts_b = _facts(a.manifests), _facts(b.manifests)
        differences += [
            Difference(*key, a=facts_a.get(key), b=facts_b.get(key), note=_note(key, a, b))
            for key in sorted(facts_a.keys() | facts_b.keys())
            if facts_a.get(key) != facts_b.get(key)
        ]
    order = list(KINDS)
    return Causes(
        differences=tuple(sorted(differences, key=lambda one: (order.index(one.kind), one.what))),
        outputs=tuple(_outputs(a.manifests, b.manifests)) if a.manifests and b.manifests else (),
        notes=tuple(_notes(a, b)),
    )


def _notes(a: Study, b: Study) -> Iterator[str]:
    for name, one in (("A", a), ("B", b)):
        if not one.manifests:
            yield f"No manifests lie beside the numbers of {name}: what differs in how they were made is not known."
        elif "report" not in one.manifests:
            yield f"{name} has no manifest of its report: the config is compared only as far as stages were given it."
        if one.stale:
            yield f"The manifests of {name} tell of other numbers than these: its numbers were changed or made anew."
    shared = sorted(name for name in a.items.keys() & b.items.keys() if a.items[name] & b.items[name])
    if shared:
        yield (
            f"The studies share items of {', '.join(shared)}. They are compared as if they were independent, so the "
            "intervals and p-values of shifts are conservative there: wider and larger than a paired comparison's."
        )
    elif not (a.items and b.items):
        yield (
            "Whether the studies share items is not known. They are compared as if they were independent, which is "
            "conservative where they do."
        )


def _items(a: Study, b: Study) -> Iterator[Difference]:
    for name in sorted(a.items.keys() & b.items.keys()):
        if a.items[name] != b.items[name]:
            shared = len(a.items[name] & b.items[name])
            yield Difference("items", name, f"{len(a.items[name])}", f"{len(b.items[name])}", f"{shared} shared")


def _facts(manifests: Mapping[str, Row]) -> dict[tuple[Kind, str], str]:
    """Everything that is compared, each as one text: what several jobs say of one thing is listed."""
    found: defaultdict[tuple[Kind, str], set[str]] = defaultdict(set)
    for kind, what, value in _told(manifests):
        found[kind, what].add(value)
    return {key: ", ".join(sorted(values)) for key, values in found.items()}


def _told(manifests: Mapping[str, Row]) -> Iterator[tuple[Kind, str, str]]:
    for job, manifest in manifests.items():
        stage, _, shard = job.partition("/")
        facts = manifest.get("facts", {})
        environment = (manifest.get("lock") or {}).get("file", "no lock")
        yield "code", stage, str(manifest.get("code", {}).get("digest"))
        if manifest.get("lock"):
            yield "lock", environment, str(manifest["lock"]["sha256"])
        yield "package", f"python ({environment})", str(manifest.get("python"))
        for name, version in manifest.get("packages", {}).items():
            yield "package", f"{name} ({environment})", str(version)
        if stage == "dataset":
            for output in manifest.get("outputs", []):
                yield "data", shard, str(output["sha256"])
        if stage in {"model", "judge_model"}:
            description = facts.get("description", {})
            yield "weights", shard if stage == "model" else f"judge {shard}", str(description.get("weights_sha256"))
        if stage == "user_turns":
            yield "template", shard, str(facts.get("template", {}).get("sha256"))
            for key, value in _leaves({k: v for k, v in facts.get("engine", {}).items() if k != "weights_sha256"}):
                yield "engine", f"{shard}: {key}", value
        if stage in {"judge", "gold"}:
            for key, value in _leaves(facts.get("judge", {})):
                yield "judge", f"{shard.partition('/')[0]}: {key}", value
    for key, value in _leaves(_config(manifests)):
        yield "study", key, value


def _config(manifests: Mapping[str, Row]) -> Row:
    """The study's config: the report was given all of it, the analysis a part."""
    for stage in ("report", "analyse"):
        if stage in manifests:
            spec: Row = manifests[stage].get("spec", {})
            return spec
    return {}


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys and values of nested objects; a list counts as one value."""
    if isinstance(value, Mapping) and (value or not key):
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}.{name}" if key else str(name))
    else:
        yield key, value if isinstance(value, str) else canonical(value)


def _note(key: tuple[Kind, str], a: Study, b: Study) -> str:
    """For code, the modules that differ."""
    kind, stage = key
    if kind != "code":
        return ""
    modules_a, modules_b = (_modules(stage, one.manifests) for one in (a, b))
    if not modules_a or not modules_b:
        return ""
    names = sorted(name for name in modules_a | modules_b if modules_a.get(name) != modules_b.get(name))
    return ", ".join(name.removeprefix("userturn.") for name in names)


def _modules(stage: str, manifests: Mapping[str, Row]) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for job, manifest in manifests.items():
        if job.partition("/")[0] == stage:
            for name, digest in manifest.get("code", {}).get("modules", {}).items():
                found[name].add(digest)
    return dict(found)


def _outputs(a: Mapping[str, Row], b: Mapping[str, Row]) -> Iterator[Outputs]:
    written_a, written_b = _written(a), _written(b)
    stages = sorted(written_a.keys() | written_b.keys(), key=_place)
    for stage in stages:
        one, other = written_a.get(stage, {}), written_b.get(stage, {})
        both = one.keys() & other.keys()
        same = sum(one[path] == other[path] for path in both)
        yield Outputs(stage, same, len(both) - same, len(one.keys() - both), len(other.keys() - both))


def _place(stage: str) -> tuple[int, str]:
    return (FLOW.index(stage) if stage in FLOW else len(FLOW)), stage


def _written(manifests: Mapping[str, Row]) -> dict[str, dict[str, str]]:
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for job, manifest in manifests.items():
        outputs: Iterable[Row] = manifest.get("outputs", [])
        found[job.partition("/")[0]].update({one["path"]: one["sha256"] for one in outputs})
    return dict(found)
