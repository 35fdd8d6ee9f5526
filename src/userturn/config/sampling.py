"""Sampling parameters: every one explicit, none taken from a model's repository."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from userturn.config.section import Section

Temperature = Annotated[float, Field(ge=0.0, le=5.0)]


class Decoding(Section):
    """Deterministic decoding of assistant turns."""

    max_tokens: int = Field(default=512, ge=1)
    """Longest assistant turn, in tokens; a longer one is cut and says so in its `finish_reason`."""


class Sampling(Section):
    """How user turns are sampled, apart from the temperature and the seed."""

    max_tokens: int = Field(default=128, ge=1)
    """Longest user turn, in tokens."""
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    """Nucleus sampling: 1.0 is off."""
    top_k: int = Field(default=0, ge=0)
    """Only the k most probable tokens: 0 is off."""
    min_p: float = Field(default=0.0, ge=0.0, le=1.0)
    """Only tokens at least this probable relative to the most probable one: 0.0 is off."""
    repetition_penalty: float = Field(default=1.0, gt=0.0)
    """1.0 is off. Anything else suppresses restating the prompt and so biases the rate."""
    presence_penalty: float = Field(default=0.0, ge=-2.0, le=2.0)
    """0.0 is off; see `repetition_penalty`."""
    frequency_penalty: float = Field(default=0.0, ge=-2.0, le=2.0)
    """0.0 is off; see `repetition_penalty`."""


class SamplingAt(Section):
    """What is different at one temperature; null keeps what holds for all."""

    samples: int | None = Field(default=None, ge=1)
    """See `probe.samples`."""
    max_tokens: int | None = Field(default=None, ge=1)
    """See `probe.sampling.max_tokens`."""
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    """See `probe.sampling.top_p`."""
    top_k: int | None = Field(default=None, ge=0)
    """See `probe.sampling.top_k`."""
    min_p: float | None = Field(default=None, ge=0.0, le=1.0)
    """See `probe.sampling.min_p`."""
    repetition_penalty: float | None = Field(default=None, gt=0.0)
    """See `probe.sampling.repetition_penalty`."""
    presence_penalty: float | None = Field(default=None, ge=-2.0, le=2.0)
    """See `probe.sampling.presence_penalty`."""
    frequency_penalty: float | None = Field(default=None, ge=-2.0, le=2.0)
    """See `probe.sampling.frequency_penalty`."""

    def on(self, sampling: Sampling) -> Sampling:
        """The sampling that holds here."""
        return sampling.model_copy(update=self.model_dump(exclude={"samples"}, exclude_none=True))
