"""Judges: who says whether a user turn is a genuine follow-up."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from userturn.config.endpoint import EndpointConfig
from userturn.config.engine import EngineConfig
from userturn.config.section import Name, Section
from userturn.datasets import READERS
from userturn.sources.config import Source

#: Keys of a chat request that the judge itself sets, or that would change what an answer is.
_OWN_PARAMETERS = frozenset(
    {
        *("model", "messages", "response_format", "max_tokens", "max_completion_tokens", "n"),
        *("stream", "stream_options", "tools", "tool_choice", "functions", "function_call"),
    }
)

Parameters = dict[str, str | int | float | bool]


def _deterministic() -> Parameters:
    return {"temperature": 0.0}


class ProvisionalJudge(Section):
    """Program rules and sentence embeddings: a first judge, shown as provisional wherever its labels are counted."""

    kind: Literal["provisional"] = "provisional"
    embedder: Source
    """Where the sentence model comes from: a folder with its weights and tokenizer."""

    @property
    def weights(self) -> Source | None:
        """The model folder that the judge needs."""
        return self.embedder


class TrainingSource(Section):
    """Conversations from which training turns with known labels are made."""

    source: Source
    """Where the conversations come from."""
    reader: str = "written"
    """`written`: rows of the project's own `training/conversations.jsonl`; else a reader of datasets, whose items with
    earlier turns, or with a person's answer and follow-up, give real exchanges."""
    n_conversations: int | None = Field(default=None, ge=1)
    """How many, chosen by the study's seed; null takes all."""

    @field_validator("reader")
    @classmethod
    def _known(cls, value: str) -> str:
        if value != "written" and value not in READERS:
            raise ValueError(f"unknown reader of training conversations; known: written, {', '.join(READERS)}")
        return value


class EmbeddedJudge(Section):
    """A small classifier, trained in the workflow on turns whose label is known by construction."""

    kind: Literal["embedded"] = "embedded"
    embedder: Source
    """Where the sentence model comes from: a folder with its weights and tokenizer."""
    training: dict[Name, TrainingSource] = Field(min_length=1)
    """Where training conversations come from; none of them may be an item of the study or a turn of the gold set."""
    classifier: Literal["auto", "logistic", "forest"] = "auto"
    """`auto` keeps the simpler one unless the other clearly wins on held-out conversations."""

    @property
    def weights(self) -> Source | None:
        """The model folder that the judge needs."""
        return self.embedder


class PeopleJudge(Section):
    """Labels that people gave on sheets of `userturn label`; a turn that nobody labelled is unscored, not counted."""

    kind: Literal["people"] = "people"
    labels: str = Field(min_length=1)
    """The file of labels, absolute or relative to the working directory: `labels/JUDGE/labels.jsonl` as
    `userturn label import` writes it."""
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the file, 64 lower-case hexadecimal digits; checked before every use where it is given."""

    @property
    def weights(self) -> Source | None:
        """People need none."""
        return None


class SimulatedJudge(Section):
    """Labels that a program makes up for the texts of the engine `simulated`, and of no other."""

    kind: Literal["simulated"] = "simulated"
    wrong: float = Field(default=0.08, ge=0.0, le=0.5)
    """Share of turns that get another label than the one they were written for."""
    unscored: float = Field(default=0.01, ge=0.0, le=0.5)
    """Share of turns that get none."""

    @property
    def weights(self) -> Source | None:
        """A program needs none."""
        return None


class JudgeOffline(Section):
    """A local model folder, run by vLLM in the job's own process, its decoding bound to the verdict's JSON schema."""

    kind: Literal["offline"] = "offline"
    source: Source
    """Where the judge's weights come from."""
    thinking: Literal[False] | None = None
    """Value of the template's `enable_thinking`: false, or null where a template knows no such switch. Never true: the
    verdict is bound to its schema from the first token on."""
    template_kwargs: dict[str, str | int | bool] = Field(default_factory=dict)
    """Further variables for the chat template."""
    extra_stop_token_ids: list[int] = Field(default_factory=list)
    """Token ids that end a turn, on top of those that the template and the tokenizer tell."""
    engine: EngineConfig = Field(default_factory=EngineConfig)
    """How vLLM is started for the judge."""

    @field_validator("engine")
    @classmethod
    def _real(cls, value: EngineConfig) -> EngineConfig:
        if value.name != "vllm":
            raise ValueError(f"name is {value.name!r}; a judge is run by 'vllm', or is of kind simulated itself")
        return value


class JudgeEndpoint(EndpointConfig):
    """A model behind an OpenAI-compatible chat endpoint that takes a strict JSON schema as `response_format`."""

    kind: Literal["endpoint"] = "endpoint"
    parameters: Parameters = Field(default_factory=_deterministic)
    """Parameters that every request carries as they stand here: `temperature`, `seed`, `reasoning_effort`, ...
    Reasoning models refuse a temperature: leave it out for them."""
    limit_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """What the server calls the limit of an answer's length; older servers know `max_tokens` alone."""
    price_prompt: float = Field(default=0.0, ge=0.0)
    """Price of a million prompt tokens."""
    price_completion: float = Field(default=0.0, ge=0.0)
    """Price of a million completion tokens, in the same currency."""
    max_spend: float | None = Field(default=None, gt=0.0)
    """Most that all jobs of this judge may spend in this folder, in the currency of the prices. Before anything is sent
    an upper estimate of its cost is reserved; where it does not fit the job stops, and keeps its verdicts. null: no
    limit."""

    @field_validator("parameters")
    @classmethod
    def _not_ours(cls, value: Parameters) -> Parameters:
        taken = sorted(_OWN_PARAMETERS & set(value))
        if taken:
            raise ValueError(
                f"{', '.join(taken)}: the judge sets this itself; allowed is any other parameter of a chat"
            )
        return value

    @model_validator(mode="after")
    def _priced(self) -> Self:
        if self.max_spend is not None and (self.price_prompt == 0.0 or self.price_completion == 0.0):
            raise ValueError(
                f"max_spend is {self.max_spend:g}, but price_prompt is {self.price_prompt:g} and price_completion "
                f"{self.price_completion:g}: a limit needs both prices; max_spend: null where nothing is paid"
            )
        return self


class LlmJudge(Section):
    """A language model that is given a rubric and answers with a verdict in JSON. Not validated: provisional."""

    kind: Literal["llm"] = "llm"
    transport: Annotated[JudgeOffline | JudgeEndpoint, Field(discriminator="kind")]
    """Which model judges, and how it is reached."""
    max_tokens: int = Field(default=320, ge=64)
    """Most tokens of a verdict; a longer one is cut, and the turn is unscored. A reasoning model thinks within this
    number too and needs thousands."""
    max_chars: int = Field(default=6000, ge=200)
    """Longest query, assistant turn and user turn shown to the judge, in characters; of a longer one the middle is left
    out, and says so."""
    give_up_after: int = Field(default=20, ge=1)
    """After so many requests in a row without any answer the job stops, instead of leaving its turns unscored."""
    allow_self_judging: bool = False
    """Whether it may judge turns of the very model it is; such labels are flagged."""

    @property
    def weights(self) -> Source | None:
        """The model folder that the judge needs; none behind an endpoint."""
        return self.transport.source if isinstance(self.transport, JudgeOffline) else None


JudgeConfig = Annotated[
    ProvisionalJudge | EmbeddedJudge | LlmJudge | PeopleJudge | SimulatedJudge, Field(discriminator="kind")
]
