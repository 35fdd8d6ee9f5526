"""The first judge: program rules over text features and sentence similarity. Provisional.

Nobody has validated it against people; its error on turns whose label is known by construction stands in
``docs/labels.md``. The rules run in the order of `RULES`; the first that fires decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from userturn.judges import degenerate
from userturn.judges.embedding import Embedder, encode_unique, similarity
from userturn.judges.features import Features, extract
from userturn.judges.labels import JSON, Judgement, Label, Turn

NAME = "provisional"
VERSION = "1"


@dataclass(frozen=True)
class Thresholds:
    """Where the rules cut; similarities are cosines of the packaged sentence model.

    Chosen by eye on human follow-ups of one conversation set and on turns altered by rule; see
    ``docs/labels.md``.

    Attributes:
        copy_trigrams: A copy when this share of the turn's word trigrams comes from the reference.
        covered: Or when this share of the query's trigrams is in the turn, as one run of half the turn.
        copy_words: Fewest words for a copy of the assistant turn, so that a short quotation is none.
        paraphrase: A paraphrase of the query from this similarity on.
        near_paraphrase: Or from this one on when ``paraphrase_words`` of its content words are the query's.
        paraphrase_words: See ``near_paraphrase``.
        listing: From this many list items, headings or table rows on a text is laid out like an answer.
        equations: From this many equation marks on a text without a question is a worked solution.
        new_numbers: From this many numbers of its own on a text without back reference is a new problem.
        new_task: A request for a new piece of work below this similarity is one of its own.
        grounded: Grounded from this similarity to query or assistant turn on.
        sharing: Or from this one on when it shares ``shared_words`` of its content words.
        pointing: Or from this one on when it points back (it, that, your answer).
        shared_words: Share of content words that counts as sharing.
        personal_words: Most words of a statement in the first person that can be a user's.
        reaction_words: Most words of a statement that can be a user's verdict on what was said.
    """

    copy_trigrams: float = 0.6
    covered: float = 0.8
    copy_words: int = 8
    paraphrase: float = 0.9
    near_paraphrase: float = 0.75
    paraphrase_words: float = 0.75
    listing: int = 3
    equations: int = 2
    new_numbers: int = 2
    new_task: float = 0.4
    grounded: float = 0.2
    sharing: float = 0.1
    pointing: float = 0.14
    shared_words: float = 0.3
    personal_words: int = 60
    reaction_words: int = 30
    degenerate: degenerate.DegenerateThresholds = field(default_factory=degenerate.DegenerateThresholds)


@dataclass(frozen=True)
class Case:
    """One turn with everything a rule may look at.

    Attributes:
        features: Text features.
        to_query: Similarity of the turn to the query; None when that is blank.
        to_answer: Similarity of the turn to the assistant turn shown; None when it was removed or is blank.
    """

    features: Features
    to_query: float | None
    to_answer: float | None

    @property
    def nearest(self) -> float:
        """The larger similarity, -1 when there is none."""
        return max((x for x in (self.to_query, self.to_answer) if x is not None), default=-1.0)

    @property
    def similarities(self) -> dict[str, JSON]:
        """Both similarities, as evidence."""
        return {"similarity_query": self.to_query, "similarity_answer": self.to_answer}


@dataclass(frozen=True)
class Verdict:
    """What a rule decided, with the features that made it."""

    label: Label
    rationale: str
    evidence: dict[str, JSON]


Rule = Callable[[Case, Thresholds], "Verdict | None"]


def talks_about_the_conversation(case: Case, t: Thresholds) -> Verdict | None:
    """The text opens with the user, the assistant or the task as its subject."""
    if not case.features.surface.meta_opening:
        return None
    return Verdict("meta_reasoning", "It talks about the conversation from outside.", {"meta_opening": True})


def offers_help(case: Case, t: Thresholds) -> Verdict | None:
    """A sentence is an assistant's offer, disclaimer or closing."""
    found = case.features.surface.assistant_phrases
    if not found:
        return None
    return Verdict("continues_as_assistant", "It speaks as an assistant does.", {"assistant_phrases": found})


def says_nothing_in_particular(case: Case, t: Thresholds) -> Verdict | None:
    """Every sentence is made of stock words: thanks, greetings, empty prompts to go on."""
    s = case.features.surface
    if not s.stock:
        return None
    return Verdict("generic", "It would fit any conversation.", {"stock": True, "words": s.words})


def copies_the_answer(case: Case, t: Thresholds) -> Verdict | None:
    """Most of the text stands in the assistant turn, and more than in the query."""
    a, words = case.features.answer, case.features.surface.words
    copied = a.trigrams >= t.copy_trigrams and a.trigrams > case.features.query.trigrams
    if words < t.copy_words or not copied:
        return None
    return Verdict(
        "continues_as_assistant",
        "Most of it is copied from the assistant turn.",
        {"answer_trigrams": a.trigrams, "words": words},
    )


def repeats_the_query(case: Case, t: Thresholds) -> Verdict | None:
    """A copy or paraphrase of the query, whole or in part."""
    q = case.features.query
    copied = q.trigrams >= t.copy_trigrams or (q.covered >= t.covered and q.run_share >= 0.5)
    near = case.to_query if case.to_query is not None else -1.0
    paraphrased = near >= t.paraphrase or (near >= t.near_paraphrase and q.words >= t.paraphrase_words)
    if not (copied or paraphrased):
        return None
    rationale = "Most of it is copied from the query." if copied else "It says the query in other words."
    return Verdict(
        "restates_prompt",
        rationale,
        {"query_trigrams": q.trigrams, "query_words": q.words, "similarity_query": case.to_query},
    )


