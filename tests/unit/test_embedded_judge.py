"""The embedded judge: conversations, examples known by construction, fluency, features, classifiers, the judge."""

from __future__ import annotations

import json
import math
import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_judges import HashingEmbedder

from userturn.judges.embedded import classifiers, store
from userturn.judges.embedded.classifiers import Data, Fitted
from userturn.judges.embedded.conversations import Conversation, TrainingError, human, written
from userturn.judges.embedded.examples import Example, construct
from userturn.judges.embedded.fluency import Fluency, shape
from userturn.judges.embedded.judge import EmbeddedJudge
from userturn.judges.embedded.phrases import GENERIC, META
from userturn.judges.embedded.vectors import SENTENCES, pieces, texts, vectors
from userturn.judges.embedding import FloatArray, MiniLMEmbedder
from userturn.judges.labels import LABELS, Judge, Turn

ALL_ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "training/conversations.jsonl").read_text("utf-8").split("\n")
    if line
]
ROWS = ALL_ROWS[:12]
SEED = 7


class WordEmbedder(HashingEmbedder):
    """Stands in for the sentence model where its weights are not there."""

    def pieces(self, words: list[str]) -> list[int]:
        return [1 + len(word) // 8 for word in words]


@pytest.fixture(scope="module")
def minilm() -> MiniLMEmbedder:
    folder = os.environ.get("USERTURN_TEST_EMBEDDER")
    if not folder:
        pytest.skip("USERTURN_TEST_EMBEDDER names no folder of a sentence model")
    pytest.importorskip("torch")
    return MiniLMEmbedder(Path(folder))


@pytest.fixture(scope="module", params=["words", pytest.param("minilm", marks=pytest.mark.engine)])
def embedder(request: pytest.FixtureRequest) -> WordEmbedder | MiniLMEmbedder:
    return WordEmbedder() if request.param == "words" else request.getfixturevalue("minilm")


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    return written(ROWS, "rows")


@pytest.fixture(scope="module")
def examples(conversations: list[Conversation]) -> list[Example]:
    return construct(conversations, SEED)


@pytest.fixture(scope="module")
def fluency(conversations: list[Conversation]) -> Fluency:
    return Fluency.of(text for one in conversations for text in (one.query, one.answer, *one.followups))


@pytest.fixture(scope="module")
def data(examples: list[Example], fluency: Fluency) -> Data:
    names, x = vectors([one.turn for one in examples], WordEmbedder(), fluency)
    return store.data(store.rows(examples, names, x.tolist()))


@pytest.fixture(scope="module")
def few(data: Data) -> Data:
    """Enough to fit a judge on whose opinion is not asked for."""
    return data.take(np.arange(len(data.y)) % 6 == 0)


# Conversations


def test_written_rows_keep_every_text() -> None:
    (one, *_) = written(ROWS, "rows")
    row = ROWS[0]
    assert (one.id, one.query, one.answer, one.meta) == (row["id"], row["query"], row["answer"], (row["meta"],))
    for key in ("followups", "paraphrases", "new_tasks", "assistant_voice"):
        assert list(getattr(one, key)) == row[key]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"query": ""}, "query"),
        ({"answer": " \n"}, "answer"),
        ({"followups": []}, "followups"),
        ({"followups": ["good", " "]}, "followups.1"),
        ({"new_tasks": [""]}, "new_tasks.0"),
        ({"meta": ["a list"]}, "meta"),
        ({"paraphrases": "one text"}, "paraphrases"),
        ({"label": "generic"}, "label"),
    ],
)
def test_a_bad_row_is_refused_by_line_and_key(change: dict[str, Any], where: str) -> None:
    with pytest.raises(TrainingError, match=rf"^mine\.jsonl, line 2: {where}: "):
        written([ROWS[0], ROWS[1] | change], "mine.jsonl")


