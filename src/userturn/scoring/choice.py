"""Multiple choice (GPQA): the letter of the response.

After the task family ``gpqa_*_generative`` of lm-evaluation-harness (version 2.2): *strict* wants the
letter where the response says ``the answer is``; *flexible* takes the last ``(X)`` anywhere, else a letter
that stands alone as an answer. Where the harness also accepts the wording of a choice, or ``: X``, so does
the flexible reading, in that order. A letter that the item does not offer is no answer. Nothing found:
``unscored`` (the harness counts it as wrong).
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from userturn.scoring.base import Score, reference_field, unscored

_MARKS = r"[\s*_`$]{0,8}"
_WORD = re.compile(r"[^\W_]+(?:[.,][0-9]+)*|[^\w\s()*.,;:!?]")
_BOXED = r"\\boxed\{\s*(?:\\(?:text|textbf|mathrm|mathbf)\{)?\(?"


@dataclass(frozen=True)
class ChoiceScorer:
    """``correct`` and ``loose`` judge the flexible letter; ``strict`` the one after "answer is"."""

    name: str = "choice"

    def score(self, response: str, item: Mapping[str, Any]) -> Score:
        """Compares the response's letter with ``reference["answer"]`` (a letter of ``reference["choices"]``).

        Raises:
            ValueError: If the reference's letter does not name one of its 2 to 26 choices.
        """
        answer: str = reference_field(item, "answer", str, self.name)
        choices: list[str] = reference_field(item, "choices", list, self.name)
        letters = string.ascii_uppercase[: len(choices)]
        if not 2 <= len(choices) <= 26 or len(answer) != 1 or answer not in letters:
            raise ValueError(
                f"item {item.get('item')!r}: reference['answer'] must be a letter of its 2 to 26 choices, "
                f"got {answer!r} with {len(choices)} choices"
            )
        strict = strict_letter(response, letters)
        found = flexible_letter(response, letters, choices)
        if found is None:
            return unscored(f"no letter of {letters[0]} to {letters[-1]} in the response")
        letter, how = found
        return Score(
            state="scored",
            correct=letter == answer,
            strict=strict == answer,
            loose=letter == answer,
            extracted=letter,
            reason=how,
            details={"strict_extracted": strict},
        )


def strict_letter(response: str, letters: str) -> str | None:
    """The letter of the first ``the answer is (X)`` or ``the answer is X``; None when there is none."""
    pattern = rf"the (?:correct |best |final )?answer is:?{_MARKS}(?:{_BOXED})?\(?([{letters}])(?![\w'’])"
    match = re.search(pattern, response, re.IGNORECASE)
    # Only the words may differ in case: "the answer is a proton" is no choice of A.
    return match.group(1) if match and match.group(1) in letters else None


def flexible_letter(response: str, letters: str, choices: Sequence[str]) -> tuple[str, str] | None:
    """The letter that the response settles on and how it was found; None when there is none."""
    bracketed = re.findall(rf"\(([{letters}])\)", response)
    if bracketed:
        return bracketed[-1], "last bracketed letter"
    # "Answer: A proton" is prose: A and I are letters of choice only where no lower-case word follows.
    articles, rest = ("".join(filter(kind.__contains__, letters)) for kind in ("AI", "BCDEFGHJKLMNOPQRSTUVWXYZ"))
    letter = rf"([{articles}](?!\s+[a-z])|[{rest}])(?![\w'’])"
    stated = re.findall(
        rf"(?:(?i:answer|choice|option)(?i:\s+is|\s+would\s+be)?\s*:?{_MARKS}|{_BOXED})\(?{letter}",
        response,
    )
    if stated:
        return stated[-1], "last stated letter"
    standing = re.findall(rf"(?m)^{_MARKS}([{letters}])(?:{_MARKS}$|[.):](?:\s|\*|$))", response)
    if standing:
        return standing[-1], "last letter standing alone"
    quoted = _last_choice(response, letters, choices)
    if quoted:
        return quoted, "last choice quoted in words"
    after_colon = re.findall(rf":\s{{0,8}}{letter}", response)
    return (after_colon[-1], "letter after a colon") if after_colon else None


def _last_choice(response: str, letters: str, choices: Sequence[str]) -> str | None:
    """The choice whose wording ends last in the response (the longer one at the same end)."""
    text = _words(response)
    ends = [
        (position + len(words), len(words), letter)
        for letter, choice in zip(letters, choices, strict=True)
        if (words := _words(str(choice))).strip() and (position := text.rfind(words)) >= 0
    ]
    return max(ends)[2] if ends else None


def _words(text: str) -> str:
    """Lower-case words and numbers between single spaces, so that ``2`` is not found in ``12``."""
    return f" {' '.join(_WORD.findall(text.lower()))} "
