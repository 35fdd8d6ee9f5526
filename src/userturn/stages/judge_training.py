"""Stage `judge_training`: examples for the embedded judge, and how its classifiers do on held-out conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Literal

from userturn import job, layout
from userturn.artefacts import write_json, write_jsonl
from userturn.config.judging import TrainingSource
from userturn.datasets import READERS
from userturn.judges.embedded import store
from userturn.judges.embedded.classifiers import compare
from userturn.judges.embedded.conversations import Conversation, TrainingError, human, written
from userturn.judges.embedded.examples import construct
from userturn.judges.embedded.fluency import Fluency
from userturn.judges.embedded.vectors import texts, vectors
from userturn.judges.embedding import MiniLMEmbedder
from userturn.seeds import derive
from userturn.sources import SourceCache, fetch, origin, read_member

#: Examples whose features are computed together: between them the progress is shown.
BATCH = 500


class Spec(job.JobSpec):
    """One judge and where its training conversations come from."""

    judge: str
    training: Mapping[str, TrainingSource]
    classifier: Literal["auto", "logistic", "forest"]
    seed: int


def conversations(name: str, source: TrainingSource, seed: int, job: job.Job) -> Iterator[Conversation]:
    """Reads the conversations of one source."""
    cache = SourceCache.default()
    fetch(source.source, cache=cache, progress=job.say)
    data = read_member(source.source, cache)
    if source.reader == "written":
        found = written([json.loads(line) for line in data.decode("utf-8").splitlines() if line.strip()], name)
    else:
        items = READERS[source.reader].read(data, seed)
        found = list(human((item["item"], item["messages"], item["meta"]) for item in items))
    if not found:
        raise TrainingError(f"training.{name}: no exchange of query, answer and next user turn was found")
    ranked = sorted(range(len(found)), key=lambda place: derive(seed, "training conversation", name, place, bits=48))
    yield from (found[place] for place in sorted(ranked[: source.n_conversations]))


def run(spec: Spec, job: job.Job) -> None:
    """Writes examples, the fluency model and ``results/judges/{judge}/{validation.json,held_out.jsonl}``."""
    found = [one for name, source in spec.training.items() for one in conversations(name, source, spec.seed, job)]
    examples = construct(found, spec.seed)
    job.say(f"{len(found)} conversations, {len(examples)} examples")
    fluency = Fluency.of(
        text for one in found for text in (one.query, one.answer, *one.followups, *one.new_tasks, *one.assistant_voice)
    )
    embedder = MiniLMEmbedder(layout.judge_folder(spec.judge), threads=job.threads)
    progress = job.progress(len(examples), f"{spec.judge}: training examples")
    rows = []
    for start in range(0, len(examples), BATCH):
        batch = examples[start : start + BATCH]
        embedder.remember(texts([one.turn for one in batch]))
        names, x = vectors([one.turn for one in batch], embedder, fluency)
        rows += store.rows(batch, names, x.tolist())
        progress.advance(len(batch))
    progress.close()
    compared = compare(store.data(rows), derive(spec.seed, "judge", spec.judge, bits=31))
    kept = compared.kept if spec.classifier == "auto" else spec.classifier
    validation = {
        "kept": kept,
        "candidates": {name: dict(found) for name, found in compared.scores.items()},
        "n_conversations": len({row["group"] for row in rows}),
        "n_examples": len(rows),
    }
    held_out = [
        {key: rows[place][key] for key in ("group", "kind", "label")}
        | {"given": {name: labels[i] for name, labels in compared.given.items()}}
        for i, place in enumerate(compared.held_out)
    ]
    store.write_data(layout.judge_examples(spec.judge), rows)
    store.write_fluency(layout.judge_fluency(spec.judge), fluency)
    write_json(layout.judge_validation(spec.judge), validation)
    write_jsonl(layout.judge_held_out(spec.judge), held_out)
    job.reads(layout.judge_model(spec.judge))
    job.wrote(layout.judge_examples(spec.judge), layout.judge_fluency(spec.judge))
    job.wrote(layout.judge_validation(spec.judge), layout.judge_held_out(spec.judge))
    job.say(f"kept: {kept}")
    job.facts = {"sources": {name: origin(one.source) for name, one in spec.training.items()}}


if __name__ == "__main__":
    job.main("judge_training", Spec, run)
