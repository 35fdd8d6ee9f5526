"""The store of finished cells and the generator, with an engine that writes a function of its request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from userturn.artefacts import Row
from userturn.engine.generation import SEED_BITS, CellRequest, Generator, Prompted
from userturn.engine.interface import Completion, Request, SamplingParameters
from userturn.engine.store import CellStore

SAMPLING = SamplingParameters(temperature=1.0, max_tokens=8, stop_token_ids=(2,))
CELL = CellRequest("m/d/baseline/t1.0", (Prompted("a", (1, 2)), Prompted("b", (1, 3))), 2, SAMPLING, study_seed=7)


class Echo:
    """Writes its prompt and seed, and counts how often it is asked."""

    calls = 0

    def generate(
        self, requests: Sequence[Request], sampling: Sequence[SamplingParameters], on_done: Callable[[int], None]
    ) -> list[Completion]:
        type(self).calls += 1
        on_done(len(requests))
        return [
            Completion(f"{r.prompt_token_ids} {r.seed} {wanted.temperature}", 3, "stop")
            for r, wanted in zip(requests, sampling, strict=True)
        ]


@pytest.fixture(autouse=True)
def _reset() -> None:
    Echo.calls = 0


def generator(root: Path, identity: dict[str, str] | None = None) -> Generator:
    return Generator(Echo, CellStore(root), identity or {"weights": "w"})


def nothing(_: int) -> None: ...


def rows(made: Generator, request: CellRequest, on_done: Callable[[int], None] = nothing) -> list[Row]:
    (found,) = made.cells([request], on_done)
    return found


def test_a_finished_cell_is_not_generated_again(tmp_path: Path) -> None:
    counted: list[int] = []
    first = rows(generator(tmp_path), CELL, counted.append)
    second = generator(tmp_path)
    assert rows(second, CELL, counted.append) == first
    assert second.generated == []
    assert Echo.calls == 1
    assert counted == [4, 4]
    assert [(row["item"], row["sample"]) for row in first] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


@pytest.mark.parametrize(
    "change",
    [
        {"key": "m/d/baseline/t0.9"},
        {"samples": 3},
        {"study_seed": 8},
        {"sampling": replace(SAMPLING, top_p=0.9)},
        {"sampling": replace(SAMPLING, stop_token_ids=(2, 3))},
        {"prompted": (Prompted("a", (1, 2)), Prompted("b", (1, 4)))},
        {"prompted": (Prompted("b", (1, 3)), Prompted("a", (1, 2)))},
    ],
)
def test_any_change_of_the_request_is_another_cell(tmp_path: Path, change: dict[str, object]) -> None:
    rows(generator(tmp_path), CELL)
    rows(generator(tmp_path), replace(CELL, **change))  # type: ignore[arg-type]
    assert Echo.calls == 2


def test_any_change_of_the_engine_is_another_cell(tmp_path: Path) -> None:
    rows(generator(tmp_path), CELL)
    rows(generator(tmp_path, {"weights": "v"}), CELL)
    assert Echo.calls == 2


def test_a_damaged_entry_is_generated_anew(tmp_path: Path) -> None:
    first = rows(generator(tmp_path), CELL)
    (entry,) = tmp_path.rglob("*.jsonl")
    data = bytearray(entry.read_bytes())
    for position in (3, len(data) // 2, len(data) - 3):
        damaged = data.copy()
        damaged[position] ^= 1
        entry.write_bytes(bytes(damaged))
        assert rows(generator(tmp_path), CELL) == first
    entry.write_bytes(data[: len(data) // 2])
    assert rows(generator(tmp_path), CELL) == first
    assert Echo.calls == 5
    assert entry.read_bytes() == bytes(data)


def test_seeds_are_derived_from_cell_item_and_sample() -> None:
    seeds = {CELL.seed(item, sample) for item in "ab" for sample in range(50)}
    seeds |= {replace(CELL, key="m/d/baseline/t0.9").seed(item, sample) for item in "ab" for sample in range(50)}
    assert len(seeds) == 200
    assert all(seed is not None and 0 <= seed < 2**SEED_BITS for seed in seeds)
    grown = replace(CELL, samples=9, prompted=(Prompted("c", (9,)), *CELL.prompted))
    assert grown.seed("a", 1) == CELL.seed("a", 1)
    assert replace(CELL, sampling=replace(SAMPLING, temperature=0.0)).seed("a", 0) is None


def test_cells_share_calls_up_to_the_limit_and_keep_their_order(tmp_path: Path) -> None:
    cells = [replace(CELL, key=f"cell-{n}") for n in range(5)]
    alone = list(generator(tmp_path / "alone").cells(cells, nothing))
    assert Echo.calls == 5
    counted: list[int] = []
    found = generator(tmp_path / "together")
    together = Generator(Echo, CellStore(tmp_path / "together"), {"weights": "w"}, together=8)
    rows(found, cells[3])
    assert list(together.cells(cells, counted.append)) == alone
    assert Echo.calls == 5 + 1 + 2, "four turns a cell, two cells a call, one cell found"
    assert sum(counted) == 5 * 4
    assert [row["text"] for row in alone[0]] != [row["text"] for row in alone[1]]
