"""What one model needs of the machine: its own engine settings, and what its jobs take and how long."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from userturn.config.engine import EngineConfig
from userturn.config.section import Section


class EngineOverride(Section):
    """Settings of the study's engine that are different for one model; null keeps the study's."""

    dtype: Literal["float32", "bfloat16"] | None = None
    """See `engine.dtype`."""
    max_model_len: int | None = Field(default=None, ge=64)
    """See `engine.max_model_len`."""
    tensor_parallel_size: int | None = Field(default=None, ge=1)
    """See `engine.tensor_parallel_size`."""
    gpu_memory_utilization: float | None = Field(default=None, gt=0.0, le=1.0)
    """See `engine.gpu_memory_utilization`."""
    prefix_caching: bool | None = None
    """See `engine.prefix_caching`."""
    batch_invariant: bool | None = None
    """See `engine.batch_invariant`."""

    def on(self, engine: EngineConfig) -> EngineConfig:
        """The study's engine with these settings in place of its own."""
        given: dict[str, Any] = self.model_dump(exclude_none=True)
        return engine.model_copy(update=given)


class Resources(Section):
    """What one job of a model takes, and the throughput that `userturn plan` assumes until a run has measured it.

    None of this shapes a text: it enters no cell's key.
    """

    gpus: int = Field(default=0, ge=0)
    """Cards of one job: 0 on a CPU, else the engine's `tensor_parallel_size`."""
    card: str = Field(default="cpu", min_length=1)
    """The kind of card that the figures below are for; for people."""
    cores: int = Field(default=4, ge=1)
    """Cores of one job on a cluster; on one machine a job takes what `--cores` gives."""
    partition: str | None = Field(default=None, min_length=1)
    """Partition of a cluster for the jobs that load this model; null: the cluster's default."""
    jobs: int = Field(default=1, ge=1)
    """Jobs that write the user turns of one shard together, each a range of the items with a model load of its own;
    more than one only with `engine.batch_invariant`."""
    memory_gb: int = Field(default=8, ge=1)
    """Main memory of one job, in GiB."""
    time_minutes: int = Field(default=240, ge=1)
    """Time limit of one job, in minutes."""
    load_seconds: float = Field(default=60.0, ge=0.0)
    """Assumed time to start the engine and load the weights, in seconds."""
    prefill_tokens_per_second: float = Field(default=2000.0, gt=0.0)
    """Assumed prompt tokens a second, all sequences and cards of one job together."""
    decode_tokens_per_second: float = Field(default=100.0, gt=0.0)
    """Assumed new tokens a second, all sequences and cards of one job together."""