def test_a_row_without_a_key_is_refused() -> None:
    row = {key: value for key, value in ROWS[2].items() if key != "assistant_voice"}
    with pytest.raises(TrainingError, match=r"^f, line 3: assistant_voice: Field required"):
        written([*ROWS[:2], row], "f")


def said(*turns: str) -> list[dict[str, str]]:
    """Messages of which the first letter says the role."""
    roles = {"s": "system", "u": "user", "a": "assistant"}
    return [{"role": roles[turn[0]], "content": turn[1:].strip("_")} for turn in turns]


@pytest.mark.parametrize(
    ("messages", "meta", "found"),
    [
        (["u1"], {}, []),
        (["u1", "a1", "u2"], {}, [("1", "1", "2", ())]),
        (["u1", "a1", "u2", "a2", "u3"], {}, [("1", "1", "2", ("2",)), ("2", "2", "3", ())]),
        (["s0", "u1", "a1", "u2"], {}, [("1", "1", "2", ())]),
        (["u1", "a1", "u2", "u3"], {}, [("1", "1", "2", ())]),
        (["u1", "a1", "u2", "a "], {}, [("1", "1", "2", ())]),
        (["u1", "u2", "a1", "u3"], {}, [("2", "1", "3", ())]),
        (["u1", "a ", "u2"], {}, []),
        (["u1"], {"human_answer": "h", "human_followup": "f"}, [("1", "h", "f", ())]),
        (["u1"], {"human_followup": "f"}, []),
        (["u1"], {"human_answer": "h", "human_followup": None}, []),
        (
            ["u1", "a1", "u2"],
            {"human_answer": "h", "human_followup": "f"},
            [("1", "1", "2", ("h",)), ("2", "h", "f", ())],
        ),
    ],
)
def test_exchanges_of_people(messages: list[str], meta: dict[str, Any], found: list[tuple[Any, ...]]) -> None:
    assert list(human([("id", said(*messages), meta)])) == [  # type: ignore[list-item]
        Conversation("id", query, answer, (followup,), assistant_voice=voice)
        for query, answer, followup, voice in found
    ]


# Examples


