"""The complete studies in docs/models.md."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from userturn.config.load import open_revisions, validate
from userturn.plan import plan
from userturn.sources.config import PIN_ME, FolderSource


def test_the_documented_studies_are_complete(root: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (root / "docs" / "models.md").read_text("utf-8"), flags=re.DOTALL)
    folder, hub, endpoint = (validate(yaml.safe_load(block)) for block in blocks)
    assert isinstance(folder.models["mine"].source, FolderSource)
    assert folder.models["mine"].source.sha256 == PIN_ME
    assert open_revisions(hub) == open_revisions(endpoint) == ["models.mine.source.revision"]
    served = endpoint.models["mine"].endpoint
    assert served is not None
    assert (served.prompt, served.api_key_env) == ("token_ids", None)
    assert plan(endpoint).accelerator_hours == 0.0
    # the three differ in the model alone
    assert folder.probe == hub.probe == endpoint.probe
    assert folder.datasets == hub.datasets == endpoint.datasets
