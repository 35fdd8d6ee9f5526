"""The grid of a study: its cells and the shards in which jobs produce them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from userturn import layout
from userturn.config.posttrain import Rl
from userturn.config.resources import Resources
from userturn.config.study import Study


@dataclass(frozen=True, order=True)
class Cell:
    """The unit that can be rebuilt and audited: one model, dataset, perturbation and temperature."""

    model: str
    dataset: str
    perturbation: str
    temperature: float
    samples: int

    @property
    def key(self) -> str:
        """``model/dataset/perturbation/t<temperature>``."""
        return f"{self.model}/{self.dataset}/{self.perturbation}/{layout.temperature_key(self.temperature)}"

    @property
    def user_turns(self) -> Path:
        """The artefact of the cell's user turns."""
        return layout.user_turns(self.model, self.dataset, self.perturbation, layout.temperature_key(self.temperature))

    def judgements(self, judge: str) -> Path:
        """The artefact of one judge's labels."""
        return layout.judgements(
            judge, self.model, self.dataset, self.perturbation, layout.temperature_key(self.temperature)
        )


@dataclass(frozen=True)
class Shard:
    """The cells of one model and one or all datasets: what one job produces with one model load.

    Also used with the wildcards ``"{model}"`` and ``"{dataset}"`` in place of names, to declare rules.
    """

    model: str
    datasets: tuple[str, ...]
    name: tuple[str, ...]


def shard(study: Study, model: str, dataset: str | None) -> Shard:
    """The shard that a model and, where shards are by dataset, a dataset belong to."""
    if study.engine.shard_by == "dataset" and dataset is not None:
        return Shard(model, (dataset,), (model, dataset))
    return Shard(model, tuple(study.datasets), (model,))


def shards(study: Study) -> list[Shard]:
    """All shards, in the config's order."""
    found = {shard(study, model, dataset): None for model in study.models for dataset in study.datasets}
    return list(found)


def cells_of(study: Study, shard: Shard) -> Iterator[Cell]:
    """The cells of a shard, in the config's order."""
    for dataset in shard.datasets:
        for name, perturbation in study.probe.perturbations.items():
            for temperature in perturbation.temperatures:
                samples = study.probe.samples_at(temperature)
                yield Cell(shard.model, dataset, name, float(temperature), samples)


def parts(study: Study, shard: Shard) -> list[str]:
    """The jobs that write a shard's user turns together, as ``1of3``; none where one job does it alone."""
    asked = study.models[shard.model].resources
    n = asked.jobs if asked else 1
    return [f"{part}of{n}" for part in range(1, n + 1)] if n > 1 else []


def converted(study: Study) -> list[str]:
    """Models whose weights are converted, so that the files of their folders are known beforehand."""
    return [
        n
        for n, model in study.models.items()
        if study.needs_weights(n) and model.source is not None and not model.source.is_folder
    ]


def taken(study: Study) -> list[str]:
    """Models whose folder is taken as it is, so that its description stands for its files."""
    return [n for n, model in study.models.items() if model.source is not None and n not in converted(study)]


def variants(study: Study, method: str | None = None) -> list[str]:
    """Models that the study trains itself, all or those of one method, in the config's order."""
    found = {name: model.posttrain for name, model in study.models.items() if model.posttrain is not None}
    return [name for name, one in found.items() if method in {None, one.method}]


def bases(study: Study) -> list[tuple[str, str]]:
    """The models that the study trains, each with the model that it is trained from."""
    return [(name, model.posttrain.base) for name, model in study.models.items() if model.posttrain is not None]


def baselines_compared(study: Study) -> list[Cell]:
    """Baseline cells of variants and of their bases, whose texts are set beside each other."""
    compared = {name for pair in bases(study) for name in pair}
    return [cell for cell in cells(study) if cell.model in compared and cell.perturbation == "baseline"]


def training_needs(study: Study, variant: str) -> list[Path]:
    """What must be there before a variant can be trained, besides its rows."""
    config = study.models[variant].posttrain
    assert config is not None, "the rule stands for variants"
    needs = [layout.model(config.base)]
    if isinstance(config, Rl):
        needs += [layout.model(config.user.model)] if config.user.model else []
        needs += judge_needs(study, config.reward.judge) if config.reward.judge else []
    return list(dict.fromkeys(needs))


def scored_rows(study: Study) -> list[str]:
    """Perturbations whose contexts the likelihood probe reads; none where the study leaves it out."""
    likelihood = study.probe.likelihood
    return [] if likelihood is None else ["baseline", likelihood.against, *likelihood.controls]


def scored(study: Study) -> list[tuple[str, str]]:
    """Models and datasets whose known user turns are scored."""
    return [(model, dataset) for model in study.models for dataset in study.datasets if scored_rows(study)]


def repeated(study: Study) -> list[tuple[Cell, Cell]]:
    """Cells at temperature 0 that repeat the baseline, each with the baseline's."""
    found = {cell.key: cell for cell in cells(study) if cell.temperature == 0}
    return [
        (base, cell)
        for cell in found.values()
        if study.probe.perturbations[cell.perturbation].kind == "repeated_baseline"
        and (base := found.get(replace(cell, perturbation="baseline").key)) is not None
    ]


def judges_with(study: Study, *, model: bool = False, trained: bool = False, gold: bool = False) -> list[str]:
    """Judges that have a model folder, that are trained in the workflow, or that can label the gold set."""
    return [
        name
        for name, judge in study.judges.items()
        if (not model or judge.weights is not None)
        and (not trained or judge.kind == "embedded")
        and (not gold or (study.gold is not None and judge.kind != "people"))
    ]


def judge_needs(study: Study, judge: str) -> list[Path]:
    """What must be there before a judge can label anything."""
    config = study.judges[judge]
    if config.kind == "people":
        return [Path(config.labels)]
    needs = [layout.judge_model(judge)] if judge in judges_with(study, model=True) else []
    if judge in judges_with(study, trained=True):
        needs += [layout.judge_examples(judge), layout.judge_fluency(judge), layout.judge_validation(judge)]
    return needs


def resources(study: Study, model: str) -> dict[str, int | str | None]:
    """What a job that loads a model asks of a cluster, in Snakemake's words; None leaves it to the cluster.

    Returns:
        ``cores``, ``gpu`` (cards), ``mem_mb`` (MiB), ``runtime`` (minutes) and ``slurm_partition``.
    """
    asked = study.models[model].resources or Resources()
    return {
        "cores": asked.cores,
        "gpu": asked.gpus or None,
        "mem_mb": 1024 * asked.memory_gb,
        "runtime": asked.time_minutes,
        "slurm_partition": asked.partition,
    }


def cells(study: Study) -> list[Cell]:
    """All cells of a study, in the config's order."""
    return [cell for one in shards(study) for cell in cells_of(study, one)]
