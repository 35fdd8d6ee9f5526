"""From known texts to their log-probabilities: engine calls, rounding, and the store of finished groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from userturn import code
from userturn.artefacts import canonical, sha256_text
from userturn.engine.interface import Forced, Scorer
from userturn.engine.store import CellStore, cell_key

#: Decimals kept of a log-probability, in nats: see docs/method.md for what rebuilds were measured to differ by.
DECIMALS = 2


class Forcer:
    """Scores known texts, taking finished groups from the store and loading the engine only when one is missing.

    Args:
        engine: loads the engine; called at most once.
        store: finished groups.
        identity: what of the engine, its lock and its model could change a log-probability.
    """

    def __init__(self, engine: Callable[[], Scorer], store: CellStore, identity: Mapping[str, Any]) -> None:
        self._load = engine
        self._engine: Scorer | None = None
        self._store = store
        self._identity = {**identity, "code": code.digest(__name__), "decimals": DECIMALS}

    def group(self, key: str, texts: Sequence[Forced], on_done: Callable[[int], None]) -> list[float]:
        """The rounded log-probabilities, in nats, of a group of texts.

        Args:
            key: names the group.
            texts: prompts and texts.
            on_done: called with the number of texts that have just been read or found.
        """
        asked = sha256_text(canonical([[list(one.prompt_token_ids), list(one.text_token_ids)] for one in texts]))
        stored = cell_key({"likelihood": key, "identity": self._identity, "texts": asked})
        rows = self._store.get(stored)
        if rows is not None:
            on_done(len(rows))
            return [row["log_likelihood"] for row in rows]
        if self._engine is None:
            self._engine = self._load()
        values = [round(value, DECIMALS) + 0.0 for value in self._engine.log_likelihoods(texts, on_done)]
        self._store.put(stored, [{"log_likelihood": value} for value in values])
        return values
