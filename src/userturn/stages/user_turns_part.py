"""Stage `user_turns_part`: one range of the items of a shard's cells, for a shard that several jobs write together.

The rows go to the store of finished cells, where the stage `user_turns` finds them.
"""

from __future__ import annotations

from userturn import job, layout
from userturn.config.perturbations import CONTROLS
from userturn.engine.parts import part_of
from userturn.stages import user_turns


class Spec(user_turns.Spec):
    """One part of a shard."""

    part: int
    """Which of ``parts``, from 1."""


def run(spec: Spec, job: job.Job) -> None:
    """Writes a range of each cell to the store."""
    renderer = spec.renderer.load(spec.model)
    engine, generator = user_turns.opened(spec, job)
    contexts = user_turns.cached_contexts(spec.model)
    generated = [cell for cell in spec.cells if cell.kind not in CONTROLS]
    requests = [user_turns.requested(spec, c, contexts(c.dataset, c.perturbation), renderer) for c in generated]
    job.reads(layout.model(spec.model), *(layout.contexts(spec.model, c.dataset, c.perturbation) for c in generated))
    total = sum(len(part_of(request, spec.part - 1, spec.parts)) for request in requests)
    progress = job.progress(total, f"{spec.model}: user turns, part {spec.part} of {spec.parts}")
    generator.write(requests, spec.part - 1, spec.parts, progress.advance)
    progress.close()
    job.say(f"generated parts of {len(generator.generated)} cells")
    job.facts = {"engine": engine.facts, "part": spec.part, "turns": total}


if __name__ == "__main__":
    job.main("user_turns_part", Spec, run)
