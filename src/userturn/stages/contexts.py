"""Stage `contexts`: every perturbation of every answered item, rendered to the prompt that the model will see."""

from __future__ import annotations

from collections.abc import Mapping

from userturn import job, layout
from userturn.artefacts import canonical, read_jsonl, write_jsonl
from userturn.perturb import Answered, perturb
from userturn.probing import RendererSpec, template_facts
from userturn.render import Prompt


class PerturbationSpec(job.JobSpec):
    """A perturbation's kind and the parameters that its kind has."""

    kind: str
    draw: int = 0
    fraction: float | None = None
    question: str | None = None
    instruction: str | None = None


class Spec(job.JobSpec):
    """One shard: a model, its datasets and the perturbations."""

    model: str
    datasets: tuple[str, ...]
    renderer: RendererSpec
    perturbations: Mapping[str, PerturbationSpec]
    """Kind and parameters by name, without the temperatures, which shape no context."""
    seed: int


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``data/contexts/{model}/{dataset}/{perturbation}.jsonl``."""
    renderer = spec.renderer.load(spec.model)
    progress = job.progress(len(spec.datasets) * len(spec.perturbations), f"{spec.model}: contexts")
    for dataset in spec.datasets:
        items = read_jsonl(layout.dataset(dataset))
        turns = {row["item"]: row for row in read_jsonl(layout.assistant_turns(spec.model, dataset))}
        answered = [
            Answered(r["item"], tuple(r["messages"]), turns[r["item"]]["text"], r["meta"].get("human_followup"))
            for r in items
        ]
        origins = [layout.dataset(dataset), layout.assistant_turns(spec.model, dataset), layout.model(spec.model)]
        # controls and repetitions show what another perturbation shows: it is rendered once
        prompts: dict[str, Prompt] = {}
        for name, settings in spec.perturbations.items():
            contexts = perturb(
                **settings.model_dump(), answered=answered, truncate=renderer.truncate, seed=spec.seed, dataset=dataset
            )
            rows = []
            for context in contexts:
                shown = canonical([context.instructed, context.messages])
                if shown not in prompts:
                    render = renderer.assistant_prompt if context.instructed else renderer.user_prompt
                    prompts[shown] = render(context.messages)
                prompt = prompts[shown]
                rows.append(
                    {
                        "item": context.item,
                        "messages": list(context.messages),
                        "changes": dict(context.changes),
                        "shown_answer": context.shown_answer,
                        "user_turn": context.user_turn,
                        "prompt": prompt.text,
                        "prompt_token_ids": list(prompt.token_ids),
                    }
                )
            path = layout.contexts(spec.model, dataset, name)
            write_jsonl(path, rows)
            job.wrote(path, made_from=origins)
            progress.advance(1, f"{dataset}/{name}")
    progress.close()
    job.facts = {"template": template_facts(renderer.format), "prefix": spec.renderer.prefix}


if __name__ == "__main__":
    job.main("contexts", Spec, run)
