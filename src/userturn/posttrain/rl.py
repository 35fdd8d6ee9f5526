"""Reward training with TRL's GRPO (TRL has no PPO any more: a stated deviation from the paper).

Prompts are the token ids of our own renderer, and a turn ends where the probe's turns end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from userturn.artefacts import Row
from userturn.messages import Message
from userturn.posttrain.rewards import TERMS, Outcome
from userturn.posttrain.training import Trained, Training, arguments, follow, load, lora_config, ordered, prepare, run

Texts = Callable[[Sequence[Sequence[Message]]], list[str]]
Replies = Callable[[Sequence[Sequence[Message]]], list[tuple[str, int]]]


@dataclass(frozen=True)
class Policy:
    """The model in training, for those who play conversations on with it.

    Attributes:
        reply: writes on after prompts of token ids, deterministically: token ids of each turn without what ended it.
        frozen_reply: the same without the adapters: its base.
        decode: token ids to text.
    """

    reply: Callable[[Sequence[Sequence[int]], Sequence[int], int], list[list[int]]]
    frozen_reply: Callable[[Sequence[Sequence[int]], Sequence[int], int], list[list[int]]]
    decode: Callable[[Sequence[int]], str]


@dataclass(frozen=True)
class Sampling:
    """How the model in training writes, and what its turns are worth.

    Attributes:
        generations: turns after one prompt.
        max_tokens: longest turn.
        temperature: of its sampling.
        stops: token ids that end a turn.
        weights: of the reward's terms; the cost of tokens is subtracted.
        beta: weight of the divergence from the base.
        vllm: whether vLLM generates, in this process.
    """

    generations: int
    max_tokens: int
    temperature: float
    stops: tuple[int, ...]
    weights: Mapping[str, float]
    beta: float = 0.0
    vllm: bool = False


Judged = Callable[[Sequence[Row], Sequence[str], Sequence[int]], list[Outcome]]


def writes(model: Any, tokenizer: Any) -> Callable[[Sequence[Sequence[int]], Sequence[int], int], list[list[int]]]:
    """Deterministic decoding with a loaded model, all prompts in one batch.

    Args:
        model: a causal language model of transformers.
        tokenizer: its tokenizer, for the padding token.
    """

    def reply(prompts: Sequence[Sequence[int]], stops: Sequence[int], max_tokens: int) -> list[list[int]]:
        import torch
        from transformers import GenerationConfig

        width = max(map(len, prompts))
        pad = int(tokenizer.pad_token_id)
        ids = torch.tensor([[pad] * (width - len(one)) + list(one) for one in prompts], device=model.device)
        mask = torch.tensor([[0] * (width - len(one)) + [1] * len(one) for one in prompts], device=model.device)
        config = GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=False, max_new_tokens=max_tokens, eos_token_id=list(stops), pad_token_id=pad, use_cache=True
        )
        training = model.training
        model.eval()
        with torch.no_grad():
            out = model.generate(input_ids=ids, attention_mask=mask, generation_config=config)
        model.train(training)
        return [_until(one[width:].tolist(), stops) for one in out]

    return reply


def _until(ids: Sequence[int], stops: Sequence[int]) -> list[int]:
    end = next((place for place, token in enumerate(ids) if token in stops), len(ids))
    return list(ids[:end])


def policy_of(model: Any, tokenizer: Any) -> Policy:
    """The model in training and, with its adapters switched off, its base."""
    reply = writes(model, tokenizer)

    def frozen(prompts: Sequence[Sequence[int]], stops: Sequence[int], max_tokens: int) -> list[list[int]]:
        with model.disable_adapter():
            return reply(prompts, stops, max_tokens)

    return Policy(reply, frozen, lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=True)))


def _reward_functions(rows: Mapping[str, Row], judged: Judged) -> list[Callable[..., list[float]]]:
    """One function a term, so that each is logged; a batch is judged once."""
    last: dict[str, Any] = {"of": None, "outcomes": []}

    def outcomes(prompts: Sequence[str], completions: Sequence[str], ids: Sequence[Sequence[int]]) -> list[Outcome]:
        batch = [list(one) for one in ids]
        if last["of"] != (list(prompts), batch):
            found = judged([rows[name] for name in prompts], completions, [len(one) for one in batch])
            last.update(of=(list(prompts), batch), outcomes=found)
        done: list[Outcome] = last["outcomes"]
        return done

    def term(name: str) -> Callable[..., list[float]]:
        def reward(prompts: Any, completions: Any, completion_ids: Any, **_: Any) -> list[float]:
            return [float(getattr(one, name)) for one in outcomes(prompts, completions, completion_ids)]

        reward.__name__ = name
        return reward

    return [term(name) for name in TERMS]


def rl(training: Training, rows: Sequence[Row], sampling: Sampling, open_judged: Callable[[Policy], Judged]) -> Trained:
    """Trains adapters on rewards.

    Args:
        training: what to do; a step takes ``optimiser.batch`` prompts.
        rows: rows of ``data/posttrain/{variant}/rows.jsonl`` with ``prompt_token_ids``.
        sampling: how turns are written and weighted.
        open_judged: given the model in training, what judges its turns.
    """
    prepare(training)
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    o = training.optimiser
    model, tokenizer = load(training.base, on_cpu=training.on_cpu)
    # the trainer takes from here what ends a turn
    model.generation_config.eos_token_id = list(sampling.stops)
    by_name = {row["row"]: row for row in rows}
    order = ordered(rows, o.steps * o.batch, training.seed)
    config = GRPOConfig(
        **arguments(training),
        per_device_train_batch_size=o.batch * sampling.generations // o.accumulation,
        gradient_accumulation_steps=o.accumulation,
        num_generations=sampling.generations,
        max_completion_length=sampling.max_tokens,
        temperature=sampling.temperature,
        top_p=1.0,
        top_k=0,
        generation_kwargs={"eos_token_id": list(sampling.stops)} if not sampling.vllm else None,
        beta=sampling.beta,
        num_iterations=1,
        shuffle_dataset=False,
        remove_unused_columns=False,
        disable_dropout=True,
        use_vllm=sampling.vllm,
        vllm_mode="colocate",
        reward_weights=[sampling.weights[name] * (-1.0 if name == "tokens" else 1.0) for name in TERMS],
        log_completions=False,
    )

    def rollout(prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
        ids = [list(by_name[name]["prompt_token_ids"]) for name in prompts]
        written, logprobs = trainer._generate_single_turn(ids, None, {}, sampling.generations)
        return {"prompt_ids": ids, "completion_ids": written, "logprobs": logprobs}

    judged: dict[str, Judged] = {}

    def late(found: Sequence[Row], completions: Sequence[str], n_tokens: Sequence[int]) -> list[Outcome]:
        return judged["by"](found, completions, n_tokens)

    trainer = GRPOTrainer(
        model=model,
        reward_funcs=_reward_functions(by_name, late),
        args=config,
        train_dataset=Dataset.from_list([{"prompt": row["row"]} for row in order]),
        processing_class=tokenizer,
        peft_config=lora_config(training.lora),
        callbacks=[follow(training)],
        rollout_func=rollout,
    )
    judged["by"] = open_judged(policy_of(trainer.model, tokenizer))
    return run(trainer, training)
