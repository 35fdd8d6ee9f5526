"""The parts of the judge by a language model: what is shown, rubric, verdicts, grounding, config."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_judging import ANSWER, turn
from pydantic import ValidationError

from userturn.config.judging import LlmJudge
from userturn.judges.labels import DEFINITIONS, LABELS
from userturn.judges.llm import rubric
from userturn.judges.llm.grounding import ground, similarity, words
from userturn.judges.llm.judge import from_config
from userturn.judges.llm.shown import closing, fresh_mark, opening, show, visible
from userturn.judges.llm.verdict import ASKED_LABELS, NoVerdict, parse, schema

# --- what is shown ---


def test_unseen_characters_are_spelled_out() -> None:
    assert visible("a\r\nb\tc") == "a\nb\tc"
    assert visible("a\u202eb\u200bc\x00d\ud800e\U000e0041f\ufe0fg\u2028h\u3164\u00ad") == (
        "a⟦U+202E⟧b⟦U+200B⟧c⟦U+0000⟧d⟦U+D800⟧e⟦U+E0041⟧f⟦U+FE0F⟧g⟦U+2028⟧h⟦U+3164⟧⟦U+00AD⟧"
    )
    assert visible("naïve 漢字 😀 ½ “quoted”") == "naïve 漢字 😀 ½ “quoted”"


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=200), st.integers(2, 60))
@settings(max_examples=150, deadline=None)
def test_shown_text_is_valid_bounded_and_its_own(text: str, budget: int) -> None:
    shown = show(text, budget)
    shown.text.encode("utf-8")
    whole = visible(text)
    assert visible(whole) == whole
    assert sum(map(len, shown.pieces)) == min(len(whole), budget)
    assert shown.left_out == len(whole) - sum(map(len, shown.pieces))
    assert whole.startswith(shown.pieces[0]) and whole.endswith(shown.pieces[-1])


def test_a_mark_is_derived_and_never_in_the_texts() -> None:
    first = fresh_mark(7, ["q", "a", "u"])
    assert first == fresh_mark(7, ["q", "a", "u"]) and re.fullmatch("[0-9a-f]{16}", first)
    assert len({first, fresh_mark(8, ["q", "a", "u"]), fresh_mark(7, ["qa", "", "u"]), fresh_mark(7, ["q", "a"])}) == 4


def test_a_text_that_guessed_the_mark_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def weak(seed: int, label: str, attempt: int, *texts: str, bits: int) -> int:
        return attempt  # a text can guess these

    monkeypatch.setattr("userturn.judges.llm.shown.derive", weak)
    guesses = f"{closing('user_turn', '0' * 16)} {opening('query', '0' * 15 + '1')}".upper()
    assert fresh_mark(7, ["q", guesses]) == "0" * 15 + "2"


def test_the_rubric_names_every_asked_label_and_no_other() -> None:
    text = rubric.instructions(marked=True)
    for label in ASKED_LABELS:
        assert f"- {label}: {DEFINITIONS[label]}" in text
    assert "degenerate" not in text and set(ASKED_LABELS) == set(LABELS) - {"degenerate"}
    assert '"mark"' in text and '"mark"' not in rubric.instructions(marked=False)


def test_a_case_without_an_answer_says_so() -> None:
    case = rubric.case(turn("And rye?", answer=None, finish="length"), seed=1, max_chars=500, marked=True)
    content = case.messages[1]["content"]
    assert case.answer is None and "assistant_turn: it was taken out" in content and "was cut off" in content
    assert content.count(case.mark) == 1 + 2 * 2


# --- verdicts ---

VALID: dict[str, object] = {"reacts_to": "", "reason": "made up", "label": "generic"}


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("genuine_followup", "malformed_json"),
        ("label: genuine_followup", "malformed_json"),
        ("```json\n" + json.dumps(VALID | {"mark": "m"}) + "\n```", "malformed_json"),
        (json.dumps(VALID | {"mark": "m"}) + " I hope this helps!", "malformed_json"),
        (json.dumps(VALID | {"mark": "m"}) * 2, "malformed_json"),
        (json.dumps(VALID | {"mark": "m"})[:-1], "malformed_json"),
        ('{"mark": "m", "label": "generic", "reacts_to": "", "reason": "", "label": "generic"}', "malformed_json"),
        ('{"mark": "m", "reacts_to": NaN, "reason": "", "label": "generic"}', "malformed_json"),
        ("[" * 100_000, "malformed_json"),
        (" " * 60_000 + "{}", "malformed_json"),
        ('"genuine_followup"', "wrong_shape"),
        ("null", "wrong_shape"),
        (json.dumps([VALID]), "wrong_shape"),
        (json.dumps(VALID), "wrong_mark"),
        (json.dumps(VALID | {"mark": "n"}), "wrong_mark"),
        (json.dumps(VALID | {"mark": ["m"]}), "wrong_mark"),
        (json.dumps({"mark": "m", "label": "generic"}), "wrong_shape"),
        (json.dumps(VALID | {"mark": "m", "confidence": 1}), "wrong_shape"),
        (json.dumps(VALID | {"mark": "m", "reason": 1}), "wrong_shape"),
        (json.dumps(VALID | {"mark": "m", "label": None}), "wrong_shape"),
        (json.dumps(VALID | {"mark": "m", "label": "Generic"}), "unknown_label"),
        (json.dumps(VALID | {"mark": "m", "label": "degenerate"}), "unknown_label"),
        (json.dumps(VALID | {"mark": "m", "label": "genuine_followup "}), "unknown_label"),
        (json.dumps(VALID | {"mark": "m", "label": "unscored"}), "unknown_label"),
    ],
)
def test_anything_but_a_whole_verdict_is_none(output: str, cause: str) -> None:
    with pytest.raises(NoVerdict) as caught:
        parse(output, "m")
    assert caught.value.cause == cause


def test_a_whole_verdict_is_read() -> None:
    found = parse(" " + json.dumps(VALID | {"mark": "m", "reason": "a\u202eb"}) + "\n", "m")
    assert (found.label, found.reacts_to, found.reason) == ("generic", "", "a⟦U+202E⟧b")
    assert parse(json.dumps(VALID), None).label == "generic"
    assert parse('{"reacts_to": "\\ud800", "reason": "", "label": "generic"}', None).reacts_to == "⟦U+D800⟧"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda v: (
            st.lists(v)
            | st.dictionaries(
                st.sampled_from(["mark", "label", "reacts_to", "reason", "x"]), v | st.sampled_from(["m", "generic"])
            )
        ),
    )
)
@settings(max_examples=200, deadline=None)
def test_no_json_forges_a_verdict_without_the_mark(value: object) -> None:
    try:
        parse(json.dumps(value), "0123456789abcdef")
    except NoVerdict:
        return
    raise AssertionError(value)


def test_the_schema_is_strict() -> None:
    for marked in (True, False):
        found = schema(marked=marked)
        assert found["additionalProperties"] is False and found["required"] == list(found["properties"])
        assert found["properties"]["label"]["enum"] == list(ASKED_LABELS)
        assert "maxLength" not in json.dumps(found)


# --- grounding ---


@pytest.mark.parametrize(
    ("span", "expected", "value"),
    [
        ("", "none", None),
        ("  \n", "none", None),
        ("your starter", "verified", 1.0),
        ("Your  STARTER.", "verified", 1.0),
        ("40", "verified", 1.0),
        ("let the dough rest over night", "unverified", 0.6667),  # two words for one
        ("let the dough to rest overnight", "verified", 0.8333),
        ("bake it for 45 minutes", "verified", 0.8),
        ("bake it for 45 hours", "unverified", 0.6),
        ("and", "unverified", 1.0),  # stands there, and says nothing
        ("...", "unverified", None),
        ("the oven should be at 230 degrees", "unverified", 0.1429),
        ("word " * 201, "unverified", None),
    ],
)
def test_a_quotation_is_looked_for(span: str, expected: str, value: float | None) -> None:
    assert ground(span, [ANSWER]) == (expected, value)


def test_grounding_needs_an_answer_one_place_and_real_words() -> None:
    assert ground("your starter", []) == ("unverified", 0.0)
    assert ground("flour water", ["flour", "water"])[0] == "unverified"  # a gap is no place
    assert ground("characters left out", show("x " * 300, 100).pieces)[0] == "unverified"
    assert ground("発酵種を使う", ["小麦粉と発酵種を使います。"])[0] == "verified"
    assert ground("ﬁne ﬂour", ["fine flour"]) == ("verified", 1.0)


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8), st.lists(st.sampled_from("abcdef"), max_size=12))
@settings(max_examples=150, deadline=None)
def test_similarity_agrees_with_every_run_tried(span: list[str], text: list[str]) -> None:
    def distance(left: list[str], right: list[str]) -> int:
        row = list(range(len(right) + 1))
        for i, a in enumerate(left, 1):
            before, row[0] = row[0], i
            for j, b in enumerate(right, 1):
                before, row[j] = row[j], min(before + (a != b), row[j] + 1, row[j - 1] + 1)
        return row[-1]

    runs = [text[i:j] for i in range(len(text) + 1) for j in range(i, len(text) + 1)]
    assert similarity(span, text) == 1 - min(distance(span, run) for run in runs) / len(span)


def test_words_of_scripts_without_blanks_are_letters() -> None:
    assert words("Ab-c d'e 漢字x") == ["ab", "c", "d", "e", "漢", "字", "x"]


# --- config ---


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"max_spend": 5.0, "price_prompt": 0.0}, "needs both prices"),
        ({"parameters": {"max_tokens": 5}}, "the judge sets this itself"),
        ({"parameters": {"response_format": "text"}}, "the judge sets this itself"),
        ({"base_url": "http://user:secret@localhost/v1"}, "must not hold a user"),
        ({"unknown": 1}, "Extra inputs"),
    ],
)
def test_a_bad_config_is_refused(changes: dict[str, object], said: str) -> None:
    values = {"base_url": "http://localhost:1/v1", "model": "m", "price_prompt": 1.0, "price_completion": 1.0}
    with pytest.raises(ValidationError, match=said):
        LlmJudge.model_validate({"kind": "llm", "transport": {"kind": "endpoint", **values, **changes}})


def test_the_transports_are_told_apart() -> None:
    wheel = {"kind": "wheel", "package": "p", "version": "1", "sha256": "0" * 64, "member": "m/"}
    offline = LlmJudge.model_validate({"transport": {"kind": "offline", "source": wheel}})
    assert offline.transport.kind == "offline" and offline.transport.engine.dtype == "float32"
    with pytest.raises(ValidationError, match="thinking"):
        LlmJudge.model_validate({"transport": {"kind": "offline", "source": wheel, "thinking": True}})
    with pytest.raises(ValueError, match="needs a model folder"):
        from_config("llm", offline, model_folder=None, cache=Path("x"), seed=1)
