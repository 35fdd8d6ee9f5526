"""Stage `dataset`: the chosen items of one dataset, from its pinned source."""

from __future__ import annotations

from userturn import job, layout
from userturn.artefacts import write_jsonl
from userturn.datasets import READERS, choose
from userturn.sources import Source, SourceCache, fetch, origin, read_member


class Spec(job.JobSpec):
    """What to read and how many items to choose."""

    dataset: str
    source: Source
    reader: str
    n_items: int | None
    seed: int


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``data/datasets/{dataset}.jsonl``."""
    cache = SourceCache.default()
    reader = READERS[spec.reader]
    fetch(spec.source, cache=cache, progress=job.say)
    available = reader.read(read_member(spec.source, cache))
    items = choose(available, spec.n_items, spec.seed, spec.dataset)
    path = layout.dataset(spec.dataset)
    write_jsonl(path, items)
    job.wrote(path)
    job.say(f"{spec.dataset}: {len(items)} of {len(available)} items")
    job.facts = {
        "source": origin(spec.source),
        "reader": {
            "name": reader.name,
            "description": reader.description,
            "licence": reader.licence,
            "scorer": reader.scorer,
        },
        "n_available": len(available),
        "n_items": len(items),
    }


if __name__ == "__main__":
    job.main("dataset", Spec, run)
