"""What `userturn plan` assumes where nothing has been measured: lengths of turns, and durations of small jobs.

How fast a model reads and writes is assumed in the config, under ``models.*.resources``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DatasetFacts:
    """What is assumed of a dataset: its size (from its card), and mean tokens of a prompt and of an answer."""

    items: int
    prompt_tokens: float
    answer_tokens: float


#: By reader. Prompt lengths include a chat template's own tokens; those of gsm8k, ifeval and mt_bench were measured on
#: the embedded default study, the others are guesses from the datasets' cards.
DATASETS: Mapping[str, DatasetFacts] = {
    "gsm8k": DatasetFacts(1319, 95, 250),
    "math500": DatasetFacts(500, 115, 600),
    "gpqa": DatasetFacts(198, 260, 700),
    "ifeval": DatasetFacts(541, 75, 300),
    "ifbench": DatasetFacts(300, 120, 350),
    "healthbench": DatasetFacts(5000, 260, 700),
    "coval": DatasetFacts(1078, 150, 500),
    "mt_bench": DatasetFacts(80, 90, 350),
    "oasst1": DatasetFacts(1000, 80, 350),
}
#: For any other reader.
OTHER_DATASET = DatasetFacts(1000, 150, 400)

#: Some answers end before the limit that cuts the others.
ANSWER_SHARE = 0.9
#: A user turn takes this share of its limit, but no more than this many tokens.
USER_TURN_SHARE, USER_TURN_TOKENS = 0.7, 80.0
#: Readers whose items come with what a person wrote next.
FOLLOWED_UP = frozenset({"mt_bench", "oasst1", "own"})
#: Tokens of a known text that the likelihood probe reads after a context.
KNOWN_TEXT_TOKENS = 60.0
#: Tokens that close an answer and open the user turn.
HEADER_TOKENS = 5.0
TOKENS_PER_WORD = 1.3

#: Assumed seconds of the jobs that are no generation, and seconds a turn of those that read every turn.
JOB_SECONDS: Mapping[str, float] = {
    "dataset": 3,
    "model": 60,
    "posttrain_data": 20,
    "judge_model": 10,
    "judge_training": 120,
    "gold": 20,
    "gold_set": 3,
    "scores": 8,
    "contexts": 8,
    "judge": 15,
    "analyse": 20,
    "report": 15,
}
#: Assumed seconds of a training beside its steps: loading, merging, writing.
TRAINING_SECONDS = 60.0
TURN_SECONDS: Mapping[str, float] = {"judge": 0.01, "analyse": 0.0005, "report": 0.0005}
