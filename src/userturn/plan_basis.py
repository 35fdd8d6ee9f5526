"""What the figures of a plan rest on: measurements of earlier runs, or assumptions."""

from __future__ import annotations

from userturn import grid
from userturn.assumptions import (
    ANSWER_SHARE,
    DATASETS,
    JOB_SECONDS,
    OTHER_DATASET,
    TRAINING_SECONDS,
    TURN_SECONDS,
    USER_TURN_SHARE,
    USER_TURN_TOKENS,
)
from userturn.config.study import Study
from userturn.measured import GENERATION, TRAINING, Measured, generated, job_names


def basis(study: Study, known: Measured) -> tuple[list[str], list[str]]:
    """What a plan rests on.

    Args:
        study: the study that is planned.
        known: what runs have left behind.

    Returns:
        Sentences about what was measured, and about what is assumed instead.
    """
    measured: list[str] = []
    assumed: list[str] = []

    def tell(found: int, wanted: int, what: str, assumption: str) -> None:
        if found:
            measured.append(f"{what}: {found} of {wanted}")
        if found < wanted:
            assumed.append(f"{what}: {wanted - found} of {wanted}: {assumption}")

    readers = {study.datasets[name].reader for name in study.datasets}
    facts = {reader: DATASETS.get(reader, OTHER_DATASET) for reader in sorted(readers)}
    open_ended = [name for name, config in study.datasets.items() if config.n_items is None]
    tell(
        sum(name in known.items for name in open_ended),
        len(open_ended),
        "sizes of datasets that are taken whole",
        ", ".join(f"{reader} {fact.items}" for reader, fact in facts.items()) + " items",
    )
    pairs = [(model, dataset) for model in study.models for dataset in study.datasets]
    tell(
        sum(pair in known.answers for pair in pairs),
        len(pairs),
        "lengths of assistant turns, by model and dataset",
        "tokens of a prompt and of an answer: "
        + ", ".join(f"{reader} {fact.prompt_tokens:g} and {fact.answer_tokens:g}" for reader, fact in facts.items())
        + f"; answers are {ANSWER_SHARE:g} of that or of assistant_turns.max_tokens, whichever is less",
    )
    cells = [cell for cell in grid.cells(study) if generated(study, cell.key)]
    tell(
        sum(cell.key in known.cells for cell in cells),
        len(cells),
        "lengths of user turns, by cell",
        f"{USER_TURN_SHARE:g} of probe.sampling.max_tokens, at most {USER_TURN_TOKENS:g} tokens",
    )
    generation = [job for job in job_names(study) if job[0] in GENERATION]
    tell(
        sum(job in known.jobs and known.jobs[job].tells_speed for job in generation),
        len(generation),
        "speed of the jobs that generate",
        "load time and tokens a second as models.*.resources says",
    )
    trainings = [job for job in job_names(study) if job[0] in TRAINING]
    tell(
        sum(job in known.jobs for job in trainings),
        len(trainings),
        "time of training",
        f"seconds a step as models.*.posttrain.training says, and {TRAINING_SECONDS:g} s",
    )
    others = [job for job in job_names(study) if job[0] not in {*GENERATION, *TRAINING}]
    tell(
        sum(job in known.jobs for job in others),
        len(others),
        "time of the other jobs",
        ", ".join(f"{stage} {seconds:g} s" for stage, seconds in JOB_SECONDS.items())
        + ", and for each turn "
        + ", ".join(f"{stage} {1000 * seconds:g} ms" for stage, seconds in TURN_SECONDS.items()),
    )
    return measured, assumed
