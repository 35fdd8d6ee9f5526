"""The grid of a study: its cells and the shards in which jobs produce them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from userturn import layout
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
                samples = study.probe.samples if temperature > 0 else 1
                yield Cell(shard.model, dataset, name, float(temperature), samples)


def cells(study: Study) -> list[Cell]:
    """All cells of a study, in the config's order."""
    return [cell for one in shards(study) for cell in cells_of(study, one)]
