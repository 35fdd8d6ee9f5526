"""What each stage is asked to do, from the study: the JSON that a rule passes as ``--spec``.

Only what a stage needs stands in its spec, so that a change elsewhere in the config runs nothing again. The stages'
own ``Spec`` classes check it; they are not imported here, since the Snakefile is parsed by every job of a cluster.
"""

from __future__ import annotations

import json
from typing import Any

from userturn import grid, layout
from userturn.artefacts import canonical
from userturn.config.judging import EmbeddedJudge, JudgeOffline
from userturn.config.posttrain import Rl, Sft, flags
from userturn.config.study import Study


def _renderer(study: Study, model: str) -> dict[str, Any]:
    config = study.models[model]
    return {
        "prefix": config.prefix or study.probe.prefix,
        "thinking": config.thinking,
        "template_kwargs": config.template_kwargs,
        "extra_stop_token_ids": config.extra_stop_token_ids,
    }


def _endpoint(study: Study, model: str) -> dict[str, Any]:
    endpoint = study.models[model].endpoint
    return {} if endpoint is None else {"endpoint": endpoint.model_dump(mode="json")}


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
    source = study.models[model].source
    assert source is not None, "the rule stands for models with a source"
    return canonical(
        {
            "folder": layout.model_folder(model).as_posix(),
            "source": source.model_dump(mode="json"),
            "dtype": study.engine_of(model).dtype,
            **({} if study.needs_weights(model) else {"weights": False}),
        }
    )


def _variant(study: Study, variant: str) -> Sft | Rl:
    config = study.models[variant].posttrain
    assert config is not None, "the rule stands for variants"
    return config


def posttrain_data(study: Study, variant: str) -> str:
    """Spec of `userturn.stages.posttrain_data`."""
    config = _variant(study, variant)
    wanted = (
        {"data", "loss_on"}
        if isinstance(config, Sft)
        else {"problems", "conversations", "ngram", "max_prompt_tokens", "reward_user_turn"}
    )
    return canonical(
        {
            "variant": variant,
            "base": config.base,
            "datasets": list(study.datasets),
            "renderer": _renderer(study, variant),
            "seed": study.seed,
            config.method: config.model_dump(mode="json", include=wanted),
        }
    )


def _training(study: Study, variant: str, lock_sha256: str) -> dict[str, Any]:
    config = _variant(study, variant)
    return {
        "variant": variant,
        "base": config.base,
        "flags": flags(config, study.reported_judge),
        "renderer": _renderer(study, variant),
        "lora": config.lora.model_dump(mode="json"),
        "training": config.training.model_dump(mode="json", exclude={"seconds_per_step"}),
        "seed": study.seed,
        "lock_sha256": lock_sha256,
    }


def posttrain(study: Study, variant: str, lock_sha256: str) -> str:
    """Spec of `userturn.stages.posttrain`."""
    return canonical(_training(study, variant, lock_sha256))


def posttrain_rl(study: Study, variant: str, lock_sha256: str) -> str:
    """Spec of `userturn.stages.posttrain_rl`."""
    config = _variant(study, variant)
    assert isinstance(config, Rl), "the rule stands for variants trained by reward"
    judge = config.reward.judge
    wanted = {"future_turns", "generations", "max_completion_tokens", "temperature", "beta", "vllm", "reward_user_turn"}
    return canonical(
        _training(study, variant, lock_sha256)
        | config.model_dump(mode="json", include=wanted)
        | {
            "reward": config.reward.model_dump(mode="json", exclude={"allow_reported_judge"}),
            "judge": study.judges[judge].model_dump(mode="json") if judge else None,
            "user": config.user.model_dump(mode="json"),
            "user_renderer": _renderer(study, config.user.model or config.base),
            "max_model_len": study.engine_of(variant).max_model_len,
        }
    )


def judge_model(study: Study, judge: str) -> str:
    """Spec of `userturn.stages.model` for a judge's model folder."""
    weights = study.judges[judge].weights
    transport = getattr(study.judges[judge], "transport", None)
    assert weights is not None, "the rule stands for judges with a model folder"
    return canonical(
        {
            "folder": layout.judge_folder(judge).as_posix(),
            "source": weights.model_dump(mode="json"),
            "dtype": transport.engine.dtype if isinstance(transport, JudgeOffline) else "float32",
        }
    )


