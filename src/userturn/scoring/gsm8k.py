"""GSM8K: the final number of the response.

The two readings are those of the task ``gsm8k`` of lm-evaluation-harness
(``lm_eval/tasks/gsm8k/gsm8k.yaml``, version 3.0): *strict-match* takes the number after the first ``####``,
*flexible-extract* the last number anywhere. Two things differ on purpose, and ``details`` keeps the
harness's own verdicts beside ours:

- numbers are compared by value, not as strings (``18.00`` equals ``18``; a final ``...`` is no number);
- a response without any number is ``unscored``, where the harness counts it as wrong.

``docs/scoring.md`` lists every difference that was found beside the harness's own code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from userturn.scoring.base import JSON, Score, reference_field, shown, unscored
from userturn.scoring.numeric import canonical, find_numbers, read_number

_INVALID = "[invalid]"
_STRICT = re.compile(r"#### (-?[0-9.,]+)")
_FLEXIBLE = re.compile(r"-?[$0-9.,]{2,}|-?[0-9]+")


@dataclass(frozen=True)
class Gsm8kScorer:
    """``correct`` and ``loose`` judge the last number; ``strict`` the one after ``####``."""

    name: str = "gsm8k"

    def score(self, response: str, item: Mapping[str, Any]) -> Score:
        """Compares the response's final number with ``reference["answer"]`` (a number as a string).

        Raises:
            ValueError: If the reference is no number.
        """
        answer = reference_field(item, "answer", str, self.name)
        expected = read_number(answer)
        if expected is None:
            raise ValueError(
                f"item {item.get('item')!r}: reference['answer'] must be a number, got {shown(repr(answer))}"
            )
        strict_text = _first(_STRICT, response)
        details: dict[str, JSON] = {
            "strict_extracted": shown(strict_text),
            "harness_strict": _harness_equal(strict_text, answer),
            "harness_flexible": _harness_equal(_last(_FLEXIBLE, response), answer),
        }
        numbers = find_numbers(response)
        if not numbers:
            return unscored("no number in the response", details=details)
        last = numbers[-1]
        if last.value is None:
            return unscored("the last number cannot be read", extracted=last.text, details=details)
        details["value"] = canonical(last.value)
        flexible = last.value == expected
        strict_value = None if strict_text is None else read_number(strict_text.strip(","))
        return Score(
            state="scored",
            correct=flexible,
            strict=strict_value == expected,
            loose=flexible,
            extracted=shown(last.text),
            reason="last number in the response",
            details=details,
        )


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return match.group(1) if match else None


def _last(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.findall(text)
    return found[-1].strip() if found else None


def _harness_equal(extracted: str | None, answer: str) -> bool:
    """The harness's exact match: equal strings once ``,``, ``$`` and one final ``.`` are gone."""
    return _harness_form(extracted or _INVALID) == _harness_form(answer)


def _harness_form(text: str) -> str:
    return text.replace(",", "").replace("$", "").removesuffix(".").lower()
