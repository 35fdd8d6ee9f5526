"""IFEval and IFBench: does the response follow every instruction of its prompt?

The procedure is the official one (Zhou et al. 2023, "Instruction-Following Evaluation for Large Language
Models", and its ``evaluation_lib``; IFBench, Pyatkin et al. 2025, uses the same): *strict* checks the
response as it stands, *loose* accepts an instruction when any of eight variants (first line, last line or
both removed, with and without asterisks) follows it. A prompt is followed when all its instructions are.
The checkers come from ``if-verifiable`` (`userturn.scoring.verifiers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from userturn.scoring.base import JSON, Score, reference_field, unscored
from userturn.scoring.verifiers import (
    Benchmark,
    Checker,
    MissingArgumentError,
    MissingResourceError,
    build_checker,
    load_registry,
)


@dataclass(frozen=True)
class InstructionScorer:
    """``correct`` and ``strict``: every instruction is followed strictly; ``loose``: every one loosely.

    ``details["instructions"]`` holds ``{"id", "strict", "loose"}`` for each instruction in the prompt's
    order. An instruction whose verifier lacks a resource or fails on the text makes the whole turn
    ``unscored``. An empty response follows nothing: scored, wrong.
    """

    name: Benchmark = field(default="ifeval")

    def score(self, response: str, item: Mapping[str, Any]) -> Score:
        """Verifies ``response`` against ``reference`` (``instruction_id_list``, ``kwargs``, ``prompt``).

        Raises:
            ValueError: If the reference is malformed, names an unknown instruction or leaves out an argument.
        """
        ids: list[str] = reference_field(item, "instruction_id_list", list, self.name)
        kwargs_list: list[Mapping[str, Any]] = reference_field(item, "kwargs", list, self.name)
        prompt: str = reference_field(item, "prompt", str, self.name)
        where = f"item {item.get('item')!r}"
        if not ids or len(ids) != len(kwargs_list):
            raise ValueError(
                f"{where}: needs as many kwargs as instructions, at least one: "
                f"got {len(ids)} instructions and {len(kwargs_list)} kwargs"
            )
        checkers = [self._checker(*pair, prompt, where) for pair in zip(ids, kwargs_list, strict=True)]
        variants = loose_variants(response)
        results: list[JSON] = []
        strict_all = loose_all = True
        for instruction, checker in zip(ids, checkers, strict=True):
            try:
                strict = _follows(checker, response)
                loose = any(_follows(checker, variant) for variant in variants)
            except MissingResourceError as error:
                return _unverified(instruction, f"needs {error}, which is not packaged", results)
            except Exception as error:  # a checker may break on hostile text in any way
                return _unverified(instruction, f"failed with {type(error).__name__}", results)
            results.append({"id": instruction, "strict": strict, "loose": loose})
            strict_all &= strict
            loose_all &= loose
        broken = [str(ids[k]) for k, row in enumerate(results) if isinstance(row, dict) and not row["strict"]]
        return Score(
            state="scored",
            correct=strict_all,
            strict=strict_all,
            loose=loose_all,
            reason="empty response"
            if not response.strip()
            else f"not followed: {', '.join(broken)}"
            if broken
            else "all followed",
            details={"instructions": results},
        )

    def _checker(self, instruction: str, kwargs: Mapping[str, Any] | None, prompt: str, where: str) -> Checker:
        registry = load_registry(self.name)
        if instruction not in registry:
            raise ValueError(
                f"{where}: unknown {self.name} instruction {instruction!r}: allowed are {', '.join(sorted(registry))}"
            )
        try:
            return build_checker(registry, instruction, kwargs or {}, prompt)
        except (MissingArgumentError, TypeError, ValueError) as error:
            raise ValueError(f"{where}: kwargs of {instruction!r} are not usable: {error}") from error


def loose_variants(response: str) -> list[str]:
    """The eight texts that the official loose evaluation tries, the response itself first."""
    lines = response.split("\n")
    cuts = [response, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return [*cuts, *(cut.replace("*", "") for cut in cuts)]


def _follows(checker: Checker, text: str) -> bool:
    return bool(text.strip()) and bool(checker.check_following(text))


def _unverified(instruction: str, why: str, done: list[JSON]) -> Score:
    return unscored(f"instruction {instruction!r} {why}", details={"instructions": done})
