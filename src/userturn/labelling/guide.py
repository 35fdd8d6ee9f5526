"""The guide at hand on the page: definitions, order and boundary cases, read from docs/labels.md."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from userturn.labelling import LabellingError

#: In the checkout that the package is installed from.
PATH = Path(__file__).resolve().parents[3] / "docs" / "labels.md"

_INLINE = re.compile(r"`(?P<code>[^`]+)`|\*\*(?P<strong>[^*]+)\*\*|\*(?P<em>[^*]+)\*|\[(?P<link>[^\]]+)\]\([^)]*\)")


@dataclass(frozen=True)
class Block:
    """A table, or a paragraph where ``rows`` is empty; everything is HTML."""

    text: Markup
    header: tuple[Markup, ...] = ()
    rows: tuple[tuple[Markup, ...], ...] = ()


@dataclass(frozen=True)
class Guide:
    """Sections of the guide by heading, with the digest of the whole file."""

    sections: dict[str, tuple[Block, ...]]
    sha256: str


def read_guide(path: Path = PATH) -> Guide:
    """Reads the sections that a labeller needs.

    Raises:
        LabellingError: the file or a section is missing.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise LabellingError(f"{path}: the guide for labellers is missing; run in a checkout of userturn") from error
    parts = re.split(r"^## +(.+?)\s*$", data.decode("utf-8"), flags=re.MULTILINE)
    all_sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    wanted = ("Definitions", "Order", "Boundary cases")
    missing = [name for name in wanted if name not in all_sections]
    if missing:
        raise LabellingError(f"{path}: the guide has no section {' and no section '.join(missing)}")
    sections = {name: _to_last_table(list(_blocks(all_sections[name]))) for name in wanted}
    return Guide(sections, hashlib.sha256(data).hexdigest())


def _inline(text: str) -> Markup:
    """Code, emphasis and links (their text alone) of one line of Markdown as HTML."""
    html, at = Markup(""), 0
    for match in _INLINE.finditer(text):
        html += escape(text[at : match.start()])
        kind = match.lastgroup or ""
        html += escape(match[kind]) if kind == "link" else Markup("<{0}>{1}</{0}>").format(Markup(kind), match[kind])
        at = match.end()
    return html + escape(text[at:])


def _to_last_table(blocks: list[Block]) -> tuple[Block, ...]:
    """What stands after the tables is for readers of the study: it names perturbations, and labellers are blinded."""
    tables = [place for place, block in enumerate(blocks) if block.rows]
    return tuple(blocks[: tables[-1] + 1] if tables else blocks)


def _blocks(section: str) -> Iterator[Block]:
    for block in re.split(r"\n\s*\n", section.strip()):
        lines = block.splitlines()
        if all(line.startswith("|") for line in lines) and len(lines) > 2:
            header, _, *rows = [tuple(_inline(cell.strip()) for cell in _cells(line)) for line in lines]
            yield Block(Markup(""), header, tuple(rows))
        else:
            # a heading or an item of a list begins a paragraph of its own
            for part in re.split(r"\n(?=#+ |[-*] )", block):
                if part:
                    yield Block(_inline(" ".join(line.strip() for line in part.splitlines()).lstrip("#- ")))


def _cells(line: str) -> list[str]:
    return [cell.replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
