"""Stage `user_turns`: what the model writes under the user role, for all cells of a shard with one model load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache

from userturn import job, layout
from userturn.artefacts import Row, read_jsonl, write_jsonl
from userturn.config.endpoint import ModelEndpoint
from userturn.config.engine import EngineConfig
from userturn.config.perturbations import CONTROLS
from userturn.config.sampling import Sampling
from userturn.engine.generation import CellRequest, Prompted
from userturn.engine.interface import Engine, SamplingParameters
from userturn.engine.open import Opening, open_engine
from userturn.engine.parts import SharedGenerator
from userturn.engine.store import CellStore
from userturn.probing import RendererSpec, template_facts
from userturn.render import Renderer


class CellSpec(job.JobSpec):
    """One cell of the shard."""

    dataset: str
    perturbation: str
    kind: str
    temperature: float
    samples: int

    def key(self, model: str) -> str:
        """``model/dataset/perturbation/t<T>``."""
        return f"{model}/{self.dataset}/{self.perturbation}/{layout.temperature_key(self.temperature)}"


class Spec(job.JobSpec):
    """One shard: a model and its cells."""

    model: str
    cells: tuple[CellSpec, ...]
    renderer: RendererSpec
    engine: EngineConfig
    endpoint: ModelEndpoint | None = None
    """Where the model is served; null where it is loaded here."""
    sampling: Mapping[str, Sampling]
    """By temperature, as `layout.temperature_key` spells it."""
    seed: int
    lock_sha256: str
    parts: int = 1
    """Jobs that write the turns together; this one then finds them in the store."""


def known_turns(contexts: Iterable[Row], renderer: Renderer) -> list[Row]:
    """The rows of a control: its user turns are known, so nothing is generated."""
    return [
        {
            "item": row["item"],
            "sample": 0,
            "seed": None,
            "text": row["user_turn"],
            "n_tokens": renderer.count_tokens(row["user_turn"]),
            "n_prompt_tokens": len(row["prompt_token_ids"]),
            "finish_reason": "control",
        }
        for row in contexts
    ]


def requested(spec: Spec, cell: CellSpec, contexts: Iterable[Row], renderer: Renderer) -> CellRequest:
    """What the engine is asked for one cell."""
    format = renderer.format
    stops = format.assistant_stop_token_ids if cell.kind == "instructed" else format.stop_token_ids
    sampling = spec.sampling[layout.temperature_key(cell.temperature)]
    return CellRequest(
        key=cell.key(spec.model),
        prompted=tuple(Prompted(row["item"], tuple(row["prompt_token_ids"])) for row in contexts),
        samples=cell.samples,
        sampling=SamplingParameters(temperature=cell.temperature, stop_token_ids=stops, **sampling.model_dump()),
        study_seed=spec.seed,
    )


def cached_contexts(model: str) -> Callable[[str, str], list[Row]]:
    """Reads the contexts of a dataset and perturbation, each artefact once however many cells it has."""
    return cache(lambda dataset, perturbation: read_jsonl(layout.contexts(model, dataset, perturbation)))


def opened(spec: Spec, job: job.Job) -> tuple[Opening[Engine], SharedGenerator]:
    """The engine of a shard, not loaded yet, and what generates with it."""
    engine = open_engine(spec.model, spec.engine, spec.endpoint, threads=job.threads, lock_sha256=spec.lock_sha256)
    store = CellStore(layout.cell_store())
    return engine, SharedGenerator(engine.load, store, engine.identity, together=engine.together)


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``results/user_turns/{model}/{dataset}/{perturbation}/t{T}.jsonl`` for each cell."""
    renderer = spec.renderer.load(spec.model)
    engine, generator = opened(spec, job)
    contexts = cached_contexts(spec.model)
    facts = {}

    def write(cell: CellSpec, rows: list[Row], sampling: SamplingParameters | None) -> None:
        temperature = layout.temperature_key(cell.temperature)
        path = layout.user_turns(spec.model, cell.dataset, cell.perturbation, temperature)
        write_jsonl(path, rows)
        origins = [layout.contexts(spec.model, cell.dataset, cell.perturbation), layout.model(spec.model)]
        job.wrote(path, made_from=origins)
        facts[cell.key(spec.model)] = {
            "sampling": sampling.facts() if sampling else None,
            "samples": cell.samples,
            "n_turns": len(rows),
            "n_tokens": sum(row["n_tokens"] for row in rows),
            "n_prompt_tokens": sum(row["n_prompt_tokens"] for row in rows),
        }

    generated = [cell for cell in spec.cells if cell.kind not in CONTROLS]
    for cell in spec.cells:
        if cell.kind in CONTROLS:
            write(cell, known_turns(contexts(cell.dataset, cell.perturbation), renderer), None)
    requests = [requested(spec, c, contexts(c.dataset, c.perturbation), renderer) for c in generated]
    progress = job.progress(sum(map(len, requests)), f"{spec.model}: user turns")
    written = generator.collect(requests, spec.parts, progress.advance)
    for cell, request, rows in zip(generated, requests, written, strict=True):
        write(cell, rows, request.sampling)
    progress.close()
    job.say(
        f"generated {len(generator.generated)} cells, took {len(requests) - len(generator.generated)} from the store"
    )
    job.facts = {
        "engine": engine.facts,
        "template": template_facts(renderer.format),
        "cells": facts,
    }


if __name__ == "__main__":
    job.main("user_turns", Spec, run)
