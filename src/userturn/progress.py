"""Progress of long work: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO


class Progress:
    """Counts finished units of work and tells a person about it.

    Args:
        total: number of units.
        label: what is counted, for instance ``"user turns"``.
        terminal: where a bar may be drawn; nothing is drawn where it is no terminal.
        log: where plain lines go.
        every: seconds between two lines of the log.
    """

    def __init__(
        self,
        total: int,
        label: str,
        *,
        terminal: TextIO | None = None,
        log: TextIO | None = None,
        every: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = total
        self.done = 0
        self._label = label
        self._terminal = terminal if terminal is not None and terminal.isatty() else None
        self._log = log if log is not None else sys.stderr
        self._every = every
        self._clock = clock
        self._start = self._last = clock()

    def advance(self, units: int = 1, note: str = "") -> None:
        """Counts ``units`` more as done."""
        self.done += units
        now = self._clock()
        if self._terminal is not None:
            self._draw(now, note)
        if self.done >= self.total or now - self._last >= self._every:
            self._last = now
            print(self._line(now, note), file=self._log, flush=True)

    def close(self) -> None:
        """Ends the bar's line."""
        if self._terminal is not None:
            print(file=self._terminal, flush=True)

    def _line(self, now: float, note: str) -> str:
        elapsed = now - self._start
        rate = self.done / elapsed if elapsed > 0 else 0.0
        left = f", about {(self.total - self.done) / rate:.0f} s left" if 0 < self.done < self.total and rate else ""
        return f"{self._label}: {self.done}/{self.total} in {elapsed:.0f} s{left}{' · ' + note if note else ''}"

    def _draw(self, now: float, note: str) -> None:
        assert self._terminal is not None
        filled = int(24 * self.done / self.total) if self.total else 24
        print(
            f"\r\x1b[K[{'█' * filled}{'·' * (24 - filled)}] {self._line(now, note)}",
            end="",
            file=self._terminal,
            flush=True,
        )