def test_construction_is_a_function_of_conversations_and_seed(conversations: list[Conversation]) -> None:
    state = random.getstate()
    first, again, other = (construct(conversations, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert random.getstate() == state


def test_every_conversation_gives_examples_of_every_label(
    conversations: list[Conversation], examples: list[Example]
) -> None:
    labels = Counter((one.group, one.label) for one in examples)
    assert set(labels) == {(one.id, label) for one in conversations for label in LABELS}
    assert list(dict.fromkeys(one.group for one in examples)) == [one.id for one in conversations]
    assert {one.turn.query for one in examples} == {one.query for one in conversations}
    for one in conversations:
        assert labels[one.id, "genuine_followup"] == len(one.followups)
        assert labels[one.id, "meta_reasoning"] == len(one.meta) + 1
        assert labels[one.id, "unrelated"] == 3 + len(one.new_tasks)


def test_labels_follow_from_where_a_text_comes_from(conversations: list[Conversation], examples: list[Example]) -> None:
    own = {one.id: one for one in conversations}
    for example in examples:
        text, one = example.turn.text, own[example.group]
        elsewhere = [t for other in conversations if other.id != one.id for t in (other.query, *other.followups)]
        match example.kind:
            case "followup":
                assert example.label == "genuine_followup"
                assert any(t.startswith(text) for t in one.followups)
            case "followup of another" | "query of another":
                assert example.label == "unrelated"
                assert any(t.startswith(text) for t in elsewhere)
            case "new task":
                assert example.label == "unrelated"
            case "query":
                assert (example.label, text) == ("restates_prompt", one.query)
        if example.turn.finish_reason == "stop" and example.kind == "followup":
            assert text in one.followups


def test_contexts_are_those_that_a_study_shows(conversations: list[Conversation], examples: list[Example]) -> None:
    own, answers = {one.id: one for one in conversations}, {one.answer for one in conversations}
    seen = Counter()
    for example in examples:
        shown, real = example.turn.answer, own[example.group].answer
        if shown is None:
            seen["none"] += 1
        elif shown == real:
            seen["whole"] += 1
        elif real.startswith(shown):
            seen["half"] += 1
        else:
            seen["other"] += 1
            assert shown in answers
            assert example.label not in {"genuine_followup", "continues_as_assistant", "unrelated"}
    assert set(seen) == {"none", "whole", "half", "other"}
    assert seen["whole"] > len(examples) / 2


def test_a_conversation_touches_only_itself_and_those_that_take_from_it(conversations: list[Conversation]) -> None:
    mark = "zyx zyx zyx zyx"
    marked = Conversation(conversations[-1].id, mark, mark, (mark,), new_tasks=(mark,))
    before, after = construct(conversations, SEED), construct([*conversations[:-1], marked], SEED)
    same = 0
    for one in conversations[:-1]:
        old, new = ([e for e in found if e.group == one.id] for found in (before, after))
        same += old == new
        assert old == new or any("zyx" in e.turn.text for e in new)
    assert 0 < same < len(conversations) - 1


def test_nothing_unrelated_comes_from_the_same_conversation() -> None:
    """Exchanges of one item are several conversations of one id."""
    one = [Conversation("one", f"one {n}", f"one a{n}", (f"one f{n}",)) for n in range(9)]
    rest = [Conversation(id, f"{id} query", f"{id} answer", (f"{id} followup",)) for id in ("two", "three")]
    for seed in range(20):
        for example in construct([*one, *rest], seed):
            if example.label == "unrelated":
                assert not example.turn.text.startswith(f"{example.group} "), example


@pytest.mark.parametrize("ids", ["", "a", "ab", "aaaab"])
def test_too_few_conversations_are_refused(ids: str) -> None:
    found = [Conversation(id, "query", "answer", ("followup",)) for id in ids]
    with pytest.raises(ValueError, match=rf"^{len(set(ids))} conversations: at least 3"):
        construct(found, SEED)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=40).filter(str.strip), min_size=9, max_size=9), st.integers(0, 2**32))
def test_any_texts_give_examples_with_text(some: list[str], seed: int) -> None:
    found = [Conversation(str(i), *some[3 * i : 3 * i + 2], (some[3 * i + 2],)) for i in range(3)]  # type: ignore[arg-type]
    made = construct(found, seed)
    assert {one.label for one in made} == set(LABELS)
    assert Counter(one.label for one in made)["genuine_followup"] == 3


def test_phrases_are_distinct_and_take_a_topic() -> None:
    for phrases in (GENERIC, META):
        assert len(set(phrases)) == len(phrases)
        assert all(phrase == phrase.strip() != "" for phrase in phrases)
    assert all("generic words" in phrase.format("generic words") for phrase in META if "{}" in phrase)
    assert sum("{}" in phrase for phrase in META) >= len(META) - 1


# Fluency


@pytest.mark.parametrize(
    ("word", "expected"),
    [("12th", "<number>"), ("walking", "<-ing>"), ("bring", "<long>"), ("oven", "<short>"), ("station", "<-tion>")],
)
def test_shapes(word: str, expected: str) -> None:
    assert shape(word) == expected


def test_counts_by_hand() -> None:
    model = Fluency.of(["the red loaf", "the red oven"])
    assert model.frequent == {"the", "red", "loaf", "oven"}
    assert (model.grams["<s> the red"], model.grams["the red"], model.grams["oven"], model.n_documents) == (2, 2, 1, 2)
    assert "red oven" not in model.grams, "pairs seen once are dropped"
    assert model.documents == {"red": 2}
    assert model.rarity("red") == 0.0
    assert model.rarity("loaf") == pytest.approx(math.log(3))
    # of 10 words counted: the, red, oven
    uniform = 0.01 / 420
    expected = [
        uniform + 0.28 * 2 / 2 + 0.11 * 2 / 10,
        uniform + 0.6 * 2 / 2 + 0.28 * 2 / 2 + 0.11 * 2 / 10,
        uniform + 0.11 * 1 / 10,
        uniform + 0.11 * 2 / 10,
    ]
    mean, worst = model.surprise("The red oven")
    assert mean == worst == pytest.approx(-np.mean(np.log(expected)))


