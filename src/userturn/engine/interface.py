"""What every engine takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class SamplingParameters:
    """Every parameter of one call, explicit: nothing is left to a default of the engine or of a model's repository."""

    temperature: float
    max_tokens: int
    stop_token_ids: tuple[int, ...]
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0

    def facts(self) -> dict[str, Any]:
        """The parameters as they stand in a manifest and in a cell's key."""
        return asdict(self) | {"stop_token_ids": list(self.stop_token_ids)}


@dataclass(frozen=True)
class Request:
    """One turn to write: token ids made by our renderer, and a seed of its own (none for deterministic decoding)."""

    prompt_token_ids: tuple[int, ...]
    seed: int | None


@dataclass(frozen=True)
class Forced:
    """A text that is known, to be read by the model after a prompt (teacher forcing)."""

    prompt_token_ids: tuple[int, ...]
    text_token_ids: tuple[int, ...]


@dataclass(frozen=True)
class Completion:
    """What the engine wrote."""

    text: str
    """Decoded with special tokens visible; the token that stopped it is not part of it."""
    n_tokens: int
    """Tokens written, the stop token counted where it was written."""
    finish_reason: FinishReason
    """``stop``: the model ended its turn; ``length``: it was cut at ``max_tokens``."""


class Engine(Protocol):
    """Writes turns for prompts of token ids."""

    def generate(
        self, requests: Sequence[Request], sampling: Sequence[SamplingParameters], on_done: Callable[[int], None]
    ) -> list[Completion]:
        """Writes one turn a request, in the order of the requests.

        Args:
            requests: the prompts.
            sampling: the parameters of each.
            on_done: called with the number of requests that have just finished.
        """
        ...


class Scorer(Protocol):
    """An engine that also tells how probable a known text is."""

    def log_likelihoods(self, texts: Sequence[Forced], on_done: Callable[[int], None]) -> list[float]:
        """Natural logarithm of the probability of each text after its prompt, in the order given.

        Args:
            texts: prompts and texts.
            on_done: called with the number of texts that have just been read.
        """
        ...


class EngineError(RuntimeError):
    """The engine cannot do what was asked: says what, and what can be changed."""


def identity(config: Mapping[str, Any], versions: Mapping[str, str], weights_sha256: str) -> dict[str, Any]:
    """What of an engine could change a text: part of every cell's key, and of the manifest."""
    return {"config": dict(config), "versions": dict(versions), "weights_sha256": weights_sha256}
