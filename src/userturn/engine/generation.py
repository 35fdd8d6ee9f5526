"""From prompts to the rows of cells: seeds, engine calls, and the store of finished cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

    def __len__(self) -> int:
        """Number of turns."""
        return len(self.prompted) * self.samples

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
        together: how many turns one engine call may gather from several cells; 0 gives each cell a call of its own,
            as engines need whose texts depend on what is generated together.
    """

    def __init__(
        self, engine: Callable[[], Engine], store: CellStore, identity: Mapping[str, Any], *, together: int = 0
    ) -> None:
        self._load = engine
        self._engine: Engine | None = None
        self._store = store
        self._identity = {**identity, "code": code.digest(__name__)}
        self._together = together
        self.generated: list[str] = []
        """Keys of the cells that were generated, not taken from the store."""

    def cells(self, requests: Sequence[CellRequest], on_done: Callable[[int], None]) -> Iterator[list[Row]]:
        """The rows of each cell, in the order of the requests.

        Rows hold item, sample, seed, text, n_tokens, n_prompt_tokens and finish_reason.

        Args:
            requests: the cells.
            on_done: called with the number of turns that have just been finished or found.
        """
        keys = {request.key: self._key(request) for request in requests}
        missing = [request for request in requests if self._store.get(keys[request.key]) is None]
        for call in self._calls(missing):
            self._generate(call, keys, on_done)
        for request in requests:
            rows = self._store.get(keys[request.key])
            assert rows is not None, "a cell that was just stored"
            if request.key not in self.generated:
                on_done(len(rows))
            yield rows

    def _key(self, request: CellRequest) -> str:
        turns = [[one.item, sample, r.seed, list(r.prompt_token_ids)] for one, sample, r in request.turns()]
        return cell_key(
            {
                "cell": request.key,
                "identity": self._identity,
                "sampling": request.sampling.facts(),
                "turns": sha256_text(canonical(turns)),
            }
        )

    def _calls(self, requests: Sequence[CellRequest]) -> Iterator[list[CellRequest]]:
        """Gathers cells into engine calls: a kill loses no more than the call in progress."""
        call: list[CellRequest] = []
        for request in requests:
            if call and sum(map(len, call)) + len(request) > self._together:
                yield call
                call = []
            call.append(request)
        if call:
            yield call

    def _generate(self, call: Sequence[CellRequest], keys: Mapping[str, str], on_done: Callable[[int], None]) -> None:
        if self._engine is None:
            self._engine = self._load()
        turns = [(request, *turn) for request in call for turn in request.turns()]
        completions = self._engine.generate(
            [turn for *_, turn in turns], [request.sampling for request, *_ in turns], on_done
        )
        rows: dict[str, list[Row]] = {request.key: [] for request in call}
        for (request, one, sample, turn), done in zip(turns, completions, strict=True):
            rows[request.key].append(_row(one, sample, turn, done))
        for request in call:
            self._store.put(keys[request.key], rows[request.key])
            self.generated.append(request.key)


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