def test_word_salad_is_more_surprising_than_the_sentence() -> None:
    """Counted on other conversations than those that it is asked about."""
    counted = Fluency.of(text for row in ALL_ROWS[12:] for text in (row["query"], row["answer"], *row["followups"]))
    rng = random.Random(3)
    plain = [text for row in ROWS for text in (row["query"], *row["new_tasks"])]
    salad = [" ".join(rng.sample(text.split(), len(text.split()))) for text in plain]
    more = [counted.surprise(broken)[0] - counted.surprise(text)[0] for text, broken in zip(plain, salad, strict=True)]
    assert len(more) > 24
    assert np.mean(np.array(more) > 0) >= 0.9
    assert np.mean(more) > 0.2


def test_nothing_is_rarer_than_a_word_that_was_never_seen(fluency: Fluency) -> None:
    assert fluency.documents
    assert all(fluency.rarity(word) < fluency.rarity("zyxish") for word in fluency.documents)
    assert fluency.rarity("zyxish") == pytest.approx(math.log(fluency.n_documents + 1))


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=300))
def test_surprise_is_finite_and_the_worst_stretch_is_no_better_than_the_mean(text: str) -> None:
    mean, worst = Fluency.of(["the loaf is in the oven", "the loaf is good"]).surprise(text)
    assert 0.0 <= mean <= worst + 1e-9 < math.inf
    assert Fluency(frozenset(), {}, {}, 0).surprise(text)[0] >= 0.0


def test_fluency_is_the_same_after_a_round_trip(fluency: Fluency, tmp_path: Path) -> None:
    store.write_fluency(tmp_path / "a.json", fluency)
    again = store.read_fluency(tmp_path / "a.json")
    assert again == fluency
    store.write_fluency(tmp_path / "b.json", again)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert again.surprise(ROWS[0]["answer"]) == fluency.surprise(ROWS[0]["answer"])


# Features

TURNS = [
    Turn(ROWS[0]["query"], ROWS[0]["answer"], ROWS[0]["followups"][0], "stop"),
    Turn(ROWS[0]["query"], None, ROWS[0]["query"], "stop"),
    Turn(ROWS[1]["query"], "", ROWS[1]["new_tasks"][0], "length"),
    Turn(ROWS[1]["query"], ROWS[1]["answer"], "Thanks!", "stop"),
]
HOSTILE = {
    "empty": "",
    "nulls": "\0" * 200,
    "long": "Why is the loaf flat? " * 1000,
    "one word": "a" * 20_000,
    "surrogate": "loaf \ud800 oven\udfff",
    "blanks": " \n\t ",
    "bidi": "\u202eloaf \u2066oven",
    "marks": "é" + "\u0301" * 500,
}


def test_features_have_names_in_order_and_four_decimals(
    embedder: WordEmbedder | MiniLMEmbedder, fluency: Fluency
) -> None:
    names, x = vectors(TURNS, embedder, fluency)
    assert names == sorted(set(names))
    assert x.shape == (len(TURNS), len(names))
    assert np.isfinite(x).all()
    assert (x == np.round(x, 4)).all()
    column = {name: x[:, i].tolist() for i, name in enumerate(names)}
    assert column["similarity.query"][1] == 1.0
    assert column["similarity.answer"][1:3] == column["similarity.sentence"][1:3] == [0.0, 0.0]
    assert column["surface.cut"] == [0.0, 0.0, 1.0, 0.0]
    assert column["surface.question_mark"] == [1.0, 1.0, 0.0, 0.0]
    votes = [[column[f"vote.{label}"][i] for label in LABELS] for i in range(len(TURNS))]
    assert all(sorted(vote) == [0.0] * 6 + [1.0] for vote in votes)
    assert column["vote.generic"][3] == column["vote.restates_prompt"][1] == 1.0


