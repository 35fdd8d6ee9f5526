"""Numbers: every reported value with its id, interval, method, sources and the rows it is computed from."""

from userturn.judges.labels import GENUINE
from userturn.numbers.assemble import assemble
from userturn.numbers.row import CellName, Settings

__all__ = ["GENUINE", "CellName", "Settings", "assemble"]
