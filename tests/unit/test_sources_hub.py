"""The hub source: its configuration, and the real client libraries against a hub on loopback."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from hub_server import REVISION, TOKEN, Repository, client, git_oid, quick_retries, serving
from pydantic import TypeAdapter, ValidationError

from userturn.config.load import ConfigError, check_sources
from userturn.config.study import Study
from userturn.datasets import READERS
from userturn.models.snapshot import link_or_copy
from userturn.sources import HubSource, Source, SourceCache, SourceError, check_cached, fetch, origin
from userturn.sources.hub import rows_digest

PROBLEMS = [{"question": f"What is {n} and {n}?\u2028", "answer": f"Twice.\n#### {2 * n}"} for n in range(1, 4)]
README = """---
configs:
- config_name: main
  default: true
  data_files:
  - split: train
    path: main/train.jsonl
  - split: test
    path: main/test.jsonl
- config_name: other
  data_files: other/*.jsonl
---
Made up.
"""
LINES = "".join(json.dumps(problem) + "\n" for problem in PROBLEMS).encode()
WEIGHTS = bytes(range(256)) * 64
MODEL = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b"{}",
    "chat_template.jinja": b"{{ messages }}",
    "model.safetensors": WEIGHTS,
    "README.md": b"a card",
    "modeling_evil.py": b"raise SystemExit",
    "pytorch_model.bin": b"\x80\x04pickle",
    "original/model.safetensors": b"a second copy",
    "1_Pooling/config.json": b'{"pooling": "mean"}',
}
TAKEN = ["1_Pooling/config.json", "chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json"]


def parquet(rows):
    import pyarrow
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), buffer)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def hub():
    table = Repository(
        {
            "README.md": README.encode(),
            "main/train.jsonl": LINES,
            "main/test.jsonl": LINES[: LINES.index(b"\n") + 1],
            "other/a.jsonl": LINES,
            "eval.jsonl.gz": gzip.compress(LINES, mtime=0),
            "loader.py": b"raise SystemExit",
        }
    )
    columns = Repository({"data/test-00000-of-00001.parquet": parquet(PROBLEMS)})
    columns.large = tuple(columns.files)
    repositories = {
        ("datasets", "made/up"): table,
        ("datasets", "made/columns"): columns,
        ("datasets", "made/cut"): Repository({"big.jsonl": LINES * 2000, "short.jsonl": LINES}),
        ("datasets", "made/gated"): Repository({"a.jsonl": LINES}, gated=True),
        ("datasets", "made/broken"): Repository({"bad.jsonl": LINES}),
        ("models", "made/model"): Repository(MODEL, large=("model.safetensors",)),
        ("models", "made/served"): Repository(MODEL | {"model.safetensors.index.json": b"{}"}),
        ("models", "made/pickled"): Repository({"config.json": b"{}", "pytorch_model.bin": b"\x80\x04"}),
        ("models", "made/gated"): Repository(MODEL, gated=True),
    }
    with serving(repositories) as served:
        yield served


def environment(monkeypatch, home, **more):
    """Leaves the client nothing but what a test sets; it reads its settings when it is imported."""
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGING")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    settings = {
        "USERTURN_CACHE": str(home.parent),
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
        **more,
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    # a hidden folder, as the client's own default is
    return tmp_path_factory.mktemp("home") / ".cache" / "huggingface"


def pool():
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=quick_retries)


@pytest.fixture(scope="module")
def online(hub, home):
    """One client process for the tests that have a connection."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        environment(monkeypatch, home, HF_ENDPOINT=hub.endpoint)
        with pool() as processes:
            processes.submit(os.getpid).result()
            yield lambda *arguments: processes.submit(client, *arguments).result(timeout=120)


def files(path, repo="made/up"):
    return {"repo": repo, "repo_type": "dataset", "path": path}


def rows(config, split, repo="made/up"):
    return {"repo": repo, "repo_type": "dataset", "config": config, "split": split}


MODEL_SOURCE = {"repo": "made/model", "repo_type": "model"}


def test_one_file_of_a_repository(hub, online, home, tmp_path):
    found = online("file", files("eval.jsonl.gz"), str(tmp_path))
    assert gzip.decompress(found["data"]) == LINES
    assert found["copied"] == found["data"]
    assert Path(found["path"]).is_relative_to(home)
    assert len(READERS["gsm8k"].read(found["data"])) == 3
    assert "reading dataset made/up@0123456789ab (eval.jsonl.gz)" in found["told"][0]
    # the second time nothing is asked
    before = len(hub.requests)
    assert online("file", files("eval.jsonl.gz"), str(tmp_path))["data"] == found["data"]
    assert len(hub.requests) == before


def test_rows_of_a_dataset_and_its_file_give_the_same_items(hub, online, tmp_path):
    train = online("rows", rows("main", "train"), str(tmp_path))
    assert train.get("rows") == PROBLEMS, train
    assert online("rows", rows("main", "test"), str(tmp_path))["rows"] == PROBLEMS[:1]
    assert online("rows", rows(None, "test", "made/columns"), str(tmp_path))["rows"] == PROBLEMS
    assert train["sha256"] == rows_digest(PROBLEMS)
    assert train["left"] == []
    assert READERS["gsm8k"].read_rows(train["rows"]) == READERS["gsm8k"].read(LINES)
    assert not hub.asked("GET", "loader.py")


def test_the_dataset_stage_writes_the_same_items_from_rows_and_from_the_file(online, tmp_path):
    read = [online("stage", settings, str(tmp_path)) for settings in (rows("main", "train"), files("main/train.jsonl"))]
    assert read[0]["data"] == read[1]["data"] != b""
    assert read[0]["facts"]["source"] == {
        "kind": "hub",
        "repo": "made/up",
        "repo_type": "dataset",
        "revision": REVISION,
        "config": "main",
        "split": "train",
    }
    assert read[0]["facts"]["read_sha256"] == rows_digest(PROBLEMS)
    assert read[1]["facts"]["read_sha256"] == hashlib.sha256(LINES).hexdigest()
    assert (read[0]["facts"]["n_items"], read[0]["facts"]["n_available"]) == (2, 3)
    assert read[0]["facts"]["reader"]["publish_items"] is True


@pytest.mark.parametrize(
    ("action", "settings", "said"),
    [
        ("rows", rows("main", "validation"), ["cannot be read as rows", 'Unknown split "validation"', "train", "test"]),
        ("rows", rows("nothing", "train"), ["cannot be read as rows", "nothing", "main", "other"]),
        ("file", files("absent.jsonl"), ["dataset made/up has no file 'absent.jsonl' at this revision"]),
        ("file", files("a", "made/absent"), ["there is no dataset made/absent", "private or gated", "HF_TOKEN"]),
        ("file", {**files("eval.jsonl.gz"), "revision": "f" * 40}, ["no revision " + "f" * 40, "userturn pin"]),
        ("rows", {**rows("main", "train"), "revision": "f" * 40}, ["no revision " + "f" * 40, "userturn pin"]),
        ("model", {**MODEL_SOURCE, "revision": "f" * 40}, ["no revision " + "f" * 40, "userturn pin"]),
        ("file", files("a.jsonl", "made/gated"), ["is gated", "/datasets/made/gated", "HF_TOKEN", "no token is set"]),
        ("rows", rows(None, "train", "made/gated"), ["is gated", "Accept them on", "no token is set"]),
        ("model", {**MODEL_SOURCE, "repo": "made/gated"}, ["is gated", "Accept them on", "no token is set"]),
    ],
)
def test_what_the_hub_refuses_is_explained(online, tmp_path, action, settings, said):
    found = online(action, settings, str(tmp_path))
    assert found["type"] == "SourceError", found
    assert [part for part in said if part not in found["error"]] == [], found["error"]
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("action", ["file", "model"])
def test_a_token_without_access_is_told_and_never_shown(online, tmp_path, action):
    settings = files("a.jsonl", "made/gated") if action == "file" else {**MODEL_SOURCE, "repo": "made/gated"}
    found = online(action, settings, str(tmp_path), TOKEN)
    assert found["type"] == "SourceError"
    assert "HF_TOKEN is set, but its account has not been given access" in found["error"]
    assert TOKEN not in found["error"]


def test_a_cut_connection_is_resumed_where_it_was(hub, online, tmp_path):
    hub.cuts["big.jsonl"] = [100_000]
    found = online("file", files("big.jsonl", "made/cut"), str(tmp_path))
    assert found["data"] == LINES * 2000
    assert hub.asked("GET", "big.jsonl") == ["", "bytes=65536-"]


def test_a_connection_that_stays_cut_leaves_nothing_half_written(hub, online, home, tmp_path):
    hub.cuts["short.jsonl"] = [10, *[0] * 20]
    found = online("file", files("short.jsonl", "made/cut"), str(tmp_path))
    assert found["type"] == "SourceError"
    assert "was interrupted" in found["error"]
    assert "nothing half-written was kept" in found["error"]
    blobs = home / "hub" / "datasets--made--cut" / "blobs"
    assert not [path for path in blobs.glob("*") if "incomplete" in path.name or path.name == git_oid(LINES)]
    hub.cuts.clear()
    assert online("file", files("short.jsonl", "made/cut"), str(tmp_path))["data"] == LINES


def test_a_damaged_file_of_the_cache_is_downloaded_again(online, tmp_path):
    path = Path(online("file", files("other/a.jsonl"), str(tmp_path))["path"])
    path.resolve().write_bytes(b"changed")
    found = online("file", files("other/a.jsonl"), str(tmp_path))
    assert found["data"] == LINES
    assert "damaged: downloading it again" in found["told"][-1]


def test_a_damaged_model_file_of_the_cache_is_downloaded_again(online, home, tmp_path):
    first = online("model", MODEL_SOURCE, str(tmp_path))
    snapshot = home / "hub" / "models--made--model" / "snapshots" / REVISION
    (snapshot / "model.safetensors").resolve().write_bytes(WEIGHTS[:-1] + b"!")
    again = online("model", MODEL_SOURCE, str(tmp_path))
    assert again["description"] == first["description"]
    assert any("damaged in the cache" in line and "model.safetensors" in line for line in again["told"])


def test_a_mirror_that_changes_files_is_refused(hub, online, tmp_path):
    hub.damaged.add("bad.jsonl")
    found = online("file", files("bad.jsonl", "made/broken"), str(tmp_path))
    assert found["type"] == "SourceError"
    assert "does not have the digest that the hub names for it" in found["error"]


def test_a_model_folder_of_data_alone(hub, online, tmp_path):
    found = online("model", MODEL_SOURCE, str(tmp_path))["description"]
    folder = tmp_path / "model"
    assert sorted(found["files"]) == TAKEN
    assert found["origin"] == {"kind": "hub", "repo": "made/model", "repo_type": "model", "revision": REVISION}
    assert found["files"]["model.safetensors"]["sha256"] == hashlib.sha256(WEIGHTS).hexdigest()
    written = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    assert sorted(written) == sorted([*TAKEN, "model.json"])
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    for name in ("modeling_evil.py", "pytorch_model.bin", "original/model.safetensors"):
        assert not hub.asked("GET", name)
    description = (folder / "model.json").read_bytes()
    assert online("model", MODEL_SOURCE, str(tmp_path))["description"] == found
    assert (folder / "model.json").read_bytes() == description


def test_a_model_behind_an_endpoint_leaves_its_weights_where_they_are(hub, online, tmp_path):
    before = len(hub.requests)
    found = online("tokenizer", {**MODEL_SOURCE, "repo": "made/served"}, str(tmp_path))["description"]
    assert sorted(found["files"]) == [name for name in TAKEN if name != "model.safetensors"]
    assert not [path for _, path, _ in hub.requests[before:] if "resolve" in path and "safetensors" in path]
    assert not (tmp_path / "model" / "model.safetensors").exists()


def test_a_repository_of_pickles_is_no_model(hub, online, tmp_path):
    found = online("model", {**MODEL_SOURCE, "repo": "made/pickled"}, str(tmp_path))
    assert found["type"] == "ModelError"
    assert "pickled weights such as pytorch_model.bin are never read" in found["error"]
    assert not hub.asked("GET", "pytorch_model.bin")
    assert not (tmp_path / "model").exists()


def test_offline_the_cache_is_all_there_is(hub, online, home, tmp_path):
    expected = [
        online("file", files("eval.jsonl.gz"), str(tmp_path))["data"],
        online("rows", rows("main", "train"), str(tmp_path))["rows"],
        online("model", MODEL_SOURCE, str(tmp_path))["description"],
    ]
    before = len(hub.requests)
    with pytest.MonkeyPatch.context() as monkeypatch:
        environment(monkeypatch, home, HF_ENDPOINT=hub.endpoint, HF_HUB_OFFLINE="1")
        with pool() as processes:
            offline = [
                processes.submit(client, *arguments).result(timeout=120)
                for arguments in [
                    ("file", files("eval.jsonl.gz"), str(tmp_path)),
                    ("rows", rows("main", "train"), str(tmp_path)),
                    ("model", MODEL_SOURCE, str(tmp_path / "again")),
                    ("file", files("main/train.jsonl", "made/absent"), str(tmp_path)),
                    ("model", {**MODEL_SOURCE, "repo": "made/pickled2"}, str(tmp_path)),
                ]
            ]
    assert [offline[0]["data"], offline[1]["rows"], offline[2]["description"]] == expected
    for found in offline[3:]:
        assert found["type"] == "SourceError"
        assert "HF_HUB_OFFLINE is set" in found["error"]
    assert len(hub.requests) == before


@pytest.mark.parametrize("why", ["other file system", "somebody else's"])
def test_what_cannot_be_linked_is_copied(tmp_path, monkeypatch, why):
    (tmp_path / "blob").write_bytes(b"weights")
    (tmp_path / "name").symlink_to(tmp_path / "blob")
    if why == "other file system":
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EXDEV, "made up")))
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    link_or_copy(tmp_path / "name", tmp_path / "sub" / "copy")
    copied = tmp_path / "sub" / "copy"
    assert copied.read_bytes() == b"weights"
    assert not copied.is_symlink()
    assert copied.stat().st_ino != (tmp_path / "blob").stat().st_ino


def test_large_files_are_linked_and_small_ones_copied(tmp_path):
    (tmp_path / "blob").write_bytes(b"weights")
    link_or_copy(tmp_path / "blob", tmp_path / "linked", smallest=7)
    link_or_copy(tmp_path / "blob", tmp_path / "copied", smallest=8)
    inodes = [(tmp_path / name).stat().st_ino for name in ("blob", "linked", "copied")]
    assert inodes[0] == inodes[1] != inodes[2]


def test_a_link_that_fails_for_another_reason_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "blob").write_bytes(b"weights")
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "made up")))
    with pytest.raises(OSError, match="made up"):
        link_or_copy(tmp_path / "blob", tmp_path / "copy")


# the configuration


def hub_source(**settings):
    return HubSource.model_validate({"kind": "hub", "revision": REVISION, **MODEL_SOURCE, **settings})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"repo": "gpt2"}, "must be owner/name"),
        ({"repo": "datasets/openai/gsm8k"}, "must be owner/name"),
        ({"repo": "https://hub.example/a/b"}, "must be owner/name"),
        ({"repo": "a/.."}, "must be owner/name"),
        ({"repo": "a/b--c"}, "must be owner/name"),
        ({"revision": "main"}, "40 lower-case hexadecimal digits"),
        ({"revision": REVISION[:-1]}, "40 lower-case hexadecimal digits"),
        ({"revision": REVISION.upper()}, "40 lower-case hexadecimal digits"),
        ({"path": "../a"}, "a file's path inside the repository"),
        ({"path": "a/"}, "a file's path inside the repository"),
        ({"path": "a\\b"}, "a file's path inside the repository"),
        ({"config": "main"}, "config and split are for datasets"),
        ({"repo_type": "dataset"}, "a dataset needs split"),
        ({"repo_type": "dataset", "config": "main"}, "a dataset needs split"),
        ({"repo_type": "dataset", "split": "test", "path": "a"}, "not both"),
        ({"repo_type": "dataset", "split": " "}, "must be a name"),
        ({"repo_type": "space"}, "'model' or 'dataset'"),
        ({"sha256": "0" * 64}, "unknown key; allowed here: config, kind, path, repo"),
    ],
)
def test_a_source_that_cannot_be_meant_is_refused(settings, said):
    with pytest.raises(ValidationError, match="hub") as caught:
        TypeAdapter(Source).validate_python({"kind": "hub", "revision": REVISION, **MODEL_SOURCE, **settings})
    assert said in str(caught.value)


def test_what_a_source_is():
    assert hub_source().is_folder
    assert not hub_source(path="model.gguf").is_folder
    table = hub_source(repo_type="dataset", config="main", split="test")
    assert table.is_table
    assert not table.is_folder
    assert str(table) == "dataset made/model@0123456789ab (main/test)"
    assert origin(table) == {
        "kind": "hub",
        "repo": "made/model",
        "repo_type": "dataset",
        "revision": REVISION,
        "config": "main",
        "split": "test",
    }


def test_a_source_that_is_not_pinned_is_refused_before_anything_is_planned(tmp_path):
    source = hub_source(revision="pin me")
    for check in (check_cached, lambda source, cache: fetch(source, cache=cache)):
        with pytest.raises(SourceError, match=r"made/model is not pinned .*`userturn pin --configfile FILE`"):
            check(source, SourceCache(tmp_path))
    from userturn.config.default_study import DEFAULT_STUDY

    models = {"made": {"source": {"kind": "hub", "revision": "pin me", **MODEL_SOURCE}}}
    study = Study.model_validate({**DEFAULT_STUDY, "models": models})
    with pytest.raises(ConfigError, match=r"models\.made\.source.*userturn pin"):
        check_sources(study, SourceCache(tmp_path))


def test_offline_a_revision_that_is_not_cached_is_refused_before_anything_is_planned(tmp_path, monkeypatch):
    environment(monkeypatch, tmp_path, HF_HUB_OFFLINE="1")
    folder = tmp_path / "hub" / "models--made--model" / "snapshots" / REVISION
    with pytest.raises(SourceError, match=r"HF_HUB_OFFLINE is set") as caught:
        check_cached(hub_source(), SourceCache(tmp_path))
    assert str(folder) in str(caught.value)
    folder.mkdir(parents=True)
    check_cached(hub_source(), SourceCache(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "elsewhere"))
    with pytest.raises(SourceError, match="elsewhere"):
        check_cached(hub_source(), SourceCache(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    check_cached(hub_source(), SourceCache(tmp_path))


def test_a_config_is_checked_without_the_client_libraries():
    code = (
        "import sys; from userturn.sources import HubSource, SourceCache, check_cached\n"
        "import userturn.config.load, userturn.models, pathlib\n"
        f"source = HubSource(kind='hub', repo='a/b', repo_type='model', revision='{REVISION}')\n"
        "check_cached(source, SourceCache(pathlib.Path('nowhere')))\n"
        "print([name for name in ('huggingface_hub', 'datasets', 'torch', 'transformers') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
