"""Stage `assistant_turns`: the model's own answers to the items, by deterministic decoding."""

from __future__ import annotations

from userturn import job, layout
from userturn.artefacts import read_jsonl, write_jsonl
from userturn.config.endpoint import ModelEndpoint
from userturn.config.engine import EngineConfig
from userturn.engine.generation import CellRequest, Generator, Prompted
from userturn.engine.interface import SamplingParameters
from userturn.engine.open import open_engine
from userturn.engine.store import CellStore
from userturn.probing import RendererSpec, template_facts


class Spec(job.JobSpec):
    """One shard: a model and the datasets that it answers."""

    model: str
    datasets: tuple[str, ...]
    renderer: RendererSpec
    engine: EngineConfig
    endpoint: ModelEndpoint | None = None
    """Where the model is served; null where it is loaded here."""
    max_tokens: int
    seed: int
    lock_sha256: str


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``results/assistant_turns/{model}/{dataset}.jsonl`` for each dataset."""
    renderer = spec.renderer.load(spec.model)
    sampling = SamplingParameters(
        temperature=0.0,
        max_tokens=spec.max_tokens,
        stop_token_ids=renderer.format.assistant_stop_token_ids,
    )
    engine = open_engine(spec.model, spec.engine, spec.endpoint, threads=job.threads, lock_sha256=spec.lock_sha256)
    generator = Generator(engine.load, CellStore(layout.cell_store()), engine.identity, together=engine.together)
    items = {dataset: read_jsonl(layout.dataset(dataset)) for dataset in spec.datasets}
    prompts = {
        dataset: {row["item"]: renderer.assistant_prompt(row["messages"]) for row in rows}
        for dataset, rows in items.items()
    }
    requests = [
        CellRequest(
            key=f"{spec.model}/{dataset}/assistant",
            prompted=tuple(Prompted(item, prompt.token_ids) for item, prompt in found.items()),
            samples=1,
            sampling=sampling,
            study_seed=spec.seed,
        )
        for dataset, found in prompts.items()
    ]
    progress = job.progress(sum(map(len, requests)), f"{spec.model}: assistant turns")
    for dataset, turns in zip(spec.datasets, generator.cells(requests, progress.advance), strict=True):
        path = layout.assistant_turns(spec.model, dataset)
        write_jsonl(path, [turn | {"prompt": prompts[dataset][turn["item"]].text} for turn in turns])
        job.wrote(path, made_from=[layout.dataset(dataset), layout.model(spec.model)])
    progress.close()
    job.say(f"generated {len(generator.generated)} cells, took {len(items) - len(generator.generated)} from the store")
    job.facts = {
        "engine": engine.facts,
        "template": template_facts(renderer.format),
        "sampling": sampling.facts(),
    }


if __name__ == "__main__":
    job.main("assistant_turns", Spec, run)
