"""Stage `user_turns`: what the model writes under the user role, for all cells of a shard with one model load."""

from __future__ import annotations

from functools import cache

from userturn import job, layout
from userturn.artefacts import read_jsonl, write_jsonl
from userturn.config.engine import EngineConfig
from userturn.config.sampling import Sampling
from userturn.engine import vllm
from userturn.engine.generation import CellRequest, Generator, Prompted
from userturn.engine.interface import SamplingParameters, identity
from userturn.engine.store import CellStore
from userturn.probing import RendererSpec, template_facts, weights_sha256


class CellSpec(job.JobSpec):
    """One cell of the shard."""

    dataset: str
    perturbation: str
    temperature: float
    samples: int


class Spec(job.JobSpec):
    """One shard: a model and its cells."""

    model: str
    cells: tuple[CellSpec, ...]
    renderer: RendererSpec
    engine: EngineConfig
    sampling: Sampling
    seed: int
    lock_sha256: str


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``results/user_turns/{model}/{dataset}/{perturbation}/t{T}.jsonl`` for each cell."""
    format = spec.renderer.load(spec.model).format
    what = identity(spec.engine.model_dump(mode="json"), vllm.versions(), weights_sha256(spec.model))
    generator = Generator(
        lambda: vllm.VllmEngine(layout.model_folder(spec.model), spec.engine, job.threads),
        CellStore(layout.cell_store()),
        {**what, "lock_sha256": spec.lock_sha256},
        together=spec.engine.max_sequences if spec.engine.batch_invariant else 0,
    )

    @cache
    def prompted(dataset: str, perturbation: str) -> tuple[Prompted, ...]:
        path = layout.contexts(spec.model, dataset, perturbation)
        job.reads(path)
        return tuple(Prompted(row["item"], tuple(row["prompt_token_ids"])) for row in read_jsonl(path))

    requests = [
        CellRequest(
            key=f"{spec.model}/{cell.dataset}/{cell.perturbation}/{layout.temperature_key(cell.temperature)}",
            prompted=prompted(cell.dataset, cell.perturbation),
            samples=cell.samples,
            sampling=SamplingParameters(
                temperature=cell.temperature,
                stop_token_ids=format.stop_token_ids,
                **spec.sampling.model_dump(),
            ),
            study_seed=spec.seed,
        )
        for cell in spec.cells
    ]
    progress = job.progress(sum(map(len, requests)), f"{spec.model}: user turns")
    facts = {}
    for cell, request, rows in zip(spec.cells, requests, generator.cells(requests, progress.advance), strict=True):
        temperature = layout.temperature_key(cell.temperature)
        path = layout.user_turns(spec.model, cell.dataset, cell.perturbation, temperature)
        write_jsonl(path, rows)
        job.wrote(path)
        facts[request.key] = {
            "sampling": request.sampling.facts(),
            "samples": request.samples,
            "n_turns": len(rows),
            "n_tokens": sum(row["n_tokens"] for row in rows),
            "n_prompt_tokens": sum(row["n_prompt_tokens"] for row in rows),
        }
    progress.close()
    job.reads(layout.model(spec.model))
    job.say(f"generated {len(generator.generated)} cells, took {len(facts) - len(generator.generated)} from the store")
    job.facts = {
        "engine": {**what, "flags": vllm.flags(spec.engine)},
        "template": template_facts(format),
        "cells": facts,
    }


if __name__ == "__main__":
    job.main("user_turns", Spec, run)
