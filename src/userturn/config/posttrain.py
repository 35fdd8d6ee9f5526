"""Post-training: variants of a base model, and everything that shapes their weights."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from userturn.config.endpoint import ModelEndpoint
from userturn.config.section import Name, Section
from userturn.config.training import Lora, Optimiser
from userturn.datasets import READERS
from userturn.sources.config import FolderSource, Source

#: Readers of whole conversations, beside the readers of datasets.
CONVERSATION_READERS = ("chats", "tooltalk", "written")


class ConversationSource(Section):
    """Conversations to train on."""

    source: Source
    """Where the conversations come from."""
    reader: str = "chats"
    """`chats`: rows with `messages`, `conversation`, or `prompt` and `completion`; `tooltalk`: one JSON document a
    conversation; `written`: rows like the project's own `training/conversations.jsonl`; else a reader of datasets,
    whose items with earlier turns, or with a person's answer and follow-up, are conversations."""
    n_conversations: int | None = Field(default=None, ge=1)
    """How many, chosen by the study's seed; null takes all."""

    @field_validator("reader")
    @classmethod
    def _known(cls, value: str) -> str:
        known = (*CONVERSATION_READERS, *READERS)
        if value not in known:
            raise ValueError(f"unknown reader of conversations; known: {', '.join(known)}")
        return value

    @model_validator(mode="after")
    def _whole(self) -> Self:
        folder = self.source.is_folder
        if folder != (self.reader == "tooltalk") or isinstance(self.source, FolderSource):
            raise ValueError(
                f"reader {self.reader!r} needs "
                + ("a folder of a wheel (member ending in '/')" if self.reader == "tooltalk" else "a file or rows")
            )
        return self


class ConversationData(Section):
    """Which turns of which conversations are trained on."""

    sources: dict[Name, ConversationSource] = Field(min_length=1)
    """The conversations. None may be the source of a dataset of the study; conversations that share words in a row
    with an item of the study are dropped and counted."""
    english: bool = True
    """Leaves out conversations whose first user message is not English."""
    held_out: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Share of conversations that are not trained on, by a hash of their first user message."""
    ngram: int = Field(default=8, ge=3)
    """So many words in a row shared with an item of the study make a conversation contaminated."""
    max_tokens: int = Field(default=512, ge=16)
    """Longest row, prompt and turn, in tokens; of longer ones the earliest exchanges are left out."""
    max_turn_tokens: int = Field(default=128, ge=1)
    """Longest trained turn, in tokens; a longer one is cut, and its end is not trained."""
    max_rows: int | None = Field(default=None, ge=1)
    """How many rows to train on, chosen by the study's seed: for an ablation of data size; null takes all."""
    shuffled_pairs: bool = False
    """A control: each user turn is exchanged for one of another conversation, so that nothing but style can be learnt
    from it."""


class ProblemSource(Section):
    """Queries on which an assistant turn is rewarded. Never items of the study."""

    source: Source
    """Where the queries come from."""
    reader: str
    """A reader of datasets; its scorer judges the answers, where the items have references."""
    n_items: int | None = Field(default=None, ge=1)
    """How many, chosen by the study's seed; null takes all."""

    @field_validator("reader")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in READERS:
            raise ValueError(f"unknown dataset reader; known: {', '.join(READERS)}")
        return value

    @model_validator(mode="after")
    def _file(self) -> Self:
        if self.source.is_folder:
            raise ValueError("source: a file or rows are needed here, not a folder")
        return self


class _Variant(Section):
    base: Name
    """The model of the study that it is trained from; that may be a variant itself."""
    lora: Lora = Field(default_factory=Lora)
    """The adapters."""
    training: Optimiser
    """Steps, batches, learning rate."""


class Sft(_Variant):
    """Supervised fine-tuning on turns of conversations."""

    method: Literal["sft"] = "sft"
    """Supervised fine-tuning."""
    loss_on: Literal["user", "assistant", "all"] = "user"
    """Which turns are trained; every other token of a row is only read."""
    data: ConversationData
    """The conversations."""
    allow_reported_judge: bool = False
    """Allows conversations on which the reported judge was trained; the variant is then flagged."""


class SimulatedUser(Section):
    """The frozen model that plays the user while an assistant is trained."""

    model: Name | None = None
    """A model of the study; null: the variant's own base, frozen."""
    endpoint: ModelEndpoint | None = None
    """A completions endpoint that serves `model`; null loads it in the training process."""
    max_tokens: int = Field(default=48, ge=1)
    """Longest simulated user turn, in tokens; it is decoded deterministically."""


