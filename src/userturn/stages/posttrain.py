"""Stage `posttrain`: a variant trained on turns of conversations, as an ordinary model folder."""

from __future__ import annotations

from userturn import job
from userturn.posttrain.sft import sft
from userturn.posttrain.variant import VariantSpec, write_variant


class Spec(VariantSpec):
    """One variant; its rows say which tokens are trained."""


def run(spec: Spec, job: job.Job) -> None:
    """Writes ``data/models/{variant}/`` and ``results/posttrain/{variant}/{curve.jsonl,summary.json}``."""
    write_variant(spec, job, "sft", "userturn.stages.posttrain", sft)


if __name__ == "__main__":
    job.main("posttrain", Spec, run)
