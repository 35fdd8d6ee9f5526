"""A judge for tests of scale: the label that a simulated text was written for, with errors by hash. SIMULATED."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from userturn import code
from userturn.config.judging import SimulatedJudge as Config
from userturn.judges.labels import GENUINE, LABELS, Judgement, Label, Turn
from userturn.seeds import derive
from userturn.simulation.texts import label_of

_LABELS: Mapping[str | None, Label] = {label: label for label in LABELS}
_RATIONALE = "SIMULATED: made up by a program, of no meaning."


class SimulatedJudge:
    """Labels simulated texts; of others it makes something up.

    Args:
        name: its name in the study; judges of other names err elsewhere.
        config: its section.
    """

    provisional = True

    def __init__(self, name: str, config: Config) -> None:
        self.name = name
        self.version = code.digest(__name__)
        self._config = config

    def judge(self, turns: Sequence[Turn]) -> list[Judgement]:
        """See `Judge.judge`."""
        return [self._judgement(turn) for turn in turns]

    def _judgement(self, turn: Turn) -> Judgement:
        label = _label(turn)
        drawn = derive(0, "simulated judge", self.name, turn.query, turn.answer or "", turn.text, bits=64)
        share, other = (drawn >> 8) / 2**56, drawn & 255
        if share < self._config.unscored:
            return Judgement("unscored", None, {"cause": "simulated"}, _RATIONALE)
        if share < self._config.unscored + self._config.wrong:
            others = [one for one in LABELS if one != label]
            label = others[other % len(others)]
        return Judgement("scored", label, {"rule": "simulated"}, _RATIONALE)


def _label(turn: Turn) -> Label:
    """The label that a text was written for, or what a look at it suggests."""
    written_for = _LABELS.get(label_of(turn.text))
    if written_for is not None:
        return written_for
    if not turn.text.strip():
        return "degenerate"
    if turn.text == turn.query:
        return "restates_prompt"
    return GENUINE if turn.text.rstrip().endswith("?") else "continues_as_assistant"
