"""Multiple choice: the letter of the response."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from userturn.scoring import Score, get_scorer

CHOICES = ["10 eV", "2 eV", "a proton", "12 eV"]


def score(response: str, answer: str = "B", choices: list[str] | None = None) -> Score:
    reference = {"answer": answer, "choices": CHOICES if choices is None else choices}
    return get_scorer("choice").score(response, {"item": "gpqa-1", "messages": [], "reference": reference})


# response, flexible letter, strict letter
TABLE = [
    ("The answer is (B).", "B", "B"),
    ("The answer is (B)", "B", "B"),
    ("The answer is B.", "B", "B"),
    ("the correct answer is: **B**", "B", "B"),
    ("The answer is **(B)** 2 eV", "B", "B"),
    (r"The final answer is $\boxed{B}$", "B", "B"),
    (r"So \boxed{\text{B}}", "B", None),
    ("(A) is wrong, (C) too, hence (B)", "B", None),
    ("The answer is (A). Wait, (B).", "B", "A"),
    ("The answer is (Z), no: (B)", "B", None),
    ("B", "B", None),
    ("B.", "B", None),
    (" **B** ", "B", None),
    ("B) 2 eV", "B", None),
    ("Reasoning...\n\nB", "B", None),
    ("Answer: B", "B", None),
    ("**Answer:** B", "B", None),
    ("I choose option B because", "B", None),
    ("My choice: B", "B", None),
    ("It must be 2 eV.", "B", None),
    ("It is 12 eV, certainly", "D", None),
    ("The answer is a proton.", "C", None),
    ("Answer: A proton", "C", None),
    ("My pick: B", "B", None),
    ("A. 10 eV\nB. 2 eV\nThe answer is B", "B", "B"),
]


@pytest.mark.parametrize(("response", "letter", "strict"), TABLE)
def test_letters(response: str, letter: str, strict: str | None) -> None:
    for answer in "ABCD":
        result = score(response, answer)
        assert (result.state, result.extracted, result.details["strict_extracted"]) == (
            "scored",
            letter,
            strict,
        )
        assert (result.correct, result.loose, result.strict) == (letter == answer,) * 2 + (strict == answer,)


@pytest.mark.parametrize(
    "response",
    [
        "",
        "I do not know.",
        "A neutron has no charge.",
        "Because I said so",
        "the answer is (Z)",
        "(b) or so",
        "answer: big",
        "B2 A4",
    ],
)
def test_no_letter_is_unscored(response: str) -> None:
    result = score(response)
    assert (result.state, result.correct, result.strict) == ("unscored", None, None)
    assert result.reason == "no letter of A to D in the response"


@pytest.mark.parametrize(
    ("answer", "choices"), [("E", CHOICES), ("b", CHOICES), ("", CHOICES), ("A", ["one"]), ("AB", CHOICES)]
)
def test_bad_reference_is_refused(answer: str, choices: list[str]) -> None:
    with pytest.raises(ValueError, match="gpqa-1"):
        score("B", answer, choices)


@pytest.mark.parametrize("part", ["(", "(B", "the answer is ", "answer:", "B ", "\n", "*", ": ", " "])
def test_hostile_repetition_is_quick(part: str) -> None:
    started = time.perf_counter()
    score(part * 10_000)
    assert time.perf_counter() - started < 2.0


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=200))
def test_any_text_gets_a_score(text: str) -> None:
    assert score(text) == score(text)


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=100), st.sampled_from("ABCD"))
def test_a_final_bracketed_letter_decides(text: str, letter: str) -> None:
    assert score(f"{text} ({letter})").extracted == letter
