"""The completions protocol: from a turn to write to a request's body, and from an answer's body to a turn.

What stands here shapes texts, so its digest is part of the key of every cell that an endpoint writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from userturn.endpoint.wording import plain
from userturn.engine.interface import Completion, EngineError, SamplingParameters

#: OpenAI's own protocol takes no more stop strings.
MOST_STOPS = 4

#: How text and tokens stand for each other, in vLLM's words: special tokens are part of the text, and none is added. A
#: server that knows none of this ignores it, which shows in its counts and at the stops before any turn is asked for.
_SPELLING = {"skip_special_tokens": False, "spaces_between_special_tokens": False, "add_special_tokens": False}


def by_token_ids(prompt: Sequence[int], seed: int | None, wanted: SamplingParameters) -> dict[str, Any]:
    """The body for vLLM and servers that take its further parameters: the prompt is what our renderer made."""
    return {
        "prompt": list(prompt),
        **_common(seed, wanted),
        "top_k": wanted.top_k,
        "min_p": wanted.min_p,
        "repetition_penalty": wanted.repetition_penalty,
        "stop_token_ids": list(wanted.stop_token_ids),
        **_SPELLING,
    }


def by_text(prompt: str, seed: int | None, wanted: SamplingParameters, stops: Sequence[str]) -> dict[str, Any]:
    """The body whose sampling and stops are told in OpenAI's own parameters.

    Raises:
        EngineError: see `refuse_text`.
    """
    refuse_text(wanted, stops)
    return {"prompt": prompt, **_common(seed, wanted), "stop": list(stops), **_SPELLING}


def refuse_text(wanted: SamplingParameters, stops: Sequence[str]) -> None:
    """Refuses what OpenAI's own parameters cannot say.

    Raises:
        EngineError: too many stops, one that has no spelling, or a sampling parameter that cannot be told.
    """
    what = "endpoint.prompt: text"
    if len(stops) > MOST_STOPS or not all(stops):
        raise EngineError(
            f"{what}: the completions protocol takes at most {MOST_STOPS} stop strings, and this model's turns end at "
            f"{len(stops)}: {', '.join(map(repr, stops))}; use a server that takes token ids (endpoint.prompt: "
            "token_ids), such as vLLM"
        )
    neutral = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
    other = [f"{name} = {getattr(wanted, name)}" for name, value in neutral.items() if getattr(wanted, name) != value]
    if other:
        raise EngineError(
            f"{what}: the completions protocol knows no {', '.join(neutral)}, and the study sets "
            f"{', '.join(other)}: leave them at their defaults, or use endpoint.prompt: token_ids"
        )


def _common(seed: int | None, wanted: SamplingParameters) -> dict[str, Any]:
    return {
        "max_tokens": wanted.max_tokens,
        "temperature": wanted.temperature,
        "top_p": wanted.top_p,
        "presence_penalty": wanted.presence_penalty,
        "frequency_penalty": wanted.frequency_penalty,
        "n": 1,
        "stream": False,
        **({} if seed is None else {"seed": seed}),
    }


def wrong(body: Mapping[str, Any]) -> str | None:
    """What is wrong with the body of an answer, or None: one choice with text and an end that we know, and counts."""
    choices = body.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return f"{len(choices) if isinstance(choices, list) else 'no list of'} choices where one was asked for"
    choice, usage = choices[0], body.get("usage")
    if not isinstance(choice.get("text"), str):
        return "a choice without text"
    if choice.get("finish_reason") not in {"stop", "length"}:
        return f"finish_reason {plain(repr(choice.get('finish_reason')), 60)}, expected 'stop' or 'length'"
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")] if isinstance(usage, dict) else [None]
    if not all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in counts):
        return "no usage with prompt_tokens and completion_tokens"
    return None


def completion(body: Mapping[str, Any]) -> Completion:
    """The turn of a body in which `wrong` found nothing."""
    choice = body["choices"][0]
    return Completion(choice["text"], body["usage"]["completion_tokens"], choice["finish_reason"])
