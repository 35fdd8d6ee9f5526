"""What a study's variants must fit: their bases, its datasets and its judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from userturn.config.judging import EmbeddedJudge, JudgeOffline, LlmJudge
from userturn.config.posttrain import Rl, Sft, sources

if TYPE_CHECKING:
    from userturn.config.study import Study

#: Keys of a model that say how it is rendered: training and probing must agree on them.
_RENDERING = ("thinking", "template_kwargs", "extra_stop_token_ids")


def check_posttrain(study: Study) -> None:
    """Refuses variants that cannot be trained, or whose result would not mean what it seems to.

    Raises:
        ValueError: naming the key, what was given and what is allowed.
    """
    for name, model in study.models.items():
        if model.posttrain is None:
            continue
        key = f"models.{name}.posttrain"
        if study.engine.name == "simulated":
            raise ValueError(f"{key}: engine.name is 'simulated', which has no weights to train")
        _check_line(study, name)
        _check_data(study, key, model.posttrain)
        _check_judge(study, key, model.posttrain)


def _check_line(study: Study, name: str) -> None:
    """The models that a variant comes from, down to one with a source."""
    seen = [name]
    while (variant := study.models[seen[-1]].posttrain) is not None:
        key = f"models.{seen[-1]}.posttrain.base: {variant.base!r}"
        if variant.base not in study.models:
            raise ValueError(f"{key} is no model of this study; known: {', '.join(study.models)}")
        if variant.base in seen:
            raise ValueError(f"{key}: the variants {' <- '.join([*seen, variant.base])} go round in a circle")
        base, model = study.models[variant.base], study.models[seen[-1]]
        if base.endpoint is not None:
            raise ValueError(f"{key}: an endpoint serves it, so that there are no weights to train")
        for part in _RENDERING:
            if getattr(base, part) != getattr(model, part):
                raise ValueError(
                    f"models.{seen[-1]}.{part}: {getattr(model, part)!r}, but its base {variant.base} has "
                    f"{getattr(base, part)!r}: training and probing need the same"
                )
        seen.append(variant.base)
    for one in seen:
        variant = study.models[one].posttrain
        user = variant.user.model if isinstance(variant, Rl) else None
        if user is None:
            continue
        if user not in study.models or user in seen[: seen.index(one) + 1]:
            raise ValueError(
                f"models.{one}.posttrain.user.model: {user!r}; allowed: a model of this study that is not trained from "
                "this one"
            )
        if study.models[user].posttrain is not None:
            raise ValueError(
                f"models.{one}.posttrain.user.model: {user!r} is trained itself; allowed: one with a source"
            )


def _check_data(study: Study, key: str, variant: Sft | Rl) -> None:
    evaluated = {dataset: config.source for dataset, config in study.datasets.items()}
    judged = {
        judge: {one.source for one in config.training.values()}
        for judge, config in study.judges.items()
        if isinstance(config, EmbeddedJudge)
    }
    allowed = isinstance(variant, Sft) and variant.allow_reported_judge
    for place, source in sources(variant).items():
        same = [name for name, one in evaluated.items() if one == source]
        if same:
            raise ValueError(f"{key}.{place}: is the source of datasets.{same[0]}: evaluation data is not trained on")
        if source in judged.get(study.reported_judge, ()) and not allowed:
            raise ValueError(
                f"{key}.{place}: the reported judge {study.reported_judge} was trained on it, and would recognise its "
                "own examples: choose other conversations, or set allow_reported_judge: true, which flags the variant"
            )


def _check_judge(study: Study, key: str, variant: Sft | Rl) -> None:
    judge = variant.reward.judge if isinstance(variant, Rl) else None
    if not isinstance(variant, Rl) or judge is None:
        return
    config = study.judges.get(judge)
    if config is None or config.kind in {"people", "simulated"}:
        usable = [name for name, one in study.judges.items() if one.kind not in {"people", "simulated"}]
        raise ValueError(f"{key}.reward.judge: {judge!r}; allowed: null, {', '.join(usable)}")
    if isinstance(config, LlmJudge) and isinstance(config.transport, JudgeOffline):
        raise ValueError(f"{key}.reward.judge: {judge!r} runs an engine of its own in the process; serve it instead")
    if judge == study.reported_judge and not variant.reward.allow_reported_judge:
        raise ValueError(
            f"{key}.reward.judge: {judge!r} reports the result: another judge must score the outcome; choose another, "
            "or set reward.allow_reported_judge: true, which flags the variant"
        )
