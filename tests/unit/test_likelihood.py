"""Known texts: what is asked of the engine, and what is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from userturn.engine.forcing import Forcer
from userturn.engine.interface import EngineError, Forced
from userturn.engine.store import CellStore
from userturn.stages.likelihood import forced


class Sums:
    """As probable as the sum of all tokens tells."""

    calls = 0

    def log_likelihoods(self, texts: Sequence[Forced], on_done: Callable[[int], None]) -> list[float]:
        type(self).calls += 1
        on_done(len(texts))
        return [-(sum(one.prompt_token_ids) + sum(one.text_token_ids)) / 7 for one in texts]


@pytest.fixture(autouse=True)
def _reset() -> None:
    Sums.calls = 0


def forcer(root: Path, **identity: str) -> Forcer:
    return Forcer(Sums, CellStore(root), {"weights": "w", **identity})


TEXTS = [Forced((1, 2), (3,)), Forced((1,), (4, 5))]


def test_values_are_rounded_and_kept(tmp_path: Path) -> None:
    counted: list[int] = []
    assert forcer(tmp_path).group("g", TEXTS, counted.append) == [-0.86, -1.43]
    assert forcer(tmp_path).group("g", TEXTS, counted.append) == [-0.86, -1.43]
    assert (Sums.calls, counted) == (1, [2, 2])


def test_other_texts_weights_or_prompts_are_read_anew(tmp_path: Path) -> None:
    for made, texts in (
        (forcer(tmp_path), TEXTS),
        (forcer(tmp_path, weights="v"), TEXTS),
        (forcer(tmp_path), TEXTS[:1]),
        # the same tokens, cut elsewhere
        (forcer(tmp_path), [Forced((1,), (2, 3)), Forced((1,), (4, 5))]),
    ):
        made.group("g", texts, lambda _: None)
    assert Sums.calls == 4


def test_a_kill_between_groups_keeps_the_finished_ones(tmp_path: Path) -> None:
    forcer(tmp_path).group("g", TEXTS, lambda _: None)

    class Gone:
        def log_likelihoods(self, texts: Sequence[Forced], on_done: Callable[[int], None]) -> list[float]:
            raise EngineError("gone")

    second = Forcer(Gone, CellStore(tmp_path), {"weights": "w"})
    assert second.group("g", TEXTS, lambda _: None) == [-0.86, -1.43]
    with pytest.raises(EngineError):
        second.group("h", TEXTS, lambda _: None)


class Letters:
    """A renderer whose tokens are letters."""

    def content_token_ids(self, text: str) -> tuple[int, ...]:
        return tuple(map(ord, text))

    def as_assistant(self, prompt: Sequence[int]) -> tuple[int, ...]:
        return (*prompt[:-1], 0)


def test_follow_ups_are_also_set_after_another_answer_and_continuations_are_not() -> None:
    base = {"a": {"item": "a", "prompt_token_ids": [1, 9]}}
    other = {"a": {"item": "a", "prompt_token_ids": [2, 9]}}
    renderer: Any = Letters()
    (row,) = forced([{"item": "a", "prompt_token_ids": [1, 9], "user_turn": "no"}], base, other, renderer)
    text = (110, 111)
    assert row["n_tokens"] == 2
    assert (row["user"], row["assistant"]) == (Forced((1, 9), text), Forced((1, 0), text))
    assert row["shuffled"] == Forced((2, 9), text)
    (row,) = forced([{"item": "a", "prompt_token_ids": [7, 9], "user_turn": "no"}], base, other, renderer)
    assert row["shuffled"] is None
    assert forced([{"item": "a", "prompt_token_ids": [1, 9], "user_turn": ""}], base, other, renderer) == []
