"""Money spent on a judge, over all jobs of a study: a ledger of one line an event, appended as it happens.

What a batch can cost at most is reserved before it is sent, and exchanged for what each answer did cost. Jobs that run
at the same time see each other's reservations, and what a killed job had in flight stays reserved: it may be paid.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from userturn.artefacts import canonical
from userturn.judges.llm.transport import JudgeStopped


class Ledger:
    """What was spent and is reserved.

    Args:
        path: The file; made when something is first reserved.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read_to = 0
        self._total = 0.0

    def total(self) -> float:
        """Spent and reserved so far, by every job.

        Raises:
            JudgeStopped: A line of the ledger is damaged: what was spent is not known.
        """
        try:
            with self.path.open("rb") as stream:
                stream.seek(self._read_to)
                lines = stream.read().splitlines(keepends=True)
        except FileNotFoundError:
            return self._total
        for line in lines:
            if not line.endswith(b"\n"):
                break  # being written
            try:
                self._total += float(json.loads(line)["change"])
            except (ValueError, KeyError, TypeError) as error:
                raise JudgeStopped(
                    f"{self.path}: the line at byte {self._read_to} is damaged, so what was spent is not known; mend "
                    "or remove the file (a missing one counts as nothing spent)"
                ) from error
            self._read_to += len(line)
        return max(self._total, 0.0)

    def reserve(self, amounts: Sequence[float], limit: float | None) -> int:
        """Reserves what a batch can cost at most.

        Args:
            amounts: Upper estimate of each request.
            limit: What may be spent in all; None for no limit.

        Returns:
            How many of the first requests fit; their amounts are reserved.
        """
        with self._locked() as descriptor:
            room = None if limit is None else limit - self.total()
            fitting, reserved = 0, 0.0
            for amount in amounts:
                if room is not None and reserved + amount > room:
                    break
                reserved += amount
                fitting += 1
            if fitting:
                _append(descriptor, {"change": reserved, "reserved": fitting})
        return fitting

    def settle(self, amount: float, spent: float, prompt_tokens: int | None, completion_tokens: int | None) -> None:
        """Exchanges the reservation of one request for what it cost.

        Args:
            amount: What was reserved.
            spent: What it cost.
            prompt_tokens: Tokens read, for the record.
            completion_tokens: Tokens written, for the record.
        """
        with self._locked() as descriptor:
            _append(
                descriptor,
                {"change": spent - amount, "spent": spent, "prompt": prompt_tokens, "completion": completion_tokens},
            )

    @contextmanager
    def _locked(self) -> Iterator[int]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # ends with the descriptor, and so with the process
            yield descriptor
        finally:
            os.close(descriptor)


def _append(descriptor: int, event: dict[str, float | int | None]) -> None:
    os.write(descriptor, (canonical(event) + "\n").encode("utf-8"))
