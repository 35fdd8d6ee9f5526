"""GSM8K: the final number, strict and flexible, beside the reference harness's own verdicts."""

import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from userturn.scoring import SCORER_NAMES, Score, get_scorer
from userturn.scoring.numeric import canonical, find_numbers, read_number

NB, NNB = "\u00a0", "\u202f"

# reference, response, correct, strict, harness flexible-extract (string rule), harness strict-match
TABLE = [
    ("18", "She makes 9 * 2 = 18 dollars.\n#### 18", True, True, True, True),
    ("18", "The answer is 18.", True, False, True, False),
    ("18", "18", True, False, True, False),
    ("18", "The answer is 18.00", True, False, False, False),
    ("18", "#### 18.00", True, True, False, False),
    ("18", "She earns $18.", True, False, True, False),
    ("18", "She earns $ 18 a day", True, False, True, False),
    ("18", "She earns $18.00 every day.", True, False, False, False),
    ("18", r"\boxed{18}", True, False, True, False),
    ("18", r"\[ \boxed{\$18} \]", True, False, True, False),
    ("18", r"So $x = 18$", True, False, True, False),
    ("18", "**18**", True, False, True, False),
    ("18", "**Answer: $18**.", True, False, True, False),
    ("18", "It takes 18km", True, False, True, False),
    ("18", "about 18 eggs...", True, False, False, False),
    ("18", "It is 18...", True, False, False, False),
    ("18", "18!", True, False, True, False),
    ("18", "the 18th", True, False, True, False),
    ("18", "#### 18\nThat leaves 3 eggs.", False, True, False, True),
    ("18", "#### 17\n#### 18", True, False, True, False),
    ("18", "####18", True, False, True, False),
    ("18", "#### $18", True, False, True, False),
    ("18", "#### 18.", True, True, True, True),
    ("18", "#### 18,", True, True, True, True),
    ("18", "#### eighteen, that is 18", True, False, True, False),
    ("18", "#### 18 dollars", True, True, True, True),
    ("18", "16 - 3 + 5 = 18", True, False, True, False),
    ("18", "18 = 16 + 2", False, False, False, False),
    ("18", "The answer is -18", False, False, False, False),
    ("18", "The answer is 180", False, False, False, False),
    ("18", "The answer is 1.8", False, False, False, False),
    ("18", "The answer is 018", True, False, False, False),
    ("18", "36/2", True, False, False, False),
    ("18", r"\frac{36}{2}", True, False, False, False),
    ("18", "between 10-18", True, False, False, False),
    ("18", "on 3/18/2020 she had 18", True, False, True, False),
    ("18", "€18", True, False, True, False),
    ("18", "£18,00", False, False, False, False),
    ("3", "16-13=3", True, False, True, False),
    ("3", "16-3", True, False, False, False),
    ("13", "x=16-3=13 apples", True, False, True, False),
    ("-5", "The temperature is -5 degrees", True, False, True, False),
    ("-5", "The temperature is −5°C", True, False, False, False),
    ("-5", "#### -5", True, True, True, True),
    ("-5", "a loss of -$5", True, False, True, False),
    ("-5", "a loss of $-5", True, False, True, False),
    ("-5", "a loss of $5", False, False, False, False),
    ("5", "- 5 apples", True, False, True, False),
    ("1234", "It costs $1,234.", True, False, True, False),
    ("1234", "It costs $1,234.00", True, False, False, False),
    ("1234", "#### 1,234", True, True, True, True),
    ("1,234", "#### 1234", True, True, True, True),
    ("1234", r"\boxed{1{,}234}", True, False, False, False),
    ("1234", r"1\,234", True, False, False, False),
    ("1234", f"1{NB}234 people", True, False, False, False),
    ("1234", f"1{NNB}234 people", True, False, False, False),
    ("1234567", "1,234,567", True, False, True, False),
    ("100000", "1,00,000 rupees", True, False, True, False),
    ("4", "the numbers 2,3,4", True, False, False, False),
    ("345", "the numbers 3,4,5", False, False, True, False),
    ("50", "That is 50%", True, False, True, False),
    ("50", r"That is 50\%.", True, False, True, False),
    ("50", "50 %", True, False, True, False),
    ("0.5", "one half, 1/2", True, False, False, False),
    ("1.5", "1 1/2 cups", True, False, False, False),
    ("1.5", r"1\frac{1}{2} cups", True, False, False, False),
    ("-0.5", r"-\frac{1}{2}", True, False, False, False),
    ("0.5", "0.50", True, False, False, False),
    ("0.5", ".5", True, False, False, False),
    ("0.1", "0.1", True, False, True, False),
    ("0", "There are 0 left", True, False, True, False),
    ("0", "-0", True, False, False, False),
    ("30", "at 5:30", True, False, True, False),
    ("2020", "on 3/44/2020", True, False, True, False),
    ("2", "H2O", True, False, True, False),
    (
        "70000",
        "He made a profit of 200000-130000=$<<200000-130000=70000>>70,000\n#### 70,000",
        True,
        True,
        True,
        True,
    ),
]


