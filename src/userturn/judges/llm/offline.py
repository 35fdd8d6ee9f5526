"""A local model in this process, its decoding bound to the verdict's JSON schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from userturn.artefacts import read_json
from userturn.config.judging import JudgeOffline
from userturn.engine import interface, vllm
from userturn.judges.llm.transport import Conversation, JudgeStopped, OnReply, Reply
from userturn.judges.llm.verdict import Cause, schema
from userturn.messages import Message
from userturn.models.folder import DESCRIPTION, describe
from userturn.render import HostileContentError, Renderer, TemplateNotProbeable, load_renderer

#: Named, since "auto" may choose another one for another schema or version; and without blanks between fields, which a
#: weak model repeats until it is cut.
_STRUCTURED = {"backend": "xgrammar", "disable_any_whitespace": True}


class OfflineTransport:
    """vLLM with structured output and deterministic decoding.

    The model is loaded when the first question is put. Prompts are token ids of the project's own renderer, in which no
    text can become a control token.

    Args:
        model_folder: An ordinary model folder; its ``model.json`` names the weights, and is computed where it is
            missing.
        config: The transport's section of the study.
        max_tokens: Most tokens of a verdict.
        threads: Cores to use on a CPU.
    """

    marked = False

    def __init__(self, model_folder: Path, config: JudgeOffline, *, max_tokens: int, threads: int) -> None:
        self._folder = model_folder
        self._config = config
        self._max_tokens = max_tokens
        self._threads = threads
        self._renderer: Renderer | None = None
        self._system_role = True
        self._llm: Any = None
        self._requests = self._prompt_tokens = self._completion_tokens = 0
        described = model_folder / DESCRIPTION
        found = read_json(described) if described.is_file() else describe(model_folder)
        self._weights = str(found["weights_sha256"])

    @property
    def identity(self) -> Mapping[str, Any]:
        """Weights, template variables, engine, versions and schema."""
        return {
            "transport": "offline",
            **interface.identity(self._config.engine.model_dump(mode="json"), vllm.versions(), self._weights),
            "template": self._config.model_dump(
                mode="json", include={"thinking", "template_kwargs", "extra_stop_token_ids"}
            ),
            "max_tokens": self._max_tokens,
            "structured_outputs": _STRUCTURED,
            "schema": schema(marked=False),
        }

    def facts(self) -> dict[str, Any]:
        """Requests and tokens of this job."""
        return {
            "requests": self._requests,
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": self._completion_tokens,
        }

    def ask(self, conversations: Sequence[Conversation], on_reply: OnReply) -> None:
        """See `userturn.judges.llm.transport.Transport.ask`.

        Raises:
            JudgeStopped: The model cannot be loaded, or its template can pose no question.
        """
        if not conversations:
            return
        renderer = self._rendered_by()
        size = self._config.engine.max_sequences
        for start in range(0, len(conversations), size):
            prompts: dict[int, tuple[int, ...]] = {}
            for index, conversation in enumerate(conversations[start : start + size], start=start):
                refused = self._prompt(renderer, conversation, prompts, index)
                if refused is not None:
                    on_reply(index, refused)
            if prompts:
                self._generate(prompts, renderer.format.assistant_stop_token_ids, on_reply)

    def _prompt(
        self, renderer: Renderer, conversation: Conversation, prompts: dict[int, tuple[int, ...]], index: int
    ) -> Reply | None:
        messages = list(conversation) if self._system_role else _in_one(conversation)
        try:
            ids = renderer.assistant_prompt(messages).token_ids
        except HostileContentError as error:
            return Reply(None, "hostile_prompt", str(error))
        room = self._config.engine.max_model_len
        if len(ids) + self._max_tokens > room:
            return Reply(
                None,
                "prompt_too_long",
                f"{len(ids)} tokens and a verdict of up to {self._max_tokens} exceed engine.max_model_len = {room}; "
                "raise it, or lower the judge's max_chars",
                prompt_tokens=len(ids),
            )
        prompts[index] = ids
        return None

    def _generate(self, prompts: Mapping[int, tuple[int, ...]], stops: Sequence[int], on_reply: OnReply) -> None:
        llm = self._loaded()
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        wanted = [
            SamplingParams(
                n=1,
                temperature=0.0,
                max_tokens=self._max_tokens,
                stop_token_ids=list(stops),
                skip_special_tokens=False,
                spaces_between_special_tokens=False,
                structured_outputs=StructuredOutputsParams(json=schema(marked=False)),
            )
            for _ in prompts
        ]
        outputs = llm.generate([{"prompt_token_ids": list(ids)} for ids in prompts.values()], wanted, use_tqdm=False)
        for (index, ids), output in zip(prompts.items(), outputs, strict=True):
            written = output.outputs[0]
            self._requests += 1
            self._prompt_tokens += len(ids)
            self._completion_tokens += len(written.token_ids)
            on_reply(index, _reply(written.text, written.finish_reason, len(ids), len(written.token_ids)))

    def _rendered_by(self) -> Renderer:
        if self._renderer is not None:
            return self._renderer
        config = self._config
        try:
            renderer = load_renderer(
                self._folder,
                thinking=config.thinking,
                template_kwargs=config.template_kwargs,
                extra_stop_token_ids=tuple(config.extra_stop_token_ids),
            )
            self._system_role = _takes(renderer, [Message(role="system", content="rubric"), _USER])
            if not self._system_role:
                renderer.assistant_prompt([_USER])
        except (FileNotFoundError, TemplateNotProbeable) as error:
            raise JudgeStopped(f"{self._folder} cannot judge: {error}") from error
        if renderer.format.family == "harmony":
            raise JudgeStopped(
                f"{self._folder}: a model of the harmony family opens a channel before it answers, which a bound "
                "verdict leaves no room for; serve it, and use transport.kind: endpoint"
            )
        self._renderer = renderer
        return renderer

    def _loaded(self) -> Any:
        if self._llm is None:
            vllm.prepare_environment(self._config.engine, self._threads)
            try:
                from vllm import LLM

                self._llm = LLM(
                    model=str(self._folder), structured_outputs_config=_STRUCTURED, **vllm.flags(self._config.engine)
                )
            except Exception as error:
                raise JudgeStopped(
                    f"vLLM could not load the judge {self._folder}: {error}; where memory is short lower "
                    "transport.engine.kv_cache_gb, max_sequences or max_model_len"
                ) from error
        return self._llm


_USER = Message(role="user", content="case")


def _takes(renderer: Renderer, messages: Sequence[Message]) -> bool:
    try:
        renderer.assistant_prompt(messages)
    except TemplateNotProbeable:
        return False
    return True


def _in_one(conversation: Conversation) -> list[Message]:
    """The conversation as one user message, for templates without a system role."""
    return [Message(role="user", content="\n\n".join(message["content"] for message in conversation))]


def _reply(text: str, finish: str | None, prompt_tokens: int, completion_tokens: int) -> Reply:
    if finish == "stop":
        return Reply(text, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
    cause: Cause = "truncated" if finish == "length" else "malformed_response"
    return Reply(None, cause, f"finish_reason {finish!r}", prompt_tokens, completion_tokens)
