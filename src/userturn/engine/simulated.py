"""Texts that no model writes, for tests of scale: quick, of realistic lengths, and marked SIMULATED.

What a text says depends on prompt, seed, temperature and the model's name alone. Some texts read like follow-ups, so
that judges and statistics have something to see: their share varies by model, by item, with the temperature and with
the length of the prompt. Nothing else about them means anything.
"""

from __future__ import annotations

import hashlib
import math
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from userturn.config.engine import EngineConfig, SimulatedTexts
from userturn.engine.interface import Completion, EngineError, Forced, Request, SamplingParameters
from userturn.seeds import derive
from userturn.simulation.texts import GENUINE, OPENERS, compose

#: Standard deviation of the logarithm of a length.
_SPREAD = 0.6
#: Standard deviations of the log-odds of a follow-up, between models and between items.
_BETWEEN_MODELS, _BETWEEN_ITEMS = 0.7, 1.0
#: Change of the log-odds for one degree of temperature, and for e times the prompt's length.
_BY_TEMPERATURE, _BY_LENGTH = -0.4, 0.5
#: A prompt of this many tokens changes nothing.
_USUAL_PROMPT = 300
#: Prompts that begin with the same tokens are of one item.
_ITEM_TOKENS = 80
#: The words of a text that ends by itself, besides filling: marker, opener, ending.
_SHORTEST = 10
_REST = tuple(label for label in OPENERS if label != GENUINE)
_NORMAL = NormalDist()


@dataclass(frozen=True)
class _Read:
    """What is taken from a prompt once, for all samples after it."""

    sha256: str
    propensity: float
    """Log-odds that a text after it is a follow-up, at temperature 0."""


class SimulatedEngine:
    """Writes simulated turns, and makes up log-likelihoods.

    Args:
        model: the model's name in the study.
        config: the engine section that holds for it.
    """

    def __init__(self, model: str, config: EngineConfig) -> None:
        self._model = model
        self._max_model_len = config.max_model_len
        self._texts = config.simulated or SimulatedTexts()
        own = derive(0, "simulated model", model, bits=128).to_bytes(16, "big")
        share = self._texts.followups
        self._level = math.log(share / (1 - share)) + _BETWEEN_MODELS * _normal(own[:8])
        self._skill = _share(own[8:])

    def generate(
        self, requests: Sequence[Request], sampling: Sequence[SamplingParameters], on_done: Callable[[int], None]
    ) -> list[Completion]:
        """See `userturn.engine.interface.Engine.generate`.

        Raises:
            EngineError: a prompt and its turn do not fit into ``max_model_len``.
        """
        time.sleep(self._texts.seconds_per_call)
        done: list[Completion] = []
        last: tuple[int, ...] | None = None
        for request, wanted in zip(requests, sampling, strict=True):
            prompt = request.prompt_token_ids
            if len(prompt) + wanted.max_tokens > self._max_model_len:
                raise EngineError(
                    f"a prompt of {len(prompt)} tokens and a turn of up to {wanted.max_tokens} do not fit into "
                    f"engine.max_model_len = {self._max_model_len}; raise it or choose shorter items"
                )
            if prompt is not last:
                read, last = self._read(prompt), prompt
            done.append(self._turn(read, request.seed, wanted))
        on_done(len(done))
        return done

    def log_likelihoods(self, texts: Sequence[Forced], on_done: Callable[[int], None]) -> list[float]:
        """See `userturn.engine.interface.Scorer.log_likelihoods`: between 1 and 4 nats a token, by hash."""
        values = []
        for one in texts:
            what = f"{_sha256(one.prompt_token_ids)} {_sha256(one.text_token_ids)}"
            drawn = derive(0, "simulated likelihood", self._model, what, bits=64).to_bytes(8, "big")
            values.append(-len(one.text_token_ids) * (1 + 3 * _share(drawn)))
        on_done(len(values))
        return values

    def _read(self, prompt: tuple[int, ...]) -> _Read:
        item = hashlib.sha256(array("q", prompt[:_ITEM_TOKENS]).tobytes()).digest()
        length = max(-1.5, min(1.5, _BY_LENGTH * math.log(max(len(prompt), 1) / _USUAL_PROMPT)))
        return _Read(_sha256(prompt), self._level + _BETWEEN_ITEMS * _normal(item[:8]) + length)

    def _turn(self, read: _Read, seed: int | None, wanted: SamplingParameters) -> Completion:
        drawn = derive(seed or 0, "simulated turn", self._model, read.sha256, wanted.temperature, bits=512)
        data = drawn.to_bytes(64, "big")
        odds = math.exp(read.propensity + _BY_TEMPERATURE * wanted.temperature)
        label = GENUINE if _share(data[:8]) < odds / (1 + odds) else _REST[data[8] % len(_REST)]
        openers = OPENERS[label]
        # the final number is what task scores look at
        number = 1 if _share(data[16:24]) < self._skill else 2 + data[9] % 7
        mean = self._texts.length * wanted.max_tokens
        length = round(math.exp(math.log(mean) - _SPREAD**2 / 2 + _SPREAD * _normal(data[24:32])))
        # one word counts as one token, and so does the end of the turn
        length = max(length, _SHORTEST + 1)
        n_tokens = min(length, wanted.max_tokens)
        n_words = n_tokens if length > wanted.max_tokens else length - 1
        opener = openers[data[10] % len(openers)]
        ending = f"note {number}."
        n_filling = max(0, n_words - 1 - len(opener.split()) - (2 if length <= wanted.max_tokens else 0))
        text = compose(opener, hashlib.shake_256(data).digest(n_filling), ending, n_words)
        return Completion(text, n_tokens, "stop" if length <= wanted.max_tokens else "length")


def _share(eight: bytes) -> float:
    """A number between 0 and 1, from eight bytes of a hash."""
    return (int.from_bytes(eight, "big") + 0.5) / 2**64


def _normal(eight: bytes) -> float:
    """A draw of the standard normal distribution, from eight bytes of a hash."""
    # a share that rounds to 1.0 has no quantile
    return _NORMAL.inv_cdf(min(max(_share(eight), 1e-12), 1 - 1e-12))


def _sha256(token_ids: Sequence[int]) -> str:
    return hashlib.sha256(array("q", token_ids).tobytes()).hexdigest()
