"""Digests of code: what a stage's own module and the project modules it imports compute.

Snakemake does not see imported modules, so each rule carries this digest as a parameter: an edit to the report's
module leaves generations alone, and an edit to the sampler makes them anew. Comments, docstrings and layout do not
count: the digest is over the syntax tree.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from userturn.files import atomic_file

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


class _Known:
    """What was found in files before, by their content: every job parses the Snakefile, and asks for all of it.

    The file may be deleted at any time; an entry that is not what this program writes is not used.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._new = False
        self._found: dict[str, list[Any]] = {}
        with suppress(OSError, ValueError):
            kept = json.loads(file.read_text("utf-8"))
            self._found = kept if isinstance(kept, dict) else {}

    def of(self, module: str, file: Path) -> tuple[str, tuple[str, ...]]:
        """Digest of a module's code, and the names that it imports of the package."""
        content = file.read_bytes()
        key = hashlib.sha256(f"{_READER} {module} {file.name}\n".encode() + content).hexdigest()
        match self._found.get(key):
            case [str(digest), [*names]] if all(isinstance(name, str) for name in names):
                return digest, tuple(names)
        found = _parsed(module, content, file.name == "__init__.py")
        self._found[key] = [found[0], list(found[1])]
        self._new = True
        return found

    def save(self) -> None:
        """Keeps what is new, where there is a study's folder to keep it in."""
        if self._new and self._file.parent.is_dir():
            self._new = False
            with suppress(OSError), atomic_file(self._file) as stream:
                stream.write(json.dumps(self._found).encode())


#: Says how `_parsed` reads files; another number forgets what was kept.
_READER = 1


@cache
def _known() -> _Known:
    return _Known(Path(".userturn/code.json"))


def _parsed(module: str, content: bytes, is_package: bool) -> tuple[str, tuple[str, ...]]:
    parts: list[str] = []
    imports: list[ast.Import | ast.ImportFrom] = []
    _canonical(ast.parse(content), parts, imports)
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    found = {name for name in _imported(imports, module, is_package) if name.split(".")[0] == PACKAGE}
    return digest, tuple(sorted(found))


@cache
def _read_module(module: str) -> tuple[str, tuple[str, ...]]:
    file = _module_file(module)
    assert file is not None
    digest, found = _known().of(module, file)
    return digest, tuple(name for name in found if _module_file(name) is not None)


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
    _known().save()
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
