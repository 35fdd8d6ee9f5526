"""The readers by name."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from userturn.datasets import coval, gpqa, gsm8k, healthbench, ifbench, ifeval, math500, mt_bench, oasst1, own
from userturn.datasets.items import DatasetError, Item, Row, array, rows, table, unique

Scorer = Literal["gsm8k", "math", "choice", "ifeval", "ifbench", "none"]


@dataclass(frozen=True)
class Reader:
    """How one dataset is read, from the bytes of a file or from the rows of a table.

    Attributes:
        name: the reader's name in a configuration.
        description: one sentence for people.
        licence: SPDX identifier of the dataset's licence; for a user's own data a LicenseRef.
        scorer: which scorer rates assistant turns, where an item's ``meta.scorer`` names no other.
        items: rows of either kind and the study seed to items.
        split: bytes of the file to rows.
        publish_items: whether the texts of items may stand in pages and files that are published.
        note: what the dataset's owners ask for.
    """

    name: str
    description: str
    licence: str
    scorer: Scorer
    items: Callable[[Iterable[Row], int], Iterator[tuple[Row, Item]]]
    split: Callable[[bytes, str], Iterator[Row]] = rows
    publish_items: bool = True
    note: str = ""

    def read(self, data: bytes, seed: int = 0) -> list[Item]:
        """Reads a file.

        Args:
            data: the file, gzipped or not.
            seed: the study seed, for readers that shuffle something.

        Returns:
            Items in file order.

        Raises:
            DatasetError: naming the line and what was expected.
        """
        return self._collect(self.split(data, self.name), seed)

    def read_rows(self, found: Sequence[Mapping[str, Any]], seed: int = 0) -> list[Item]:
        """Reads the rows of a table, as the ``datasets`` library gives them; otherwise as `read`."""
        return self._collect(table(found, self.name), seed)

    def _collect(self, found: Iterator[Row], seed: int) -> list[Item]:
        items = unique(self.items(found, seed))
        if not items:
            raise DatasetError(f"{self.name}: none of the rows gives an item: {self.description}")
        return items


_ALL = (
    Reader(
        name=gsm8k.DATASET,
        description="GSM8K test: grade-school word problems, scored by the final number.",
        licence="MIT",
        scorer="gsm8k",
        items=gsm8k.items,
    ),
    Reader(
        name=math500.DATASET,
        description="MATH-500: competition problems, scored by the final answer in LaTeX.",
        licence="MIT",
        scorer="math",
        items=math500.items,
        split=array,
    ),
    Reader(
        name=gpqa.DATASET,
        description="GPQA: graduate-level questions with four choices in a seeded order, scored by the letter.",
        licence="CC-BY-4.0",
        scorer="choice",
        items=gpqa.items,
        publish_items=False,
        note="The authors ask not to publish items in plain text, so that they stay out of training data.",
    ),
    Reader(
        name=ifeval.DATASET,
        description="IFEval: prompts with verifiable instructions, scored by programs, strict and loose.",
        licence="Apache-2.0",
        scorer="ifeval",
        items=ifeval.items,
    ),
    Reader(
        name=ifbench.DATASET,
        description="IFBench: prompts with unusual verifiable instructions, scored by programs, strict and loose.",
        licence="ODC-By-1.0",
        scorer="ifbench",
        items=ifbench.items,
    ),
    Reader(
        name=healthbench.DATASET,
        description="HealthBench, English: health conversations with one or more turns, not scored; rubrics are kept.",
        licence="MIT",
        scorer="none",
        items=healthbench.items,
        note="Items carry a canary string, which must stay with them, so that they can be kept out of training data.",
    ),
    Reader(
        name=coval.DATASET,
        description="CoVal: value-sensitive prompts, not scored.",
        licence="CC-BY-4.0",
        scorer="none",
        items=coval.items,
    ),
    Reader(
        name=mt_bench.DATASET,
        description="MT-Bench: open questions by category, not scored; a human second turn is kept beside each.",
        licence="Apache-2.0",
        scorer="none",
        items=mt_bench.items,
    ),
    Reader(
        name=oasst1.DATASET,
        description="OASST1, English: people's questions, not scored; a human answer and follow-up are kept with each.",
        licence="Apache-2.0",
        scorer="none",
        items=oasst1.items,
    ),
    Reader(
        name=own.DATASET,
        description="Conversations of one's own in JSON Lines; each line may name its scorer.",
        licence="LicenseRef-own",
        scorer="none",
        items=own.items,
    ),
)

READERS: Mapping[str, Reader] = MappingProxyType({reader.name: reader for reader in _ALL})
