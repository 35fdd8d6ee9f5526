"""The readers by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from userturn.datasets import gsm8k, ifeval, mt_bench
from userturn.datasets.items import Item

Scorer = Literal["gsm8k", "ifeval", "none"]


@dataclass(frozen=True)
class Reader:
    """How one dataset is read.

    Attributes:
        name: the reader's name in a configuration.
        description: one sentence for people.
        licence: SPDX identifier of the dataset's licence.
        scorer: which scorer rates assistant turns.
        read: the reader itself, bytes of the file to items in file order.
    """

    name: str
    description: str
    licence: str
    scorer: Scorer
    read: Callable[[bytes], list[Item]]


_ALL = (
    Reader(
        name=gsm8k.DATASET,
        description="GSM8K test: grade-school word problems, scored by the final number.",
        licence="MIT",
        scorer="gsm8k",
        read=gsm8k.read,
    ),
    Reader(
        name=ifeval.DATASET,
        description="IFEval: prompts with verifiable instructions, scored by programs, strict and loose.",
        licence="Apache-2.0",
        scorer="ifeval",
        read=ifeval.read,
    ),
    Reader(
        name=mt_bench.DATASET,
        description="MT-Bench: open questions by category, not scored; a human second turn is kept beside each.",
        licence="Apache-2.0",
        scorer="none",
        read=mt_bench.read,
    ),
)

READERS: Mapping[str, Reader] = MappingProxyType({reader.name: reader for reader in _ALL})
