"""The simulated twin of a study: its grid at full size, with texts, items and labels that a program makes up."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from userturn import layout
from userturn.artefacts import Row, jsonl_bytes
from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.study import Study
from userturn.datasets import READERS
from userturn.seeds import derive
from userturn.simulation.texts import GENUINE, OPENERS, compose

_HEADER = """\
# SIMULATED: the grid of {name} with texts, items and labels that a program makes up, to see how a study of this size
# runs. No number of it is a finding. Written, with the items, by
#   {command}
# Run it in a folder of its own: its models have the names of real ones.
# yaml-language-server: $schema=config.schema.json

"""
#: What a simulated job takes: a tokenizer and a program.
_RESOURCES = {
    "card": "cpu",
    "memory_gb": 4,
    "time_minutes": 60,
    "load_seconds": 5,
    "prefill_tokens_per_second": 10_000_000,
    "decode_tokens_per_second": 1_000_000,
}
#: Keys of a model that suit its own template or cards.
_OF_REAL_MODELS = frozenset(
    {"source", "posttrain", "endpoint", "thinking", "template_kwargs", "extra_stop_token_ids", "engine", "resources"}
)


@dataclass(frozen=True)
class Twin:
    """A simulated study.

    Attributes:
        config: its config.
        files: the items of its datasets, as bytes of the files that the config names.
    """

    config: dict[str, Any]
    files: dict[Path, bytes]


def twin(config: Mapping[str, Any], items: int, times: int = 1) -> Twin:
    """Makes the simulated twin of a study.

    Models, datasets, perturbations, temperatures, samples, limits and statistics stay. Models are tokenized and asked
    as the default study's is; judges are made up.

    Args:
        config: the study's config, as it stands in its file. It must be valid; its revisions may be open.
        items: items of each dataset.
        times: how often each model stands in the twin, under names of its own: so many times the cells.

    Raises:
        pydantic.ValidationError: the study or its twin is refused.
    """
    study = Study.model_validate(config)
    (stand_in,) = DEFAULT_STUDY["models"].values()
    models = {
        name if copy == 0 else f"{name}.{copy + 1}": {
            **{key: value for key, value in settings.items() if key not in _OF_REAL_MODELS},
            "source": stand_in["source"],
            "resources": _RESOURCES,
        }
        for copy in range(times)
        for name, settings in config["models"].items()
    }
    files, datasets = {}, {}
    for name, dataset in study.datasets.items():
        path = layout.simulated_items(name)
        files[path] = jsonl_bytes(_items(name, items, scored=READERS[dataset.reader].scorer != "none"))
        sha256 = hashlib.sha256(files[path]).hexdigest()
        datasets[name] = {
            "source": {"kind": "file", "path": path.as_posix(), "sha256": sha256},
            "reader": "own",
            "n_items": items,
        }
    made = {
        **config,
        "name": f"{study.name}-simulated",
        "models": models,
        "datasets": datasets,
        "engine": {**config.get("engine", {}), "name": "simulated"},
        "judges": {name: {"kind": "simulated"} for name in study.judges},
    }
    Study.model_validate(made)
    return Twin(made, files)


def document(config: Mapping[str, Any], of: str, command: str) -> str:
    """The twin's config as YAML.

    Args:
        config: the twin's config.
        of: the config file of the study that it is the twin of.
        command: what writes it.
    """
    return _HEADER.format(name=of, command=command) + yaml.dump(
        config, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=120
    )


class _Plain(yaml.SafeDumper):
    """YAML without anchors: what stands twice is written twice."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _items(dataset: str, n: int, *, scored: bool) -> Iterator[Row]:
    """Rows for the reader `own`: questions with a number as the answer, or open ones, half of them with a follow-up."""
    for index in range(n):
        drawn = derive(0, "simulated item", dataset, index, bits=512).to_bytes(64, "big")
        question = compose("please tell me about the", drawn[: 24 + drawn[63] % 32], "today?", 100)
        row: Row = {"id": f"{index:04d}", "messages": [{"role": "user", "content": question}]}
        if scored:
            yield row | {"reference": "1", "scorer": "gsm8k"}
        elif index % 2:
            yield row
        else:
            opener = OPENERS[GENUINE][drawn[62] % len(OPENERS[GENUINE])]
            yield row | {"next_user": compose(opener, drawn[40:50], "now?", 100)}
