"""A trained variant as artefacts: the model folder, the learning curve, the summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from userturn import code, job, layout
from userturn.artefacts import Row, read_json, read_jsonl, write_json, write_jsonl
from userturn.config.training import Lora, Optimiser
from userturn.files import sha256_file
from userturn.posttrain import checkpoints, curves
from userturn.posttrain.merge import check_rendering, merge
from userturn.posttrain.training import Trained, Training, training_seed
from userturn.probing import RendererSpec, template_facts, weights_sha256


class VariantSpec(job.JobSpec):
    """What every training is asked to do."""

    variant: str
    base: str
    flags: tuple[str, ...]
    """What a reader must know before believing a gain."""
    renderer: RendererSpec
    lora: Lora
    training: Optimiser
    seed: int
    lock_sha256: str


Train = Callable[[Training, Sequence[Row]], Trained]


def write_variant(spec: VariantSpec, job: job.Job, method: str, code_module: str, train: Train) -> None:
    """Trains a variant and writes everything that comes of it.

    Args:
        spec: what to do.
        job: the running job.
        method: ``sft`` or ``rl``.
        code_module: the stage's module: an edit to what it imports starts a training anew.
        train: does the training.
    """
    rows_path, base = layout.training_rows(spec.variant), layout.model_folder(spec.base)
    inputs = {"rows_sha256": sha256_file(rows_path), "base_weights_sha256": weights_sha256(spec.base)}
    versions = checkpoints.versions()
    key = checkpoints.key(
        spec=spec.model_dump(mode="json"),
        threads=job.threads,
        versions=versions,
        code=code.digest(code_module),
        **inputs,
    )
    steps = spec.training.steps
    progress = job.progress(steps, f"{spec.variant}: steps of training")

    def on_step(done: int, note: str) -> None:
        progress.advance(done - progress.done, note)

    training = Training(
        base=base,
        lora=spec.lora,
        optimiser=spec.training,
        seed=training_seed(spec.seed, spec.variant),
        threads=job.threads,
        state=checkpoints.folder(key),
        on_step=on_step,
    )
    job.say(f"{spec.variant}: {method} on {spec.base}, {steps} steps, checkpoints in {training.state}")
    trained = train(training, read_jsonl(rows_path))
    progress.close()
    if trained.resumed_from is not None:
        job.say(f"{spec.variant}: taken up after step {trained.resumed_from}")
    settings = {
        **spec.model_dump(mode="json", exclude={"variant", "base", "flags", "renderer", "lock_sha256"}),
        "method": method,
        "seed": training.seed,
        "threads": job.threads,
        "versions": versions,
        "flags": list(spec.flags),
    }
    facts = {
        "origin": {"kind": "posttrain", "base": spec.base, **inputs},
        "posttrain": {**settings, "adapter_sha256": trained.adapter.sha256},
    }
    description = merge(base, trained.adapter, layout.model_folder(spec.variant), facts)
    renderer = spec.renderer.load(spec.variant)
    check_rendering(spec.renderer.load(spec.base), renderer)
    curve = curves.rows(trained.history)
    write_jsonl(layout.training_curve(spec.variant), curve)
    write_json(
        layout.training_summary(spec.variant),
        {
            "variant": spec.variant,
            "base": spec.base,
            **settings,
            "data": _data(spec.variant),
            "measures": curves.summary(curve),
            "weights_sha256": description["weights_sha256"],
            "adapter_sha256": trained.adapter.sha256,
            "rows_sha256": inputs["rows_sha256"],
        },
    )
    job.reads(rows_path, layout.training_data(spec.variant), layout.model(spec.base))
    job.wrote(layout.training_curve(spec.variant), layout.training_summary(spec.variant))
    job.wrote(*(path for path in layout.model_folder(spec.variant).rglob("*") if path.is_file()))
    job.facts = {"description": description, "template": template_facts(renderer.format), "training": settings}
    job.say(f"{spec.variant}: weights {description['weights_sha256']}")
    checkpoints.remove(training.state)


def _data(variant: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = read_json(layout.training_data(variant))
    return found
