"""Shards that several jobs write together: the same rows, each written once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from userturn import grid, specs
from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.engine import EngineConfig
from userturn.config.load import ConfigError, validate
from userturn.config.study import Study
from userturn.engine.generation import CellRequest, Prompted
from userturn.engine.interface import Completion, Request, SamplingParameters
from userturn.engine.parts import SharedGenerator, part_of
from userturn.engine.simulated import SimulatedEngine
from userturn.engine.store import CellStore
from userturn.plan import jobs
from userturn.stages import user_turns, user_turns_part


def request(items: int, samples: int = 2, key: str = "m/d/baseline/t1.0") -> CellRequest:
    return CellRequest(
        key=key,
        prompted=tuple(Prompted(f"i{n}", (1, 2, n)) for n in range(items)),
        samples=samples,
        sampling=SamplingParameters(temperature=1.0, max_tokens=20, stop_token_ids=(2,)),
        study_seed=5,
    )


class Counting:
    """The simulated engine, and how often each turn was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[int, ...], int | None]] = []
        self._engine = SimulatedEngine("m", EngineConfig(name="simulated"))

    def generate(
        self, requests: Sequence[Request], sampling: Sequence[SamplingParameters], on_done: Callable[[int], None]
    ) -> list[Completion]:
        self.asked += [(one.prompt_token_ids, one.seed) for one in requests]
        return self._engine.generate(requests, sampling, on_done)


def generator(folder: Path, engine: Counting, together: int = 4) -> SharedGenerator:
    return SharedGenerator(lambda: engine, CellStore(folder), {"engine": "simulated"}, together=together)


@given(items=st.integers(0, 40), parts=st.integers(1, 9))
def test_parts_are_the_whole_in_order(items: int, parts: int) -> None:
    whole = request(items)
    ranges = [part_of(whole, part, parts).prompted for part in range(parts)]
    assert tuple(one for found in ranges for one in found) == whole.prompted
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_the_same_rows_and_each_turn_once(tmp_path: Path, parts: int) -> None:
    cells = [request(5), request(4, key="m/d/other/t1.0")]
    wanted = list(generator(tmp_path / "alone", Counting()).cells(cells, lambda _: None))
    engine = Counting()
    for part in reversed(range(parts)):
        seen: list[int] = []
        generator(tmp_path / "shared", engine).write(cells, part, parts, seen.append)
        assert sum(seen) == sum(len(part_of(one, part, parts)) for one in cells)
    counted: list[int] = []
    collector = generator(tmp_path / "shared", engine)
    assert list(collector.collect(cells, parts, counted.append)) == wanted
    assert collector.generated == []
    assert sum(counted) == sum(map(len, cells))
    assert len(engine.asked) == len(set(engine.asked)) == sum(map(len, cells))
    # whole cells stand in the store now, under the key that they have without parts
    alone = generator(tmp_path / "shared", engine)
    assert list(alone.cells(cells, lambda _: None)) == wanted
    assert alone.generated == []


def test_what_a_part_did_not_write_is_written_by_whoever_collects(tmp_path: Path) -> None:
    cells, engine = [request(5)], Counting()
    generator(tmp_path, engine).write(cells, 0, 2, lambda _: None)
    collector = generator(tmp_path, engine)
    (rows,) = collector.collect(cells, 2, lambda _: None)
    assert [row["item"] for row in rows] == [f"i{n}" for n in range(5) for _ in range(2)]
    assert collector.generated == [cells[0].key]
    assert len(engine.asked) == len(set(engine.asked)) == 10


def test_a_finished_cell_is_not_written_in_parts(tmp_path: Path) -> None:
    engine = Counting()
    list(generator(tmp_path, engine).cells([request(5)], lambda _: None))
    generator(tmp_path, engine).write([request(5)], 1, 3, lambda _: None)
    assert len(engine.asked) == 10


# --- the study


def config(parts: int, **engine: Any) -> dict[str, Any]:
    made = deepcopy(dict(DEFAULT_STUDY))
    for model in made["models"].values():
        model["resources"] = {**model["resources"], "jobs": parts}
    return {**made, "engine": {**made["engine"], **engine}}


def test_the_jobs_of_a_study() -> None:
    one, three = (Study.model_validate(config(n, batch_invariant=True)) for n in (1, 3))
    (shard,) = grid.shards(three)
    assert grid.parts(one, shard) == []
    assert grid.parts(three, shard) == ["1of3", "2of3", "3of3"]
    assert "user_turns_part" not in jobs(one)
    assert jobs(three)["user_turns_part"] == 3
    # nothing else of the study asks for anything else
    assert specs.assistant_turns(one, shard, "0" * 64) == specs.assistant_turns(three, shard, "0" * 64)
    assert user_turns.Spec.model_validate_json(specs.user_turns(one, shard, "0" * 64)).parts == 1
    spec = user_turns_part.Spec.model_validate_json(specs.user_turns_part(three, shard, "2of3", "0" * 64))
    assert (spec.part, spec.parts) == (2, 3)


def test_only_where_texts_do_not_depend_on_the_batch() -> None:
    with pytest.raises(ConfigError, match=r"resources.jobs: 2, but .* allowed is 1, or batch_invariant: true"):
        validate(config(2, batch_invariant=False))
