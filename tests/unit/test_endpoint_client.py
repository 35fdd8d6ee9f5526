"""The client of OpenAI-compatible servers, against a real server on loopback that fails on a schedule."""

from __future__ import annotations

import datetime as dt
import socket
import time
from collections import Counter
from collections.abc import Iterator
from email.utils import format_datetime

import pytest
from completions_server import KEY, SERVED, Server, serving, written
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from userturn.config.endpoint import EndpointConfig, ModelEndpoint
from userturn.config.load import ConfigError, validate
from userturn.endpoint.client import Answer, Client, EndpointError
from userturn.endpoint.wording import complaint, plain, seconds_to_wait
from userturn.engine.completions import wrong


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server()) as state:
        yield state


def client(server: Server, **settings: object) -> Client:
    given = {"base_url": server.base_url, "model": SERVED, "timeout_seconds": 5.0, "max_concurrency": 8} | settings
    environ = {"THE_KEY": KEY, "EMPTY": " "}
    return Client(EndpointConfig.model_validate(given), environ=environ, first_wait_seconds=0.01)


def bodies(n: int) -> list[dict[str, object]]:
    return [{"prompt": [i, 7], "max_tokens": 50, "seed": i} for i in range(n)]


FAULTS = {
    "0 7": ["429:1"],
    "1 7": ["500"],
    "2 7": ["cut", "gone"],
    "3 7": ["garbage", "array", "half"],
    "4 7": ["empty"],
    "5 7": ["502", "503", "504"],
    "6 7": ["400"],
    "7 7": ["418"],
    "8 7": ["500"] * 9,
    "9 7": ["odd", "uncounted"],
    "10 7": ["307"],
}


def test_no_row_is_lost_and_every_request_is_counted(server: Server) -> None:
    server.faults = {key: list(planned) for key, planned in FAULTS.items()}
    heard: dict[int, Answer] = {}
    answers = client(server, max_attempts=5).map(
        "completions", bodies(60), lambda index, answer: heard.update({index: answer}), accept=wrong
    )
    assert [heard[i] for i in range(60)] == answers
    assert server.count() == Counter(
        {f"{i} 7": 1 for i in range(60)}
        | {"0 7": 2, "1 7": 2, "2 7": 3, "3 7": 4, "4 7": 2, "5 7": 4, "8 7": 5, "9 7": 3}
    )
    assert [answer.attempts for answer in answers] == [server.count()[f"{i} 7"] for i in range(60)]
    failed = {i: a.failure for i, a in enumerate(answers) if a.failure is not None}
    assert {i: (f.kind, f.status) for i, f in failed.items()} == {
        6: ("status", 400), 7: ("status", 418), 8: ("status", 500), 10: ("status", 307),
    }  # fmt: skip
    assert failed[8].message == "HTTP 500 Internal Server Error: status 500 for None (after 5 attempts)"
    for i, answer in enumerate(answers):
        assert (answer.body is None) == (i in failed)
        if answer.body is not None:
            assert answer.body["choices"][0]["text"] == written([i, 7], i)
            assert (answer.prompt_tokens, answer.completion_tokens) == (2, 5)
    assert {body["model"] for body in server.asked} == {SERVED}


def test_concurrency_is_bounded_and_used(server: Server) -> None:
    client(server, max_concurrency=3).map("completions", bodies(40))
    # on a busy machine the third may never start before the first has ended
    assert 2 <= server.most_in_flight <= 3


@pytest.mark.parametrize("fault", ["429:1", "429@2"])
def test_retry_after_holds_back_every_request(server: Server, fault: str) -> None:
    server.faults = {"0 7": [fault]}
    start = time.monotonic()
    client(server, max_concurrency=1).map("completions", bodies(2))
    assert server.times[1] - server.times[0] >= 0.95
    assert 0.95 <= time.monotonic() - start < 4


def test_a_wait_that_is_too_long_is_not_waited_for(server: Server) -> None:
    server.faults = {"0 7": ["429:3600"]}
    start = time.monotonic()
    (answer,) = client(server).map("completions", bodies(1))
    assert time.monotonic() - start < 2
    assert answer.failure is not None
    assert answer.failure.message.endswith("it asks to wait 3600 s, more than max_wait_seconds = 300")


def test_a_late_answer_is_a_timeout_however_many_bytes_trickle_in(server: Server) -> None:
    server.faults = {"0 7": ["slow", "slow"]}
    start = time.monotonic()
    first, second = client(server, timeout_seconds=0.4, max_attempts=2).map("completions", bodies(2))
    assert time.monotonic() - start < 1.8
    assert first.failure is not None
    assert (first.failure.kind, first.attempts) == ("timeout", 2)
    assert second.body is not None


def test_a_flood_is_not_read_to_its_end(server: Server) -> None:
    server.faults = {"0 7": ["flood"]}
    (answer,) = client(server, max_attempts=1).map("completions", bodies(1))
    assert answer.failure is not None
    assert answer.failure.message == "an answer of more than 64 MiB"


def test_what_a_caller_raises_ends_the_batch_at_once(server: Server) -> None:
    server.faults = {f"{i} 7": ["slow"] for i in range(1, 50)}

    def told(index: int, answer: Answer) -> None:
        raise LookupError(f"no more after {index}")

    start = time.monotonic()
    with pytest.raises(LookupError, match="no more after 0"):
        client(server, max_concurrency=4).map("completions", bodies(50), told)
    assert time.monotonic() - start < 1.5
    assert len(server.asked) <= 8


