"""The one place where a model's engine is chosen: vLLM in this process, an endpoint, or made-up texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

from userturn import code, layout
from userturn.config.endpoint import ModelEndpoint
from userturn.config.engine import EngineConfig
from userturn.engine.interface import Engine, Scorer, identity
from userturn.probing import weights_sha256


class LocalEngine(Engine, Scorer, Protocol):
    """An engine in this process: it writes turns and can also score known texts."""


E_co = TypeVar("E_co", bound=Engine, covariant=True)


@dataclass(frozen=True)
class Opening(Generic[E_co]):
    """An engine that has not been loaded yet.

    Attributes:
        load: loads it; to be called at most once.
        identity: what of the engine, its lock and its model could change a text: part of every cell's key.
        facts: what a manifest tells of it.
        together: turns that one call may gather from several cells; 0 gives each cell a call of its own.
    """

    load: Callable[[], E_co]
    identity: Mapping[str, Any]
    facts: Mapping[str, Any]
    together: int


def open_engine(
    model: str, config: EngineConfig, endpoint: ModelEndpoint | None, *, threads: int, lock_sha256: str
) -> Opening[Engine]:
    """Prepares the engine of a model of the study.

    Args:
        model: the model's name in the study; its folder must be there.
        config: the engine section that holds for it.
        endpoint: where it is served, or None for an engine of our own.
        threads: cores to use on a CPU.
        lock_sha256: digest of the lock of the environment that runs the engine.

    Raises:
        EndpointError: the endpoint is not there, asks for a key or does not serve the model.
    """
    return (
        open_local(model, config, threads=threads, lock_sha256=lock_sha256)
        if endpoint is None
        else _served(model, config.max_model_len, endpoint)
    )


def open_local(model: str, config: EngineConfig, *, threads: int, lock_sha256: str) -> Opening[LocalEngine]:
    """Prepares an engine in this process, which can also score known texts; arguments as `open_engine`."""
    together = config.max_sequences if config.batch_invariant else 0
    if config.name == "simulated":
        from userturn.engine.simulated import SimulatedEngine

        # a lock or a library changes no text that our own program makes up
        versions = {"simulated": code.digest("userturn.engine.simulated")}
        what = identity(config.model_dump(mode="json"), versions, weights_sha256(model))
        return Opening(
            load=lambda: SimulatedEngine(model, config),
            identity=what,
            facts={"name": config.name, **what},
            together=together,
        )
    from userturn.engine import vllm

    what = identity(config.model_dump(mode="json"), vllm.versions(), weights_sha256(model))
    return Opening(
        load=lambda: _loaded(model, config, threads),
        identity={**what, "lock_sha256": lock_sha256},
        facts={**what, "flags": vllm.flags(config)},
        together=together,
    )


@cache
def _loaded(model: str, config: EngineConfig, threads: int) -> LocalEngine:
    """One engine a process: stages that run in the same process share it."""
    from userturn.engine.vllm import VllmEngine

    return VllmEngine(layout.model_folder(model), config, threads)


def _served(model: str, max_model_len: int, endpoint: ModelEndpoint) -> Opening[Engine]:
    from userturn.endpoint.client import Client
    from userturn.engine.endpoint import EndpointEngine

    client = Client(endpoint)
    served = client.check()
    # neither the address nor our own environment shapes what the server writes
    what = {
        "endpoint": {"model": served.model, "prompt": endpoint.prompt, "server": dict(served.facts)},
        "tokenizer_sha256": weights_sha256(model),
    }

    def vocabulary() -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(layout.model_folder(model), local_files_only=True, trust_remote_code=False)

    return Opening(
        load=lambda: EndpointEngine(client, endpoint, max_model_len, vocabulary),
        identity={**what, "protocol": code.digest("userturn.engine.completions")},
        facts=what,
        together=0,
    )