class Reward(Section):
    """What an assistant turn is rewarded for, after CollabLLM: accuracy + interactivity - tokens."""

    accuracy: float = Field(default=1.0, ge=0.0)
    """Weight of a correct answer, by our scorers; a query without a reference gives 0."""
    interactivity: float = Field(default=0.5, ge=0.0)
    """Weight of simulated user turns that react to the answer."""
    tokens: float = Field(default=0.2, ge=0.0)
    """Weight of the cost: written tokens as a share of `max_completion_tokens`."""
    judge: Name | None = None
    """A judge of the study that says whether a simulated user turn is a genuine follow-up; null: a program does."""
    allow_reported_judge: bool = False
    """Allows the reported judge to reward; it is then no independent witness, and the variant is flagged."""


class Rl(_Variant):
    """Reinforcement learning (GRPO) with a conversational reward."""

    method: Literal["rl"] = "rl"
    """Reward training: GRPO."""
    problems: dict[Name, ProblemSource] = Field(default_factory=dict)
    """Queries that the assistant is trained on."""
    reward: Reward = Field(default_factory=Reward)
    """The reward's terms and their weights."""
    user: SimulatedUser = Field(default_factory=SimulatedUser)
    """Who writes the simulated user turns."""
    future_turns: int = Field(default=1, ge=1)
    """Simulated user turns after each answer; between two of them the model in training answers again."""
    ngram: int = Field(default=8, ge=3)
    """See `data.ngram` of supervised fine-tuning."""
    generations: int = Field(default=4, ge=2)
    """Answers to one query that are compared with each other."""
    max_prompt_tokens: int = Field(default=512, ge=16)
    """Longer queries are left out, and counted."""
    max_completion_tokens: int = Field(default=64, ge=1)
    """Longest turn of the model in training, in tokens."""
    temperature: float = Field(default=1.0, gt=0.0)
    """Of its sampling."""
    beta: float = Field(default=0.0, ge=0.0)
    """Weight of the divergence from the base."""
    vllm: bool = False
    """Generates with vLLM inside the training process; needs a card and versions of vLLM that TRL supports."""
    reward_user_turn: bool = False
    """Trains the *user* turn itself on the reward's interactivity: this optimises what the study measures, so that its
    rate is no evidence of interaction awareness. The variant is flagged. Needs `conversations`, and no `problems`."""
    conversations: ConversationData | None = None
    """Contexts for `reward_user_turn`."""

    @model_validator(mode="after")
    def _what_is_trained(self) -> Self:
        if self.reward_user_turn != (self.conversations is not None) or self.reward_user_turn == bool(self.problems):
            raise ValueError(
                "an assistant is trained on `problems` (conversations: null); with reward_user_turn: true the user "
                "turn is trained after `conversations` (problems: {})"
            )
        if self.vllm and self.training.device != "cuda":
            raise ValueError(f"vllm: true, but training.device is {self.training.device!r}; allowed: cuda")
        if self.user.endpoint is not None and self.user.model is None:
            raise ValueError("user.endpoint: name the model that it serves in user.model: its tokenizer is needed")
        return self


PosttrainConfig = Annotated[Sft | Rl, Field(discriminator="method")]


def sources(config: Sft | Rl) -> dict[str, Source]:
    """Every source of training data of a variant, by its key below ``posttrain``."""
    data = config.data if isinstance(config, Sft) else config.conversations
    found = {} if data is None else {n: one.source for n, one in data.sources.items()}
    prefix = "data.sources" if isinstance(config, Sft) else "conversations.sources"
    named = {f"{prefix}.{name}.source": source for name, source in found.items()}
    if isinstance(config, Rl):
        named |= {f"problems.{name}.source": one.source for name, one in config.problems.items()}
    return named


def flags(config: Sft | Rl, reported_judge: str) -> list[str]:
    """What a reader must know before believing a gain of this variant."""
    found = []
    if isinstance(config, Rl):
        if config.reward_user_turn:
            found.append("the user turn itself was rewarded: the measure was optimised")
        if config.reward.judge == reported_judge:
            found.append(f"the judge that reports it ({reported_judge}) also rewarded it")
    else:
        if config.allow_reported_judge:
            found.append(f"it may have been trained on conversations of the judge that reports it ({reported_judge})")
        if config.data.shuffled_pairs:
            found.append("control: user turns were exchanged between conversations before training")
    return found
