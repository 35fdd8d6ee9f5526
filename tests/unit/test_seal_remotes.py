"""Pushing to and restoring from an S3-compatible server: a real program on the loopback."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError

import pytest

from sealed_fixture import CONFIG, contents, make_study
from userturn.provenance import dvc
from userturn.provenance.restore import restore
from userturn.provenance.seal import TO_COMMIT, push, seal


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a server with the bucket ``studies``."""
    program = root / ".envs/peers/bin/moto_server"
    if not program.is_file():
        pytest.skip("no S3-compatible server: make setup-dev")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with (tmp_path / "server.log").open("w") as log:
        process = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
    try:
        bucket = urllib.request.Request(f"{address}/studies", method="PUT")
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(bucket, timeout=5):
                    break
            except (URLError, ConnectionError):
                assert process.poll() is None, (tmp_path / "server.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(10)


def use(root: Path, address: str) -> None:
    """What docs/provenance.md says: the address in the committed settings, credentials in the local ones."""
    with (root / dvc.CONFIG).open("a") as stream:
        stream.write(f"['remote \"s3\"']\n    url = s3://studies/one\n    endpointurl = {address}\n")
    give_credentials(root)


def give_credentials(root: Path) -> None:
    with (root / dvc.LOCAL_CONFIG).open("a") as stream:
        stream.write("['remote \"s3\"']\n    access_key_id = somebody\n    secret_access_key = hidden-word\n")


def test_a_study_goes_to_a_server_and_comes_back(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    study_folder, folder = tmp_path / "study", tmp_path / "elsewhere"
    study = make_study(study_folder)
    seal(study_folder, study, [CONFIG])
    use(study_folder, server.replace(server.rpartition(":")[2], "1"))
    with pytest.raises(dvc.DvcFailed) as failed:
        push(study_folder, "s3")
    assert "hidden-word" not in str(failed.value) + "".join(capsys.readouterr())
    config = (study_folder / dvc.CONFIG).read_text()
    (study_folder / dvc.CONFIG).write_text(config.replace("127.0.0.1:1", server.removeprefix("http://")))
    assert seal(study_folder, study, [CONFIG]).unchanged
    push(study_folder, "s3")
    for path in (*TO_COMMIT, CONFIG, Path("envs/workflow.lock")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes((study_folder / path).read_bytes())
    dvc.prepare(folder)
    give_credentials(folder)
    restore(folder, remote="s3")
    assert contents(folder) == contents(study_folder)
    assert "hidden-word" not in (folder / dvc.CONFIG).read_text()
