"""Numbers: every reported value with its id, interval, method, sources and the rows it is computed from."""

from userturn.judges.labels import GENUINE
from userturn.numbers.assemble import assemble, definition
from userturn.numbers.inputs import Inputs
from userturn.numbers.row import CellName, Definition, Settings

__all__ = ["GENUINE", "CellName", "Definition", "Inputs", "Settings", "assemble", "definition"]
