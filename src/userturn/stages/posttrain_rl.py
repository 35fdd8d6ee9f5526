"""Stage `posttrain_rl`: a variant trained on a conversational reward, as an ordinary model folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from userturn import job, layout
from userturn.artefacts import Row
from userturn.config.endpoint import ModelEndpoint
from userturn.config.judging import JudgeConfig
from userturn.config.posttrain import Reward, SimulatedUser
from userturn.messages import Message
from userturn.posttrain.rewards import Outcome, Reacts, Simulation, by_judge, by_program, of_user_turns
from userturn.posttrain.rl import Judged, Policy, Replies, Sampling, Texts, rl, writes
from userturn.posttrain.training import Trained, Training, load
from userturn.posttrain.variant import VariantSpec, write_variant
from userturn.probing import RendererSpec
from userturn.render import Renderer


class Spec(VariantSpec):
    """One variant, its reward, and who plays the user."""

    reward: Reward
    judge: JudgeConfig | None
    """The section of `reward.judge`."""
    user: SimulatedUser
    user_renderer: RendererSpec
    future_turns: int
    generations: int
    max_completion_tokens: int
    max_model_len: int
    temperature: float
    beta: float
    vllm: bool
    reward_user_turn: bool


def _reacts(spec: Spec, job: job.Job) -> Reacts:
    if spec.judge is None or spec.reward.judge is None:
        return by_program
    from userturn.judges.opening import open_judge

    return by_judge(open_judge(spec.reward.judge, spec.judge, spec.seed, job))


def _served(model: str, endpoint: ModelEndpoint, spec: Spec, renderer: Renderer) -> Texts:
    """The simulated user behind an endpoint."""
    from userturn.config.engine import EngineConfig
    from userturn.engine.interface import Request, SamplingParameters
    from userturn.engine.open import open_engine

    config = EngineConfig(max_model_len=spec.max_model_len)
    engine = open_engine(model, config, endpoint, threads=1, lock_sha256=spec.lock_sha256).load()
    sampling = SamplingParameters(0.0, spec.user.max_tokens, renderer.format.stop_token_ids)

    def turns(talks: Sequence[Sequence[Message]]) -> list[str]:
        requests = [Request(renderer.user_prompt(talk).token_ids, None) for talk in talks]
        done = engine.generate(requests, [sampling] * len(requests), lambda _: None)
        return [one.text for one in done]

    return turns


def _user(spec: Spec, policy: Policy) -> Texts:
    """Who writes the simulated user turns: a frozen model in this process, or one behind an endpoint."""
    model = spec.user.model or spec.base
    renderer = spec.user_renderer.load(model)
    if spec.user.endpoint is not None:
        return _served(model, spec.user.endpoint, spec, renderer)
    reply, decode = policy.frozen_reply, policy.decode
    if model != spec.base:
        frozen, tokenizer = load(layout.model_folder(model), on_cpu=spec.training.device == "cpu")
        reply = writes(frozen.to(spec.training.device).eval(), tokenizer)
        decode = partial(_decoded, tokenizer)

    def turns(talks: Sequence[Sequence[Message]]) -> list[str]:
        prompts = [renderer.user_prompt(talk).token_ids for talk in talks]
        return [decode(ids) for ids in reply(prompts, renderer.format.stop_token_ids, spec.user.max_tokens)]

    return turns


def _decoded(tokenizer: object, ids: Sequence[int]) -> str:
    decode = tokenizer.decode  # type: ignore[attr-defined]
    return str(decode(list(ids), skip_special_tokens=True))


def _assistant(spec: Spec, policy: Policy, renderer: Renderer) -> Replies:
    def replies(talks: Sequence[Sequence[Message]]) -> list[tuple[str, int]]:
        prompts = [renderer.assistant_prompt(talk).token_ids for talk in talks]
        written = policy.reply(prompts, renderer.format.assistant_stop_token_ids, spec.max_completion_tokens)
        return [(policy.decode(ids), len(ids)) for ids in written]

    return replies


def _judged(spec: Spec, job: job.Job, renderer: Renderer, policy: Policy) -> Judged:
    found = _reacts(spec, job)
    if spec.reward_user_turn:

        def user_turns(rows: Sequence[Row], texts: Sequence[str], n_tokens: Sequence[int]) -> list[Outcome]:
            return of_user_turns(rows, texts, n_tokens, reacts=found, max_tokens=spec.max_completion_tokens)

        return user_turns
    return Simulation(
        _user(spec, policy),
        _assistant(spec, policy, renderer),
        future_turns=spec.future_turns,
        reacts=found,
        max_tokens=spec.max_completion_tokens,
    ).outcomes


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``data/models/{variant}/`` and ``results/posttrain/{variant}/{curve.jsonl,summary.json}``."""

    def train(training: Training, rows: Sequence[Row]) -> Trained:
        renderer = spec.renderer.load(spec.base)
        format = renderer.format
        sampling = Sampling(
            generations=spec.generations,
            max_tokens=spec.max_completion_tokens,
            temperature=spec.temperature,
            stops=format.stop_token_ids if spec.reward_user_turn else format.assistant_stop_token_ids,
            weights=spec.reward.model_dump(include={"accuracy", "interactivity", "tokens"}),
            beta=spec.beta,
            vllm=spec.vllm,
        )
        return rl(training, rows, sampling, partial(_judged, spec, job, renderer))

    if spec.user.model is not None:
        job.reads(layout.model(spec.user.model))
    write_variant(spec, job, "rl", "userturn.stages.posttrain_rl", train)


if __name__ == "__main__":
    job.main("posttrain_rl", Spec, run)