def test_nothing_asked_is_nothing_answered(server: Server) -> None:
    assert client(server).map("completions", []) == []


def test_a_server_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    gone = Client(
        EndpointConfig(base_url=f"http://127.0.0.1:{port}/v1", model="m", max_attempts=2), first_wait_seconds=0.01
    )
    (answer,) = gone.map("completions", bodies(1))
    assert answer.failure is not None
    assert (answer.failure.kind, answer.attempts) == ("connection", 2)
    with pytest.raises(EndpointError, match=rf"no server answers at http://127.0.0.1:{port}/v1 \(ConnectError.*start"):
        gone.check()


def test_check_tells_what_is_served(server: Server) -> None:
    served = client(server).check()
    assert served.model == SERVED
    assert served.facts == {"owned_by": "tests", "root": "tiny", "version": "1.2.3"}
    with pytest.raises(EndpointError, match=r"does not serve the model 'huge'; it serves: tiny, other/model"):
        client(server, model="huge").check()
    elsewhere = client(server, base_url=server.base_url.removesuffix("/v1"))
    with pytest.raises(EndpointError, match=r"has no /models .* end with the API's version, such as /v1"):
        elsewhere.check()


def test_the_key_is_sent_and_never_shown(server: Server) -> None:
    server.key = KEY
    server.faults = {"0 7": ["400"]}
    with pytest.raises(EndpointError, match=r"asks for a key: name the environment variable .* api_key_env"):
        client(server).check()
    with_key = client(server, api_key_env="THE_KEY")
    assert with_key.check().model == SERVED
    (answer,) = with_key.map("completions", bodies(1))
    assert answer.failure is not None
    assert answer.failure.message == "HTTP 400 Bad Request: status 400 for Bearer ***"
    server.key = "another"
    with pytest.raises(EndpointError, match=r"the key in THE_KEY is not accepted") as refused:
        with_key.check()
    assert KEY not in str(refused.value)
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize("variable", ["NOT_SET", "EMPTY"])
def test_a_key_that_is_not_there_is_named(server: Server, variable: str) -> None:
    with pytest.raises(EndpointError, match=rf"environment variable {variable} \(api_key_env\)"):
        client(server, api_key_env=variable)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("base_url", "http://user:hunter2@host/v1"),
        ("base_url", "http://host/v1?key=hunter2"),
        ("api_key_env", "sk-hunter2"),
    ],
)
def test_secrets_in_a_config_are_refused_and_not_repeated(field: str, value: str) -> None:
    endpoint = {"base_url": "http://host/v1", "model": "m"} | {field: value}
    with pytest.raises(ConfigError, match=rf"models.m.endpoint.{field}: must") as refused:
        validate({"models": {"m": {"endpoint": endpoint}}})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("address", ["host/v1", "ftp://host/v1", "http:///v1", "http://host:x/v1", "http://a b/v1", ""])
def test_an_address_is_one_of_http(address: str) -> None:
    with pytest.raises(ValidationError, match="must be an http or https address"):
        EndpointConfig(base_url=address, model="m")


def test_addresses_end_without_a_slash() -> None:
    assert ModelEndpoint(base_url="https://[::1]:8000/v1/", model="m").base_url == "https://[::1]:8000/v1"


NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


@given(st.integers(0, 10**8))
def test_retry_after_as_seconds_and_as_a_date_mean_the_same(seconds: int) -> None:
    date = format_datetime(NOW + dt.timedelta(seconds=seconds), usegmt=True)
    assert seconds_to_wait({"retry-after": f" {seconds} "}, NOW) == seconds
    assert seconds_to_wait({"retry-after": date}, NOW) == seconds
    # the server's clock counts, not ours
    theirs = format_datetime(NOW, usegmt=True)
    assert seconds_to_wait({"retry-after": date, "date": theirs}, NOW + dt.timedelta(hours=3)) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5", "1.5", "٣", "Mon, 99 Foo 2026 00:00:00 GMT"])
def test_an_illegible_retry_after_asks_for_nothing(text: str) -> None:
    assert seconds_to_wait({"retry-after": text}, NOW) is None


def test_a_date_that_has_passed_asks_for_no_wait() -> None:
    assert seconds_to_wait({"retry-after": "Thu, 01 Jan 2026 00:00:00 GMT"}, NOW) == 0


@given(st.text())
def test_words_of_a_server_are_one_printable_line(text: str) -> None:
    assert plain(text).isprintable()
    assert len(plain(text)) <= 300
    assert complaint(text.encode("utf-8", "surrogatepass"), None).isprintable()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "no\\nsuch thing", "code": 4}}', "no such thing"),
        (b'{"message": "old vLLM"}', "old vLLM"),
        (b'{"detail": [{"msg": "FastAPI"}]}', '[{"msg": "FastAPI"}]'),
        (b"<h1>Bad gateway</h1>\x00", "<h1>Bad gateway</h1>"),
        (b"\xff", "�"),
        (b"[" * 100_000, "[" * 299 + "…"),
        (b"", ""),
        (b'{"error": "the key s3cret is wrong"}', "the key *** is wrong"),
    ],
)
def test_complaints(body: bytes, said: str) -> None:
    assert complaint(body, "s3cret") == said
