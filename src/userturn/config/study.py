"""A study: the grid and every choice that shapes the numbers."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from userturn.config.engine import EngineConfig
from userturn.config.judging import ProvisionalJudge
from userturn.config.perturbations import Perturbation
from userturn.config.resources import EngineOverride, Resources
from userturn.config.sampling import Decoding, Sampling
from userturn.config.section import Name, Section
from userturn.config.statistics import Statistics
from userturn.datasets import READERS
from userturn.sources.config import Source


class ModelConfig(Section):
    """One model of the grid."""

    source: Source
    """Where the weights come from."""
    prefix: Literal["stripped", "retained"] | None = None
    """Overrides `probe.prefix` for this model."""
    thinking: bool | None = None
    """Value of the template's `enable_thinking`; null where a template knows no such switch."""
    template_kwargs: dict[str, str | int | bool] = Field(default_factory=dict)
    """Further variables for the chat template, for instance a fixed date or reasoning effort."""
    extra_stop_token_ids: list[int] = Field(default_factory=list)
    """Token ids that end a turn, on top of those that the template and the tokenizer tell."""
    engine: EngineOverride = Field(default_factory=EngineOverride)
    """Settings of the study's engine that are different for this model; null keeps the study's."""
    resources: Resources | None = None
    """What this model's jobs take, and the throughput that `userturn plan` assumes; null where nobody has said."""


class DatasetConfig(Section):
    """One dataset of the grid."""

    source: Source
    """Where the items come from."""
    reader: str
    """How the source's bytes are read."""
    n_items: int | None = Field(default=None, ge=1)
    """How many items, chosen by the study's seed; the first 10 of 20 are the 10. null takes all."""

    @field_validator("reader")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in READERS:
            raise ValueError(f"unknown dataset reader; known: {', '.join(READERS)}")
        return value


class Probe(Section):
    """How the model is asked for the next user turn."""

    prefix: Literal["stripped", "retained"] = "stripped"
    """`stripped`: the context as an earlier part of a longer conversation, as real multi-turn data shows it;
    `retained`: the context as its own end, then the user header (a thinking family keeps its think block)."""
    samples: int = Field(default=5, ge=1)
    """User turns an item at temperatures above 0; at 0.0 it is always one."""
    sampling: Sampling = Field(default_factory=Sampling)
    """Everything else about sampling."""
    perturbations: dict[Name, Perturbation] = Field(min_length=1)
    """The rows of the grid: name, kind, the kind's own parameters, temperatures."""

    @field_validator("perturbations")
    @classmethod
    def _one_baseline(cls, value: dict[str, Perturbation]) -> dict[str, Perturbation]:
        kinds = [perturbation.kind for perturbation in value.values()]
        if "baseline" not in value or value["baseline"].kind != "baseline" or kinds.count("baseline") != 1:
            raise ValueError(
                "exactly one perturbation must be named 'baseline' with kind: baseline; "
                f"given: { {name: p.kind for name, p in value.items()} }"
            )
        return value


class ReportConfig(Section):
    """What the page shows."""

    transcripts_per_cell: int = Field(default=3, ge=0)
    """User turns shown with their contexts, for each cell, chosen by the study's seed."""


class Study(Section):
    """A study: the grid and every choice that shapes the numbers."""

    name: Name
    """Short name of the study; stands in the report's title."""
    seed: int = Field(ge=0, lt=2**63)
    """Every seed of the study is derived from this one by a keyed hash: nothing is drawn from global state."""
    models: dict[Name, ModelConfig] = Field(min_length=1)
    """The models: each writes its own assistant turns and, after them, user turns."""
    datasets: dict[Name, DatasetConfig] = Field(min_length=1)
    """The datasets."""
    assistant_turns: Decoding = Field(default_factory=Decoding)
    """How the answers are written."""
    probe: Probe
    """How the model is asked for the next user turn."""
    engine: EngineConfig = Field(default_factory=EngineConfig)
    """The engine that writes the turns."""
    judges: dict[Name, ProvisionalJudge] = Field(min_length=1)
    """The judges; each labels every cell."""
    reported_judge: Name
    """The judge whose labels the headline numbers count."""
    statistics: Statistics = Field(default_factory=Statistics)
    """Intervals and tests."""
    report: ReportConfig = Field(default_factory=ReportConfig)
    """What the page shows."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.reported_judge not in self.judges:
            raise ValueError(
                f"reported_judge: {self.reported_judge!r} is no judge of this study; known: {', '.join(self.judges)}"
            )
        wrong = [
            f"models.{n}.source" for n, m in self.models.items() if getattr(m.source, "repo_type", "model") != "model"
        ]
        wrong += [
            f"datasets.{n}.source"
            for n, d in self.datasets.items()
            if getattr(d.source, "repo_type", "dataset") != "dataset"
        ]
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: repo_type does not fit: models are 'model', datasets 'dataset'")
        shuffled = [n for n, p in self.probe.perturbations.items() if p.kind == "shuffled_context"]
        small = [n for n, d in self.datasets.items() if d.n_items == 1]
        if shuffled and small:
            raise ValueError(
                f"datasets: {', '.join(small)}: n_items is 1, but probe.perturbations.{shuffled[0]} "
                "needs at least 2 items to exchange answers"
            )
        longest = self.assistant_turns.max_tokens + self.probe.sampling.max_tokens
        if longest >= self.engine.max_model_len:
            raise ValueError(
                f"engine.max_model_len: {self.engine.max_model_len} leaves no room for a prompt beside "
                f"assistant_turns.max_tokens + probe.sampling.max_tokens = {longest}"
            )
        for name in self.models:
            self._check_engine_of(name, longest)
        return self

    def engine_of(self, model: str) -> EngineConfig:
        """The engine that writes the turns of one model: the study's, with the model's own settings."""
        return self.models[model].engine.on(self.engine)

    def _check_engine_of(self, model: str, longest: int) -> None:
        engine, resources, key = self.engine_of(model), self.models[model].resources, f"models.{model}"
        if longest >= engine.max_model_len:
            raise ValueError(
                f"{key}.engine.max_model_len: {engine.max_model_len} leaves no room for a prompt beside "
                f"assistant_turns.max_tokens + probe.sampling.max_tokens = {longest}"
            )
        if resources is None or resources.gpus == 0:
            return
        if resources.gpus != engine.tensor_parallel_size:
            raise ValueError(
                f"{key}.resources.gpus: {resources.gpus}, but the engine shares the model between "
                f"tensor_parallel_size = {engine.tensor_parallel_size} cards: both must be the same"
            )
        if engine.prefix_caching and not engine.batch_invariant:
            raise ValueError(
                f"{key}.engine.prefix_caching: true, but on cards a prefix cache can change texts unless "
                "batch_invariant is true: set one of the two"
            )
