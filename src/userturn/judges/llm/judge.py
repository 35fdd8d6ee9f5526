"""The judge: program first, then what is kept, then the model; one judgement a turn, whatever happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from userturn.artefacts import canonical, sha256_text
from userturn.config.judging import JudgeOffline, LlmJudge
from userturn.engine.store import CellStore, cell_key
from userturn.judges import degenerate
from userturn.judges.labels import JSON, Judgement, Turn
from userturn.judges.llm import rubric
from userturn.judges.llm.endpoint import EndpointTransport
from userturn.judges.llm.grounding import THRESHOLD, ground
from userturn.judges.llm.offline import OfflineTransport
from userturn.judges.llm.transport import JudgeStopped, Reply, Transport
from userturn.judges.llm.verdict import Cause, NoVerdict, Verdict, parse, validated

KIND = "llm"
#: Causes that lie with the server, or with the way to it, and not with the turn.
_NO_ANSWER = frozenset({"request_failed", "malformed_response"})
#: What is said of the same cause in the log, at most.
_SAID_EACH = 5
_SHOWN_CHARS = 300

_RATIONALE = {
    "verified": "A language model chose the label; the words it quotes stand in the assistant turn.",
    "unverified": "A language model chose the label; the words it quotes do not stand in the assistant turn.",
    "none": "A language model chose the label and quotes nothing of the assistant turn.",
}


def _ignore_count(count: int) -> None:
    """Tells nobody."""


def _ignore_text(text: str) -> None:
    """Says nothing."""


@dataclass(frozen=True)
class _Open:
    """A turn that a model has to judge, with the key of its request."""

    key: str
    case: rubric.Case


class LanguageModelJudge:
    """A language model that is given a rubric; see ``docs/judges.md``.

    Args:
        transport: How the model is reached.
        name: The judge's name in the study.
        cache: Folder of kept verdicts, one file a request.
        seed: The study's seed, from which the marks of delimiters are derived.
        max_chars: Longest text shown whole, in characters.
        give_up_after: Requests in a row without an answer that stop the job.
        on_done: Called with the number of turns that have just been decided.
        say: Takes a line for the log.
    """

    provisional: bool = True

    def __init__(
        self,
        transport: Transport,
        *,
        name: str,
        cache: Path,
        seed: int,
        max_chars: int = 6000,
        give_up_after: int = 20,
        on_done: Callable[[int], None] = _ignore_count,
        say: Callable[[str], None] = _ignore_text,
    ) -> None:
        self.name = name
        self._transport = transport
        self._store = CellStore(cache)
        self._seed = seed
        self._max_chars = max_chars
        self._give_up_after = give_up_after
        self._on_done = on_done
        self._say = say
        self._thresholds = degenerate.DegenerateThresholds()
        self._rubric = rubric.digest(marked=transport.marked)
        self._counts: Counter[str] = Counter()
        self._causes: Counter[Cause] = Counter()
        self._failed_in_a_row = 0

    @property
    def version(self) -> str:
        """Digest of rubric, model, parameters, and of what the program decides around them."""
        parts = {**self._request_base(), "max_chars": self._max_chars, "grounding": THRESHOLD}
        return f"{KIND}-{sha256_text(canonical(parts))[:16]}"

    def facts(self) -> dict[str, Any]:
        """What a manifest should hold: identity, and the counts of this job (volatile)."""
        return {
            "identity": dict(self._transport.identity),
            "rubric_sha256": self._rubric,
            "turns": dict(sorted(self._counts.items())),
            "unscored": dict(sorted(self._causes.items())),
            "transport": self._transport.facts(),
        }

    def judge(self, turns: Sequence[Turn]) -> list[Judgement]:
        """See `userturn.judges.labels.Judge.judge`.

        Equal requests are put once. Every valid verdict is on disk before the next one is looked at.

        Raises:
            JudgeStopped: It cannot go on; what was answered is kept, and the next run goes on from there.
        """
        found: list[Judgement | None] = [None] * len(turns)
        waiting: dict[str, list[int]] = {}
        cases: dict[str, rubric.Case] = {}
        for place, turn in enumerate(turns):
            by_program = degenerate.find(turn.text, self._thresholds)
            if by_program is not None:
                rule, evidence, rationale = by_program
                found[place] = Judgement("scored", "degenerate", {"rule": rule, **evidence}, rationale)
                self._counts["by_program"] += 1
                continue
            case = rubric.case(turn, seed=self._seed, max_chars=self._max_chars, marked=self._transport.marked)
            key = cell_key({**self._request_base(), "messages": [dict(message) for message in case.messages]})
            cases[key] = case
            waiting.setdefault(key, []).append(place)
        self._on_done(len(turns) - sum(map(len, waiting.values())))

        def decided(key: str, judgement: Judgement) -> None:
            for place in waiting[key]:
                found[place] = judgement
            self._on_done(len(waiting[key]))

        to_ask: list[_Open] = []
        for key, case in cases.items():
            kept = self._kept(key)
            if kept is None:
                to_ask.append(_Open(key, case))
            else:
                self._counts["from_cache"] += len(waiting[key])
                decided(key, _scored(kept, case))
        self._ask(to_ask, waiting, decided)
        if None in found:
            raise JudgeStopped(f"the transport left {found.count(None)} turns without a reply")
        return [judgement for judgement in found if judgement is not None]

    def _ask(
        self,
        to_ask: Sequence[_Open],
        waiting: Mapping[str, Sequence[int]],
        decided: Callable[[str, Judgement], None],
    ) -> None:
        def replied(index: int, reply: Reply) -> None:
            one = to_ask[index]
            self._counts["asked"] += 1
            judgement = self._judgement(one, reply, len(waiting[one.key]))
            decided(one.key, judgement)
            self._failed_in_a_row = self._failed_in_a_row + 1 if reply.cause in _NO_ANSWER else 0
            if self._failed_in_a_row >= self._give_up_after:
                raise JudgeStopped(
                    f"{self._failed_in_a_row} requests in a row got no usable answer; the last one: {reply.detail}. "
                    "Verdicts so far are kept: run again when that is mended (give_up_after sets how many it takes)"
                )

        self._transport.ask([one.case.messages for one in to_ask], replied)

    def _judgement(self, one: _Open, reply: Reply, turns: int) -> Judgement:
        cause, detail = reply.cause, reply.detail
        if reply.text is not None:
            try:
                verdict = parse(reply.text, one.case.mark if self._transport.marked else None)
            except NoVerdict as error:
                cause, detail = error.cause, f"{len(reply.text)} characters"
            else:
                self._store.put(one.key, [verdict.model_dump(mode="json")])
                self._counts["by_model"] += turns
                return _scored(verdict, one.case)
        cause = cause or "malformed_response"
        if self._causes[cause] < _SAID_EACH:
            self._say(f"{self.name}: unscored, {cause}: {detail}")
        self._causes[cause] += turns
        return _unscored(cause)

    def _request_base(self) -> dict[str, Any]:
        return {"judge": KIND, "rubric": self._rubric, **self._transport.identity}

    def _kept(self, key: str) -> Verdict | None:
        rows = self._store.get(key)
        if rows is None or len(rows) != 1:
            return None
        try:
            return validated(rows[0])
        except NoVerdict:
            return None


def _scored(verdict: Verdict, case: rubric.Case) -> Judgement:
    grounding, similarity = ground(verdict.reacts_to, case.answer.pieces if case.answer else ())
    evidence: dict[str, JSON] = {
        "rule": "language_model",
        "grounding": grounding,
        "grounding_similarity": similarity,
        "reacts_to": _cut(verdict.reacts_to),
        "reason": _cut(verdict.reason),
    }
    if case.left_out:
        evidence["characters_left_out"] = case.left_out
    return Judgement("scored", verdict.label, evidence, _RATIONALE[grounding])


def _unscored(cause: Cause) -> Judgement:
    return Judgement(
        "unscored", None, {"rule": "language_model", "cause": cause}, "The language model gave no valid verdict."
    )


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def from_config(
    name: str,
    config: LlmJudge,
    *,
    model_folder: Path | None,
    cache: Path,
    seed: int,
    threads: int = 1,
    on_done: Callable[[int], None] = _ignore_count,
    say: Callable[[str], None] = _ignore_text,
) -> LanguageModelJudge:
    """The judge that a section of a study describes. Nothing is loaded or asked before it is needed.

    Args:
        name: The judge's name in the study.
        config: Its section.
        model_folder: Where the weights are; needed by the offline transport alone.
        cache: Folder of kept verdicts; a ledger of money lies beside them.
        seed: The study's seed.
        threads: Cores of the offline transport.
        on_done: See `LanguageModelJudge`.
        say: See `LanguageModelJudge`.

    Raises:
        ValueError: The offline transport was given no folder.
    """
    transport: Transport
    if isinstance(config.transport, JudgeOffline):
        if model_folder is None:
            raise ValueError(f"judges.{name}: the offline transport needs a model folder")
        transport = OfflineTransport(model_folder, config.transport, max_tokens=config.max_tokens, threads=threads)
    else:
        ledger = cache / "spend" / f"{name}.jsonl"
        transport = EndpointTransport(config.transport, max_tokens=config.max_tokens, ledger=ledger)
    return LanguageModelJudge(
        transport,
        name=name,
        cache=cache,
        seed=seed,
        max_chars=config.max_chars,
        give_up_after=config.give_up_after,
        on_done=on_done,
        say=say,
    )
