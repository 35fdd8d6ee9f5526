"""An engine behind an OpenAI-compatible completions endpoint: raw prompts, the same turns as from a local engine.

Before the first turn is asked for, one tiny request shows whether the server takes raw prompts, counts their tokens as
our renderer does (one BOS, nothing added) and heeds ``max_tokens``, and one for each stop whether it ends a turn there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from userturn.config.endpoint import ModelEndpoint
from userturn.endpoint.client import Answer, Client, Failure
from userturn.engine import completions
from userturn.engine.interface import Completion, EngineError, Request, SamplingParameters

#: Tokens that a probing request may write.
_PROBED_TOKENS = 2
#: Makes a token certain, in any server's arithmetic; OpenAI's own limit.
_FORCED = 100


class Vocabulary(Protocol):
    """The part of a tokenizer that prompts as text need."""

    def decode(self, token_ids: Sequence[int], **kwargs: Any) -> str:
        """The text of some ids."""

    def encode(self, text: str, **kwargs: Any) -> list[int]:
        """The ids of a text."""


class EndpointEngine:
    """A model behind a completions endpoint.

    Args:
        client: of the endpoint.
        config: the endpoint's section, for how prompts are sent.
        max_model_len: longest prompt plus turn, in tokens.
        vocabulary: the model's tokenizer; called for only where prompts are sent as text.
    """

    def __init__(
        self, client: Client, config: ModelEndpoint, max_model_len: int, vocabulary: Callable[[], Vocabulary]
    ) -> None:
        self._client = client
        self._config = config
        self._max_model_len = max_model_len
        self._vocabulary = vocabulary() if config.prompt == "text" else None
        self._probed = False
        self._heeded: set[int] = set()

    def generate(
        self, requests: Sequence[Request], sampling: Sequence[SamplingParameters], on_done: Callable[[int], None]
    ) -> list[Completion]:
        """See `userturn.engine.interface.Engine.generate`.

        Raises:
            EngineError: the server does not do what a probe needs, or one turn could not be had.
        """
        pairs = list(zip(requests, sampling, strict=True))
        for request, wanted in pairs:
            if len(request.prompt_token_ids) + wanted.max_tokens > self._max_model_len:
                raise EngineError(
                    f"a prompt of {len(request.prompt_token_ids)} tokens and a turn of up to {wanted.max_tokens} do "
                    f"not fit into engine.max_model_len = {self._max_model_len}; raise it or choose shorter items"
                )
        bodies = [self._body(request, wanted) for request, wanted in pairs]
        if pairs:
            self._probe(pairs[0][0], sampling)
        done = 0

        def told(index: int, answer: Answer) -> None:
            nonlocal done
            if answer.failure is not None:
                raise self._lost(answer.failure, done, len(bodies))
            self._same_prompt(answer, requests[index])
            done += 1
            on_done(1)

        answers = self._client.map("completions", bodies, told, accept=completions.wrong)
        return [completions.completion(answer.body) for answer in answers if answer.body is not None]

    def _body(self, request: Request, wanted: SamplingParameters) -> dict[str, Any]:
        if self._vocabulary is None:
            return completions.by_token_ids(request.prompt_token_ids, request.seed, wanted)
        stops = [self._decoded([stop]) for stop in wanted.stop_token_ids]
        text = self._decoded(request.prompt_token_ids)
        if tuple(self._vocabulary.encode(text, add_special_tokens=False)) != request.prompt_token_ids:
            raise EngineError(
                "endpoint.prompt: text: a prompt is not the same token ids once it has been a string (its content "
                f"spells a control token, say: {text[-80:]!r}); use a server that takes token ids "
                "(endpoint.prompt: token_ids), such as vLLM"
            )
        return completions.by_text(text, request.seed, wanted, stops)

    def _decoded(self, ids: Sequence[int]) -> str:
        assert self._vocabulary is not None
        return self._vocabulary.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def _probe(self, request: Request, sampling: Sequence[SamplingParameters]) -> None:
        tiny = replace(sampling[0], temperature=0.0, max_tokens=_PROBED_TOKENS)
        probe = Request(request.prompt_token_ids, None)
        if not self._probed:
            answer = self._ask(self._body(probe, tiny))
            self._same_prompt(answer, probe)
            self._refuse_longer(answer)
            self._probed = True
        for stop in sorted({stop for wanted in sampling for stop in wanted.stop_token_ids} - self._heeded):
            mine = next(wanted for wanted in sampling if stop in wanted.stop_token_ids)
            body = self._body(probe, replace(mine, temperature=0.0, max_tokens=_PROBED_TOKENS))
            self._refuse_unheeded(self._ask({**body, "logit_bias": {str(stop): _FORCED}}), stop)
            self._heeded.add(stop)

    def _ask(self, body: dict[str, Any]) -> Answer:
        (answer,) = self._client.map("completions", [body], accept=completions.wrong)
        if answer.failure is not None:
            raise EngineError(self._why_not(answer.failure))
        return answer

    def _why_not(self, failure: Failure) -> str:
        where = f"{self._config.base_url}/completions"
        if failure.status in {404, 405, 501}:
            return (
                f"{where} does not exist there ({failure.message}): a server for chat alone cannot be probed, since it "
                "writes no turn but the assistant's; serve the model with raw completions, as `vllm serve` does"
            )
        if failure.status in {400, 422} and self._config.prompt == "token_ids":
            return (
                f"{where} refuses a prompt of token ids, or the parameters with it ({failure.message}); where it takes "
                "strings alone set endpoint.prompt: text"
            )
        return f"{where} cannot be used: {failure.message}"

    def _refuse_longer(self, answer: Answer) -> None:
        if answer.completion_tokens is None or answer.completion_tokens > _PROBED_TOKENS:
            raise EngineError(
                f"{self._config.base_url} was asked for at most {_PROBED_TOKENS} tokens and wrote "
                f"{answer.completion_tokens}: it ignores max_tokens, so its turns could not be compared with others"
            )

    def _refuse_unheeded(self, answer: Answer, stop: int) -> None:
        assert answer.body is not None
        found = completions.completion(answer.body)
        if found.finish_reason != "stop" or found.text or found.n_tokens > 1:
            raise EngineError(
                f"{self._config.base_url} does not end a turn at the stop token {stop}: made to write it first "
                f"(logit_bias), it wrote {found.n_tokens} tokens, text {found.text!r}, finish_reason "
                f"{found.finish_reason}. It must heed "
                f"{'stop_token_ids' if self._vocabulary is None else 'stop'} and logit_bias, as vLLM does"
            )

    def _same_prompt(self, answer: Answer, request: Request) -> None:
        ours = len(request.prompt_token_ids)
        if answer.prompt_tokens != ours:
            raise EngineError(
                f"{self._config.base_url} read {answer.prompt_tokens} tokens where our renderer made {ours}: it adds "
                "tokens of its own (a second BOS, say) or has another tokenizer than models.*.source"
            )

    def _lost(self, failure: Failure, done: int, total: int) -> EngineError:
        return EngineError(
            f"{self._config.base_url}/completions: a turn could not be had: {failure.message}. {done} of {total} turns "
            "of this cell had been written and are not kept; finished cells are: run the same command again"
        )
