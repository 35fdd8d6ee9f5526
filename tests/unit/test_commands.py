from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from userturn import layout
from userturn.artefacts import write_jsonl
from userturn.cli import COMMANDS, main
from userturn.pinning import PinningError, hub_commit, pin, unpinned

PAPER = Path("config/paper.yaml")


@pytest.fixture(autouse=True)
def _in_checkout(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)


# --- dispatch


def test_the_command_line_imports_nothing_heavy() -> None:
    heavy = ("pydantic", "numpy", "yaml", "transformers", "huggingface_hub", "snakemake", "scipy")
    code = f"import sys, userturn.cli; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_command_has_help_and_wrong_usage_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        with pytest.raises(SystemExit) as left:
            main([name, "--help"])
        assert left.value.code == 0
    for wrong in ([], ["no-such-command"], ["plan", "--no-such-option"], ["power", "--items", "many"]):
        with pytest.raises(SystemExit) as left:
            main(wrong)
        assert left.value.code == 2
    capsys.readouterr()


def test_a_refused_config_is_1_with_the_reason_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "none.yaml")
    for words in (["config", "check", missing], ["plan", "--configfile", missing]):
        assert main(words) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err == f"userturn: error: {missing}: no such config file\n"


# --- power


def test_a_config_that_is_no_text_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.yaml").write_bytes(b"name: a\xff\n")
    assert main(["status", "--configfile", str(tmp_path / "study.yaml")]) == 1
    assert "study.yaml: not UTF-8 (byte 7)" in capsys.readouterr().err


