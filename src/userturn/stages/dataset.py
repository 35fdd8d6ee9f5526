"""Stage `dataset`: the chosen items of one dataset, from its pinned source."""

from __future__ import annotations

import hashlib

from userturn import job, layout
from userturn.artefacts import write_jsonl
from userturn.datasets import READERS, choose
from userturn.sources import HubSource, Source, SourceCache, fetch, origin, read_member, read_table, rows_digest


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
    if isinstance(spec.source, HubSource) and spec.source.is_table:
        found = read_table(spec.source, cache.root, job.say)
        digest = rows_digest(found)
        available = reader.read_rows(found, spec.seed)
    else:
        fetch(spec.source, cache=cache, progress=job.say)
        data = read_member(spec.source, cache)
        digest = hashlib.sha256(data).hexdigest()
        available = reader.read(data, spec.seed)
    items = choose(available, spec.n_items, spec.seed, spec.dataset)
    path = layout.dataset(spec.dataset)
    write_jsonl(path, items)
    job.wrote(path)
    job.say(f"{spec.dataset}: {len(items)} of {len(available)} items")
    job.facts = {
        "source": origin(spec.source),
        "read_sha256": digest,
        "reader": {
            "name": reader.name,
            "description": reader.description,
            "licence": reader.licence,
            "scorer": reader.scorer,
            "publish_items": reader.publish_items,
            "note": reader.note,
        },
        "n_available": len(available),
        "n_items": len(items),
    }


if __name__ == "__main__":
    job.main("dataset", Spec, run)
