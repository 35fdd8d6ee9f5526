"""Stage `gold`: one judge's labels of the gold set, whose final labels it does not see."""

from __future__ import annotations

import json
from dataclasses import asdict

from userturn import job, layout
from userturn.artefacts import write_jsonl
from userturn.config.judging import JudgeConfig
from userturn.judges.labels import turn
from userturn.judges.opening import facts, open_judge
from userturn.sources import Source, SourceCache, fetch, origin, read_member


class Spec(job.JobSpec):
    """One judge and the turns."""

    judge: str
    config: JudgeConfig
    turns: Source
    seed: int


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``results/gold/{judge}.jsonl``."""
    cache = SourceCache.default()
    fetch(spec.turns, cache=cache, progress=job.say)
    data = read_member(spec.turns, cache).decode("utf-8")
    rows = sorted((json.loads(line) for line in data.split("\n") if line.strip()), key=lambda row: str(row["id"]))
    judge = open_judge(spec.judge, spec.config, spec.seed, job)
    labels = judge.judge([turn(row, row, row) for row in rows])
    write_jsonl(
        layout.gold(spec.judge),
        [{"id": row["id"], "item": row["item"], **asdict(label)} for row, label in zip(rows, labels, strict=True)],
    )
    job.wrote(layout.gold(spec.judge))
    job.say(f"{len(rows)} turns, {sum(label.state == 'unscored' for label in labels)} unscored")
    job.facts = {"judge": facts(judge, job), "turns": origin(spec.turns)}


if __name__ == "__main__":
    job.main("gold", Spec, run)
