r"""Numbers in free text, read exactly.

Numbers are found as people and models write them: thousands commas, currency signs, percent, fractions, mixed
numbers, LaTeX. Values are ``Fraction``, so that 18.00 equals 18 and 0.1 is a tenth; no float is involved.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

MAX_DIGITS = 1000

_LATEX_FRACTION = re.compile(
    r"(?P<joined>(?<=[0-9]))?\\[dtc]?frac\s*\{\s*(?P<top>-?[0-9.,]+)\s*\}\s*\{\s*(?P<bottom>[0-9.,]+)\s*\}"
)
_LATEX_SPACE = re.compile(r"(?<=[0-9])\\[,!;:](?=[0-9])")
_THOUSANDS_SPACE = re.compile(r"(?<=[0-9])[\u00a0\u2009\u202f](?=[0-9]{3}(?![0-9]))")
_CURRENCY = r"[$€£¥₹]"
_GROUPED = r"[0-9]{1,3}(?:,[0-9]{2,3}){0,20},[0-9]{3}(?![0-9])"
_DECIMAL = rf"(?:(?:{_GROUPED}|[0-9]+)(?:\.[0-9]+)?|(?<![0-9])\.[0-9]+)"
_NUMBER = re.compile(
    rf"""
    (?P<sign> (?<![\w)\]}}]) - )?
    (?:
        (?<![/0-9.,]) (?P<whole> [0-9]{{1,6}} ) [ ]{{1,2}}
            (?P<mixed_top> [0-9]{{1,6}} ) / (?P<mixed_bottom> [0-9]{{1,6}} ) (?! [0-9/] )
      | (?<! / ) (?P<top> {_DECIMAL} ) [ ]? / [ ]? (?P<bottom> {_DECIMAL} ) (?! [0-9] | [ ]?/ )
      | (?P<decimal> {_DECIMAL} )
    )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Number:
    """A number found in a text.

    Attributes:
        text: How it stands in the (lightly normalised) text.
        value: Its exact value; None when it has more than ``MAX_DIGITS`` digits or a zero denominator.
    """

    text: str
    value: Fraction | None


def find_numbers(text: str) -> list[Number]:
    r"""All numbers of ``text``, in order.

    A hyphen is a sign unless it follows a word, a digit or a closing bracket (``16-3`` holds 16 and 3); a
    comma belongs to a number only between groups of digits (``1,234`` and ``1,00,000``, but ``3,4`` are two
    numbers); ``a/b``, ``w a/b`` and ``\frac{a}{b}`` are fractions, ``3/4/2020`` is not.
    """
    return [_number(match) for match in _NUMBER.finditer(_plain(text))]


def read_number(text: str) -> Fraction | None:
    """The value of ``text`` when it is one number and nothing else (currency, percent, final '.' aside)."""
    match = _NUMBER.fullmatch(_plain(text).strip().rstrip("%.").strip())
    return _number(match).value if match else None


def canonical(value: Fraction) -> str:
    """``18``, ``-3`` or ``1/2``: the shortest exact form."""
    return str(value)


def _plain(text: str) -> str:
    """``text`` with typographic and LaTeX ways of writing numbers reduced to one."""
    text = text.replace("−", "-").replace("–", "-").replace("{,}", ",")
    text = text.replace(r"\$", "$").replace(r"\%", "%")
    text = _LATEX_FRACTION.sub(_slashed, text)
    text = _LATEX_SPACE.sub("", text)
    text = _THOUSANDS_SPACE.sub(",", text)
    # A currency sign after a digit closes an amount (or LaTeX) and must not join two numbers.
    text = re.sub(rf"(?<=[0-9]){_CURRENCY}", " ", text)
    return re.sub(rf"{_CURRENCY}[ ]?(?=[-.0-9])", "", text)


def _slashed(match: re.Match[str]) -> str:
    """``a/b`` for a LaTeX fraction, set apart from a whole number right before it."""
    return f"{'' if match['joined'] is None else ' '}{match['top']}/{match['bottom']}"


def _number(match: re.Match[str]) -> Number:
    text = match.group()
    if len(text) > MAX_DIGITS:
        return Number(text, None)
    if match["whole"]:
        top, bottom = int(match["mixed_top"]), int(match["mixed_bottom"])
        value = int(match["whole"]) + Fraction(top, bottom) if bottom else None
    elif match["top"]:
        divisor = _decimal(match["bottom"])
        value = _decimal(match["top"]) / divisor if divisor else None
    else:
        value = _decimal(match["decimal"])
    if value is not None and match["sign"]:
        value = -value
    return Number(text, value)


def _decimal(digits: str) -> Fraction:
    return Fraction(digits.replace(",", ""))
