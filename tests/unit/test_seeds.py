"""Derived seeds: golden values, no collisions by concatenation or type."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from userturn.seeds import derive

finite = st.floats(allow_nan=False, allow_infinity=False)
part = st.one_of(st.text(max_size=12), st.integers(), finite)
parts = st.lists(part, max_size=5)


def typed(values):
    """What must tell two lists of parts apart: types and values."""
    return [(type(value).__name__, value) for value in values]


GOLDEN = [
    ((0,), 3339685373016157115),
    ((0, "ab", "c"), 7874363709644564259),
    ((42, "smollm2/gsm8k/baseline/t1.0", "gsm8k-0007", 3), 4452113319839035085),
    ((42, 1), 4793752094446459737),
    ((42, "1"), 1494283648816972249),
    ((42, 1.0), 2243026890914385590),
    ((-7, "é", -1, 0.1), 1662826371651975380),
]


@pytest.mark.parametrize(("arguments", "expected"), GOLDEN)
def test_golden_values(arguments, expected):
    assert derive(*arguments) == expected


def test_concatenation_and_type_make_a_difference():
    assert derive(1, "ab", "c") != derive(1, "a", "bc") != derive(1, "abc")
    assert len({derive(1, 1), derive(1, "1"), derive(1, 1.0)}) == 3
    assert derive(1, "") != derive(1)


def test_equal_zeros_lead_to_one_seed():
    assert derive(1, 0.0) == derive(1, -0.0)


@settings(max_examples=50)
@given(st.integers(0, 2**63 - 1), parts, parts)
def test_different_parts_never_collide(seed, first, second):
    assert (derive(seed, *first, bits=256) == derive(seed, *second, bits=256)) == (typed(first) == typed(second))


@settings(max_examples=50)
@given(st.integers(), st.integers(), parts)
def test_the_study_seed_changes_everything(first, second, values):
    if len(str(first)) <= 64 and len(str(second)) <= 64:
        assert (derive(first, *values, bits=256) == derive(second, *values, bits=256)) == (first == second)


@settings(max_examples=50)
@given(st.integers(0, 99), parts, st.integers(1, 512))
def test_range_and_prefix(seed, values, bits):
    value = derive(seed, *values, bits=bits)
    assert 0 <= value < 2**bits
    assert value == derive(seed, *values, bits=512) >> (512 - bits)


@pytest.mark.parametrize("bad", [True, None, b"x", ("a",), 1j])
def test_other_types_are_refused(bad):
    with pytest.raises(TypeError, match="a part of a seed must be a str, an int or a float"):
        derive(1, bad)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "\ud800"])
def test_values_without_one_encoding_are_refused(bad):
    with pytest.raises(ValueError):
        derive(1, bad)


@pytest.mark.parametrize("seed", [True, 1.0, "1", None])
def test_the_seed_must_be_an_integer(seed):
    with pytest.raises(TypeError, match="the seed must be an int"):
        derive(seed)


@pytest.mark.parametrize("bits", [0, -1, 513])
def test_bits_outside_the_digest_are_refused(bits):
    with pytest.raises(ValueError, match=r"1\.\.512"):
        derive(1, bits=bits)
