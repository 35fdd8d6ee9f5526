"""From a judge's section of a study to the judge, in one place for all stages that judge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from userturn import layout
from userturn.artefacts import canonical, read_json
from userturn.config.judging import EmbeddedJudge, JudgeConfig, LlmJudge, PeopleJudge, SimulatedJudge
from userturn.files import sha256_file
from userturn.job import Job
from userturn.judges.labels import Judge
from userturn.judges.llm.judge import LanguageModelJudge, from_config
from userturn.judges.people import PeopleJudge as People
from userturn.seeds import derive


def open_judge(name: str, config: JudgeConfig, seed: int, job: Job) -> Judge:
    """The judge that a section describes; what it reads is noted with the job.

    Args:
        name: the judge's name in the study.
        config: its section.
        seed: the study's seed.
        job: the running job, for notes, progress and threads.
    """
    if isinstance(config, PeopleJudge):
        job.reads(Path(config.labels))
        return People.read(Path(config.labels), config.sha256)
    if isinstance(config, SimulatedJudge):
        from userturn.judges.simulated import SimulatedJudge as Simulated

        return Simulated(name, config)
    if config.weights is not None:
        job.reads(layout.judge_model(name))
    if isinstance(config, LlmJudge):
        folder = layout.judge_folder(name) if config.weights is not None else None
        return from_config(
            name, config, model_folder=folder, cache=layout.judge_calls(), seed=seed, threads=job.threads, say=job.say
        )
    from userturn.judges.embedding import MiniLMEmbedder

    embedder = MiniLMEmbedder(layout.judge_folder(name))
    if not isinstance(config, EmbeddedJudge):
        from userturn.judges.provisional import ProvisionalJudge

        return ProvisionalJudge(embedder)
    from userturn.judges.embedded.judge import EmbeddedJudge as Embedded
    from userturn.judges.embedded.store import read_data, read_fluency

    paths = (layout.judge_examples(name), layout.judge_fluency(name), layout.judge_validation(name))
    job.reads(*paths)
    return Embedded(
        read_data(paths[0]),
        str(read_json(paths[2])["kept"]),
        derive(seed, "judge", name, bits=31),
        embedder,
        read_fluency(paths[1]),
        version=sha256_file(paths[0])[:16],
    )


def facts(judge: Judge, job: Job) -> dict[str, Any]:
    """What a manifest tells of a judge; what differs from run to run (calls, tokens, spend) goes to the log."""
    told: Mapping[str, Any] = judge.facts() if isinstance(judge, LanguageModelJudge) else {}
    stable = {key: told[key] for key in ("identity", "rubric_sha256") if key in told}
    if told:
        job.say(f"{judge.name}: {canonical({key: value for key, value in told.items() if key not in stable})}")
    return {"name": judge.name, "version": judge.version, "provisional": judge.provisional, **stable}
