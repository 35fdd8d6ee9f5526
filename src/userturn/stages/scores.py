"""Stage `scores`: task scores of the assistant turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from userturn import job, layout
from userturn.artefacts import read_jsonl, write_jsonl
from userturn.datasets import READERS
from userturn.scoring import get_scorer


class Spec(job.JobSpec):
    """One shard: a model and the readers of its datasets."""

    model: str
    readers: Mapping[str, str]
    """Reader by dataset."""


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``results/scores/{model}/{dataset}.jsonl``."""
    for dataset, reader in spec.readers.items():
        items = {row["item"]: row for row in read_jsonl(layout.dataset(dataset))}
        turns = read_jsonl(layout.assistant_turns(spec.model, dataset))
        rows = []
        for turn in turns:
            item = items[turn["item"]]
            # in a user's own data each item names its scorer
            scorer = get_scorer(item["meta"].get("scorer", READERS[reader].scorer))
            rows.append({"item": turn["item"], **asdict(scorer.score(turn["text"], item))})
        path = layout.scores(spec.model, dataset)
        write_jsonl(path, rows)
        job.wrote(path, made_from=[layout.dataset(dataset), layout.assistant_turns(spec.model, dataset)])
        unscored = sum(row["state"] == "unscored" for row in rows)
        job.say(f"{dataset}: {len(rows)} assistant turns, {unscored} unscored")


if __name__ == "__main__":
    job.main("scores", Spec, run)
