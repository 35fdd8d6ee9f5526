"""Runs stages one after the other in this process: importing the trainers takes longer than training a tiny model.

Usage: python posttrain_driver.py JSON, a list of [stage, spec, folder].
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

from userturn.job import Job

if __name__ == "__main__":
    for stage, spec, folder in json.loads(sys.argv[1]):
        module = importlib.import_module(f"userturn.stages.{stage}")
        os.chdir(Path(folder))
        module.run(module.Spec.model_validate(spec), Job(stage, threads=1))