def test_what_a_terminal_obeys_is_not_repeated_in_messages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--configfile", "a\x1b[31m\x9b"]) != 0
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\x9b" not in said
    assert "⟦U+001B⟧" in said


def test_a_full_disk_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(options: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "numbers.csv")

    monkeypatch.setattr(COMMANDS["status"], "run", full)
    assert main(["status"]) == 1
    assert capsys.readouterr().err == "userturn: error: No space left on device: numbers.csv\n"


def test_power_tells_what_the_library_computes(capsys: pytest.CaptureFixture[str]) -> None:
    from userturn.statistics.power import power

    words = "power --items 60 --samples 2 --rate 0.1 --icc 0.2 --difference 0.15 --simulations 40 --seed 4"
    assert main([*words.split(), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    expected = power(60, 2, 0.1, 0.2, 0.15, simulations=40, seed=4)
    assert told["power"] == expected.power
    assert told["interval"]["low"] == expected.interval.low
    assert main(words.split()) == 0
    assert f"+0.15 is found (paired test, p < 0.05) in {expected.power:.1%} of studies" in capsys.readouterr().out


def test_power_searches_a_difference_where_none_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "--items", "40", "--rate", "0.1", "--icc", "0", "--simulations", "60", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0.05 < found["difference"] < 0.6
    assert found["power"] >= 0.8


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("power --items 0 --rate 0.1 --difference 0.1", "n_items is 0"),
        ("power --items 10 --rate 0.9 --difference 0.2", "rate + difference is 1.1"),
        ("power --items 2 --rate 0.1 --simulations 20", "not even a rise to a rate of 1"),
    ],
)
def test_power_refuses_designs_that_cannot_be(words: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 1
    said = capsys.readouterr().err
    assert reason in said
    assert said.count("\n") == 1


# --- render


def test_render_shows_the_template_as_the_renderer_uses_it(
    chat_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from userturn.render import load_renderer

    words = ["render", "--folder", str(chat_model), "--text", "Hi", "--answer", "Hello."]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    renderer = load_renderer(chat_model)
    context = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    assert told["prompts"]["user"]["token_ids"] == list(renderer.user_prompt(context).token_ids)
    assert told["prompts"]["assistant"]["token_ids"] == list(renderer.assistant_prompt(context[:1]).token_ids)
    assert told["stops"] == {"0": "<|endoftext|>", "1": "<|im_start|>", "2": "<|im_end|>"}
    assert main(words) == 0
    page = capsys.readouterr().out
    assert "user header       <|im_start|>user⏎  token ids [1, 4093, 198]" in page
    assert "<|im_start|>assistant⏎\nHello.<|im_end|>⏎\n<|im_start|>user⏎\n" in page
    assert f"{len(told['prompts']['user']['token_ids'])} tokens" in page


def test_render_makes_control_characters_visible(chat_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--folder", str(chat_model), "--text", "a\x1b[31mb\u202ec\r", "--answer", "d"]) == 0
    page = capsys.readouterr().out
    assert "a⟦U+001B⟧[31mb⟦U+202E⟧c⟦U+000D⟧" in page
    assert not {"\x1b", "\u202e", "\r"} & set(page)


def test_render_takes_a_models_settings_from_the_study(
    chat_model: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    study = yaml.safe_load(Path("config/config.yaml").read_text())
    study["models"]["smollm2-135m-instruct"] |= {"prefix": "retained", "extra_stop_token_ids": [7]}
    config = tmp_path / "study.yaml"
    config.write_text(yaml.safe_dump(study))
    words = ["render", "--configfile", str(config), "--model", "smollm2-135m-instruct", "--folder", str(chat_model)]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["prefix"] == "retained"
    assert "7" in told["stops"]


def test_render_takes_an_item_and_its_answer_from_a_study_that_has_run(
    chat_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"item": f"i{n}", "messages": [{"role": "user", "content": f"query {n}"}]} for n in (1, 2)]
    write_jsonl(layout.dataset("ifeval"), rows)
    write_jsonl(layout.assistant_turns("smollm2-135m-instruct", "ifeval"), [{"item": "i2", "text": "answer 2"}])
    common = ["render", "--configfile", str(root / "config/config.yaml"), "--model", "smollm2-135m-instruct"]
    words = [*common, "--folder", str(chat_model), "--dataset", "ifeval", "--json", "--item"]
    for item, query, answered in (("2", "query 2", True), ("i2", "query 2", True), ("i1", "query 1", False)):
        assert main([*words, item]) == 0
        told = json.loads(capsys.readouterr().out)
        assert query in told["prompts"]["user"]["text"]
        assert ("answer 2" in told["prompts"]["user"]["text"]) is answered
        assert told["answer_from"].startswith("results/assistant_turns" if answered else "an example")
    assert main([*words, "3"]) == 1
    assert "has the items 1 to 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("render", "give --model M (a model of the study) or --folder F"),
        ("render --model nobody", "'nobody' is no model of this study; known: smollm2-135m-instruct"),
        ("render --folder no/such/folder", "no/such/folder: no model folder"),
        ("render --folder x --item 1 --text q", "either --item or --text"),
        ("render --folder x --template-kwarg date", "'date': expected NAME=VALUE"),
    ],
)
def test_render_refuses_with_one_line(words: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 1
    said = capsys.readouterr().err
    assert reason in said
    assert said.count("\n") == 1


# --- pin


class _Hub(BaseHTTPRequestHandler):
    """The one page of the hub's protocol that pinning asks for."""

    commits = {  # noqa: RUF012
        "/api/models/some/model": "a" * 40,
        "/api/datasets/some/data": "b" * 40,
        "/api/datasets/some/odd": "main",
    }

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].removesuffix("/revision/main")
        gated = path == "/api/datasets/some/gated"
        found = path in self.commits
        body = json.dumps({"id": path.split("/", 3)[-1], "sha": self.commits.get(path), "siblings": []}).encode()
        self.send_response(200 if found else 403 if gated else 404)
        if not found:
            self.send_header("X-Error-Code", "GatedRepo" if gated else "RepoNotFound")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hub) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield address
        server.shutdown()


OPEN = """\
# a comment that stays, with: pin me
models:
  a:   # beside the name
    source: {kind: hub, repo: some/model, repo_type: model, revision: pin me}  # and here
  b:
    source:
      kind: hub
      revision: 'pin me'
      repo: some/model
      repo_type: model
datasets:
  d:
    source:
      kind: hub
      repo: some/data
      repo_type: dataset
      split: test
      revision: "pin me" # mind the quotes
  pinned:
    source: {kind: hub, repo: some/none, repo_type: dataset, revision: %s}
""" % ("c" * 40)


def test_pin_changes_the_open_revisions_and_nothing_else(
    hub: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(OPEN)
    assert main(["pin", "--configfile", str(path)]) == 0
    said = capsys.readouterr().out.splitlines()
    expected = OPEN.replace("revision: pin me}", "revision: " + "a" * 40 + "}")
    expected = expected.replace("revision: 'pin me'", "revision: " + "a" * 40)
    assert path.read_text() == expected.replace('revision: "pin me" #', "revision: " + "b" * 40 + " #")
    assert said[0] == f"{path}:4: models.a.source.revision: some/model (model) pinned to {'a' * 40}"
    assert [line.split(": ")[1] for line in said[1:]] == ["models.b.source.revision", "datasets.d.source.revision"]
    assert main(["pin", str(path)]) == 0
    assert "nothing to pin" in capsys.readouterr().out


def test_a_commit_of_digits_alone_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(OPEN)
    assert len(pin(path, lambda repo, kind: "1" * 40)) == 3
    assert yaml.safe_load(path.read_text())["models"]["a"]["source"]["revision"] == "1" * 40


@pytest.mark.parametrize(
    ("repo", "reason"),
    [
        ("some/none", "has no such repository"),
        ("some/gated", "is gated: accept its terms"),
        ("some/odd", "gave 'main' for its revision"),
    ],
)
def test_pin_writes_all_or_nothing(
    repo: str, reason: str, hub: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.yaml"
    text = OPEN.replace("some/data", repo)
    path.write_text(text)
    assert main(["pin", "--configfile", str(path)]) == 1
    assert reason in capsys.readouterr().err
    assert path.read_text() == text


def test_pin_says_that_the_hub_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    path = tmp_path / "study.yaml"
    path.write_text(OPEN)
    with pytest.raises(PinningError, match=r"the hub at http://127\.0\.0\.1:9 cannot be reached"):
        pin(path)
    assert path.read_text() == OPEN


def test_pin_does_not_hide_a_fault_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def broken(*_: object, **__: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(huggingface_hub.HfApi, "repo_info", broken)
    with pytest.raises(KeyError):
        hub_commit("some/model", "model")


def test_the_papers_config_is_open_in_known_places() -> None:
    found = unpinned(PAPER.read_text())
    assert len(found) <= 16
    assert all(one.key.split(".")[0] in {"models", "datasets"} for one in found)


# --- studies with open revisions


def test_an_open_revision_is_refused_once_naming_keys_and_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.yaml"
    study = yaml.safe_load(Path("config/config.yaml").read_text())
    for name in ("smollm2-135m-instruct", "second"):
        study["models"][name] = {
            "source": {"kind": "hub", "repo": "some/model", "repo_type": "model", "revision": "pin me"}
        }
    path.write_text(yaml.safe_dump(study))
    assert main(["config", "check", str(path)]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "models.second.source.revision, models.smollm2-135m-instruct.source.revision" in said
    assert "userturn pin --configfile" in said
    assert main(["plan", "--configfile", str(path)]) == 0
    assert "2 revisions are not pinned yet" in capsys.readouterr().out


@pytest.mark.workflow
def test_snakemake_refuses_open_revisions_before_the_dag(root: Path, tmp_path: Path) -> None:
    snakemake = root / ".envs/workflow/bin/snakemake"
    if not snakemake.exists():
        pytest.skip("no workflow environment: run the tests with `make test`")
    path = tmp_path / "study.yaml"
    study = yaml.safe_load(Path("config/config.yaml").read_text())
    study["datasets"]["gsm8k"]["source"] = {
        "kind": "hub", "repo": "openai/gsm8k", "repo_type": "dataset", "revision": "pin me", "split": "test",
    }  # fmt: skip
    path.write_text(yaml.safe_dump(study))
    done = subprocess.run(
        [str(snakemake), "-n", "results/report.html", "--configfile", str(path)],
        cwd=root,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "1 revisions say 'pin me': datasets.gsm8k.source.revision" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