def judge_training(study: Study, judge: str) -> str:
    """Spec of `userturn.stages.judge_training`."""
    config = study.judges[judge]
    assert isinstance(config, EmbeddedJudge), "the rule stands for judges that are trained"
    return canonical(
        {
            "judge": judge,
            "training": {name: one.model_dump(mode="json") for name, one in config.training.items()},
            "classifier": config.classifier,
            "seed": study.seed,
        }
    )


def gold(study: Study, judge: str) -> str:
    """Spec of `userturn.stages.gold`."""
    assert study.gold is not None, "the rule stands for studies with a gold set"
    return canonical(
        {
            "judge": judge,
            "config": study.judges[judge].model_dump(mode="json"),
            "seed": study.seed,
        }
    )


def gold_set(study: Study) -> str:
    """Spec of `userturn.stages.gold_set`."""
    assert study.gold is not None, "the rule stands for studies with a gold set"
    return canonical(study.gold.model_dump(mode="json"))


def assistant_turns(study: Study, shard: grid.Shard, lock_sha256: str) -> str:
    """Spec of `userturn.stages.assistant_turns`."""
    return canonical(
        {
            "model": shard.model,
            "datasets": shard.datasets,
            "renderer": _renderer(study, shard.model),
            "engine": study.engine_of(shard.model).model_dump(mode="json"),
            **_endpoint(study, shard.model),
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


def _user_turns(study: Study, shard: grid.Shard, lock_sha256: str) -> dict[str, Any]:
    parts = len(grid.parts(study, shard))
    return {
        **({"parts": parts} if parts else {}),
        "model": shard.model,
        "cells": [
            {"kind": study.probe.perturbations[cell["perturbation"]].kind, **cell} for cell in _cells(study, shard)
        ],
        "renderer": _renderer(study, shard.model),
        "engine": study.engine_of(shard.model).model_dump(mode="json"),
        **_endpoint(study, shard.model),
        "sampling": {
            layout.temperature_key(t): study.probe.sampling_at(t).model_dump(mode="json")
            for t in study.probe.temperatures
        },
        "seed": study.seed,
        "lock_sha256": lock_sha256,
    }


def user_turns(study: Study, shard: grid.Shard, lock_sha256: str) -> str:
    """Spec of `userturn.stages.user_turns`."""
    return canonical(_user_turns(study, shard, lock_sha256))


def user_turns_part(study: Study, shard: grid.Shard, part: str, lock_sha256: str) -> str:
    """Spec of `userturn.stages.user_turns_part`; ``part`` as `userturn.grid.parts` names it."""
    return canonical(_user_turns(study, shard, lock_sha256) | {"part": int(part.partition("of")[0])})


def likelihood(study: Study, shard: grid.Shard, lock_sha256: str) -> str:
    """Spec of `userturn.stages.likelihood`."""
    config = study.probe.likelihood
    assert config is not None, "the rule has outputs only where the study has a likelihood probe"
    return canonical(
        {
            "model": shard.model,
            "datasets": shard.datasets,
            "controls": config.controls,
            "against": config.against,
            "baseline": "baseline",
            "renderer": _renderer(study, shard.model),
            "engine": study.engine_of(shard.model).model_dump(mode="json"),
            "lock_sha256": lock_sha256,
        }
    )


def judge(study: Study, judge: str, shard: grid.Shard) -> str:
    """Spec of `userturn.stages.judge`."""
    return canonical(
        {
            "judge": judge,
            "config": study.judges[judge].model_dump(mode="json"),
            "model": shard.model,
            "cells": _cells(study, shard),
            "seed": study.seed,
        }
    )


def analyse(study: Study) -> str:
    """Spec of `userturn.stages.analyse`: the grid, not its cells, whose list would outgrow a command line."""
    return canonical(
        {
            "judge": study.reported_judge,
            "models": list(study.models),
            "datasets": list(study.datasets),
            "temperatures": {name: one.temperatures for name, one in study.probe.perturbations.items()},
            "scored": grid.scored(study),
            "judges": list(study.judges),
            "trained": grid.judges_with(study, trained=True),
            "measured": grid.judges_with(study, gold=True),
            "repeated": sorted({cell.perturbation for _, cell in grid.repeated(study)}),
            **({"variants": grid.bases(study)} if grid.variants(study) else {}),
            "exclusions": study.exclusions,
            "statistics": study.statistics.model_dump(mode="json"),
            "seed": study.seed,
        }
    )


def report(study: Study) -> str:
    """Spec of `userturn.stages.report`: the whole study, since the page shows all of it."""
    # the page shows models, datasets and perturbations in the config's order, so it is kept here
    return json.dumps(study.model_dump(mode="json"), ensure_ascii=False)
