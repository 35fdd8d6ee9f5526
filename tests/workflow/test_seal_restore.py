"""A study that Snakemake made: sealed, brought back elsewhere, and nothing is left to do."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import Workspace

pytestmark = [pytest.mark.workflow, pytest.mark.timeout(900)]

TOPS = ("data", "results", "sealed")
LARGE = 10_000_000


def userturn(folder: Path, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [folder / ".envs/workflow/bin/python", "-m", "userturn.cli", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


def copy(source: str, target: str) -> None:
    """Weights, which nothing writes here, as hard links."""
    (os.link if Path(source).stat().st_size > LARGE else shutil.copy2)(source, target)


def files(folder: Path) -> dict[str, bytes]:
    found = (file for top in TOPS for file in (folder / top).rglob("*") if file.is_file())
    # the weights are large and are compared by `userturn restore` itself
    return {f.relative_to(folder).as_posix(): f.read_bytes() for f in found if f.stat().st_size < LARGE}


@pytest.fixture(scope="module")
def sealed(finished: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The finished study, sealed in a git repository, pushed and committed."""
    made = Workspace(tmp_path_factory.mktemp("sealed") / "study")
    shutil.copytree(finished.folder, made.folder, symlinks=True, copy_function=copy)

    def git(*words: str) -> None:
        identity = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], cwd=made.folder, check=True, capture_output=True)

    git("init", "-q")
    said = userturn(made.folder, "seal", "--configfile", "config/tiny.yaml")
    assert "first seal of this study here" in said
    commit = next(line for line in said.splitlines() if line.startswith("commit")).split()[3:]
    settings = made.folder / ".dvc/config"
    remote = f"['remote \"here\"']\n    url = {made.folder.parent / 'remote'}\n"
    settings.write_text(settings.read_text().replace("[core]\n", "[core]\n    remote = here\n") + remote)
    assert "to the default remote" in userturn(made.folder, "seal", "--push", "--configfile", "config/tiny.yaml")
    git("add", *commit, ".")
    git("commit", "-q", "-m", "sealed")
    return made


@pytest.mark.parametrize("kind", ["clone", "archive"])
def test_nothing_is_left_to_do_after_a_restore(sealed: Workspace, root: Path, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "elsewhere"
    if kind == "clone":
        subprocess.run(["git", "clone", "-q", str(sealed.folder), str(folder)], check=True)
    else:
        folder.mkdir()
        archive = subprocess.run(
            ["git", "archive", "--format=tar", "HEAD"], cwd=sealed.folder, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    (folder / ".envs").unlink(missing_ok=True)
    (folder / ".envs").symlink_to(root / ".envs")
    assert not any((folder / top).exists() for top in TOPS)
    said = userturn(folder, "restore")
    assert "note" not in said
    assert "snakemake -n --configfile config/tiny.yaml" in said
    assert files(folder) == files(sealed.folder)
    for number, name in enumerate(files(folder)):
        os.utime(folder / name, (1.7e9 + 997 * (number % 13),) * 2)
    restored = Workspace(folder)
    assert restored.planned() == set()
    assert "result    the same" in userturn(folder, "verify")
    assert "nothing since the last seal" in userturn(folder, "seal", "--configfile", "config/tiny.yaml")


def test_no_rule_depends_on_where_the_checkout_is(sealed: Workspace) -> None:
    """For Snakemake the shell command as the rule has it is the rule's code: a path in it would run all again."""
    folder = sealed.folder / ".snakemake" / "metadata"
    for file in folder.rglob("*"):
        if file.is_file():
            record = json.loads(file.read_text())
            made = base64.urlsafe_b64decode(file.name).decode()
            assert not Path(record["code"].split()[0]).is_absolute(), f"{record['rule']} ({made})"
            assert ".envs" not in record["code"], made


def test_a_seal_is_refused_while_snakemake_runs(sealed: Workspace, tmp_path: Path) -> None:
    made = Workspace(tmp_path / "copy")
    shutil.copytree(sealed.folder, made.folder, symlinks=True, copy_function=copy)
    (made.folder / "results/report.html").unlink()
    with subprocess.Popen(
        made.command("results/report.html", "--cores", "1"),
        cwd=made.folder,
        env=made.environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if "Writing the report" in line:
                break
        said = userturn(made.folder, "seal", "--configfile", "config/tiny.yaml", code=1)
        rest = running.stdout.read()
    assert running.returncode == 0, rest
    assert "another run is active in this folder" in said
