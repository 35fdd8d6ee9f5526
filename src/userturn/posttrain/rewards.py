"""The conversational reward, after CollabLLM (Wu et al. 2025, arXiv 2502.00640): accuracy + interactivity - tokens.

Our own choices where that leaves any: accuracy is our scorers' verdict on the last answer of the simulated
conversation; interactivity is the share of simulated user turns that react to the answer before them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from userturn.judges.degenerate import DegenerateThresholds
from userturn.judges.degenerate import find as degenerate
from userturn.judges.features import content_words, longest_common_run, tokens
from userturn.judges.labels import GENUINE, Judge, Turn
from userturn.messages import Message
from userturn.scoring import get_scorer
from userturn.scoring.registry import ScorerName

#: So many words of the query in a row make a simulated user turn a copy of it.
COPIED_RUN = 6

TERMS = ("accuracy", "interactivity", "tokens")


@dataclass(frozen=True)
class Exchange:
    """One simulated exchange: what was asked, answered, and what the simulated user wrote next."""

    query: str
    answer: str
    user_turn: str


@dataclass(frozen=True)
class Outcome:
    """What one simulated conversation came to, before weighting.

    Attributes:
        accuracy: 1 for a right last answer, 0 for a wrong one or where nothing can be scored.
        interactivity: share of simulated user turns that react to the answer before them.
        tokens: written tokens as a share of the longest turn; more than 1 over several answers.
    """

    accuracy: float
    interactivity: float
    tokens: float


class Reacts(Protocol):
    """Says of simulated user turns whether they react to the answer before them."""

    def __call__(self, exchanges: Sequence[Exchange]) -> list[bool]:
        """One verdict an exchange."""
        ...


def reacts(exchange: Exchange) -> bool:
    """Whether a user turn takes up something that only the answer said, by a program.

    It must be a text, no copy of the query, and share a content word with the answer that the query does not have.
    """
    turn, query = tokens(exchange.user_turn), tokens(exchange.query)
    if degenerate(exchange.user_turn, DegenerateThresholds()) is not None:
        return False
    if longest_common_run(turn, query) >= COPIED_RUN:
        return False
    answered = content_words(tokens(exchange.answer)) - content_words(query)
    return bool(content_words(turn) & answered)


def by_program(exchanges: Sequence[Exchange]) -> list[bool]:
    """`reacts`, for each exchange."""
    return [reacts(one) for one in exchanges]


def by_judge(judge: Judge) -> Reacts:
    """A judge of the study: a reaction is what it calls a genuine follow-up; an unscored turn is none."""

    def verdicts(exchanges: Sequence[Exchange]) -> list[bool]:
        turns = [Turn(one.query, one.answer, one.user_turn, "stop") for one in exchanges]
        return [judgement.label == GENUINE for judgement in judge.judge(turns)]

    return verdicts


def accuracy(answer: str, row: Mapping[str, Any]) -> float:
    """1 for a right answer, 0 for a wrong one or where nothing can be scored."""
    if row["item"] is None:
        return 0.0
    score = get_scorer(cast(ScorerName, row["scorer"])).score(answer, row["item"])
    return float(bool(score.correct))


class Simulation:
    """Plays conversations on from the completions of the model in training.

    Args:
        user: writes the next user turns of conversations.
        assistant: writes the next answers of the model in training, and their tokens.
        future_turns: simulated user turns after the completion.
        reacts: says whether they react.
        max_tokens: longest answer, for the cost.
    """

    def __init__(
        self,
        user: Callable[[Sequence[Sequence[Message]]], list[str]],
        assistant: Callable[[Sequence[Sequence[Message]]], list[tuple[str, int]]],
        *,
        future_turns: int,
        reacts: Reacts,
        max_tokens: int,
    ) -> None:
        self._user, self._assistant = user, assistant
        self._future_turns, self._reacts, self._max_tokens = future_turns, reacts, max_tokens

    def outcomes(
        self, rows: Sequence[Mapping[str, Any]], completions: Sequence[str], n_tokens: Sequence[int]
    ) -> list[Outcome]:
        """What each conversation comes to.

        Args:
            rows: of ``rows.jsonl``, one a completion.
            completions: answers of the model in training.
            n_tokens: their lengths.
        """
        talks: list[list[Message]] = [list(row["messages"]) for row in rows]
        answers, written = list(completions), list(n_tokens)
        found: list[list[bool]] = [[] for _ in rows]
        for left in range(self._future_turns, 0, -1):
            queries = [talk[-1]["content"] for talk in talks]
            for talk, answer in zip(talks, answers, strict=True):
                talk.append(Message(role="assistant", content=answer))
            turns = self._user(talks)
            exchanges = [Exchange(*one) for one in zip(queries, answers, turns, strict=True)]
            for place, verdict in enumerate(self._reacts(exchanges)):
                found[place].append(verdict)
            if left > 1:
                for talk, turn in zip(talks, turns, strict=True):
                    talk.append(Message(role="user", content=turn))
                replies = self._assistant(talks)
                answers = [text for text, _ in replies]
                written = [a + b for a, (_, b) in zip(written, replies, strict=True)]
        return [
            Outcome(accuracy(answer, row), sum(verdicts) / len(verdicts), n / self._max_tokens)
            for answer, row, verdicts, n in zip(answers, rows, found, written, strict=True)
        ]


def of_user_turns(
    rows: Sequence[Mapping[str, Any]],
    completions: Sequence[str],
    n_tokens: Sequence[int],
    *,
    reacts: Reacts,
    max_tokens: int,
) -> list[Outcome]:
    """What user turns of the model in training come to: the measure itself is optimised, and says so everywhere."""
    exchanges = [
        Exchange(row["messages"][-1]["content"], row["answer"], turn)
        for row, turn in zip(rows, completions, strict=True)
    ]
    return [
        Outcome(0.0, float(verdict), n / max_tokens) for verdict, n in zip(reacts(exchanges), n_tokens, strict=True)
    ]
