"""From prompts to the rows of a cell: seeds, one engine call a cell, and the store of finished cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from userturn import code
from userturn.artefacts import Row, canonical, sha256_text
from userturn.engine.interface import Completion, Engine, Request, SamplingParameters
from userturn.engine.store import CellStore, cell_key
from userturn.seeds import derive

#: Seeds stay below 2**48, so that they survive readers that hold numbers as doubles.
SEED_BITS = 48


@dataclass(frozen=True)
class Prompted:
    """An item with the prompt that its turn continues."""

    item: str
    prompt_token_ids: tuple[int, ...]


@dataclass(frozen=True)
class CellRequest:
    """Everything that makes the rows of one cell."""

    key: str
    """``model/dataset/perturbation/t<T>``, or ``model/dataset/assistant`` for assistant turns."""
    prompted: tuple[Prompted, ...]
    samples: int
    sampling: SamplingParameters
    study_seed: int

    def seed(self, item: str, sample: int) -> int | None:
        """The seed of one turn: derived, never drawn; none where decoding is deterministic."""
        if self.sampling.temperature == 0.0:
            return None
        return derive(self.study_seed, "turn", self.key, item, sample, bits=SEED_BITS)

    def turns(self) -> list[tuple[Prompted, int, Request]]:
        """Item, sample and engine request of every row, in the artefact's order."""
        return [
            (one, sample, Request(one.prompt_token_ids, self.seed(one.item, sample)))
            for one in self.prompted
            for sample in range(self.samples)
        ]


class Generator:
    """Generates cells, taking finished ones from the store and loading the engine only when one is missing.

    Args:
        engine: loads the engine; called at most once.
        store: finished cells.
        identity: what of the engine, its lock and its model could change a text.
    """

    def __init__(self, engine: Callable[[], Engine], store: CellStore, identity: Mapping[str, Any]) -> None:
        self._load = engine
        self._engine: Engine | None = None
        self._store = store
        self._identity = {**identity, "code": code.digest(__name__)}
        self.generated: list[str] = []
        """Keys of the cells that were generated, not taken from the store."""

    def cell(self, request: CellRequest, on_done: Callable[[int], None]) -> list[Row]:
        """The rows of a cell: item, sample, seed, text, n_tokens, n_prompt_tokens, finish_reason."""
        turns = request.turns()
        key = cell_key(
            {
                "cell": request.key,
                "identity": self._identity,
                "sampling": request.sampling.facts(),
                "turns": sha256_text(
                    canonical([[one.item, sample, r.seed, list(r.prompt_token_ids)] for one, sample, r in turns])
                ),
            }
        )
        rows = self._store.get(key)
        if rows is not None:
            on_done(len(rows))
            return rows
        if self._engine is None:
            self._engine = self._load()
        completions = self._engine.generate([r for _, _, r in turns], request.sampling, on_done)
        rows = [_row(one, sample, r, done) for (one, sample, r), done in zip(turns, completions, strict=True)]
        self._store.put(key, rows)
        self.generated.append(request.key)
        return rows


def _row(one: Prompted, sample: int, request: Request, done: Completion) -> Row:
    return {
        "item": one.item,
        "sample": sample,
        "seed": request.seed,
        "text": done.text,
        "n_tokens": done.n_tokens,
        "n_prompt_tokens": len(request.prompt_token_ids),
        "finish_reason": done.finish_reason,
    }
