"""Stage `gold`: one judge's labels of the gold set, whose final labels it does not see."""

from __future__ import annotations

from dataclasses import asdict

from userturn import job, layout
from userturn.artefacts import read_jsonl, write_jsonl
from userturn.config.judging import JudgeConfig
from userturn.judges.labels import turn
from userturn.judges.opening import facts, open_judge


class Spec(job.JobSpec):
    """One judge."""

    judge: str
    config: JudgeConfig
    seed: int


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``results/gold/{judge}.jsonl``."""
    job.reads(layout.GOLD_TURNS)
    rows = read_jsonl(layout.GOLD_TURNS)
    judge = open_judge(spec.judge, spec.config, spec.seed, job)
    labels = judge.judge([turn(row, row, row) for row in rows])
    write_jsonl(
        layout.gold(spec.judge),
        [{"id": row["id"], "item": row["item"], **asdict(label)} for row, label in zip(rows, labels, strict=True)],
    )
    job.wrote(layout.gold(spec.judge))
    job.say(f"{len(rows)} turns, {sum(label.state == 'unscored' for label in labels)} unscored")
    job.facts = {"judge": facts(judge, job)}


if __name__ == "__main__":
    job.main("gold", Spec, run)
