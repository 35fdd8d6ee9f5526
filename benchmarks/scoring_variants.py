r"""Hard answers built from a reference, for `scoring_agreement.py`: ways to write the right answer, and wrong ones.

Each frame takes one answer; ``{a}`` is the answer, ``{w}`` a wrong one. No text of a dataset is used.
"""

from __future__ import annotations

GSM8K_REFERENCES = ("18", "-5", "1234", "70000", "0", "3", "2.5")
GSM8K_FRAMES = (
    "#### {a}",
    "#### {a}.",
    "#### ${a}",
    "####{a}",
    "#### {a} apples",
    "#### {a}\nThat leaves {w} apples.",
    "#### {w}\n#### {a}",
    "The answer is {a}.",
    "The answer is {a}...",
    "The answer is {a}%.",
    "The answer is {a} km/h",
    "The answer is **{a}**.",
    r"The answer is \boxed{{{a}}}.",
    "So she pays ${a}.",
    "So she pays ${a}.00.",
    "So she pays {a}.00 dollars",
    "{a} is what is left of 100",
    "= {a}",
    "16-{a}",
    "x={a}m",
    "{a}/1",
    "between {w} and {a}, roughly",
    "between {w}-{a}",
    "{w},{a}",
    "no number, or {w}",
    "many",
)
"""Seven references times these, with the wrong answer 7."""

GSM8K_OTHERS = (
    ("345", "the numbers 3,4,5"),
    ("1800", "£18,00"),
    ("18", "the 18th"),
    ("18", "36/2 = 18/1"),
    ("2", "H2O"),
    ("2020", "on 3/4/2020"),
    ("18", r"\boxed{18\text{ eggs}}"),
    ("1234", r"\boxed{1{,}234}"),
    ("1234", "1\N{NO-BREAK SPACE}234 people"),
    ("100000", "1,00,000 rupees"),
    ("-5", "\N{MINUS SIGN}5 degrees"),
    ("0.5", "one half, 1/2"),
    ("0.5", ".5"),
    ("1.5", "1 1/2 cups"),
    ("50", r"That is 50\%."),
    ("18", "The answer is 1.8e1"),
    ("18", "018"),
    ("18", "18 = 16 + 2"),
)
"""Reference and text of cases that no frame covers."""

MATH_ANSWERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("5", ("5", "5.", "5.0", "-5", "x = 5", "x=y=5", r"5\text{ cm}", r"5 \text{ cm}^2", r"5\,\mathrm{km}", "5 feet")),
    ("5", (r"\$5", r"\text{5}", r"\mathbf{5}", r"5\%", r"\boxed{5}", "5 square feet", "five", "05", "+5", "{5}")),
    ("90", ("90", r"90^\circ", r"90^{\circ}", "90°", r"90\text{ degrees}", "90 degrees", r"\frac{180}{2}", "9")),
    (r"\frac{1}{2}", (r"\frac{1}{2}", r"\dfrac{1}{2}", r"\tfrac12", r"\frac12", "1/2", "0.5", ".5", "50%")),
    (r"\frac{1}{2}", (r"\frac{2}{4}", r"\frac{-1}{-2}", "2^{-1}", r"-\frac{1}{2}", "0.50", r"\frac{1}{3}")),
    (r"-\frac{2}{3}", (r"-\frac{2}{3}", r"\frac{-2}{3}", r"\frac{2}{-3}", "-2/3", "-0.667", r"\frac{2}{3}")),
    (r"\frac{3}{2}", (r"\frac{3}{2}", r"1\frac{1}{2}", "1.5", "3/2", r"1\frac12", r"\frac{6}{4}")),
    ("10080", ("10080", "10,080", r"10{,}080", r"10,\!080", r"10\,080", "10 080", "10080.0", "1080")),
    (r"2\sqrt{3}", (r"2\sqrt{3}", r"2\sqrt3", r"2 \sqrt{3}", r"\sqrt{12}", r"2\cdot\sqrt{3}", r"3\sqrt{2}", "3.46")),
    ("(1,2)", ("(1,2)", "(1, 2)", r"\left(1,2\right)", "(1,2.0)", "(2,1)", "[1,2]", "1,2", r"(1,\frac{4}{2})")),
    ("[2,5)", ("[2,5)", r"\left[2,5\right)", "[2, 5)", "[2,5]", "2<=x<5")),
    (r"\{1,2\}", (r"\{1,2\}", r"\{2,1\}", r"\left\{1, 2\right\}", r"\{1,2.0\}", "1,2", r"\{1,3\}")),
    ("1,-2", ("1,-2", "1, -2", "-2,1", r"1 \text{ and } -2", "1,2")),
    (r"\text{Ada}", (r"\text{Ada}", "Ada", r"\textbf{Ada}", r"\mathrm{Ada}", r"\text{Ida}")),
    (r"\text{(C)}", (r"\text{(C)}", "(C)", "C", r"\text{C}", r"\text{(B)}")),
    ("x^2+1", ("x^2+1", "x^2 + 1", "x^{2}+1", "1+x^2", "y = x^2+1", "f(x)=x^2+1", "(x+1)^2-2x", "x^2-1")),
    (r"\pi", (r"\pi", "3.14", r"\pi \text{ cm}", r"1\pi", "pi", r"2\pi")),
    ("11_2", ("11_2", "11_{2}", "11", "3", r"11_{\text{two}}")),
)
"""A reference and ways to answer it, right and wrong."""

MATH_FRAMES = {
    "phrase": "Final Answer: The final answer is ${}$. I hope it is correct.",
    "boxed": r"We get $1+1=2$, so $\boxed{{{}}}$.",
}
"""Minerva's phrase, which three of the harness's readings look for or read too, and the box of chat models."""


def gsm8k() -> list[tuple[str, str, str]]:
    """Id, reference and text of each constructed GSM8K answer."""
    return [
        (f"{a} <- {text!r}", a, text)
        for a in GSM8K_REFERENCES
        for frame in GSM8K_FRAMES
        for written in sorted({a, f"{int(a):,}" if a.lstrip("-").isdigit() else a})
        for text in [frame.format(a=written, w="7")]
    ] + [(f"{a} <- {text!r}", a, text) for a, text in GSM8K_OTHERS]


def math(frame: str) -> list[tuple[str, str, str]]:
    """Id (reference and answer), reference and text of each constructed MATH answer in a frame."""
    return [
        (f"{reference} <- {answer}", reference, MATH_FRAMES[frame].format(answer))
        for reference, answers in MATH_ANSWERS
        for answer in answers
    ]
