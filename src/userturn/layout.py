"""Where every artefact of a study lives. No other module spells a path of ``data/`` or ``results/``.

The functions also take Snakemake wildcards (``"{model}"``) in place of names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

DATA = Path("data")
RESULTS = Path("results")
STATE = Path(".userturn")
LOGS = Path("logs")
#: SLURM's own output of each job, as profiles/slurm has it: ``rule_RULE/SHARD/JOBID.log``.
SLURM_LOGS = LOGS / "slurm"
#: Names the run that works in this folder, or did last.
RUN_LOCK = STATE / "run.lock"
#: What Snakemake says, one file a run.
WORKFLOW_LOGS = Path(".snakemake/log")

NUMBERS = RESULTS / "numbers.jsonl"
REPORT = RESULTS / "report.html"
#: Data of the page that is too large for it.
REPORT_FILES = RESULTS / "report_files"
#: The numbers for a spreadsheet, and what its columns mean.
NUMBERS_TABLE = RESULTS / "numbers.csv"
NUMBERS_TABLE_METADATA = RESULTS / "numbers.csv-metadata.json"

#: What a sealed study says of itself; DVC tracks it beside data and results, with one pointer each.
SEALED = Path("sealed")
TRACKED = (DATA, RESULTS, SEALED)
#: Snakemake's records of the jobs that wrote each file, and its marks of files whose job has not ended.
JOB_RECORDS = Path(".snakemake/metadata")
UNFINISHED_JOBS = Path(".snakemake/incomplete")


def temperature_key(temperature: float) -> str:
    """The temperature as it stands in cell keys and file names: ``t0.0``, ``t0.7``, ``t1.0``."""
    return f"t{float(temperature)!r}"


def dataset(dataset: str) -> Path:
    """Items of a dataset."""
    return DATA / "datasets" / f"{dataset}.jsonl"


def simulated_items(dataset: str) -> Path:
    """Items that a program made up, for the simulated twin of a study: a source, not an artefact."""
    return DATA / "simulated" / f"{dataset}.jsonl"


def one_of(names: Iterable[str]) -> str:
    """The pattern of a Snakemake wildcard that stands for one of these names; of none, one that matches nothing."""
    return "|".join(re.escape(name) for name in sorted(names)) or "(?!)"


def model_folder(model: str) -> Path:
    """The ordinary Hugging Face folder of a model: weights, config, tokenizer, chat template."""
    return DATA / "models" / model


def model(model: str) -> Path:
    """The description of a model folder: every file with its digest; stands for the whole folder."""
    return model_folder(model) / "model.json"


#: What the conversion of a GGUF file yields, besides the description.
CONVERTED_FILES = (
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
)


def training_rows(variant: str) -> Path:
    """What a variant is trained on: token ids and labels, row by row."""
    return DATA / "posttrain" / variant / "rows.jsonl"


def training_data(variant: str) -> Path:
    """How the rows of a variant were chosen: counts, filters, contamination."""
    return DATA / "posttrain" / variant / "data.json"


def training_curve(variant: str) -> Path:
    """Loss, reward and held-out loss of a variant's training, by step."""
    return RESULTS / "posttrain" / variant / "curve.jsonl"


def training_summary(variant: str) -> Path:
    """What a variant's training was and came to."""
    return RESULTS / "posttrain" / variant / "summary.json"


def checkpoints(key: str) -> Path:
    """Checkpoints of a training, by the digest of everything that shapes its result."""
    return STATE / "posttrain" / key


def judge_folder(judge: str) -> Path:
    """The model folder of a judge: its sentence model, or the language model that judges."""
    return DATA / "judges" / judge


def judge_model(judge: str) -> Path:
    """The description of a judge's model folder, as `model` for models of the grid."""
    return judge_folder(judge) / "model.json"


def judge_examples(judge: str) -> Path:
    """Training examples of a judge as numbers; no text stands in them."""
    return DATA / "judge_training" / judge / "examples.jsonl"


