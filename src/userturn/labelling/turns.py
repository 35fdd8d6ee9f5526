"""User turns of a study's finished cells: which there are, and what a labeller sees of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from userturn import grid, layout
from userturn.artefacts import ArtefactError, iter_jsonl, read_jsonl
from userturn.config.perturbations import CONTROLS
from userturn.config.study import Study
from userturn.judges.labels import Turn, turn
from userturn.judges.people import Place
from userturn.labelling import LabellingError
from userturn.labelling.sample import UNSCORED, Stratum, temperature_group


@dataclass(frozen=True)
class Frame:
    """All turns that can be drawn.

    Attributes:
        strata: their places by stratum.
        finished: how many cells are finished.
        cells: how many cells were looked at.
    """

    strata: Mapping[Stratum, list[Place]]
    finished: int
    cells: int


def frame(study: Study, judge: str, *, controls: bool = False) -> Frame:
    """The turns of a study's finished cells: those that the judge has judged.

    Args:
        study: the study; its artefacts are looked for in the working directory.
        judge: whose labels make the strata.
        controls: also the cells whose user turns are known, not generated.

    Raises:
        LabellingError: the judge is not of the study, an artefact is broken, or no cell is finished.
    """
    if judge not in study.judges:
        raise LabellingError(f"--judge {judge}: no judge of the study {study.name}; known: {', '.join(study.judges)}")
    strata: dict[Stratum, list[Place]] = {}
    cells = [c for c in grid.cells(study) if controls or study.probe.perturbations[c.perturbation].kind not in CONTROLS]
    finished = 0
    for cell in cells:
        path = cell.judgements(judge)
        if not (path.is_file() and cell.user_turns.is_file()):
            continue
        finished += 1
        try:
            for row in iter_jsonl(path):
                group = temperature_group(cell.temperature)
                stratum = Stratum(row["label"] or UNSCORED, cell.model, cell.perturbation, group)
                place = Place(cell.model, cell.dataset, cell.perturbation, cell.temperature, row["item"], row["sample"])
                strata.setdefault(stratum, []).append(place)
        except (ArtefactError, KeyError) as error:
            raise LabellingError(f"{path}: not a file of judgements: {error}") from error
    if not finished:
        raise LabellingError(
            f"no cell of the study {study.name} is finished here: none of {len(cells)} has user turns and judgements "
            f"of {judge}; run the workflow first"
        )
    return Frame(strata, finished, len(cells))


def seen(places: Iterable[Place]) -> dict[Place, Turn | None]:
    """What a labeller sees of each turn; None where the artefacts do not hold the turn (any more).

    Raises:
        LabellingError: an artefact is broken, or was written by another version.
    """
    found: dict[Place, Turn | None] = {}
    for (model, dataset, perturbation, temperature), group in groupby(sorted(set(places)), lambda place: place.cell):
        wanted = list(group)
        paths = (
            layout.dataset(dataset),
            layout.contexts(model, dataset, perturbation),
            layout.user_turns(model, dataset, perturbation, layout.temperature_key(temperature)),
        )
        if not all(path.is_file() for path in paths):
            found |= dict.fromkeys(wanted)
            continue
        try:
            items, contexts = ({row["item"]: row for row in read_jsonl(path)} for path in paths[:2])
            turns = {(row["item"], row["sample"]): row for row in iter_jsonl(paths[2])}
            for place in wanted:
                row, known = turns.get((place.item, place.sample)), place.item in items and place.item in contexts
                found[place] = turn(items[place.item], contexts[place.item], row) if row and known else None
        except (ArtefactError, KeyError) as error:
            raise LabellingError(
                f"{', '.join(map(str, paths))}: cannot be read ({error}); artefacts of another version of userturn "
                "are made anew by running the workflow"
            ) from error
    return found
