"""From conversations and problems to the rows that a variant is trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from userturn.artefacts import Row
from userturn.messages import Message
from userturn.perturb import donors
from userturn.posttrain.contamination import Evaluated, words
from userturn.posttrain.conversations import Conversation, TrainingDataError
from userturn.posttrain.masks import Masker, NotTrainable, TrainingRow
from userturn.render import HostileContentError, Renderer, TemplateNotProbeable
from userturn.seeds import derive

LossOn = Literal["user", "assistant", "all"]
_SHARE_BITS = 48


@dataclass
class Report:
    """How rows came about, for the manifest and the page.

    Attributes:
        counts: conversations, rows and tokens, by what they are.
        dropped: what was left out for what.
    """

    counts: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def facts(self) -> dict[str, Any]:
        """As plain values."""
        return {"counts": dict(sorted(self.counts.items())), "dropped": dict(sorted(self.dropped.items()))}


def is_held_out(opening: str, share: float, seed: int) -> bool:
    """Whether conversations with this first user message are held out: all of them, or none."""
    drawn = derive(seed, "posttrain held out", " ".join(words(opening)), bits=_SHARE_BITS)
    return bool(drawn < share * 2**_SHARE_BITS)


def clean(found: Iterable[Conversation], evaluated: Evaluated, report: Report) -> list[Conversation]:
    """Conversations that share no words in a row with an item of the study; the others are counted."""
    kept = []
    for one in found:
        if evaluated.meets(message["content"] for message in one.messages):
            report.dropped["contaminated: shares words in a row with an item of the study"] += 1
        else:
            kept.append(one)
    return kept


def _targets(messages: Sequence[Message], loss_on: LossOn) -> list[int]:
    """Places of the turns that are trained: assistant turns, and user turns after an answer."""
    wanted = {"user", "assistant"} if loss_on == "all" else {loss_on}
    first = next(place for place, one in enumerate(messages) if one["role"] == "user")
    return [place for place, one in enumerate(messages) if place > first and one["role"] in wanted]


def _exchanged(
    found: Sequence[Conversation], split: Mapping[str, str], seed: int
) -> dict[tuple[str, int], tuple[str, str]]:
    """For each user turn after an answer, the turn of another conversation of the same split that it gets.

    The k-th turn of a conversation comes from its donor, counted round where the donor has fewer: the donors are a
    seeded derangement of conversations with distinct openings.
    """
    by_split: dict[str, list[Conversation]] = {}
    for one in found:
        by_split.setdefault(split[one.id], []).append(one)
    given = {}
    for name, group in sorted(by_split.items()):
        if len(group) < 2:
            raise TrainingDataError(
                f"shuffled_pairs: the split {name!r} has {len(group)} conversation: at least 2 are needed to exchange "
                "turns (held_out: 0 leaves only one split)"
            )
        donor = donors([one.id for one in group], seed, "posttrain", 0)
        by_id = {one.id: one for one in group}
        for one in group:
            other = by_id[donor[one.id]]
            turns = [other.messages[place]["content"] for place in _targets(other.messages, "user")]
            for k, place in enumerate(_targets(one.messages, "user")):
                given[one.id, place] = (other.id, turns[k % len(turns)])
    return given


def turn_rows(
    found: Sequence[Conversation],
    masker: Masker,
    *,
    loss_on: LossOn,
    held_out: float,
    shuffled_pairs: bool,
    seed: int,
    report: Report,
    on_done: Callable[[int], None] = lambda done: None,
) -> list[Row]:
    """Rows of token ids and labels, one a trained turn.

    Args:
        found: conversations.
        masker: of the base model.
        loss_on: which turns are trained.
        held_out: share of openings that are not.
        shuffled_pairs: whether user turns are exchanged between conversations.
        seed: of the study.
        report: gets counts.
        on_done: called with 1 for each conversation.

    Raises:
        TrainingDataError: too few conversations to exchange turns.
    """
    split = {one.id: "held_out" if is_held_out(one.opening, held_out, seed) else "train" for one in found}
    exchanged = _exchanged(found, split, seed) if shuffled_pairs else {}
    rows: list[Row] = []
    seen: set[tuple[str, ...]] = set()
    for one in found:
        for place in _targets(one.messages, loss_on):
            words = tuple(message["content"] for message in one.messages[: place + 1])
            if words in seen:
                report.dropped["turn: the same after the same context as another"] += 1
                continue
            seen.add(words)
            donor, text = exchanged.get((one.id, place), (None, one.messages[place]["content"]))
            turn = Message(role=one.messages[place]["role"], content=text)
            try:
                made = masker.row([*one.messages[:place], turn], place)
            except NotTrainable as error:
                report.dropped[f"turn: {error}"] += 1
                continue
            rows.append(_row(one, place, turn, made, split[one.id], donor))
        on_done(1)
    for row in rows:
        report.counts[f"rows, {row['split']}"] += 1
        report.counts[f"trained tokens, {row['split']}"] += sum(label >= 0 for label in row["labels"])
        report.counts["rows whose turn was cut"] += not row["ended"]
        report.counts["rows without their earliest exchanges"] += row["left_out"] > 0
    for name in sorted(set(split.values())):
        report.counts[f"conversations, {name}"] = sum(value == name for value in split.values())
    return rows


def _row(one: Conversation, place: int, turn: Message, made: TrainingRow, split: str, donor: str | None) -> Row:
    return {
        "row": f"{one.id}/{place}",
        "conversation": one.id,
        "role": turn["role"],
        "split": split,
        "input_ids": made.input_ids,
        "labels": made.labels,
        "ended": made.ended,
        "left_out": made.left_out,
        "donor": donor,
    }


def chosen(rows: Sequence[Row], most: int | None, seed: int) -> list[Row]:
    """At most so many rows to train on, the first of a seeded order, in the given order; held-out rows all stay."""
    if most is None:
        return list(rows)
    ranked = sorted(
        (row for row in rows if row["split"] == "train"), key=lambda row: derive(seed, "posttrain row", row["row"])
    )
    kept = {row["row"] for row in ranked[:most]}
    return [row for row in rows if row["split"] != "train" or row["row"] in kept]


def problem_rows(
    found: Iterable[tuple[str, Mapping[str, Any], str]],
    renderer: Renderer,
    evaluated: Evaluated,
    *,
    max_prompt_tokens: int,
    report: Report,
) -> list[Row]:
    """Rows of queries that an assistant is rewarded on.

    Args:
        found: source, item and its scorer.
        renderer: of the base model.
        evaluated: what the study measures.
        max_prompt_tokens: longer queries are left out.
        report: gets counts.
    """
    rows: list[Row] = []
    for source, item, scorer in found:
        if evaluated.meets(message["content"] for message in item["messages"]):
            report.dropped["contaminated: shares words in a row with an item of the study"] += 1
            continue
        try:
            prompt = renderer.assistant_prompt(item["messages"]).token_ids
        except (TemplateNotProbeable, HostileContentError):
            report.dropped["query: the template does not take it"] += 1
            continue
        if len(prompt) > max_prompt_tokens:
            report.dropped[f"query: over {max_prompt_tokens} tokens"] += 1
            continue
        rows.append(
            {
                "row": f"{source}/{item['item']}",
                "messages": item["messages"],
                "answer": None,
                "prompt_token_ids": list(prompt),
                "scorer": scorer if item["reference"] is not None else "none",
                "item": item,
            }
        )
        report.counts["queries"] += 1
        report.counts["queries with a reference"] += item["reference"] is not None
    return rows


def context_rows(found: Sequence[Conversation], masker: Masker, *, report: Report) -> list[Row]:
    """Rows of contexts after which the user turn itself is rewarded: query and answer, then the user header."""
    rows: list[Row] = []
    for one in found:
        for place in _targets(one.messages, "user"):
            try:
                made = masker.row(one.messages, place)
            except NotTrainable as error:
                report.dropped[f"turn: {error}"] += 1
                continue
            rows.append(
                {
                    "row": f"{one.id}/{place}",
                    "messages": list(one.messages[: place - 1]),
                    "answer": one.messages[place - 1]["content"],
                    "prompt_token_ids": list(made.prompt),
                    "scorer": "none",
                    "item": None,
                }
            )
            report.counts["contexts"] += 1
    return rows