def judge_fluency(judge: str) -> Path:
    """Counts of word classes of a judge's training conversations."""
    return DATA / "judge_training" / judge / "fluency.json"


def judge_validation(judge: str) -> Path:
    """How a trained judge did on held-out conversations."""
    return RESULTS / "judges" / judge / "validation.json"


def judge_held_out(judge: str) -> Path:
    """Held-out training examples of a judge, with the label that each classifier gave."""
    return RESULTS / "judges" / judge / "held_out.jsonl"


#: Turns of the gold set, as judges see them.
GOLD_TURNS = DATA / "gold" / "turns.jsonl"

#: Final labels of the gold set.
GOLD_LABELS = DATA / "gold" / "labels.jsonl"


def gold(judge: str) -> Path:
    """One judge's labels of the gold set."""
    return RESULTS / "gold" / f"{judge}.jsonl"


def assistant_turns(model: str, dataset: str) -> Path:
    """The model's own answers to the items."""
    return RESULTS / "assistant_turns" / model / f"{dataset}.jsonl"


def scores(model: str, dataset: str) -> Path:
    """Task scores of the assistant turns."""
    return RESULTS / "scores" / model / f"{dataset}.jsonl"


def contexts(model: str, dataset: str, perturbation: str) -> Path:
    """Messages and prompts that precede the generated user turns."""
    return DATA / "contexts" / model / dataset / f"{perturbation}.jsonl"


def user_turns(model: str, dataset: str, perturbation: str, temperature: str) -> Path:
    """Generated user turns of one cell; ``temperature`` as `temperature_key` gives it."""
    return RESULTS / "user_turns" / model / dataset / perturbation / f"{temperature}.jsonl"


def likelihood(model: str, dataset: str) -> Path:
    """Log-probabilities of known user turns after contexts of one dataset."""
    return RESULTS / "likelihood" / model / f"{dataset}.jsonl"


def judgements(judge: str, model: str, dataset: str, perturbation: str, temperature: str) -> Path:
    """One judge's labels of one cell."""
    return RESULTS / "judgements" / judge / model / dataset / perturbation / f"{temperature}.jsonl"


#: Sidecar manifests of all jobs.
MANIFESTS = RESULTS / "manifests"


def manifest(stage: str, *shard: str) -> Path:
    """The sidecar manifest of one job."""
    return MANIFESTS / (Path(stage, *shard).as_posix() + ".json")


#: Kinds of artefacts, each made from kinds before it.
DATA_FLOW = (
    DATA / "datasets",
    DATA / "posttrain",
    DATA / "models",
    RESULTS / "posttrain",
    DATA / "judges",
    DATA / "judge_training",
    DATA / "gold",
    RESULTS / "judges",
    RESULTS / "assistant_turns",
    RESULTS / "scores",
    DATA / "contexts",
    RESULTS / "user_turns",
    RESULTS / "likelihood",
    RESULTS / "judgements",
    RESULTS / "gold",
    NUMBERS,
    REPORT,
    MANIFESTS,
)


def flow_rank(path: Path) -> tuple[int, str]:
    """Sorts artefacts in the order of the data flow: what differs first in it may be why the rest differs."""
    for rank, kind in enumerate(DATA_FLOW):
        if path == kind or kind in path.parents:
            return rank, path.as_posix()
    return len(DATA_FLOW), path.as_posix()


def log(stage: str, *shard: str) -> Path:
    """The log of one job."""
    return LOGS / (Path(stage, *shard).as_posix() + ".log")


def judge_calls() -> Path:
    """Verdicts of language models kept by the digest of the whole request, so that none is paid for twice."""
    return STATE / "judge_calls"


def cell_store() -> Path:
    """Finished cells kept by the digest of everything that went into them, so that a kill loses none."""
    return STATE / "cells"