def test_a_row_does_not_depend_on_the_other_turns(embedder: WordEmbedder | MiniLMEmbedder, fluency: Fluency) -> None:
    names, together = vectors(TURNS, embedder, fluency)
    for place in (3, 0, 2, 1):
        alone = vectors([TURNS[place]], embedder, fluency)
        assert alone[0] == names
        assert (alone[1][0] == together[place]).all()
    assert (vectors(TURNS[::-1], embedder, fluency)[1][::-1] == together).all()


@pytest.mark.parametrize("place", ["text", "answer", "query"])
def test_hostile_text_gives_finite_features(
    place: str, embedder: WordEmbedder | MiniLMEmbedder, fluency: Fluency
) -> None:
    names, x = vectors([replace(TURNS[0], **{place: text}) for text in HOSTILE.values()], embedder, fluency)
    assert np.isfinite(x).all(), [names[i] for i in np.flatnonzero(~np.isfinite(x).all(axis=0))]


def test_no_turns_have_no_features(fluency: Fluency) -> None:
    names, x = vectors([], WordEmbedder(), fluency)
    assert (names, len(x)) == ([], 0)


@settings(max_examples=30)
@given(st.integers(0, 60))
def test_pieces_are_few_and_spread_over_the_answer(n: int) -> None:
    found = pieces(" ".join(f"Sentence number {i}." for i in range(n)))
    assert len(found) == len(set(found)) <= SENTENCES
    assert (len(found) >= min(n, SENTENCES / 2)) and (n == 0 or "number 0" in found[0])


def test_all_that_is_compared_is_embedded_ahead() -> None:
    class Noting(WordEmbedder):
        def encode(self, texts: list[str]) -> FloatArray:
            asked.update(texts)
            return super().encode(texts)

    asked: set[str] = set()
    vectors(TURNS, Noting(), Fluency(frozenset(), {}, {}, 0))
    assert asked <= set(texts(TURNS))


# Classifiers


@settings(max_examples=50)
@given(st.lists(st.text("abcdef", min_size=1, max_size=3), max_size=40), st.integers(0, 2**40))
def test_a_conversation_is_held_out_as_a_whole(groups: list[str], seed: int) -> None:
    out = classifiers.held_out(groups, seed)
    inside, outside = ({g for g, o in zip(groups, out.tolist(), strict=True) if o is side} for side in (False, True))
    assert not inside & outside
    assert (classifiers.held_out([*groups, "another"], seed)[: len(groups)] == out).all()


def test_the_held_out_share_is_the_one_asked_for() -> None:
    groups = [f"conversation {n}" for n in range(2000)]
    assert classifiers.held_out(groups, SEED).mean() == pytest.approx(0.3, abs=0.03)
    assert not classifiers.held_out(groups, SEED, 0.0).any()
    assert classifiers.held_out(groups, SEED, 1.0).all()


@given(
    st.lists(st.tuples(st.floats(0, 0.98), st.booleans()), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.97])
)
def test_the_threshold_reaches_the_specificity_and_is_the_lowest(
    rows: list[tuple[float, bool]], specificity: float
) -> None:
    genuine, truth = np.array([p for p, _ in rows]), np.array([t for _, t in rows])
    cut = classifiers.threshold(genuine, truth, specificity)
    assert 0.05 <= cut <= 0.99
    negatives = genuine[~truth]
    if not negatives.size:
        assert cut == 0.5
        return
    assert (negatives < cut).mean() >= specificity
    if cut > 0.05:
        assert (negatives < cut - 3e-4).mean() < specificity


def test_threshold_golden() -> None:
    genuine = np.array([*np.arange(100) / 200, 0.9])
    truth = np.array([False] * 100 + [True])
    assert classifiers.threshold(genuine, truth, 0.97) == pytest.approx(0.4801)
    assert classifiers.threshold(np.ones(4), np.zeros(4, dtype=bool)) == 0.99
    assert classifiers.threshold(np.zeros(4), np.zeros(4, dtype=bool)) == 0.05


