"""Cells that several jobs write together, each a range of the items.

Only for engines whose texts do not depend on what is generated together: a row is then the same whichever job wrote it,
since prompt and seed belong to cell, item and sample. Ranges are kept in the store like cells of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from userturn.artefacts import Row
from userturn.engine.generation import CellRequest, Generator


def part_of(request: CellRequest, part: int, parts: int) -> CellRequest:
    """The request for one range of a cell's items; ranges are next to each other and differ by at most one item.

    Args:
        request: the whole cell.
        part: which range, from 0.
        parts: how many there are.
    """
    n = len(request.prompted)
    return replace(request, prompted=request.prompted[part * n // parts : (part + 1) * n // parts])


class SharedGenerator(Generator):
    """Generates cells range by range: whole ones come from the store, then from their ranges there."""

    def write(self, requests: Sequence[CellRequest], part: int, parts: int, on_done: Callable[[int], None]) -> None:
        """Writes one range of each cell to the store; of cells that stand there already nothing.

        Args:
            requests: the cells.
            part: which range, from 0.
            parts: how many there are.
            on_done: called with the number of turns that have just been finished or found.
        """
        own = [part_of(one, part, parts) for one in self._missing(requests)]
        on_done(sum(len(part_of(one, part, parts)) for one in requests) - sum(map(len, own)))
        for _ in self.cells(own, on_done):
            pass

    def collect(
        self, requests: Sequence[CellRequest], parts: int, on_done: Callable[[int], None]
    ) -> Iterator[list[Row]]:
        """The rows of each cell, as `cells` gives them; a range that is not in the store is generated here."""
        if parts == 1:
            yield from self.cells(requests, on_done)
            return
        missing = self._missing(requests)
        # progress is counted once, when whole cells are handed out
        ranges = [list(self.cells([part_of(one, i, parts) for one in missing], _uncounted)) for i in range(parts)]
        for number, request in enumerate(missing):
            self._store.put(self._key(request), [row for rows in ranges for row in rows[number]])
        made = set(self.generated)
        self.generated.clear()
        yield from self.cells(requests, on_done)
        self.generated.extend(sorted(made))

    def _missing(self, requests: Sequence[CellRequest]) -> list[CellRequest]:
        return [one for one in requests if self._store.get(self._key(one)) is None]


def _uncounted(_: int) -> None:
    """Counts nothing."""
