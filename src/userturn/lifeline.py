"""A job ends when the workflow that started it is gone.

A killed Snakemake leaves its jobs running; a second run beside such an orphan would do the same work twice. The
workflow announces itself to what it starts, since a job that is still being started when the workflow dies has no
ancestors left to find it by. On a cluster the workflow of a job is the Snakemake on its own node.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
from pathlib import Path

_VARIABLE = "USERTURN_WORKFLOW"


def announce() -> None:
    """Makes this process the one that everything it starts from now on lives with."""
    os.environ[_VARIABLE] = f"{os.getpid()} {_started(os.getpid())} {platform.node()}"


def hold(interval: float = 1.0) -> None:
    """Ends this process soon after the announced one; does nothing where none was, or where it is on another machine.

    Args:
        interval: seconds between two looks.
    """
    words = os.environ.get(_VARIABLE, "").split(" ", 2)
    if len(words) != 3 or words[2] != platform.node():
        return
    pid, started = int(words[0]), words[1]

    def watch() -> None:
        while _started(pid) == started:
            time.sleep(interval)
        print("userturn: the workflow that started this job is gone; ending", file=sys.stderr, flush=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="lifeline").start()


def _started(pid: int) -> str | None:
    """When a process was started, which tells it from a later one with the same number; None where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]