class Known:
    """A model whose classes alone count."""

    classes_ = np.array(["degenerate", "genuine_followup", "unrelated"])


def test_genuine_wins_at_its_threshold_alone() -> None:
    fitted = Fitted(Known(), 0.6, agreed=0)
    rows = np.array([[0.1, 0.6, 0.3], [0.1, 0.59, 0.31], [0.21, 0.59, 0.2], [0.0, 0.0, 1.0]])
    kept = rows.copy()
    assert fitted.labels(rows) == ["genuine_followup", "unrelated", "degenerate", "unrelated"]
    assert (rows == kept).all(), "what was given is not changed"
    assert [fitted.why(label, row) for label, row in zip(fitted.labels(rows), rows, strict=True)] == [
        "Its probability as a genuine follow-up, 0.600, reaches the threshold of 0.600.",
        "Its probability as a genuine follow-up, 0.590, is below the threshold of 0.600; "
        "of the other labels the classifier finds this one most likely.",
        "Its probability as a genuine follow-up, 0.590, is below the threshold of 0.600; "
        "of the other labels the classifier finds this one most likely.",
        "The classifier finds this label most likely.",
    ]
    assert Fitted(Known(), 0.2, agreed=0).labels(np.array([[0.5, 0.25, 0.25]])) == ["genuine_followup"]


def test_a_fit_is_deterministic_and_learns(data: Data) -> None:
    out = classifiers.held_out(data.groups.tolist(), SEED)
    inside, outside = data.take(~out), data.take(out)
    assert len(outside.y) > 40
    first, again = (classifiers.fit("logistic", inside, SEED) for _ in range(2))
    assert first.threshold == again.threshold
    found = first.probabilities(outside.x)
    assert (found == again.probabilities(outside.x)).all()
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert first.classes == tuple(sorted(LABELS))
    scores = classifiers.scores(outside.y.tolist(), first.labels(found))
    assert scores["macro_f1"] > 0.45, "chance is about 0.14"
    assert scores["specificity"] > 0.85


@pytest.mark.parametrize("name", classifiers.CANDIDATES)
def test_a_candidate_depends_on_its_seed_and_no_global_state(name: str, few: Data) -> None:
    found = []
    for other in (1, 2):
        np.random.seed(other)
        found.append(classifiers.CANDIDATES[name](SEED).fit(few.x, few.y).predict_proba(few.x))
    assert (found[0] == found[1]).all()


def test_scores_by_hand() -> None:
    g, u, d = "genuine_followup", "unrelated", "degenerate"
    found = classifiers.scores([g, g, g, u, u, d], [g, g, u, u, g, "generic"])
    assert found == {"sensitivity": 0.6667, "specificity": 0.6667, "macro_f1": round((2 / 3 + 1 / 2 + 0) / 3, 4)}
    assert math.isnan(classifiers.scores([u], [u])["sensitivity"])


