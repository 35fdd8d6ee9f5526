r"""MATH and MATH-500: the final answer in LaTeX.

The answer is looked for as lm-evaluation-harness's MATH tasks do: the last ``\boxed{}``, else what follows
``final answer is`` (Minerva's phrase). The lenient reading also takes what follows ``answer is`` or
``answer:``. An answer that cannot be found is ``unscored`` (the harness counts it as wrong). Comparison:
`userturn.scoring.latex`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from userturn.scoring.base import Score, reference_field, shown, unscored
from userturn.scoring.latex import equal_forms, equal_values, last_boxed, normalise

_FINAL = re.compile(r"final answer is:?", re.IGNORECASE)
_ANSWER = re.compile(r"answer(?: is|:)", re.IGNORECASE)


@dataclass(frozen=True)
class MathScorer:
    r"""How the verdicts are meant.

    ``strict``: the answer stands in ``\boxed{}`` or after ``final answer is`` and has the reference's
    normal form. ``correct`` and ``loose``: an answer was found in any accepted place and has the same form,
    the same exact value (``0.5`` and ``\frac12``), or is a list or interval whose elements do.
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
            return unscored(r"no \boxed{} and no 'answer is' in the response")
        answer, how = found
        if not normalise(answer):
            return unscored(f"the answer is empty ({how})", extracted=answer)
        loose = equal_values(answer, expected)
        return Score(
            state="scored",
            correct=loose,
            strict=how != "answer is" and equal_forms(answer, expected),
            loose=loose,
            extracted=shown(answer),
            reason=how,
            details={
                "normal_form": shown(normalise(answer)),
                "reference_normal_form": shown(normalise(expected)),
            },
        )


def final_answer(response: str) -> tuple[str, str] | None:
    r"""The final answer's LaTeX and where it was found (``\boxed``, ``final answer is``, ``answer is``)."""
    boxed = last_boxed(response)
    if boxed is not None:
        return boxed, r"\boxed"
    for pattern, how in ((_FINAL, "final answer is"), (_ANSWER, "answer is")):
        ends = [match.end() for match in pattern.finditer(response)]
        if ends:
            return _phrase(response[ends[-1] :].partition("\n")[0].lstrip("*: \t")), how
    return None


def _phrase(line: str) -> str:
    """The answer at the head of a sentence: its first formula, or the text up to the sentence's end."""
    formula = re.match(r"[^$]{0,40}?(?<!\\)\$+([^$]+?)(?<!\\)\$", line)
    if formula:
        return formula.group(1)
    return re.split(r"\.(?=\s|$)", line.strip().strip("*").strip(), maxsplit=1)[0].strip().strip("*")