def item(answer: str) -> dict[str, object]:
    return {"item": "gsm8k-1", "messages": [], "reference": {"answer": answer}}


def score(response: str, answer: str = "18") -> Score:
    return get_scorer("gsm8k").score(response, item(answer))


@pytest.mark.parametrize("case", TABLE, ids=lambda case: f"{case[0]} in {case[1]!r}")
def test_answer_table(case: tuple[str, str, bool, bool, bool, bool]) -> None:
    answer, response, correct, strict, flexible, harness_strict = case
    result = score(response, answer)
    assert (result.state, result.correct, result.loose, result.strict) == ("scored", correct, correct, strict)
    assert result.details["harness_flexible"] is flexible
    assert result.details["harness_strict"] is harness_strict


def test_table_is_large_enough() -> None:
    assert len({(row[0], row[1]) for row in TABLE}) >= 60


@pytest.mark.parametrize(
    "response", ["", "   \n", "eighteen", "I cannot say.", "####", "#### many", "$.,-", "½ ١٨ 十八"]
)
def test_no_number_is_unscored_with_a_reason(response: str) -> None:
    result = score(response)
    assert (result.state, result.correct, result.strict, result.loose) == ("unscored", None, None, None)
    assert result.reason == "no number in the response"


@pytest.mark.parametrize("response", ["9" * 5000, "1/0", "1 1/0", "0.5/0.0"])
def test_unreadable_number_is_unscored(response: str) -> None:
    result = score(response)
    assert result.state == "unscored"
    assert result.reason == "the last number cannot be read"
    assert result.extracted is not None
    assert len(result.extracted) <= 200


@pytest.mark.parametrize("reference", [None, {}, {"answer": 18}, {"answer": ""}, {"answer": "18 or 19"}])
def test_bad_reference_is_refused_and_named(reference: object) -> None:
    with pytest.raises(ValueError, match="gsm8k-1"):
        get_scorer("gsm8k").score("18", {"item": "gsm8k-1", "messages": [], "reference": reference})


@pytest.mark.parametrize(
    "part", ["1,", "11,", "111,", "1 ", "1 1/", "1/", "9", ".", "$", "-", r"\frac{", "1\u00a0", "#### "]
)
def test_hostile_repetition_is_quick(part: str) -> None:
    started = time.process_time()
    score(part * 5_000)
    assert time.process_time() - started < 2.0


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=300))
def test_any_text_gets_a_score(text: str) -> None:
    first = score(text)
    assert first == score(text)
    assert (first.state == "unscored") == (first.correct is None)


@settings(deadline=None, derandomize=True)
@given(
    st.integers(-(10**12), 10**12),
    st.sampled_from(["{}", "${}", "{}.", "{}.00", "{} eggs", "= {}", r"\boxed{{{}}}", "**{}**"]),
)
def test_integers_are_found_however_they_stand(value: int, frame: str) -> None:
    for written in (str(value), f"{value:,}"):
        assert score(f"First 7, then {frame.format(written)}", str(value)).correct is True
        assert score(f"First 7, then {frame.format(written)}", str(value + 1)).correct is False


@settings(deadline=None, derandomize=True)
@given(st.fractions(min_value=0, max_denominator=99_999))
def test_canonical_form_reads_back(value: Fraction) -> None:
    assert read_number(canonical(value)) == value


def test_numbers_in_order() -> None:
    values = [number.value for number in find_numbers("10-12 of 1,234.5, then 1 1/2 and 3/4/5")]
    assert values == [10, 12, Fraction("1234.5"), Fraction(3, 2), 3, 4, 5]


def test_none_scorer_and_unknown_name() -> None:
    result = get_scorer("none").score("anything", {"item": "1", "messages": [], "reference": None})
    assert (result.state, result.correct, result.reason) == (
        "unscored",
        None,
        "no reference: turns of this dataset are not scored",
    )
    with pytest.raises(ValueError, match=r"'rouge'.*allowed are gsm8k, math"):
        get_scorer("rouge")  # type: ignore[arg-type]
    assert [get_scorer(name).name for name in SCORER_NAMES] == list(SCORER_NAMES)  # type: ignore[arg-type]


def test_score_refuses_contradictions() -> None:
    with pytest.raises(ValueError, match="no verdict"):
        Score(state="unscored", correct=False, reason="x")
    with pytest.raises(ValueError, match="say why"):
        Score(state="unscored")
    with pytest.raises(ValueError, match="whether it is correct"):
        Score(state="scored")