def test_a_complex_classifier_has_to_win_clearly(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.dummy import DummyClassifier

    f1 = iter([0.60, 0.62, 0.64, 0.60, 0.64, 0.66])
    names = ("simple", "middle", "complex")
    monkeypatch.setattr(classifiers, "CANDIDATES", dict.fromkeys(names, lambda _: DummyClassifier()))
    monkeypatch.setattr(classifiers, "scores", lambda *_: {"macro_f1": next(f1)})
    first, second = (classifiers.compare(data, SEED) for _ in range(2))
    assert (first.kept, second.kept) == ("complex", "middle")
    assert first.held_out == np.flatnonzero(classifiers.held_out(data.groups.tolist(), SEED)).tolist()
    assert {len(labels) for labels in first.given.values()} == {len(first.held_out)}


def test_too_few_conversations_cannot_be_compared(data: Data) -> None:
    one = data.take(data.groups == data.groups[0])
    with pytest.raises(TrainingError, match=r"^1 training conversations are too few"):
        classifiers.fit("logistic", one, SEED)
    seed = next(seed for seed in range(50) if not classifiers.held_out(["train-001"], seed).any())
    with pytest.raises(TrainingError, match=r"^none of 1 training conversations is held out"):
        classifiers.compare(one, seed)


# What is stored


def test_examples_are_the_same_after_a_round_trip_and_hold_no_text(
    examples: list[Example], fluency: Fluency, tmp_path: Path
) -> None:
    some = [*examples[:30], replace(examples[0], turn=replace(examples[0].turn, text="loaf \ud800"))]
    names, x = vectors([one.turn for one in some], WordEmbedder(), fluency)
    store.write_data(tmp_path / "rows.jsonl", store.rows(some, names, x.tolist()))
    found = store.read_data(tmp_path / "rows.jsonl")
    assert found.names == tuple(names)
    assert (found.x == x).all()
    assert found.y.tolist() == [one.label for one in some]
    assert found.groups.tolist() == [one.group for one in some]
    assert found.kinds.tolist() == [one.kind for one in some]
    written = (tmp_path / "rows.jsonl").read_text(encoding="utf-8")
    assert not any(one.turn.text in written for one in some if len(one.turn.text) > 20)


# The judge


@pytest.fixture(scope="module")
def judge(data: Data, fluency: Fluency) -> EmbeddedJudge:
    return EmbeddedJudge(data, "logistic", SEED, WordEmbedder(), fluency, "sha256:abc")


def test_it_is_a_judge_of_a_version(judge: EmbeddedJudge) -> None:
    assert isinstance(judge, Judge)
    assert (judge.name, judge.version) == ("embedded", "sha256:abc")
    assert judge.judge([]) == []


def test_program_rules_come_first(few: Data, fluency: Fluency) -> None:
    class Refusing(WordEmbedder):
        def encode(self, texts: list[str]) -> FloatArray:
            raise AssertionError("no text needs to be embedded")

    judge = EmbeddedJudge(few, "logistic", SEED, Refusing(), fluency, "v")
    texts = ["", "bake the loaf and " * 6, "Thanks<|im_end|>", "xqzv bnmk wrtz pqgh jkxq"]
    found = judge.judge([Turn("query", None, text, "stop") for text in texts])
    assert [one.label for one in found] == ["degenerate"] * 4
    assert [one.evidence["rule"] for one in found] == [
        f"degenerate_{rule}" for rule in ("empty", "loop", "template_tokens", "gibberish")
    ]


def test_judgements_keep_the_order_of_turns_and_do_not_depend_on_company(judge: EmbeddedJudge) -> None:
    turns = [TURNS[0], replace(TURNS[0], text=""), *TURNS[1:], replace(TURNS[0], text="hey " * 9)]
    together = judge.judge(turns)
    assert [i for i, one in enumerate(together) if one.evidence["rule"] != "classifier"] == [1, 5]
    assert [judge.judge([turn])[0] for turn in turns] == together
    for one in together:
        assert json.loads(json.dumps(asdict(one), allow_nan=False)) == asdict(one)
    shares = together[0].evidence["probability"]
    assert isinstance(shares, dict)
    assert set(shares) == set(LABELS)
    assert sum(shares.values()) == pytest.approx(1.0, abs=0.005)  # type: ignore[arg-type]


def test_two_judges_of_the_same_examples_agree(judge: EmbeddedJudge, data: Data, fluency: Fluency) -> None:
    again = EmbeddedJudge(data, "logistic", SEED, WordEmbedder(), fluency, "v")
    assert again.judge(TURNS) == judge.judge(TURNS)


def test_obvious_turns_are_labelled(judge: EmbeddedJudge) -> None:
    query, answer = ROWS[0]["query"], ROWS[0]["answer"]
    texts = {
        query: "restates_prompt",
        " ".join(answer.split()[:40]): "continues_as_assistant",
        "The user wants to know about the tins. I should respond with more detail.": "meta_reasoning",
        ROWS[11]["query"]: "unrelated",
    }
    found = judge.judge([Turn(query, answer, text, "stop") for text in texts])
    assert [one.label for one in found] == list(texts.values())


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_gets_a_judgement_that_json_can_hold(name: str, judge: EmbeddedJudge) -> None:
    for place in ("text", "answer", "query"):
        (found,) = judge.judge([replace(TURNS[0], **{place: HOSTILE[name]})])
        assert found.state == "scored"
        json.dumps(asdict(found), allow_nan=False)


@dataclass(frozen=True)
class Broken(WordEmbedder):
    """A sentence model that breaks on some texts."""

    on: Sequence[str] = ()
    value: float = math.nan

    def encode(self, texts: list[str]) -> FloatArray:
        rows = super().encode(texts)
        rows[[text in self.on for text in texts]] = self.value
        return rows


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["text", "query", "answer", "sentence"])
def test_a_similarity_that_is_no_number_leaves_that_turn_unscored(
    where: str, value: float, few: Data, fluency: Fluency
) -> None:
    one = TURNS[0]
    assert one.answer is not None
    on = {"text": one.text, "query": one.query, "answer": one.answer, "sentence": pieces(one.answer)[-1]}[where]
    judge = EmbeddedJudge(few, "logistic", SEED, Broken(on=(on,), value=value), fluency, "v")
    found = judge.judge([one, TURNS[3], replace(one, text="")])
    assert (found[0].state, found[0].label) == ("unscored", None)
    assert found[0].evidence == {"rule": "classifier", "cause": "similarity_not_finite"}
    assert [f.state for f in found[1:]] == ["scored", "scored"]
    assert found[2].label == "degenerate"


