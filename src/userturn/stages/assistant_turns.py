"""Stage `assistant_turns`: the model's own answers to the items, by deterministic decoding."""

from __future__ import annotations

from userturn import job, layout
from userturn.artefacts import read_jsonl, write_jsonl
from userturn.config.engine import EngineConfig
from userturn.engine import vllm
from userturn.engine.generation import CellRequest, Generator, Prompted
from userturn.engine.interface import SamplingParameters, identity
from userturn.engine.store import CellStore
from userturn.probing import RendererSpec, template_facts, weights_sha256


class Spec(job.JobSpec):
    """One shard: a model and the datasets that it answers."""

    model: str
    datasets: tuple[str, ...]
    renderer: RendererSpec
    engine: EngineConfig
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
    what = identity(spec.engine.model_dump(mode="json"), vllm.versions(), weights_sha256(spec.model))
    generator = Generator(
        lambda: vllm.VllmEngine(layout.model_folder(spec.model), spec.engine, job.threads),
        CellStore(layout.cell_store()),
        {**what, "lock_sha256": spec.lock_sha256},
        together=spec.engine.max_sequences if spec.engine.batch_invariant else 0,
    )
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
        job.reads(layout.dataset(dataset))
        job.wrote(path)
    progress.close()
    job.reads(layout.model(spec.model))
    job.say(f"generated {len(generator.generated)} cells, took {len(items) - len(generator.generated)} from the store")
    job.facts = {
        "engine": {**what, "flags": vllm.flags(spec.engine)},
        "template": template_facts(renderer.format),
        "sampling": sampling.facts(),
    }


if __name__ == "__main__":
    job.main("assistant_turns", Spec, run)