def lays_out_an_answer(case: Case, t: Thresholds) -> Verdict | None:
    """A worked solution, a list, a bare number or an answer's opening, with nothing asked."""
    s = case.features.surface
    listed = s.markdown_lines + s.bold >= t.listing
    worked = s.equations >= t.equations or s.steps >= 2
    if (s.asks or s.directs) and not (listed and not s.first_person):
        return None
    bare_number = s.content_words == 0 and s.numbers > 0
    if not (listed or worked or bare_number or s.answer_opening):
        return None
    return Verdict(
        "continues_as_assistant",
        "It is laid out as an answer or a worked solution.",
        {
            "answer_opening": s.answer_opening,
            "equations": s.equations,
            "bare_number": bare_number,
            "markdown_lines": s.markdown_lines,
            "steps": s.steps,
        },
    )


def poses_a_new_problem(case: Case, t: Thresholds) -> Verdict | None:
    """A problem with numbers of its own, or a new piece of work asked for, that leans on nothing said before."""
    f, s = case.features, case.features.surface
    shared = max(f.query.words, f.answer.words)
    own_numbers = s.new_numbers >= t.new_numbers and s.sentences >= 2
    problem = own_numbers and not (s.first_person or s.second_person)
    task = s.commissions and case.nearest < t.new_task
    if shared >= t.shared_words or not (problem or task):
        return None
    return Verdict(
        "unrelated",
        "It poses a problem or a task of its own.",
        {"commissions": s.commissions, "new_numbers": s.new_numbers, "shared_words": shared, **case.similarities},
    )


def has_nothing_to_do_with_it(case: Case, t: Thresholds) -> Verdict | None:
    """Far from query and assistant turn in meaning and in words."""
    f, s = case.features, case.features.surface
    near = case.nearest
    shared = max(f.query.words, f.answer.words)
    loosely = (near >= t.sharing and shared >= t.shared_words) or (near >= t.pointing and s.back_reference > 0)
    if near >= t.grounded or loosely:
        return None
    return Verdict(
        "unrelated",
        "It is far from the query and from the assistant turn.",
        {**case.similarities, "shared_words": shared},
    )


def speaks_as_a_user(case: Case, t: Thresholds) -> Verdict | None:
    """Grounded, and asks, directs, or reacts: speaks of oneself or passes a verdict on what was said."""
    s = case.features.surface
    states = (s.first_person > 0 and s.words <= t.personal_words) or (s.reacts and s.words <= t.reaction_words)
    reacts = states and not s.advises and not s.midway
    if not (s.asks or s.directs or reacts):
        return None
    return Verdict(
        "genuine_followup",
        "It is grounded and asks, directs or reacts as a user does.",
        {"asks": s.asks, "directs": s.directs, "reacts": reacts, **case.similarities},
    )


def states_without_a_user(case: Case, t: Thresholds) -> Verdict | None:
    """What is left: on the matter, and told as an answer tells it."""
    return Verdict(
        "continues_as_assistant",
        "It states things on the matter and neither asks, directs nor reacts.",
        case.similarities,
    )


RULES: tuple[Rule, ...] = (
    talks_about_the_conversation,
    offers_help,
    says_nothing_in_particular,
    copies_the_answer,
    repeats_the_query,
    lays_out_an_answer,
    poses_a_new_problem,
    has_nothing_to_do_with_it,
    speaks_as_a_user,
    states_without_a_user,
)


@dataclass(frozen=True)
class ProvisionalJudge:
    """Rules over text features and sentence similarity.

    Attributes:
        embedder: Sentence vectors; each text by itself.
        thresholds: Where the rules cut.
    """

    embedder: Embedder
    thresholds: Thresholds = field(default_factory=Thresholds)
    name: str = NAME
    version: str = VERSION
    provisional: bool = True

    def judge(self, turns: Sequence[Turn]) -> list[Judgement]:
        """Judge each turn by itself.

        Args:
            turns: Turns in any order.

        Returns:
            One judgement a turn, in the same order.

        Raises:
            ValueError: If the embedder returned a matrix of the wrong shape.
        """
        found = [degenerate.find(turn.text, self.thresholds.degenerate) for turn in turns]
        texts = [
            text
            for turn, hit in zip(turns, found, strict=True)
            if hit is None
            for text in (turn.text, turn.query, turn.answer or "")
            if text.strip()
        ]
        vector = encode_unique(self.embedder, texts)
        judgements = []
        for turn, hit in zip(turns, found, strict=True):
            if hit is not None:
                rule, evidence, rationale = hit
                judgements.append(Judgement("scored", "degenerate", {"rule": rule, **evidence}, rationale))
                continue
            to_query, to_answer = (
                similarity(vector(turn.text), vector(text)) if text.strip() else None
                for text in (turn.query, turn.answer or "")
            )
            if not all(x is None or math.isfinite(x) for x in (to_query, to_answer)):
                judgements.append(
                    Judgement(
                        "unscored",
                        None,
                        {"rule": "similarity_not_finite"},
                        "The sentence model gave no finite similarity.",
                    )
                )
                continue
            judgements.append(_decide(Case(extract(turn), to_query, to_answer), self.thresholds))
        return judgements


def _decide(case: Case, thresholds: Thresholds) -> Judgement:
    for rule in RULES:
        verdict = rule(case, thresholds)
        if verdict is not None:
            evidence: dict[str, JSON] = {"rule": rule.__name__}
            for key, value in verdict.evidence.items():
                evidence[key] = round(value, 4) if isinstance(value, float) else value
            return Judgement("scored", verdict.label, evidence, verdict.rationale)
    raise AssertionError("the last rule decides every case")
