"""Runs stages one after the other in one process, so that they share one model load.

``python -m userturn.provenance.replay --steps JSON --threads N`` in a scratch folder, in the engine's environment.
"""

from __future__ import annotations

import argparse
import importlib
import json

from userturn.job import Job


def main() -> None:
    """Runs the steps; a stage that fails ends the process with its traceback."""
    parser = argparse.ArgumentParser(prog="python -m userturn.provenance.replay")
    parser.add_argument("--steps", required=True, help="list of stages with their specs, as JSON")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    for step in json.loads(options.steps):
        module = importlib.import_module(f"userturn.stages.{step['stage']}")
        module.run(module.Spec.model_validate(step["spec"]), Job(step["stage"], threads=options.threads))


if __name__ == "__main__":
    main()
