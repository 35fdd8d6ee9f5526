"""How adapters are trained: alone in a module, so that an edit to a reader of data trains nothing again."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from userturn.config.section import Section


class Lora(Section):
    """Low-rank adapters, merged into the weights at the end."""

    rank: int = Field(default=16, ge=1)
    """Rank of the adapters."""
    alpha: float = Field(default=32.0, gt=0.0)
    """Scale: the adapters count alpha / rank."""
    modules: list[str] = Field(
        default=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], min_length=1
    )
    """Names of the linear layers that get one."""


class Optimiser(Section):
    """How the adapters are trained."""

    steps: int = Field(ge=1)
    """Steps of the optimiser."""
    batch: int = Field(default=8, ge=1)
    """Rows of one step; for `rl` prompts of one step."""
    accumulation: int = Field(default=1, ge=1)
    """Parts in which a step is computed, where memory is short."""
    learning_rate: float = Field(default=2e-4, gt=0.0)
    """Peak learning rate; it falls linearly to 0."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps of linear rise before."""
    max_grad_norm: float = Field(default=1.0, gt=0.0)
    """Gradients are clipped to this norm."""
    save_every: int = Field(default=10, ge=1)
    """Steps between two checkpoints, from which a killed training goes on; held-out loss is measured there too."""
    device: Literal["cpu", "cuda"] = "cpu"
    """`cpu` in float32; `cuda` in bfloat16 with one card."""
    seconds_per_step: float = Field(default=8.0, gt=0.0)
    """What `userturn plan` assumes; it shapes nothing."""

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.batch % self.accumulation:
            raise ValueError(f"accumulation: {self.accumulation} does not divide batch = {self.batch}")
        return self
