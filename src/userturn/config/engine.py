"""The engine that writes assistant turns and user turns."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from userturn.config.section import Section


class EngineConfig(Section):
    """How vLLM is started. Whatever could change a text is here, and so in every cell's key."""

    name: Literal["vllm"] = "vllm"
    """The engine; `vllm` is the CPU build in the embedded set-up and the CUDA build on cards, with one code path."""
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
