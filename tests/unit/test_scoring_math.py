"""MATH: the final answer in LaTeX."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from userturn.scoring import Score, get_scorer
from userturn.scoring.latex import equal_forms, equal_values, last_boxed, normalise

# reference, answer inside \boxed{}, loose (= correct), strict
BOXED = [
    ("5", "5", True, True),
    ("5", "-5", False, False),
    ("5", r"5.", True, True),
    ("5", "5.0", True, False),
    ("5", r"x = 5", True, True),
    ("5", r"x=y=5", True, False),
    ("5", "{5}", True, True),
    ("5", "n <= 5", False, False),
    (r"\frac{1}{2}", "P(A) = 1/2", True, False),
    ("x^2+1", "f(x) = x^2+1", True, False),
    ("x^2+1", "1 + x^2", False, False),
    ("5", r"5\text{ cm}", True, True),
    ("5", r"5 \text{ cm}^2", True, True),
    ("5", r"5\,\mathrm{km}", True, True),
    ("5", "5 square feet", True, True),
    ("5", r"\$5", True, True),
    ("50", r"50\%", True, True),
    ("90", r"90^\circ", True, True),
    (r"90^\circ", "90", True, True),
    ("90", r"90^{\circ}", True, True),
    (r"\frac{1}{2}", r"\dfrac{1}{2}", True, True),
    (r"\frac{1}{2}", r"\tfrac12", True, True),
    (r"\frac{1}{2}", "1/2", True, True),
    (r"\frac{1}{2}", "0.5", True, False),
    (r"\frac{1}{2}", ".5", True, False),
    (r"\frac{1}{2}", r"\frac{2}{4}", True, False),
    (r"-\frac{2}{3}", r"\frac{-2}{3}", True, False),
    (r"-\frac{2}{3}", "-2/3", True, True),
    (r"\frac{1}{3}", "0.333", False, False),
    (r"\frac{3}{2}", r"1\frac{1}{2}", True, False),
    (r"\frac{1}{72}", r"\frac1{72}", True, True),
    (r"\frac{x+1}{2}", r"\frac{x + 1}{2}", True, True),
    ("10,080", "10080", True, True),
    ("10080", r"10{,}080", True, True),
    ("10080", r"10,\!080", True, True),
    ("1.5", "1,5", False, False),
    (r"\sqrt{3}", r"\sqrt3", True, True),
    (r"2\sqrt{3}", r"2 \sqrt{3}", True, True),
    (r"3\sqrt{2}", r"2\sqrt{3}", False, False),
    ("(1,2)", "(1, 2)", True, True),
    (r"\left( 1, \frac{1}{2} \right)", "(1, 0.5)", True, False),
    ("(1,2)", "(2,1)", False, False),
    ("(1,2)", "[1,2]", False, False),
    ("[2,5)", r"\left[2,5\right)", True, True),
    (r"\{1,2\}", r"\left\{1, 2.0\right\}", True, False),
    ("1,-2", "1, -2", True, True),
    (r"(-\infty, 2]", r"(-\infty,2]", True, True),
    (r"\text{Evelyn}", r"\textbf{Evelyn}", True, True),
    (r"\text{(C)}", "(C)", True, True),
    (r"\text{(C)}", r"\text{C}", True, False),
    (r"\text{(C)}", r"\text{B}", False, False),
    (r"(\frac{1}{2}, 3)", "(1/2, 3)", True, False),
    ("(1,2),(3,4)", "(3,4), (1,2)", True, False),
    ("(1,2),(3,4)", "(2,1), (3,4)", False, False),
    (r"\{1,2\}", r"\{2,1\}", True, False),
    (r"\{1,2\}", "2, 1", True, False),
    (r"\{1,2\}", r"\{1,1,2\}", False, False),
    (r"\{1,2\}", "(1,2)", False, False),
    ("1,-2", r"-2 \text{ and } 1", True, False),
    ("1,-2", r"1, \text{and } -2", True, True),
    ("1,-2", "1 or -2", True, True),
    ("1,-2", "1, 2", False, False),
    ("x=1,y=2", "x=2,y=1", False, False),
    ("x^2+1", "x^{2} + 1", True, True),
    ("x+1", "1+x", False, False),
    (r"\pi", r"\pi", True, True),
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix}1\\2\end{pmatrix}", True, True),
    ("11", r"\boxed{11}", True, True),
]


def score(response: str, answer: str = "5") -> Score:
    item = {"item": "math-1", "messages": [], "reference": {"answer": answer}}
    return get_scorer("math").score(response, item)


@pytest.mark.parametrize(("answer", "boxed", "loose", "strict"), BOXED)
def test_boxed_table(answer: str, boxed: str, loose: bool, strict: bool) -> None:
    result = score(rf"We get $1+1=2$ and so \boxed{{{boxed}}}. Done.", answer)
    assert (result.state, result.correct, result.loose, result.strict) == ("scored", loose, loose, strict)


@pytest.mark.parametrize(
    ("response", "found", "how", "strict"),
    [
        (r"First \boxed{4}, no, \boxed{5}.", "5", r"\boxed", True),
        (r"$\boxed{5}$ and then \boxed{cut o", "5", r"\boxed", True),
        (r"\boxed 5", "5", r"\boxed", True),
        (r"\fbox{5}", "5", r"\boxed", True),
        ("Final Answer: The final answer is $5$. I hope it is correct.", "5", "final answer is", True),
        ("The final answer is 5.", "5", "final answer is", True),
        ("The final answer is: **5**", "5", "final answer is", True),
        ("The answer is $x = 5$ metres.", "x = 5", "answer is", False),
        ("**Answer:** 5", "5", "answer is", False),
        ("The answer is 4. No: the answer is 5.\nBye", "5", "answer is", False),
        ("It is 5.", "5", "last expression", False),
        ("$5$", "5", "last expression", False),
        (r"\boxed{5", "5", "last expression", False),
        ("We have $x^2 = 25$ and so $x = 5$.", "x = 5", "last expression", False),
        (r"7 and 8 make \[ a = b = 5 \] which is it.", "a = b = 5", "last expression", False),
        ("$$7$$ and then 5 apples", "5", "last expression", False),
        ("The area is $5$ cm^2, x5 or m^{2}.", "5", "last expression", False),
        (r"They pay \$7 and then $5 in all.", "5", "last expression", False),
        ("from $7\nto $5$", "5", "last expression", False),
        ("That is 4 1/2 + 1/2 = 10/2.", "10/2", "last expression", False),
    ],
)
def test_where_the_answer_stands(response: str, found: str, how: str, strict: bool) -> None:
    result = score(response)
    assert (result.extracted, result.reason, result.correct, result.strict) == (found, how, True, strict)


def test_the_last_expression_can_be_wrong_or_a_formula_without_numbers() -> None:
    assert [score(text).correct for text in ("It is 6.", r"\(5\) is not \(x\)", "5, so it ends in 6")] == [False] * 3
    assert score("It is 1 1/2.", r"\frac{3}{2}").correct is True


@pytest.mark.parametrize("response", ["", "It is five.", "$", "$ $", r"\boxed{}", "The answer is", r"\boxed", "cm^2"])
def test_no_answer_is_unscored(response: str) -> None:
    result = score(response)
    assert (result.state, result.correct) == ("unscored", None)
    assert result.reason


def test_braces_are_balanced() -> None:
    assert last_boxed(r"\boxed{\frac{1}{\sqrt{2}}} }") == r"\frac{1}{\sqrt{2}}"
    assert last_boxed(r"\boxed{\{1,2\}}") == r"\{1,2\}"
    assert last_boxed(r"\boxed{\boxed{5}}") == "5"
    assert last_boxed(r"\boxedfoo") is None


@pytest.mark.parametrize(
    "part",
    [
        r"\boxed{",
        "{",
        "(",
        "(1,",
        r"\frac",
        r"\text{",
        "$",
        "1,",
        ".",
        "answer is ",
        " ",
        "\\",
        r"\[",
        "$1",
        "$1$",
        "1 and ",
        "=",
    ],
)
def test_hostile_repetition_is_quick(part: str) -> None:
    started = time.process_time()
    score(part * 5000)
    score(rf"\boxed{{{part * 5000}}}")
    equal_values(part * 5000 + "1", part * 5000 + "2")
    assert time.process_time() - started < 2.0


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=200))
def test_any_text_gets_a_score_and_equals_itself(text: str) -> None:
    assert score(text) == score(text)
    assert equal_forms(text, text)
    assert equal_values(text, text)


@settings(deadline=None, derandomize=True)
@given(
    st.text(alphabet="0123456789.,/ {}()[]\\frac-=x^$%", max_size=30),
    st.text(alphabet="01.,/{}()-x", max_size=30),
)
def test_equality_is_symmetric_and_strict_implies_loose(one: str, other: str) -> None:
    assert equal_values(one, other) == equal_values(other, one)
    if equal_forms(one, other):
        assert equal_values(one, other)


@settings(deadline=None, derandomize=True)
@given(st.integers(-999, 999), st.integers(1, 99), st.integers(1, 9))
def test_fractions_are_compared_exactly(top: int, bottom: int, factor: int) -> None:
    scaled = rf"\frac{{{top * factor}}}{{{bottom * factor}}}"
    assert equal_values(scaled, f"{top}/{bottom}")
    assert not equal_values(scaled, f"{top + 1}/{bottom}")


def test_normal_form_is_stable_on_the_table() -> None:
    for answer, boxed, _, _ in BOXED:
        for text in (answer, boxed):
            assert normalise(normalise(text)) == normalise(text)


def test_empty_reference_is_refused() -> None:
    with pytest.raises(ValueError, match=r"math-1.*empty"):
        score("5", " ")
