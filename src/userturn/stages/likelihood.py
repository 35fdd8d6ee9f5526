"""Stage `likelihood`: how probable known user turns are after a context, for a shard with one model load."""

from __future__ import annotations

from userturn import job, layout
from userturn.artefacts import Row, read_jsonl, write_jsonl
from userturn.config.engine import EngineConfig
from userturn.engine.forcing import DECIMALS, Forcer
from userturn.engine.interface import Forced
from userturn.engine.open import open_local
from userturn.engine.store import CellStore
from userturn.probing import RendererSpec, template_facts
from userturn.render import Renderer


class Spec(job.JobSpec):
    """One shard: a model, its datasets, and the controls whose user turns are scored."""

    model: str
    datasets: tuple[str, ...]
    controls: tuple[str, ...]
    against: str
    """The perturbation whose contexts show another answer."""
    baseline: str
    """The perturbation whose contexts are unperturbed."""
    renderer: RendererSpec
    engine: EngineConfig
    lock_sha256: str


def forced(control: list[Row], unperturbed: dict[str, Row], shuffled: dict[str, Row], renderer: Renderer) -> list[Row]:
    """What is scored of a control: each text under the user role, the assistant role and, maybe, another answer.

    Args:
        control: contexts of the control, with its known user turns.
        unperturbed: contexts of the baseline by item.
        shuffled: contexts with another answer, by item.
        renderer: of the model.

    Returns:
        Rows of ``item``, ``n_tokens`` and, for each condition, the token ids of its prompt and text; ``shuffled`` is
        None where the control's own context is not the unperturbed one.
    """
    rows = []
    for context in control:
        text = renderer.content_token_ids(context["user_turn"])
        own = tuple(context["prompt_token_ids"])
        same = own == tuple(unperturbed[context["item"]]["prompt_token_ids"])
        rows.append(
            {
                "item": context["item"],
                "n_tokens": len(text),
                "user": Forced(own, text),
                "assistant": Forced(renderer.as_assistant(own), text),
                "shuffled": Forced(tuple(shuffled[context["item"]]["prompt_token_ids"]), text) if same else None,
            }
        )
    # an empty text has probability one whoever writes it, and tells nothing
    return [row for row in rows if row["n_tokens"]]


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``results/likelihood/{model}/{dataset}.jsonl``."""
    renderer = spec.renderer.load(spec.model)
    engine = open_local(spec.model, spec.engine, threads=job.threads, lock_sha256=spec.lock_sha256)
    forcer = Forcer(engine.load, CellStore(layout.cell_store()), engine.identity)

    def contexts(dataset: str, perturbation: str) -> list[Row]:
        return read_jsonl(layout.contexts(spec.model, dataset, perturbation))

    asked: dict[str, dict[str, list[Row]]] = {}
    for dataset in spec.datasets:
        unperturbed, shuffled = (
            {row["item"]: row for row in contexts(dataset, name)} for name in (spec.baseline, spec.against)
        )
        asked[dataset] = {
            control: forced(contexts(dataset, control), unperturbed, shuffled, renderer) for control in spec.controls
        }
    conditions = ("user", "assistant", "shuffled")
    total = sum(
        row[condition] is not None
        for controls in asked.values()
        for rows in controls.values()
        for row in rows
        for condition in conditions
    )
    progress = job.progress(total, f"{spec.model}: known texts")
    for dataset, controls in asked.items():
        rows = []
        for control, texts in controls.items():
            found = {}
            for condition in conditions:
                some = [(row["item"], row[condition]) for row in texts if row[condition] is not None]
                key = f"{spec.model}/{dataset}/{control}/{condition}"
                values = forcer.group(key, [text for _, text in some], progress.advance)
                found[condition] = dict(zip((item for item, _ in some), values, strict=True))
            rows += [
                {"control": control, "item": row["item"], "n_tokens": row["n_tokens"]}
                | {condition: found[condition].get(row["item"]) for condition in conditions}
                for row in texts
            ]
        path = layout.likelihood(spec.model, dataset)
        write_jsonl(path, rows)
        read = {spec.baseline, spec.against, *spec.controls}
        origins = [layout.contexts(spec.model, dataset, name) for name in read]
        job.wrote(path, made_from=[*origins, layout.model(spec.model)])
    progress.close()
    job.facts = {
        "engine": engine.facts,
        "template": template_facts(renderer.format),
        "decimals": DECIMALS,
        "n_texts": total,
    }


if __name__ == "__main__":
    job.main("likelihood", Spec, run)
