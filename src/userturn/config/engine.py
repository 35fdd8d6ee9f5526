"""The engine that writes assistant turns and user turns."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from userturn.config.section import Section


class SimulatedTexts(Section):
    """What the engine `simulated` writes."""

    length: float = Field(default=0.3, gt=0.0, le=1.0)
    """Mean length of a text as a share of its limit in tokens; lengths are lognormal, and cut at the limit."""
    followups: float = Field(default=0.3, gt=0.0, lt=1.0)
    """Share of texts that read like follow-ups, about which models, items and temperatures vary."""
    # left out where it is 0, so that it changes no cell that was made before it was known
    seconds_per_call: float = Field(default=0.0, ge=0.0, exclude_if=lambda value: not value)
    """What one engine call takes at least, in seconds: so that there is time to watch a job, or to kill it."""


class EngineConfig(Section):
    """The engine and how it is started. Whatever could change a text is here, and so in every cell's key."""

    name: Literal["vllm", "simulated"] = "vllm"
    """The engine; `vllm` is the CPU build in the embedded set-up and the CUDA build on cards, with one code path.
    `simulated` makes texts up and needs no weights: to see how a study of this size runs, never for a finding. All
    that comes of it says SIMULATED."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Number format of the weights. On CPUs only float32 gives texts that do not depend on the batch."""
    max_model_len: int = Field(default=2048, ge=64)
    """Longest prompt plus turn, in tokens; a longer one is refused before anything is generated."""
    max_sequences: int = Field(default=128, ge=1)
    """Sequences in flight at once."""
    kv_cache_gb: int = Field(default=4, ge=1)
    """Memory for the key-value cache on CPUs, in GiB."""
    gpu_memory_utilization: float = Field(default=0.9, gt=0.0, le=1.0)
    """Share of a card's memory that the engine may take."""
    tensor_parallel_size: int = Field(default=1, ge=1)
    """Cards that share one model."""
    block_size: int = Field(default=32, ge=1)
    """Tokens in one block of the key-value cache; the CPU build takes multiples of 32."""
    prefix_caching: bool = True
    """Shares the work on equal beginnings of prompts. Changes no text in float32 on CPUs; on cards it can."""
    batch_invariant: bool = False
    """Whether texts do not depend on what is generated together, so that several cells may share a call: so in float32
    on CPUs; on cards this starts vLLM's batch-invariant mode (Hopper and newer)."""
    shard_by: Literal["model", "dataset"] = "model"
    """What one job with one model load produces: all cells of a model, or of one (model, dataset)."""
    # left out of keys and specs where it is null, so that it changes no cell of a real engine
    simulated: SimulatedTexts | None = Field(default=None, exclude_if=lambda value: value is None)
    """What the engine `simulated` writes; null takes its defaults."""

    @model_validator(mode="after")
    def _nothing_moot(self) -> Self:
        if self.simulated is not None and self.name != "simulated":
            raise ValueError(f"simulated: without effect, since name is {self.name!r}; allowed: null")
        return self
