"""What each stage is asked to do, from the study: the JSON that a rule passes as ``--spec``.

Only what a stage needs stands in its spec, so that a change elsewhere in the config runs nothing again. The stages'
own ``Spec`` classes check it; they are not imported here, since the Snakefile is parsed by every job of a cluster.
"""

from __future__ import annotations

import json
from typing import Any

from userturn import grid, layout
from userturn.artefacts import canonical
from userturn.config.study import Study


def _renderer(study: Study, model: str) -> dict[str, Any]:
    config = study.models[model]
    return {
        "prefix": config.prefix or study.probe.prefix,
        "thinking": config.thinking,
        "template_kwargs": config.template_kwargs,
        "extra_stop_token_ids": config.extra_stop_token_ids,
    }


def _cells(study: Study, shard: grid.Shard) -> list[dict[str, Any]]:
    return [
        {
            "dataset": cell.dataset,
            "perturbation": cell.perturbation,
            "temperature": cell.temperature,
            "samples": cell.samples,
        }
        for cell in grid.cells_of(study, shard)
    ]


def dataset(study: Study, dataset: str) -> str:
    """Spec of `userturn.stages.dataset`."""
    config = study.datasets[dataset]
    return canonical(
        {
            "dataset": dataset,
            "source": config.source.model_dump(mode="json"),
            "reader": config.reader,
            "n_items": config.n_items,
            "seed": study.seed,
        }
    )


def model(study: Study, model: str) -> str:
    """Spec of `userturn.stages.model` for a model of the grid."""
    return canonical(
        {
            "folder": layout.model_folder(model).as_posix(),
            "source": study.models[model].source.model_dump(mode="json"),
            "dtype": study.engine_of(model).dtype,
        }
    )


def embedder(study: Study, judge: str) -> str:
    """Spec of `userturn.stages.model` for a judge's sentence model."""
    return canonical(
        {
            "folder": layout.embedder_folder(judge).as_posix(),
            "source": study.judges[judge].embedder.model_dump(mode="json"),
            "dtype": "float32",
        }
    )


def assistant_turns(study: Study, shard: grid.Shard, lock_sha256: str) -> str:
    """Spec of `userturn.stages.assistant_turns`."""
    return canonical(
        {
            "model": shard.model,
            "datasets": shard.datasets,
            "renderer": _renderer(study, shard.model),
            "engine": study.engine_of(shard.model).model_dump(mode="json"),
            "max_tokens": study.assistant_turns.max_tokens,
            "seed": study.seed,
            "lock_sha256": lock_sha256,
        }
    )


def scores(study: Study, shard: grid.Shard) -> str:
    """Spec of `userturn.stages.scores`."""
    readers = {dataset: study.datasets[dataset].reader for dataset in shard.datasets}
    return canonical({"model": shard.model, "readers": readers})


def contexts(study: Study, shard: grid.Shard) -> str:
    """Spec of `userturn.stages.contexts`: the perturbations without their temperatures, which shape no context."""
    return canonical(
        {
            "model": shard.model,
            "datasets": shard.datasets,
            "renderer": _renderer(study, shard.model),
            "perturbations": {
                name: perturbation.model_dump(mode="json", exclude={"temperatures"})
                for name, perturbation in study.probe.perturbations.items()
            },
            "seed": study.seed,
        }
    )


def user_turns(study: Study, shard: grid.Shard, lock_sha256: str) -> str:
    """Spec of `userturn.stages.user_turns`."""
    return canonical(
        {
            "model": shard.model,
            "cells": [
                {"kind": study.probe.perturbations[cell["perturbation"]].kind, **cell} for cell in _cells(study, shard)
            ],
            "renderer": _renderer(study, shard.model),
            "engine": study.engine_of(shard.model).model_dump(mode="json"),
            "sampling": study.probe.sampling.model_dump(mode="json"),
            "seed": study.seed,
            "lock_sha256": lock_sha256,
        }
    )


def judge(study: Study, judge: str, shard: grid.Shard) -> str:
    """Spec of `userturn.stages.judge`."""
    return canonical(
        {
            "judge": judge,
            "kind": study.judges[judge].kind,
            "model": shard.model,
            "cells": _cells(study, shard),
        }
    )


def analyse(study: Study) -> str:
    """Spec of `userturn.stages.analyse`."""
    return canonical(
        {
            "judge": study.reported_judge,
            "cells": [
                {"model": cell.model, **settings}
                for shard in grid.shards(study)
                for cell, settings in zip(grid.cells_of(study, shard), _cells(study, shard), strict=True)
            ],
            "statistics": study.statistics.model_dump(mode="json"),
            "seed": study.seed,
        }
    )


def report(study: Study) -> str:
    """Spec of `userturn.stages.report`: the whole study, since the page shows all of it."""
    # the page shows models, datasets and perturbations in the config's order, so it is kept here
    return json.dumps(study.model_dump(mode="json"), ensure_ascii=False)
