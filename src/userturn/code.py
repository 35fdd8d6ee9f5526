"""Digests of code: what a stage's own module and the project modules it imports compute.

Snakemake does not see imported modules, so each rule carries this digest as a parameter: an edit to the report's
module leaves generations alone, and an edit to the sampler makes them anew. Comments, docstrings and layout do not
count: the digest is over the syntax tree.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = "userturn"
_ROOT = Path(__file__).resolve().parent
#: Fields of syntax trees that change nothing.
_SILENT = frozenset({"type_comment", "kind", "ctx"})


def _module_file(name: str) -> Path | None:
    parts = name.split(".")[1:]
    folder = _ROOT.joinpath(*parts)
    for candidate in (folder / "__init__.py", folder.with_suffix(".py")):
        if parts and candidate.is_file():
            return candidate
    return _ROOT / "__init__.py" if not parts else None


def _canonical(node: object, parts: list[str], imports: list[ast.Import | ast.ImportFrom]) -> None:
    """Gathers the parts of a syntax tree that mean something, and its imports, in one walk: every job does this.

    Empty fields are left out, since they differ between Python versions.
    """
    if isinstance(node, list):
        for item in node:
            _canonical(item, parts, imports)
        return
    if not isinstance(node, ast.AST):
        parts.append(repr(node))
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        imports.append(node)
    parts.append(type(node).__name__)
    for field in node._fields:
        value = getattr(node, field, None)
        if value is None or value == [] or field in _SILENT:
            continue
        if field == "body" and isinstance(value, list) and _is_docstring(value[0]):
            value = value[1:]
        parts.append(f"({field}")
        _canonical(value, parts, imports)
        parts.append(")")


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _imported(nodes: list[ast.Import | ast.ImportFrom], module: str, is_package: bool) -> Iterator[str]:
    package = module if is_package else module.rpartition(".")[0]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join(parents[: len(parents) - node.level + 1] + ([base] if base else []))
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def _read_module(module: str) -> tuple[str, tuple[str, ...]]:
    file = _module_file(module)
    assert file is not None
    tree = ast.parse(file.read_bytes())
    parts: list[str] = []
    imports: list[ast.Import | ast.ImportFrom] = []
    _canonical(tree, parts, imports)
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    found = {name for name in _imported(imports, module, file.name == "__init__.py") if name.split(".")[0] == PACKAGE}
    return digest, tuple(sorted(name for name in found if _module_file(name) is not None))


def modules(module: str) -> dict[str, str]:
    """A module and the project modules it imports, at any depth, lazily or not, each with the digest of its code.

    Args:
        module: dotted name, for instance ``userturn.stages.user_turns``.

    Raises:
        ValueError: if there is no such module in the package.
    """
    if _module_file(module) is None:
        raise ValueError(f"no module {module!r} in the package {PACKAGE!r}")
    seen: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen[name], imported = _read_module(name)
        waiting.extend(imported)
    return dict(sorted(seen.items()))


def digest(module: str, *assets: Path) -> str:
    """One digest over `modules` and over asset files (templates, style sheets) that the module reads."""
    lines = [f"{name} {value}" for name, value in modules(module).items()]
    lines += [f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in sorted(assets)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def stage_digest(stage: str) -> str:
    """The digest of a stage's code, with the report's assets for the stage that shows them."""
    assets = sorted((_ROOT / "report" / "assets").glob("*")) if stage == "report" else []
    return digest(f"{PACKAGE}.stages.{stage}", *assets)
