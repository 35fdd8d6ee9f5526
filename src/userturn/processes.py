"""Work shared by several processes, which end when the one that started them does."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import wait
from typing import TypeVar

Part = TypeVar("Part")
Done = TypeVar("Done")


def spread(
    work: Callable[[Part], Done], parts: Sequence[Part], processes: int, *, preload: Sequence[str] = ()
) -> Iterator[Done]:
    """What ``work`` makes of each part, in the order of the parts.

    Args:
        work: a function of a module, or a partial of one; it and its values are pickled between processes of this
            program, never read from a file.
        parts: what is shared out.
        processes: how many work at a time; with fewer than two, or one part, all is done here.
        preload: modules that the workers need and that are imported once.
    """
    workers = min(processes, len(parts))
    if workers < 2:
        yield from map(work, parts)
        return
    # a fresh server to fork from: this process may have threads
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent) as pool:
        yield from pool.map(work, parts)


def _end_with_parent() -> None:
    """Ends a worker whose parent was killed: nobody would ask it for anything again."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=lambda: (wait([parent.sentinel]), os._exit(1)), daemon=True).start()
