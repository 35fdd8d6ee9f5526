r"""Final answers in LaTeX: found, normalised and compared.

A small normaliser of our own after the well-known steps of the MATH dataset's ``is_equiv`` (Hendrycks et
al. 2021) and of Lewkowycz et al. (2022, appendix D), which lm-evaluation-harness uses in ``hendrycks_math``
and ``minerva_math``. The harness goes on to sympy; here equality beyond the normal form is exact and cheap:
numbers by value, tuples and intervals element by element, sets and bare lists in any order, an equation by
its right side. Algebraic identity (``x+1`` against ``1+x``) is not recognised: ``docs/scoring.md``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable
from fractions import Fraction

_MAX_DEPTH = 8
_MAX_CHARACTERS = 2000

_GROUP = r"\{([^{}]*)\}"
_BOXED = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])\s{0,8}")
_BRACES = re.compile(r"\\.|[{}]", re.DOTALL)
_NO_SPACE = re.compile(r"(?<!\\)\\!")
_SPACING = re.compile(r"(?<!\\)\\(?:[,;:> ]|quad(?![a-zA-Z])|qquad(?![a-zA-Z]))|~")
_SIZING = re.compile(r"\\(?:left|right|[bB]igg?[lr]?|displaystyle)(?![a-zA-Z])\.?")
_DEGREES = re.compile(r"\^\s*\{\s*\\circ\s*\}|\^\s*\\circ(?![a-zA-Z])|\\degree(?![a-zA-Z])|°")
_AND = re.compile(
    r",?\s{0,8}(?:\\(?:text|mbox|textrm|mathrm)\s{0,8}\{\s{0,8}(?:and|or)\s{0,8}\}|\s(?:and|or)\s)\s{0,8}"
)
_TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|mbox|mathrm|mathbf|bf|rm)\s*" + _GROUP)
_UNIT_AFTER = re.compile(
    r"(?<=[\w})\]])\s*\\(?:text|mbox|mathrm|textrm)\s*\{\s*[a-zA-Z./ ]+\}\s*(?:\^\s*\{?[23]\}?)?\s*$"
)
_WORDS_AFTER = re.compile(
    r"^(-?[0-9][0-9.,]*|-?\\frac\{-?[0-9]+\}\{[0-9]+\})\s+[a-zA-Z][a-zA-Z ]*(?:\^\s*\{?[23]\}?)?$"
)
_SHORT_FRACTION = re.compile(r"\\frac\s*(?:\{([^{}]*)\}|([0-9a-zA-Z]))\s*(?:\{([^{}]*)\}|([0-9a-zA-Z]))")
_SHORT_ROOT = re.compile(r"\\sqrt\s*([0-9a-zA-Z])")
_THOUSANDS = re.compile(r"-?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_SLASH = re.compile(r"(-?)([0-9]+)/([0-9]+)")
_NUMBER = r"[0-9]{1,400}(?:\.[0-9]{1,400})?"
_VALUE = re.compile(
    rf"(?P<sign>[+-]?)(?:(?P<whole>[0-9]{{1,400}})?\\frac\{{(?P<top>-?{_NUMBER})\}}\{{(?P<bottom>-?{_NUMBER})\}}|(?P<plain>{_NUMBER}))"
)
_EQUALS = re.compile(r"(?<![<>!\\])=")
_FORMULA_MARK = re.compile(r"\\\$|\$\$|\$|\\[()\[\]]")
_CLOSERS = {"$": "$", "$$": "$$", r"\(": r"\)", r"\[": r"\]"}
_OPEN, _CLOSE = "([{", ")]}"


def last_boxed(text: str) -> str | None:
    r"""The content of the last complete ``\boxed{...}`` (or ``\fbox``); None when there is none."""
    closing = _closing_braces(text)
    for match in reversed(list(_BOXED.finditer(text))):
        if match.end() in closing:
            return text[match.end() + 1 : closing[match.end()]]
        bare = re.compile(r"[0-9a-zA-Z.]{1,40}").match(text, match.end())
        if bare and match.group()[-1].isspace():
            return bare.group()
    return None


def last_formula(text: str) -> tuple[str, int] | None:
    r"""The last complete formula and where it ends in ``text``: ``$…$`` on a line, ``$$…$$``, ``\(…\)``, ``\[…\]``."""
    found, opened, begin = None, "", 0
    for mark in _FORMULA_MARK.finditer(text):
        token = mark.group()
        if token == r"\$":
            continue
        formula = text[begin : mark.start()]
        if opened and token == _CLOSERS[opened] and not (opened == "$" and "\n" in formula):
            if formula.strip():
                found = formula.strip(), mark.end()
            opened = ""
        elif token in _CLOSERS:
            opened, begin = token, mark.end()
    return found


def normalise(answer: str) -> str:
    r"""The normal form of a LaTeX answer.

    No spacing, units, degrees, percent or dollar signs; one way to write fractions, roots and thousands.

    Args:
        answer: The answer's LaTeX, without ``\boxed``.

    Returns:
        A form that is equal for answers that differ only in how they are written.
    """
    text = re.sub(r"(?<!\\)\\[()\[\]]", " ", answer.replace("\n", " "))
    text = _SPACING.sub(" ", _NO_SPACE.sub("", text).replace("{,}", ",").replace("−", "-"))
    text = re.sub(r"\\[dtc]frac(?![a-zA-Z])", r"\\frac", _SIZING.sub("", text))
    text = _AND.sub(",", _DEGREES.sub("", text))
    text = re.sub(r"\\?[%$]", "", text).strip().rstrip(".").strip()
    text = _TEXT.sub(r"\1", _UNIT_AFTER.sub("", text)).strip()
    text = _SHORT_FRACTION.sub(_full_fraction, text)
    text = _WORDS_AFTER.sub(r"\1", text)
    text = _SHORT_ROOT.sub(r"\\sqrt{\1}", text)
    text = _unbraced(re.sub(r"\s+", "", text))
    left, equals, right = text.partition("=")
    if equals and len(left) <= 2 and left[-1:] not in {"<", ">", "!"} and "=" not in right:
        text = right
    text = re.sub(r"([\^_])\{(\w)\}", r"\1\2", text)
    text = re.sub(r"(?<![0-9])\.(?=[0-9])", "0.", text)
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    slash = _SLASH.fullmatch(text)
    return rf"{slash[1]}\frac{{{slash[2]}}}{{{slash[3]}}}" if slash else text


def equal_forms(one: str, other: str) -> bool:
    """Whether two answers have the same normal form."""
    return normalise(one) == normalise(other)


def equal_values(one: str, other: str) -> bool:
    r"""Whether two answers have the same normal form or the same exact value.

    Tuples and intervals are equal when their elements are; sets (``\{1,2\}``) and bare lists (``1,2``) in any
    order, and a bare list equals a set; brackets around one thing do not count; of an equation the side after
    the last ``=`` does.
    """
    return _key(normalise(one)) == _key(normalise(other))


def value(normal: str) -> Fraction | None:
    r"""The exact value of a number, a ``\frac`` of numbers or a mixed number in normal form; else None."""
    match = _VALUE.fullmatch(normal)
    if match is None:
        return None
    if match["plain"]:
        result = Fraction(match["plain"])
    else:
        bottom = Fraction(match["bottom"])
        if not bottom:
            return None
        result = Fraction(match["whole"] or 0) + Fraction(match["top"]) / bottom
    return -result if match["sign"] == "-" else result


def _key(normal: str, depth: int = 0) -> Hashable:
    """What is equal exactly for equal answers: a value, a structure of keys, or the normal form itself."""
    if depth >= _MAX_DEPTH or len(normal) > _MAX_CHARACTERS:
        return normal
    number = value(normal)
    if number is not None:
        return number
    frame, elements = _elements(normal)
    if len(elements) == 1 and frame in {"", "()"}:
        inner = elements[0] if frame else _EQUALS.split(normal)[-1] if depth == 0 else ""
        return _key(normalise(inner), depth + 1) if inner and inner != normal else normal
    # An element's left side says which unknown it is (x=1,y=2) and must stay.
    keys = [_key(element if "=" in element else normalise(element), depth + 1) for element in elements]
    if frame in {"", "\\{\\}"}:
        return frozenset(Counter(keys).items())
    return frame, tuple(keys)


def _elements(text: str) -> tuple[str, list[str]]:
    r"""The outer brackets of a tuple, interval or set (``()``, ``[)``, ``\{\}``) and its elements."""
    for start, end in (("\\{", "\\}"), ("(", ")"), ("(", "]"), ("[", ")"), ("[", "]")):
        if text.startswith(start) and text.endswith(end) and len(text) >= len(start) + len(end):
            elements = _split(text[len(start) : -len(end)])
            if elements is not None:
                return start + end, elements
    return "", _split(text) or [text]


def _split(text: str) -> list[str] | None:
    """``text`` at the commas outside brackets; None when a bracket closes that was not opened."""
    elements, level, begin = [], 0, 0
    for position, character in enumerate(text):
        level += (character in _OPEN) - (character in _CLOSE)
        if level < 0:
            return None
        if character == "," and level == 0:
            elements.append(text[begin:position])
            begin = position + 1
    return [*elements, text[begin:]]


def _unbraced(text: str) -> str:
    """``text`` without pairs of braces around all of it."""
    closing, last, depth = _closing_braces(text), len(text) - 1, 0
    while closing.get(depth) == last - depth:
        depth += 1
    return text[depth : len(text) - depth]


def _full_fraction(match: re.Match[str]) -> str:
    top = match[1] if match[1] is not None else match[2]
    bottom = match[3] if match[3] is not None else match[4]
    return rf"\frac{{{top.strip()}}}{{{bottom.strip()}}}"


def _closing_braces(text: str) -> dict[int, int]:
    """Closing brace by opening brace (positions); escaped and unclosed ones are left out."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for match in _BRACES.finditer(text):
        if match.group() == "{":
            opened.append(match.start())
        elif match.group() == "}" and opened:
            closing[opened.pop()] = match.start()
    return closing
