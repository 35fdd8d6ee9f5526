r"""MATH and MATH-500: the final answer in LaTeX.

The two readings follow lm-evaluation-harness. *Strict* looks where a model was to put its answer: the last
``\boxed{}`` (the harness's ``aime`` and chat tasks), else what follows ``final answer is`` (Minerva's phrase, the
only place where ``minerva_math`` looks). *Loose* takes, where there is neither, what follows ``answer is`` or
``answer:``, else the last formula or number of the response, as ``minerva_math``'s metric ``math_verify`` does. A
response without any is ``unscored`` (the harness counts it as wrong). Comparison: `userturn.scoring.latex`.
What differs and why: ``docs/scoring.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from userturn.scoring.base import Score, reference_field, shown, unscored
from userturn.scoring.latex import equal_forms, equal_values, last_boxed, last_formula, normalise
from userturn.scoring.numeric import canonical, find_numbers

_FINAL = re.compile(r"final answer is:?", re.IGNORECASE)
_ANSWER = re.compile(r"answer(?: is|:)", re.IGNORECASE)
_PART_OF_A_WORD = re.compile(r"(?:(?<=[a-zA-Z])-?|[_^]\{?-?)[0-9.]+")
_STRICT_PLACES = frozenset({r"\boxed", "final answer is"})


@dataclass(frozen=True)
class MathScorer:
    r"""How the verdicts are meant.

    ``strict``: the answer stands in ``\boxed{}`` or after ``final answer is`` and has the reference's
    normal form. ``correct`` and ``loose``: an answer was found in any accepted place and has the same form or
    the same exact value (``0.5`` and ``\frac12``, element by element in tuples, intervals and sets).
    """

    name: str = "math"

    def score(self, response: str, item: Mapping[str, Any]) -> Score:
        """Compares the response's final answer with ``reference["answer"]`` (LaTeX).

        Raises:
            ValueError: If the reference is empty.
        """
        expected: str = reference_field(item, "answer", str, self.name)
        if not expected.strip():
            raise ValueError(f"item {item.get('item')!r}: reference['answer'] is empty")
        found = final_answer(response)
        if found is None:
            return unscored(r"no \boxed{}, no 'answer is', no formula and no number in the response")
        answer, how = found
        if not normalise(answer):
            return unscored(f"the answer is empty ({how})", extracted=answer)
        loose = equal_values(answer, expected)
        return Score(
            state="scored",
            correct=loose,
            strict=how in _STRICT_PLACES and equal_forms(answer, expected),
            loose=loose,
            extracted=shown(answer),
            reason=how,
            details={
                "normal_form": shown(normalise(answer)),
                "reference_normal_form": shown(normalise(expected)),
            },
        )


def final_answer(response: str) -> tuple[str, str] | None:
    r"""The final answer's LaTeX and where it was found.

    Args:
        response: The assistant turn.

    Returns:
        The answer and ``\boxed``, ``final answer is``, ``answer is`` or ``last expression``; None when there is
        neither of the first three, nor a formula, nor a number.
    """
    boxed = last_boxed(response)
    if boxed is not None:
        return boxed, r"\boxed"
    for pattern, how in ((_FINAL, "final answer is"), (_ANSWER, "answer is")):
        ends = [match.end() for match in pattern.finditer(response)]
        if ends:
            return _phrase(response[ends[-1] :].partition("\n")[0].lstrip("*: \t")), how
    expression = _last_expression(response)
    return None if expression is None else (expression, "last expression")


def _last_expression(response: str) -> str | None:
    """The formula or number that ends last; exponents, indices and digits of words (``cm^2``) are no numbers."""
    formula, end = last_formula(response) or (None, 0)
    numbers = find_numbers(_PART_OF_A_WORD.sub(" ", response[end:]))
    if numbers and numbers[-1].value is not None:
        return numbers[-1].text if " " not in numbers[-1].text else canonical(numbers[-1].value)
    return formula


def _phrase(line: str) -> str:
    """The answer at the head of a sentence: its first formula, or the text up to the sentence's end."""
    formula = re.match(r"[^$]{0,40}?(?<!\\)\$+([^$]+?)(?<!\\)\$", line)
    if formula:
        return formula.group(1)
    return re.split(r"\.(?=\s|$)", line.strip().strip("*").strip(), maxsplit=1)[0].strip().strip("*")
