"""A hub on loopback for the real client libraries, and what the tests let a client process do with it."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from userturn.sources import HubSource

REVISION = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_madeUpSecretOfTheTests"

_TREE = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)/tree/([^/]+)")
_INFO = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)(?:/revision/([^/]+))?")
_RESOLVE = re.compile(r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


def git_oid(data: bytes) -> str:
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()


@dataclass
class Repository:
    """Files at one revision; those named in `large` are kept by sha256, as the hub does."""

    files: dict[str, bytes]
    gated: bool = False
    large: tuple[str, ...] = ()

    def etag(self, name: str) -> str:
        data = self.files[name]
        return hashlib.sha256(data).hexdigest() if name in self.large else git_oid(data)

    def entry(self, name: str) -> dict[str, object]:
        data = self.files[name]
        entry: dict[str, object] = {"type": "file", "oid": git_oid(data), "size": len(data), "path": name}
        if name in self.large:
            entry["lfs"] = {"oid": self.etag(name), "size": len(data), "pointerSize": 130}
        return entry


@dataclass
class Hub:
    """The server's state: repositories by (kind, name), files to cut, files to damage, and what was asked."""

    repositories: dict[tuple[str, str], Repository]
    cuts: dict[str, list[int]] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    endpoint: str = ""

    def asked(self, method: str, ending: str) -> list[str]:
        """The Range headers ('' for none) of requests of one method for paths with one ending."""
        return [wanted for how, path, wanted in self.requests if how == method and path.endswith(ending)]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _json(self, value: object) -> None:
        self._answer(200, json.dumps(value).encode(), Content_Type="application/json")

    def _refused(self, repository: Repository | None, revision: str | None) -> bool:
        """Answers as the hub does what may not or cannot be had."""
        authorised = self.headers.get("Authorization")
        if repository is None:
            self._answer(
                404 if authorised else 401, X_Error_Code="RepoNotFound", X_Error_Message="Repository not found"
            )
        elif repository.gated:
            self._answer(
                403 if authorised else 401,
                X_Error_Code="GatedRepo",
                X_Error_Message="Access to this repo is restricted.",
            )
        elif revision not in (None, "main", REVISION):
            self._answer(404, X_Error_Code="RevisionNotFound", X_Error_Message=f"Invalid rev id: {revision}")
        else:
            return False
        return True

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append((self.command, path, self.headers.get("Range", "")))
        if found := _TREE.fullmatch(path):
            repository = self.hub.repositories.get((found[1], found[2]))
            if not self._refused(repository, found[3]) and repository:
                self._json([repository.entry(name) for name in sorted(repository.files)])
        elif found := _INFO.fullmatch(path):
            repository = self.hub.repositories.get((found[1], found[2]))
            if not self._refused(repository, found[3]) and repository:
                siblings = [{"rfilename": name} for name in sorted(repository.files)]
                self._json({"id": found[2], "sha": REVISION, "siblings": siblings, "tags": [], "private": False})
        elif found := _RESOLVE.fullmatch(path):
            repository = self.hub.repositories.get(("datasets" if found[1] else "models", found[2]))
            if not self._refused(repository, found[3]) and repository:
                self._file(repository, found[4])
        else:
            self._answer(404)

    do_HEAD = do_GET  # noqa: N815

    def _file(self, repository: Repository, name: str) -> None:
        if name not in repository.files:
            self._answer(404, X_Error_Code="EntryNotFound", X_Error_Message="Entry not found", X_Repo_Commit=REVISION)
            return
        data, etag = repository.files[name], f'"{repository.etag(name)}"'
        if name in self.hub.damaged:
            data = bytes([data[0] ^ 1]) + data[1:]
        headers = {"ETag": etag, "X_Repo_Commit": REVISION, "Accept_Ranges": "bytes"}
        if name in repository.large:
            headers |= {"X_Linked_Etag": etag, "X_Linked_Size": str(len(data))}
        begin = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        cuts = self.hub.cuts.get(name)
        if self.command == "GET" and cuts:
            self.send_response(206 if begin else 200)
            self.send_header("Content-Length", str(len(data) - begin))
            self.end_headers()
            self.wfile.write(data[begin : begin + cuts.pop(0)])
            self.close_connection = True
            return
        if begin:
            headers["Content_Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
        self._answer(206 if begin else 200, data[begin:], **headers)


@contextmanager
def serving(repositories: dict[tuple[str, str], Repository]) -> Iterator[Hub]:
    """Serves repositories on a free port of 127.0.0.1."""
    hub = Hub(repositories)
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# what runs in a client process, whose environment was set before the client was imported


def client(action: str, settings: dict[str, str], where: str, token: str | None = None) -> dict[str, object]:
    """Does one thing with a hub source; returns what came of it, errors as ``{"error", "type"}``."""
    from userturn.models import build_from_hub
    from userturn.sources import HubSource, SourceCache, extract_member, fetch, read_member, read_table, rows_digest

    os.environ.pop("HF_TOKEN", None)
    if token:
        os.environ["HF_TOKEN"] = token
    told: list[str] = []
    source = HubSource.model_validate({"kind": "hub", "revision": REVISION, **settings})
    cache = SourceCache(Path(where) / "cache")
    try:
        if action == "file":
            path = fetch(source, cache=cache, progress=told.append)
            copied = extract_member(source, cache, Path(where) / "copied").read_bytes()
            return {"path": str(path), "data": read_member(source, cache), "copied": copied, "told": told}
        if action == "rows":
            rows = read_table(source, cache.root, told.append)
            return {"rows": rows, "sha256": rows_digest(rows), "left": [path.name for path in cache.root.rglob("*")]}
        if action == "stage":
            return _dataset_stage(source, Path(where))
        description = build_from_hub(source, Path(where) / "model", told.append, weights=action != "tokenizer")
        return {"description": description, "told": told}
    except Exception as error:
        return {"error": str(error), "type": type(error).__name__}


def _dataset_stage(source: HubSource, folder: Path) -> dict[str, object]:
    from userturn import layout
    from userturn.job import Job
    from userturn.stages.dataset import Spec, run

    os.chdir(folder)
    job = Job("dataset")
    run(Spec(dataset="made", source=source, reader="gsm8k", n_items=2, seed=1), job)
    return {"facts": job.facts, "data": layout.dataset("made").read_bytes()}


def quick_retries() -> None:
    """Lets the client wait a hundredth of the time between its attempts, and write what it has got more often."""
    import time

    from huggingface_hub import constants

    constants.DOWNLOAD_CHUNK_SIZE = 1 << 16
    pause = time.sleep
    time.sleep = lambda seconds: pause(seconds / 100)
