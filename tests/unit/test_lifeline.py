"""Jobs end with the workflow that started them, however early it goes."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

# announces itself, starts a child that takes a moment to begin and then lives for a minute, and tells its number
PARENT = """
import subprocess, sys, time
from userturn import lifeline
lifeline.announce()
child = subprocess.Popen([sys.executable, "-c", {child!r}])
print(child.pid, flush=True)
time.sleep(60)
"""
CHILD = "import time; time.sleep({delay}); from userturn import lifeline; lifeline.hold(0.1); time.sleep(60)"


def there(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stream:  # noqa: PTH123
            return stream.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("delay", [0.0, 1.5])
def test_a_job_ends_with_its_workflow_even_if_it_is_still_being_started(delay: float) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(child=CHILD.format(delay=delay))], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    if not delay:
        time.sleep(1)
    assert there(child)
    parent.kill()
    parent.wait()
    limit = time.monotonic() + 8
    while there(child) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not there(child)


def test_without_a_workflow_on_this_machine_nothing_ends() -> None:
    code = "from userturn import lifeline; lifeline.hold(0.05); import time; time.sleep(0.5); print('there')"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for value in (None, f"{gone.pid} 1 another-machine", "nonsense"):
        environment = {key: old for key, old in os.environ.items() if key != "USERTURN_WORKFLOW"}
        if value is not None:
            environment["USERTURN_WORKFLOW"] = value
        assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True) == "there\n"
