"""Turns written behind a completions endpoint: the same rows as a local engine's, or a refusal that says why."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from completions_server import SERVED, Server, serving, written

from userturn import layout, plan, specs
from userturn.artefacts import read_jsonl, write_json, write_jsonl
from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.endpoint import ModelEndpoint
from userturn.config.engine import EngineConfig
from userturn.config.load import ConfigError, validate
from userturn.config.study import Study
from userturn.endpoint.client import Client, EndpointError
from userturn.engine.completions import by_token_ids
from userturn.engine.endpoint import EndpointEngine
from userturn.engine.generation import CellRequest, Generator, Prompted
from userturn.engine.interface import Completion, EngineError, Request, SamplingParameters
from userturn.engine.open import open_engine
from userturn.engine.store import CellStore
from userturn.grid import shards
from userturn.job import Job
from userturn.stages import assistant_turns

SAMPLING = SamplingParameters(temperature=0.7, max_tokens=40, stop_token_ids=(2, 5))
COLD = replace(SAMPLING, temperature=0.0, max_tokens=3)


class Words:
    """A vocabulary of words: id 3 is `<3>`, and 99 has the spelling of 3."""

    def decode(self, token_ids: Sequence[int], **kwargs: Any) -> str:
        assert kwargs == {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
        return " ".join("<3>" if id == 99 else f"<{id}>" for id in token_ids)

    def encode(self, text: str, **kwargs: Any) -> list[int]:
        assert kwargs == {"add_special_tokens": False}
        return [int(word.strip("<>")) for word in text.split()]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server(forced={2: "<2>", 5: "<5>"})) as state:
        yield state


def endpoint(server: Server, **settings: object) -> ModelEndpoint:
    given = {"base_url": server.base_url, "model": SERVED, "timeout_seconds": 5, "max_concurrency": 4}
    return ModelEndpoint.model_validate(given | {"max_attempts": 3} | settings)


def engine(server: Server, **settings: object) -> EndpointEngine:
    config = endpoint(server, **settings)
    return EndpointEngine(Client(config, first_wait_seconds=0.01), config, 64, Words)


def ask(made: EndpointEngine, n: int = 6, wanted: SamplingParameters = SAMPLING) -> list[Completion]:
    requests = [Request((i, 3, 9), None if wanted.temperature == 0 else 100 + i) for i in range(n)]
    return made.generate(requests, [wanted] * n, lambda _: None)


def test_turns_come_back_in_order_with_a_seed_each(server: Server) -> None:
    server.faults = {"1 3 9": ["500", "cut"], "2 3 9": ["429:0"], "3 3 9": ["empty"]}
    counted: list[int] = []
    made = engine(server)
    requests = [Request((i, 3, 9), 100 + i) for i in range(30)]
    found = made.generate(requests, [SAMPLING] * 30, counted.append)
    assert found == [Completion(written([i, 3, 9], 100 + i), 6, "stop") for i in range(30)]
    assert sum(counted) == 30
    assert sum(server.count().values()) == 34


def test_cut_turns_are_told_from_ended_ones(server: Server) -> None:
    assert ask(engine(server), 1, COLD) == [Completion("after 0 3", 3, "length")]
    assert "seed" not in server.turns[0]


def test_every_parameter_is_explicit(server: Server) -> None:
    ask(engine(server), 1)
    assert server.turns[0] == {
        "model": SERVED, "prompt": [0, 3, 9], "max_tokens": 40, "temperature": 0.7, "top_p": 1.0, "seed": 100,
        "presence_penalty": 0.0, "frequency_penalty": 0.0, "n": 1, "stream": False, "top_k": 0, "min_p": 0.0,
        "repetition_penalty": 1.0, "stop_token_ids": [2, 5], "skip_special_tokens": False,
        "spaces_between_special_tokens": False, "add_special_tokens": False,
    }  # fmt: skip
    # a parameter that is added to the study must be told to the server too
    told = by_token_ids([1], 1, SAMPLING)
    assert SAMPLING.facts().items() <= told.items()


def test_prompts_as_text_use_the_plain_protocol(server: Server) -> None:
    server.takes = ("text",)
    (found,) = ask(engine(server, prompt="text"), 1)
    assert found.text == written("<0> <3> <9>", 100)
    assert server.turns[0] == {
        "model": SERVED, "prompt": "<0> <3> <9>", "max_tokens": 40, "temperature": 0.7, "top_p": 1.0, "seed": 100,
        "presence_penalty": 0.0, "frequency_penalty": 0.0, "n": 1, "stream": False, "stop": ["<2>", "<5>"],
        "skip_special_tokens": False, "spaces_between_special_tokens": False, "add_special_tokens": False,
    }  # fmt: skip


def test_a_prompt_that_no_string_stands_for_is_refused(server: Server) -> None:
    made = engine(server, prompt="text")
    with pytest.raises(EngineError, match=r"not the same token ids once it has been a string"):
        made.generate([Request((1, 99), 7)], [SAMPLING], lambda _: None)
    assert server.asked == []


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (replace(SAMPLING, stop_token_ids=(1, 2, 3, 4, 5)), r"at most 4 stop strings.*end at 5: '<1>', '<2>'"),
        (replace(SAMPLING, top_k=5, min_p=0.1), r"knows no top_k.*the study sets top_k = 5, min_p = 0.1"),
        (replace(SAMPLING, repetition_penalty=1.1), r"sets repetition_penalty = 1.1"),
    ],
)
def test_text_refuses_what_it_cannot_say(server: Server, wanted: SamplingParameters, reason: str) -> None:
    with pytest.raises(EngineError, match=reason):
        ask(engine(server, prompt="text"), 1, wanted)
    assert server.asked == []


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"chat_only": 404}, r"/completions does not exist there \(HTTP 404.*This is a chat model.*server for chat"),
        ({"chat_only": 405}, r"HTTP 405 Method Not Allowed"),
        ({"takes": ("text",)}, r"refuses a prompt of token ids.*HTTP 400.*set endpoint.prompt: text"),
        ({"takes": ("text",), "refused": 422}, r"refuses a prompt of token ids.*HTTP 422"),
        ({"heeds_max_tokens": False}, r"asked for at most 2 tokens and wrote 6: it ignores max_tokens"),
        ({"added_tokens": 1}, r"read 4 tokens where our renderer made 3: .*a second BOS"),
        ({"heeded_stops": frozenset({2})}, r"does not end a turn at the stop token 5: .*'<again><again>'"),
    ],
)
def test_a_server_that_cannot_be_probed_is_refused_before_any_turn(
    server: Server, state: dict[str, Any], reason: str
) -> None:
    for name, value in state.items():
        setattr(server, name, value)
    with pytest.raises(EngineError, match=reason):
        ask(engine(server))
    assert server.turns == []


def test_a_server_is_probed_once_and_each_stop_once(server: Server) -> None:
    made = engine(server)
    for _ in range(3):
        ask(made)
    ask(made, 1, replace(SAMPLING, stop_token_ids=(2, 8)))
    probes = [body for body in server.asked if body not in server.turns]
    assert [(body["max_tokens"], body["temperature"], body.get("logit_bias")) for body in probes] == [
        (2, 0.0, None), (2, 0.0, {"2": 100}), (2, 0.0, {"5": 100}), (2, 0.0, {"8": 100}),
    ]  # fmt: skip


def test_a_prompt_that_does_not_fit_is_refused_before_anything_is_asked(server: Server) -> None:
    with pytest.raises(EngineError, match=r"a prompt of 30 tokens and a turn of up to 40 do not fit"):
        engine(server).generate([Request(tuple(range(30)), 1)], [SAMPLING], lambda _: None)
    assert server.asked == []


def cells(n: int) -> list[CellRequest]:
    prompted = tuple(Prompted(f"i{i}", (i, 3, 9)) for i in range(4))
    return [CellRequest(f"m/d/p{k}/t0.7", prompted, 2, SAMPLING, study_seed=7) for k in range(n)]


def test_a_lost_turn_fails_the_job_and_keeps_finished_cells_only(server: Server, tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    asked = cells(3)
    made = Generator(lambda: engine(server, max_concurrency=1), store, {"e": "1"})
    finished = 0

    def break_the_second_cell(done: int) -> None:
        nonlocal finished
        finished += done
        if finished == 8:
            server.faults["2 3 9"] = ["503"] * 3

    with pytest.raises(EngineError, match=r"HTTP 503 Service Unavailable.*\(after 3 attempts\)\. 4 of 8 turns"):
        list(made.cells(asked, break_the_second_cell))
    assert len(list(tmp_path.rglob("*.jsonl"))) == 1
    before = sum(server.count().values())
    again = Generator(lambda: engine(server), store, {"e": "1"})
    rows = list(again.cells(asked, lambda _: None))
    assert again.generated == ["m/d/p1/t0.7", "m/d/p2/t0.7"]
    assert sum(server.count().values()) - before == 16
    assert [len(cell) for cell in rows] == [8, 8, 8]
    assert len(list(tmp_path.rglob("*.jsonl"))) == 3


def study(server: Server, **model: object) -> Study:
    given = json.loads(json.dumps(DEFAULT_STUDY))
    given["probe"]["likelihood"] = None
    (entry,) = given["models"].values()
    given["models"] = {"m": entry | {"endpoint": endpoint(server).model_dump(), "engine": {}} | model}
    return validate(given)


def test_the_stage_writes_the_same_rows_and_needs_the_server_only_for_what_is_new(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chat_model: Path
) -> None:
    """The real tokenizer and template; the default study's spec; a run, a second run, and another server."""
    monkeypatch.chdir(tmp_path)
    folder = layout.model_folder("m")
    folder.mkdir(parents=True)
    for file in chat_model.glob("*"):
        if file.suffix in {".json", ".jinja"}:
            shutil.copy(file, folder)
    write_json(layout.model("m"), {"weights_sha256": "0" * 64})
    chosen = study(server)
    (shard,) = shards(chosen)
    for dataset in shard.datasets:
        rows = [{"item": f"{dataset}/{i}", "messages": [{"role": "user", "content": f"Why {i}?"}]} for i in range(3)]
        write_jsonl(layout.dataset(dataset), rows)
    spec = assistant_turns.Spec.model_validate_json(specs.assistant_turns(chosen, shard, "lock"))

    def run(made: assistant_turns.Spec) -> tuple[int, Job]:
        before, job = len(server.turns), Job("assistant_turns")
        assistant_turns.run(made, job)
        return len(server.turns) - before, job

    n, job = run(spec)
    assert n == 3 * len(shard.datasets)
    assert job.facts["engine"] == {
        "endpoint": {
            "model": "tiny",
            "prompt": "token_ids",
            "server": {"owned_by": "tests", "root": "tiny", "version": "1.2.3"},
        },
        "tokenizer_sha256": "0" * 64,
    }
    (first, *_) = read_jsonl(layout.assistant_turns("m", shard.datasets[0]))
    asked = next(body for body in server.turns if written(body["prompt"], None) == first["text"])
    assert set(first) == {"item", "sample", "seed", "text", "n_tokens", "n_prompt_tokens", "finish_reason", "prompt"}
    assert first["n_prompt_tokens"] == len(asked["prompt"])
    assert run(spec)[0] == 0
    with serving(Server()) as other:
        moved = spec.model_copy(update={"endpoint": endpoint(other)})
        run(moved)
        assert other.turns == []
    renamed = spec.model_copy(update={"endpoint": endpoint(server, model="other/model")})
    assert run(renamed)[0] == n
    as_text = spec.model_copy(update={"endpoint": endpoint(server, prompt="text")})
    server.added_tokens = 10_000
    with pytest.raises(EngineError, match="another tokenizer"):
        run(as_text)
    assert server.asked[-1]["prompt"] == first["prompt"]
    assert server.asked[-1]["stop"] == ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def test_opening_refuses_a_server_without_the_model(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_json(layout.model("m"), {"weights_sha256": "0" * 64})
    with pytest.raises(EndpointError, match="does not serve the model 'absent'"):
        open_engine("m", EngineConfig(), endpoint(server, model="absent"), threads=1, lock_sha256="x")


def test_a_local_model_is_opened_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is loaded yet, and the parts of the identity are those that finished cells were stored under."""
    monkeypatch.chdir(tmp_path)
    write_json(layout.model("m"), {"weights_sha256": "0" * 64})
    config = EngineConfig(batch_invariant=True)
    opened = open_engine("m", config, None, threads=1, lock_sha256="x")
    assert set(opened.identity) == {"config", "versions", "weights_sha256", "lock_sha256"}
    assert set(opened.facts) == {"config", "versions", "weights_sha256", "flags"}
    assert opened.together == config.max_sequences
    assert open_engine("m", EngineConfig(), None, threads=1, lock_sha256="x").together == 0


def test_specs_name_the_endpoint_and_fetch_no_weights(server: Server) -> None:
    served, (name,) = study(server), study(server).models
    (shard,) = shards(served)
    for make in (specs.assistant_turns, specs.user_turns):
        assert json.loads(make(served, shard, "lock"))["endpoint"]["base_url"] == server.base_url
    assert json.loads(specs.model(served, name))["weights"] is False
    local = study(server, endpoint=None)
    assert "endpoint" not in json.loads(specs.user_turns(local, shard, "lock"))
    assert "weights" not in json.loads(specs.model(local, name))


def test_a_served_model_costs_no_accelerator_hours(server: Server) -> None:
    for resources in (None, {"prefill_tokens_per_second": 1000, "decode_tokens_per_second": 50}):
        made = plan.plan(study(server, resources=resources))
        assert made.accelerator_hours == 0.0
        assert (made.seconds_in_turn is None) == (resources is None)
        assert any("no accelerator-hours are counted" in note for note in made.models["m"].notes)
        assert made.tokens == plan.plan(study(server, endpoint=None)).tokens


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"engine": {"dtype": "bfloat16"}}, r"models.m: engine: dtype: without effect"),
        ({"resources": {"gpus": 1}}, r"resources.gpus: 1, but an endpoint serves the model"),
    ],
)
def test_settings_without_effect_are_refused(server: Server, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        study(server, **change)


def test_the_likelihood_probe_needs_weights(server: Server) -> None:
    given = study(server).model_dump()
    given["probe"]["likelihood"] = DEFAULT_STUDY["probe"]["likelihood"]
    with pytest.raises(ConfigError, match=r"probe.likelihood: needs the weights, but an endpoint serves m"):
        validate(given)
