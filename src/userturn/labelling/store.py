"""People's labels in the checkout: each labeller's own, adjudications, and the labels that follow from them.

::

    labels/{judge}/labellers/{labeller}.jsonl    what each person said
    labels/{judge}/adjudication.jsonl            final labels where they differed, each with its reason
    labels/{judge}/samples.jsonl                 how the turns were drawn: a row a key, without the turns
    labels/{judge}/labels.jsonl                  one label a turn: what a `people` judge of a study reads

No text of a dataset or a model stands in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from userturn.artefacts import ArtefactError, canonical, read_jsonl, sha256_text, write_jsonl
from userturn.judges.labels import LABELS
from userturn.judges.people import LabelsError, PeopleLabel, Place, read_labels
from userturn.labelling import LabellingError
from userturn.labelling.key import Key
from userturn.labelling.returned import Returned
from userturn.seeds import derive
from userturn.statistics.agreement import Agreement, agreement

LABELS_FOLDER = Path("labels")


@dataclass(frozen=True)
class Store:
    """The labels of one judge.

    Attributes:
        by_labeller: what each labeller said, a row a turn.
        adjudicated: final labels of turns on which they differed.
    """

    judge: str
    by_labeller: Mapping[str, Mapping[Place, PeopleLabel]]
    adjudicated: Mapping[Place, PeopleLabel]

    @property
    def folder(self) -> Path:
        """Where they are kept."""
        return LABELS_FOLDER / self.judge

    @property
    def final(self) -> Path:
        """The file of one label a turn."""
        return self.folder / "labels.jsonl"

    def given(self) -> dict[Place, list[PeopleLabel]]:
        """All labels of each turn, in the order of the labellers' names."""
        found: dict[Place, list[PeopleLabel]] = {}
        for _, labels in sorted(self.by_labeller.items()):
            for place, label in labels.items():
                found.setdefault(place, []).append(label)
        return dict(sorted(found.items()))

    def differing(self) -> dict[Place, list[PeopleLabel]]:
        """Turns whose labels differ, in the label or in what it reacts to, and that nobody has adjudicated."""
        return {
            place: labels
            for place, labels in self.given().items()
            if place not in self.adjudicated and len({(one.label, one.reacts_to) for one in labels}) > 1
        }

    def resolved(self) -> list[PeopleLabel]:
        """One label a turn."""
        given = self.given()
        places = sorted({*given, *self.adjudicated})
        return [_resolve(given.get(place, []), self.adjudicated.get(place)) for place in places]

    def agreements(self) -> dict[tuple[str, str], Agreement]:
        """Agreement of every pair of labellers on the turns that both labelled; items are the unit of resampling."""
        found = {}
        for first, second in combinations(sorted(self.by_labeller), 2):
            one, two = self.by_labeller[first], self.by_labeller[second]
            shared = sorted(one.keys() & two.keys())
            if shared:
                found[first, second] = agreement(
                    [one[place].label for place in shared],
                    [two[place].label for place in shared],
                    items=[f"{place.dataset}/{place.item}" for place in shared],
                    categories=LABELS,
                    positive="genuine_followup",
                    seed=derive(0, "agreement", first, second),
                )
        return found


def _resolve(given: Sequence[PeopleLabel], final: PeopleLabel | None) -> PeopleLabel:
    if final is not None:
        return final
    first = given[0]
    if len(given) == 1:
        return first
    who = "+".join(sorted(one.labeller for one in given))
    notes = "; ".join(f"{one.labeller}: {one.note}" for one in given if one.note)
    if len({one.label for one in given}) > 1:
        change = {"label": None, "state": "unscored", "reacts_to": None, "decision": "disagreement"}
    else:
        same = len({one.reacts_to for one in given}) == 1
        change = {"reacts_to": first.reacts_to if same else None, "decision": "agreed"}
    # validated anew: model_copy alone would not check
    return PeopleLabel.model_validate(first.model_dump() | change | {"labeller": who, "note": notes})


def read_store(judge: str) -> Store:
    """The labels of a judge as far as there are any.

    Raises:
        LabellingError: a file is broken.
    """
    folder = LABELS_FOLDER / judge
    try:
        by_labeller = {path.stem: _by_place(read_labels(path)) for path in sorted(folder.glob("labellers/*.jsonl"))}
        path = folder / "adjudication.jsonl"
        adjudicated = _by_place(read_labels(path)) if path.is_file() else {}
    except LabelsError as error:
        raise LabellingError(f"{error}") from error
    return Store(judge, by_labeller, adjudicated)


def _by_place(labels: Iterable[PeopleLabel]) -> dict[Place, PeopleLabel]:
    return {label.place: label for label in labels}


def add(store: Store, key: Key, returned: Sequence[Returned], *, replace: bool = False) -> Store:
    """Adds what labellers sent back.

    Args:
        store: what is there.
        key: the key of their sheets.
        returned: what they sent.
        replace: a labeller's new label takes the place of an old one; else it is refused.

    Raises:
        LabellingError: a turn would have two labels of one labeller, or an adjudication decides nothing.
    """
    by_labeller = {name: dict(labels) for name, labels in store.by_labeller.items()}
    adjudicated = dict(store.adjudicated)
    given = store.given()
    clashes = []
    for one in returned:
        target = adjudicated if key.kind == "adjudication" else by_labeller.setdefault(one.labeller, {})
        for label in one.labels:
            old = target.get(label.place)
            where = "/".join(map(str, label.place))
            if old is not None and not replace and _said(old) != _said(label):
                clashes.append(f"{where}: {old.labeller} said {_words(old)} before, {one.labeller} {_words(label)} now")
            elif key.kind == "adjudication" and label.place not in given:
                clashes.append(f"{where}: adjudicated, but no labeller's label of it is stored under {store.folder}")
            elif old is None or _said(old) != _said(label):
                target[label.place] = label
    if clashes:
        raise LabellingError(
            "\n".join(
                [*clashes[:20], f"{len(clashes)} turns refused; --replace takes the new label, where that is meant"]
            )
        )
    return Store(store.judge, by_labeller, adjudicated)


def _said(label: PeopleLabel) -> tuple[str | None, str | None, str, str]:
    return label.label, label.reacts_to, label.note, label.turn_sha256


def _words(label: PeopleLabel) -> str:
    return f"{label.label or 'cannot say'}{f' ({label.reacts_to})' if label.reacts_to else ''}"


def write_store(store: Store, key: Key) -> list[Path]:
    """Writes all files of a judge; returns their paths."""
    samples_path = store.folder / "samples.jsonl"
    described = key.model_dump(mode="json", exclude={"turns", "warning"})
    described |= {"key_sha256": sha256_text(canonical(key.model_dump(mode="json"))), "n_turns": len(key.turns)}
    try:
        samples = {row["key_sha256"]: row for row in (read_jsonl(samples_path) if samples_path.is_file() else [])}
    except (ArtefactError, KeyError) as error:
        raise LabellingError(f"{samples_path}: broken: {error}") from error
    samples[described["key_sha256"]] = described
    tables: dict[Path, Iterable[PeopleLabel]] = {
        store.folder / "labellers" / f"{labeller}.jsonl": labels.values()
        for labeller, labels in store.by_labeller.items()
    }
    if store.adjudicated:
        tables[store.folder / "adjudication.jsonl"] = store.adjudicated.values()
    tables[store.final] = store.resolved()
    for path, labels in tables.items():
        write_jsonl(path, [label.model_dump(mode="json") for label in sorted(labels, key=lambda label: label.place)])
    write_jsonl(samples_path, [samples[digest] for digest in sorted(samples)])
    return [*tables, samples_path]