def test_examples_of_other_features_are_refused(few: Data, fluency: Fluency) -> None:
    other = replace(few, names=tuple(reversed(few.names)))
    with pytest.raises(AssertionError, match="the features are those of the examples"):
        EmbeddedJudge(other, "logistic", SEED, WordEmbedder(), fluency, "v").judge(TURNS)


@pytest.mark.engine
def test_with_the_sentence_model_followups_are_told_from_those_of_other_conversations(
    minilm: MiniLMEmbedder, conversations: list[Conversation], examples: list[Example], fluency: Fluency
) -> None:
    """Fitted on five conversations, asked about others."""
    groups = {one.id for one in conversations[:5]}
    known = [one for n, one in enumerate(examples) if one.group in groups and (one.kind == "followup" or n % 3 == 0)]
    minilm.remember(texts([one.turn for one in known]))
    names, x = vectors([one.turn for one in known], minilm, fluency)
    judge = EmbeddedJudge(store.data(store.rows(known, names, x.tolist())), "logistic", SEED, minilm, fluency, "v")
    rest = conversations[5:8]
    own = [Turn(one.query, one.answer, text, "stop") for one in rest for text in one.followups]
    moved = [replace(turn, text=own[(i + len(own) // 2) % len(own)].text) for i, turn in enumerate(own)]
    ours, theirs = (
        np.mean([one.evidence["probability"]["genuine_followup"] for one in judge.judge(turns)])  # type: ignore[index,call-overload]
        for turns in (own, moved)
    )
    assert ours > 3 * theirs


def test_nothing_is_genuine_where_the_program_rules_say_otherwise() -> None:
    class Sure:
        classes_ = np.array(["generic", "genuine_followup", "unrelated"])

        def predict_proba(self, x: Any) -> Any:
            return np.tile([0.1, 0.7, 0.2], (len(x), 1))

    fitted = Fitted(Sure(), 0.5, agreed=1)
    rows = np.array([[0.3, 1.0], [0.3, 0.0]])
    assert fitted.labels(fitted.probabilities(rows)) == ["genuine_followup", "unrelated"]
