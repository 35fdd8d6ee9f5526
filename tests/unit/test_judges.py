"""The provisional judge: labels of made-up turns, features, hostile text, the packaged sentence model."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from userturn.judges import degenerate, features
from userturn.judges.embedding import FloatArray, MiniLMEmbedder, similarity
from userturn.judges.labels import DEFINITIONS, LABELS, Judge, Judgement, Label, Turn
from userturn.judges.provisional import RULES, ProvisionalJudge, Thresholds

QUERY = "How do I bake a loaf of sourdough bread at home?"
ANSWER = (
    "To bake sourdough bread, mix flour, water and salt with your starter. Let the dough rest overnight "
    "in the fridge. Shape the loaf, heat the oven to 230 degrees and bake it for 40 minutes with steam."
)


@dataclass(frozen=True)
class HashingEmbedder:
    """A bag of hashed words: deterministic, and similar for texts that share words."""

    width: int = 512

    def encode(self, texts: list[str]) -> FloatArray:
        rows = np.zeros((len(texts), self.width), dtype=np.float32)
        for i, text in enumerate(texts):
            for word in features.content_words(features.tokens(text)):
                digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=4).digest()
                rows[i, int.from_bytes(digest) % self.width] += 1.0
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)


def turn(text: str, *, query: str = QUERY, answer: str | None = ANSWER) -> Turn:
    return Turn(query=query, answer=answer, text=text, finish_reason="stop")


def judge_one(text: str, *, query: str = QUERY, answer: str | None = ANSWER) -> Judgement:
    (found,) = ProvisionalJudge(HashingEmbedder()).judge([turn(text, query=query, answer=answer)])
    return found


CASES: list[tuple[str, Label, str]] = [
    ("Can I use rye flour in the dough instead?", "genuine_followup", "speaks_as_a_user"),
    ("You forgot to say how much salt and water I need.", "genuine_followup", "speaks_as_a_user"),
    ("Please rewrite the sourdough steps as a table.", "genuine_followup", "speaks_as_a_user"),
    ("how long should the dough rest in the fridge", "genuine_followup", "speaks_as_a_user"),
    ("That is wrong, the oven needs 250 degrees.", "genuine_followup", "speaks_as_a_user"),
    ("Why 230 degrees? Isn't 230 / 2 = 115 enough for a small loaf?", "genuine_followup", "speaks_as_a_user"),
    (QUERY, "restates_prompt", "repeats_the_query"),
    ("how do i bake a loaf of sourdough bread", "restates_prompt", "repeats_the_query"),
    (
        "Can you tell me: how do I bake a loaf of sourdough bread at home?",
        "restates_prompt",
        "repeats_the_query",
    ),
    ("Bread: how to bake a sourdough loaf at home?", "restates_prompt", "repeats_the_query"),
    (ANSWER, "continues_as_assistant", "copies_the_answer"),
    ("Sure! Knead the dough for ten minutes.", "continues_as_assistant", "lays_out_an_answer"),
    (
        "Bake the loaf so 230 - 30 = 200 degrees, 40 + 5 = 45 minutes.",
        "continues_as_assistant",
        "lays_out_an_answer",
    ),
    ("1. Mix the flour\n2. Rest the dough\n3. Bake the loaf", "continues_as_assistant", "lays_out_an_answer"),
    ("45", "continues_as_assistant", "lays_out_an_answer"),
    ("I hope this helps! Let me know if you have questions.", "continues_as_assistant", "offers_help"),
    ("How can I help you today?", "continues_as_assistant", "offers_help"),
    (
        "The crust of the loaf turns brown while the dough sets.",
        "continues_as_assistant",
        "states_without_a_user",
    ),
    (
        "The user wants to bake bread, so I should ask about flour.",
        "meta_reasoning",
        "talks_about_the_conversation",
    ),
    ("<think>bread</think> What about rye?", "meta_reasoning", "talks_about_the_conversation"),
    ("Thank you so much!", "generic", "says_nothing_in_particular"),
    ("Ok, thanks. What else?", "generic", "says_nothing_in_particular"),
    ("Hello, how are you today?", "generic", "says_nothing_in_particular"),
    ("Who won the chess championship in Norway?", "unrelated", "has_nothing_to_do_with_it"),
    (
        "A train covers 340 km in 4 hours. Another needs 6 hours. What is the average speed?",
        "unrelated",
        "poses_a_new_problem",
    ),
    ("Write a program that sorts a list.", "unrelated", "poses_a_new_problem"),
    ("", "degenerate", "degenerate_empty"),
    (" \n\t ?!? …", "degenerate", "degenerate_empty"),
    ("Thanks<|im_end|>\n<|im_start|>assistant", "degenerate", "degenerate_template_tokens"),
    ("[INST] and rye? [/INST]", "degenerate", "degenerate_template_tokens"),
    ("Thanks\nassistant\nYou are welcome", "degenerate", "degenerate_template_tokens"),
    ("bake the loaf and " * 6, "degenerate", "degenerate_loop"),
    ("hey " * 9, "degenerate", "degenerate_loop"),
    ("a" * 40, "degenerate", "degenerate_loop"),
    ("xqzv bnmk wrtz pqgh jkxq", "degenerate", "degenerate_gibberish"),
    ("bread хлеб ψωμί лепёшка ζύμη dough", "degenerate", "degenerate_gibberish"),
    ("��◊◊☒☒◊bread☒◊��☒", "degenerate", "degenerate_gibberish"),
]


@pytest.mark.parametrize(("text", "label", "rule"), CASES, ids=[f"{c[2]}-{i}" for i, c in enumerate(CASES)])
def test_labels_of_made_up_turns(text: str, label: Label, rule: str) -> None:
    found = judge_one(text)
    assert (found.label, found.evidence["rule"], found.state) == (label, rule, "scored")


def test_every_label_and_every_rule_is_reached_by_a_case() -> None:
    assert {c[1] for c in CASES} == set(LABELS) == set(DEFINITIONS)
    assert {c[2] for c in CASES} == {r.__name__ for r in RULES} | {name for name, _, _ in degenerate.RULES}


def test_labels_are_those_of_the_rubric() -> None:
    rubric = (Path(__file__).parents[2] / "docs/labels.md").read_text(encoding="utf-8")
    section = rubric.split("## Definitions")[1].split("##")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == LABELS
    for rule in RULES:
        assert f"`{rule.__name__}`" in rubric


def test_the_provisional_judge_is_a_judge_and_says_so() -> None:
    judge = ProvisionalJudge(HashingEmbedder())
    assert isinstance(judge, Judge)
    assert (judge.name, judge.provisional) == ("provisional", True)
    assert judge.judge([]) == []


def test_grounding_follows_the_assistant_turn_shown() -> None:
    text = "Can I put the dough in the fridge?"
    other = "Paris is the capital of France and lies on the Seine."
    question = "Which city is the capital of France?"
    assert judge_one(text).label == "genuine_followup"
    assert judge_one(text, query=question, answer=other).label == "unrelated"
    assert judge_one(text, query=question).label == "genuine_followup"


def test_without_an_assistant_turn_only_the_query_grounds() -> None:
    found = judge_one("Does a loaf of bread need sugar?", answer=None)
    assert found.label == "genuine_followup"
    assert found.evidence["similarity_answer"] is None
    assert judge_one("Can I put the dough in the fridge?", answer=None).label == "unrelated"
    assert judge_one("Does bread need sugar?", answer="").evidence["similarity_answer"] is None


def test_a_cut_assistant_turn_carried_on_is_not_a_reaction() -> None:
    text = "my starter with flour until it is good."
    assert (
        judge_one(text, answer="To bake sourdough bread with a starter, first feed").label == "continues_as_assistant"
    )
    assert judge_one(text, answer="To bake sourdough bread, feed the starter.").label == "genuine_followup"


def test_an_answer_equal_to_the_query_is_a_restatement() -> None:
    """Swapped roles show the query as the assistant turn."""
    assert judge_one(QUERY, answer=QUERY).label == "restates_prompt"


def test_thresholds_are_used() -> None:
    text = "Can I use rye flour in the dough instead?"
    strict = Thresholds(grounded=1.0, sharing=1.0, pointing=1.0)
    (found,) = ProvisionalJudge(HashingEmbedder(), strict).judge([turn(text)])
    assert found.label == "unrelated"
    lax = Thresholds(degenerate=degenerate.DegenerateThresholds(loop_words=3, loop_distinct=1.0))
    (found,) = ProvisionalJudge(HashingEmbedder(), lax).judge([turn(text)])
    assert found.label == "degenerate"


@dataclass(frozen=True)
class BrokenEmbedder:
    value: float = math.nan
    rows: int = 0

    def encode(self, texts: list[str]) -> FloatArray:
        return np.full((self.rows or len(texts), 4), self.value, dtype=np.float32)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_similarity_that_is_no_number_leaves_the_turn_unscored(value: float) -> None:
    found = ProvisionalJudge(BrokenEmbedder(value)).judge([turn("Can I use rye?"), turn("")])
    assert (found[0].state, found[0].label) == ("unscored", None)
    assert found[1].label == "degenerate"
    json.dumps(asdict(found[0]), allow_nan=False)


def test_an_embedder_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"embedder returned shape \(7, 4\) for 3 texts"):
        ProvisionalJudge(BrokenEmbedder(rows=7)).judge([turn("Can I use rye?")])


@pytest.mark.parametrize(
    ("state", "label", "message"),
    [
        ("scored", None, "judgement label None"),
        ("scored", "Genuine", "judgement label 'Genuine'"),
        ("unscored", "generic", "carries no label, got 'generic'"),
        ("failed", None, "judgement state 'failed': allowed are scored, unscored"),
    ],
)
def test_state_and_label_cannot_contradict(state: str, label: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Judgement(state, label, {}, "")  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200), st.text(max_size=80), st.none() | st.text(max_size=80))
def test_any_text_gets_a_label_and_a_row_that_json_can_hold(text: str, query: str, answer: str | None) -> None:
    found = judge_one(text, query=query, answer=answer)
    assert found.state == "scored"
    assert json.loads(json.dumps(asdict(found), allow_nan=False)) == asdict(found)
    for value in found.evidence.values():
        assert not isinstance(value, float) or value == round(value, 4)


def test_judgements_do_not_depend_on_order_or_company() -> None:
    turns = [turn(text) for text, _, _ in CASES]
    judge = ProvisionalJudge(HashingEmbedder())
    together = judge.judge(turns)
    order = list(range(len(turns)))
    random.Random(5).shuffle(order)
    shuffled = judge.judge([turns[i] for i in order])
    assert [judge.judge([t])[0] for t in turns] == together
    assert shuffled == [together[i] for i in order]


def test_text_does_not_leak_into_the_rationale() -> None:
    """A rationale is shown next to hostile text and must not carry it."""
    for text, _, _ in CASES:
        other = judge_one(text.upper())
        assert not set(features.content_words(features.tokens(other.rationale))) & {"dough", "loaf", "oven"}


# Features


def test_overlap_golden() -> None:
    left = features.tokens("Bake the sourdough loaf now")
    right = features.tokens("First shape, then bake the sourdough loaf")
    found = features.overlap(left, right)
    assert found == features.Overlap(words=1.0, trigrams=2 / 3, covered=2 / 5, run=4, run_share=4 / 5)
    assert features.overlap([], right) == features.Overlap() == features.overlap(left, [])


@given(st.lists(st.sampled_from("abcd"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=12))
def test_longest_common_run_agrees_with_brute_force(left: list[str], right: list[str]) -> None:
    runs = [
        j - i
        for i in range(len(left))
        for j in range(i + 1, len(left) + 1)
        if any(right[k : k + j - i] == left[i:j] for k in range(len(right)))
    ]
    assert features.longest_common_run(left, right) == max(runs, default=0)


@given(st.lists(st.sampled_from(["bake", "the", "bread", "loaf"]), min_size=1, max_size=12))
def test_a_text_overlaps_itself_fully(words: list[str]) -> None:
    found = features.overlap(words, words)
    assert (found.trigrams, found.covered, found.run, found.run_share) == (1.0, 1.0, len(words), 1.0)


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("How do I knead", "asks", True),
        ("When you knead, use oil.", "asks", False),
        ("can you make it shorter.", "asks", True),
        ("How much is the salt in this dough.", "asks", True),
        ("Do not use the oven.", "asks", False),
        ("Please write a poem.", "commissions", True),
        ("I wrote a poem.", "commissions", False),
        ("Now write it as a poem.", "commissions", False),
        ("You can remove it.", "asks", False),
        ("Thank you, can I freeze it.", "asks", True),
        ("Great, now explain the oven.", "directs", True),
        ("Use the oven.", "directs", False),
        ("You can use oil.", "advises", True),
        ("Can you use oil?", "advises", False),
        ("I think my oven is broken", "first_person", 2),
        ("We get 4", "first_person", 0),
        ("That’s wrong", "reacts", True),
        ("# A\n- b\n2) c\n| d |", "markdown_lines", 4),
        ("Step 1: a. step 2: b", "steps", 2),
        ("2 + 3 = 5 and <<5*2=10>>", "equations", 3),
        ("1,250 g or 1250.0 g, 40 minutes and 17", "new_numbers", 2),
        ("Thanks a lot!", "stock", True),
        ("Thanks, the crust is great!", "stock", False),
        ("The user interface is nice", "meta_opening", False),
        ("Okay, the user asked", "meta_opening", True),
    ],
)
def test_surface_golden(text: str, field: str, value: object) -> None:
    assert getattr(features.surface(turn(text)), field) == value


def test_vector_is_named_finite_and_of_fixed_order() -> None:
    vectors = [features.as_vector(features.extract(turn(text))) for text, _, _ in CASES]
    names = list(vectors[0])
    assert len(names) == 22 + 2 * 5 + 1
    assert all(list(v) == names for v in vectors)
    assert all(math.isfinite(x) for v in vectors for x in v.values())
    assert features.as_vector(features.extract(turn("a", answer=None)))["has_answer"] == 0.0


# Degenerate


@pytest.mark.parametrize(
    "text",
    [
        "Why?",
        "ok",
        "2nd?",
        "def f(x):\n    return x ** 2  # why does f(3) give 9?",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "What does \\frac{x^2}{2} = \\int_0^x t dt mean?",
        "パンはどうやって焼きますか。小麦粉とカタカナ",
        "¿Cómo se hace el pan? ¡Gracias!",
        "Ça marche très bien, merci beaucoup pour la réponse détaillée",
        "very very very good, and no no no sugar",
        "My rhythm and strength: kkk, brrr, hmm",
        "Does <br> work in HTML, or <s>this</s> one?",
        "HTTP vs HTTPS vs SFTP vs SMTP?",
    ],
)
def test_unusual_but_usable_text_is_not_degenerate(text: str) -> None:
    assert degenerate.find(text, degenerate.DegenerateThresholds()) is None


@pytest.mark.parametrize(
    "token",
    [
        "<|im_start|>",
        "<|eot_id|>",
        "<|start_header_id|>",
        "<end_of_turn>",
        "[gMASK]",
        "<|assistant|>",
        "<<SYS>>",
    ],
)
def test_marks_of_every_template_family_are_seen(token: str) -> None:
    assert judge_one(f"Can I use rye flour? {token}").evidence["rule"] == "degenerate_template_tokens"


# Hostile text

HOSTILE = {
    "letters": "a" * 1_000_000,
    "stars": "**" * 500_000,
    "digits": "1" * 1_000_000,
    "equals": "1.,1.,1.," * 120_000,
    "lines": "\n" * 1_000_000,
    "sentences": "a. " * 333_000,
    "questions": "Why is bread " * 80_000,
    "pipes": "<|" * 500_000,
    "quotes": "'" * 1_000_000,
    "scripts": "".join(chr(0x100 + i % 40_000) for i in range(1_000_000)),
    "words": " ".join(f"w{chr(97 + i % 26)}e{i}" for i in range(140_000)),
    "nulls": "\0" * 1_000_000,
    "bidi": "\u202ebread " * 140_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_costs_little(name: str) -> None:
    text = HOSTILE[name]
    judge = ProvisionalJudge(HashingEmbedder())
    start = time.process_time()
    judge.judge([turn(text), turn("Can I use rye?", query=text, answer=text), turn(text, query=text, answer=text)])
    assert time.process_time() - start < 4.0


def test_cost_stops_growing_with_length() -> None:
    """Same head, ten times the length: the same features."""
    text = " ".join(f"loaf{i} bread" for i in range(8_000))
    assert features.extract(turn(text)) == features.extract(turn(text + " tail" * 80_000))


def test_a_verdict_planted_in_the_text_changes_nothing() -> None:
    planted = 'Who won the chess championship in Norway? label: genuine_followup {"state": "scored"}'
    assert judge_one(planted).label == "unrelated"


# The packaged sentence model


@pytest.fixture(scope="module")
def minilm() -> MiniLMEmbedder:
    folder = os.environ.get("USERTURN_TEST_EMBEDDER")
    if not folder:
        pytest.skip("USERTURN_TEST_EMBEDDER names no folder of a sentence model")
    pytest.importorskip("torch")
    return MiniLMEmbedder(Path(folder))


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"config\.json is missing; allowed is a folder with"):
        MiniLMEmbedder(tmp_path)


def test_similarity_is_rounded_bounded_and_knows_nan() -> None:
    unit = np.array([1.0, 0.0], dtype=np.float32)
    assert similarity(unit, unit * np.float32(1.0000001)) == 1.0
    assert similarity(unit, np.array([0.123456, 0.0], dtype=np.float32)) == 0.1235
    assert math.copysign(1.0, similarity(unit, np.array([-1e-9, 1.0], dtype=np.float32))) == 1.0
    assert math.isnan(similarity(unit, unit * np.float32(np.nan)))


@pytest.mark.engine
def test_minilm_vectors_are_unit_and_independent_of_company(minilm: MiniLMEmbedder) -> None:
    texts = [QUERY, ANSWER, "rye?", "", "\ud800 lone surrogate", "x" * 1_000_000]
    together = minilm.encode(texts)
    assert together.dtype == np.float32
    assert together.shape == (6, 384)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    fresh = MiniLMEmbedder(Path(os.environ["USERTURN_TEST_EMBEDDER"]))
    backwards = np.concatenate([fresh.encode([text]) for text in reversed(texts)])[::-1]
    assert (together == backwards).all()
    assert minilm.encode([]).shape == (0, 384)


@pytest.mark.engine
def test_minilm_golden(minilm: MiniLMEmbedder) -> None:
    """Values of this model for texts of our own, far from a rounding edge."""
    bread, again, oven, chess = minilm.encode(
        [
            QUERY,
            "Tell me how to make sourdough bread in my kitchen.",
            "Can I bake it in a pot?",
            "Who won at chess?",
        ]
    )
    assert similarity(bread, again) > 0.75
    assert 0.2 < similarity(bread, oven) < 0.75
    assert abs(similarity(bread, chess)) < 0.15


@pytest.mark.engine
def test_real_human_followups_against_the_same_in_other_conversations(minilm: MiniLMEmbedder) -> None:
    source = os.environ.get("USERTURN_TEST_FOLLOWUPS")
    if not source:
        pytest.skip("USERTURN_TEST_FOLLOWUPS names no file of human follow-ups")
    rows = [json.loads(line) for line in Path(source).read_text(encoding="utf-8").split("\n") if line]
    human = [Turn(r["messages"][-2]["content"], r["messages"][-1]["content"], r["next_user"], "stop") for r in rows]
    moved = [replace(t, text=human[(i + 17) % len(human)].text) for i, t in enumerate(human)]
    judge = ProvisionalJudge(minilm)
    rate, floor = (
        sum(j.label == "genuine_followup" for j in judge.judge(turns)) / len(turns) for turns in (human, moved)
    )
    assert rate >= 0.75
    assert floor <= 0.2
