from __future__ import annotations

import time

import pytest

from karmada_scheduler.api import quantity
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.quantity import (
    BINARY_SI,
    DECIMAL_EXPONENT,
    DECIMAL_SI,
    MAX_INT64,
    Quantity,
    parse,
    quotient,
)


@pytest.mark.parametrize(
    ("written", "value", "milli", "format_"),
    [
        pytest.param("0", 0, 0, DECIMAL_SI, id="zero"),
        pytest.param("2", 2, 2000, DECIMAL_SI, id="whole"),
        pytest.param("500m", 1, 500, DECIMAL_SI, id="thousandths-round-up-to-a-unit"),
        pytest.param("1500m", 2, 1500, DECIMAL_SI, id="more-than-a-unit"),
        pytest.param("1m", 1, 1, DECIMAL_SI, id="least-cpu"),
        pytest.param("100n", 1, 1, DECIMAL_SI, id="nanos-round-up"),
        pytest.param("0.1n", 1, 1, DECIMAL_SI, id="finer-than-nanos-rounds-away-from-zero"),
        pytest.param("1.5", 2, 1500, DECIMAL_SI, id="fraction"),
        pytest.param(".5", 1, 500, DECIMAL_SI, id="no-digit-before-the-point"),
        pytest.param("1.G", 10**9, 10**12, DECIMAL_SI, id="no-digit-after-the-point"),
        pytest.param("+3", 3, 3000, DECIMAL_SI, id="plus"),
        pytest.param("2k", 2000, 2_000_000, DECIMAL_SI, id="kilo"),
        pytest.param("1e3", 1000, 1_000_000, DECIMAL_EXPONENT, id="exponent"),
        pytest.param("1E-2", 1, 10, DECIMAL_EXPONENT, id="negative-exponent"),
        pytest.param("1E", 10**18, 0, DECIMAL_SI, id="exa-is-no-exponent"),
        pytest.param("2Gi", 2 * 2**30, 2000 * 2**30, BINARY_SI, id="binary"),
        pytest.param("1.5Gi", 1536 * 2**20, 1536000 * 2**20, BINARY_SI, id="binary-fraction"),
        pytest.param("0.5Ki", 512, 512_000, BINARY_SI, id="binary-fraction-above-one"),
        pytest.param("0.0001Ki", 1, 103, DECIMAL_SI, id="binary-below-one-becomes-decimal"),
        pytest.param("8Ei", MAX_INT64, -1000, BINARY_SI, id="binary-is-capped"),
        pytest.param("-1.5", -2, -1500, DECIMAL_SI, id="negative-fast-rounds-away-from-zero"),
    ],
)
def test_a_quantity_has_whole_and_milli_units(written: str, value: int, milli: int, format_: str) -> None:
    amount = parse(written)
    assert (amount.value, amount.milli_value, amount.format) == (value, quantity.wrap64(milli), format_)


@pytest.mark.parametrize(
    ("written", "slow"),
    [
        ("1.5Gi", True),
        ("5.0Gi", True),
        ("99999Gi", False),
        ("100000Gi", True),
        ("99Ti", False),
        ("100Ti", True),
        ("1Pi", True),
        ("99999999Mi", False),
        ("99999999999Ki", False),
        ("999999999999Ki", True),
        ("123456789012345678", False),
        ("1234567890123456789", True),
        ("0.123456789", False),
        ("0.1234567890", True),
    ],
)
def test_long_or_fractional_quantities_are_held_as_big_decimals(written: str, slow: bool) -> None:
    assert parse(written).slow is slow


@pytest.mark.parametrize("written", ["", "x", "1.2.3", "1 Gi", "Gi1", "1gi", "1e", "--1", "1_0"])
def test_quantities_that_kubernetes_refuses_are_errors(written: str) -> None:
    with pytest.raises(ValueError, match=r"500m or 2Gi|1e"):
        parse(written)


@pytest.mark.parametrize(
    ("written", "milli"),
    [
        pytest.param("9300000000000000", -9146744073709551616, id="wraps-for-a-factor-of-a-thousand"),
        pytest.param("10P", 0, id="any-other-factor-gives-nothing"),
    ],
)
def test_milli_units_overflow_as_in_go(written: str, milli: int) -> None:
    assert parse(written).milli_value == milli


@pytest.mark.parametrize(
    ("terms", "value"),
    [
        pytest.param(("10Gi", "1536Mi", "20Gi"), -12348030976, id="fast-stays-negative"),
        pytest.param(("10Gi", "1.5Gi", "20Gi"), 6098713098, id="one-slow-operand-is-enough"),
        pytest.param(("64Gi", "100Ti"), 4811146224, id="slow-subtrahend"),
        pytest.param(("120Ti", "125380Gi"), 8870074762, id="slow-minuend"),
        pytest.param(("1.5000000000",), 2, id="slow-positive-rounds-up"),
        pytest.param(("0", "1.5000000000"), 0, id="slow-negative-is-cut-and-rounded-up"),
        pytest.param(("0", "0.5000000000"), 1, id="slow-minus-a-half-is-one"),
    ],
)
def test_negative_big_decimals_have_gos_values(terms: tuple[str, ...], value: int) -> None:
    first, *rest = map(parse, terms)
    for amount in rest:
        first -= amount
    assert first.value == value


def test_zero_takes_the_format_of_what_is_added() -> None:
    assert (parse("0") + parse("1Gi")).format == BINARY_SI
    assert (parse("1") + parse("1Gi")).format == DECIMAL_SI
    assert (parse("1Gi") - parse("1Gi") - parse("1")).format == DECIMAL_SI


def test_an_overflowing_sum_becomes_a_big_decimal() -> None:
    total = Quantity(MAX_INT64) + Quantity(1)
    assert total.slow
    assert total.value == -(2**63)
    assert (Quantity(MAX_INT64, 3) + Quantity(1, 3)).value == 0


def test_the_least_int64_can_be_subtracted() -> None:
    least = quantity.Quantity(-(2**63), -3)
    assert (quantity.parse("1") - least).value == -9223372036854775
    assert (quantity.parse("-1") - least).milli_value == 2**63 - 1000


def test_exact_sums_keep_the_smaller_exponent() -> None:
    assert parse("1k") + parse("5m") == Quantity(1_000_005, -3)


@pytest.mark.parametrize(("value", "expected"), [(None, quantity.NULL), (2, parse("2")), (1.5, parse("1.5"))])
def test_manifests_may_hold_numbers_and_null(value: object, expected: Quantity) -> None:
    assert quantity.read(value, "x") == expected


@pytest.mark.parametrize("value", ["much", True, ["1"], {}])
def test_a_wrong_quantity_names_its_field(value: object) -> None:
    with pytest.raises(ManifestError, match=r"^spec\.resourceRequest\.cpu: expected a quantity"):
        quantity.read_list({"cpu": value}, "spec.resourceRequest")


@pytest.mark.parametrize(
    "written",
    ["0" * 390 + "e1.5", "9" * 399 + "x", "0" * 100_000 + "e1.5", "1" * 401, "." + "0" * 390 + "e+"],
    ids=["zeros", "nines", "endless", "long", "fraction"],
)
def test_quantities_with_huge_exponents_are_refused_fast(written: str) -> None:
    begin = time.process_time()
    with pytest.raises(ValueError, match="expected a quantity"):
        parse(written)
    assert time.process_time() - begin < 0.05


@pytest.mark.parametrize("sign", ["", "-"])
def test_an_exponent_has_a_bound(sign: str) -> None:
    assert parse(f"1e{sign}10000").value in {0, 1}
    with pytest.raises(ValueError, match="expected a quantity"):
        parse(f"1e{sign}10001")


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"),
    [(7, 2, 3), (-7, 2, -3), (7, -2, -3), (-7, -2, 3), (7, 0, 0), (-7, 0, 0)],
)
def test_a_quotient_is_truncated_towards_zero_and_0_of_a_divisor_of_0(
    dividend: int, divisor: int, expected: int
) -> None:
    assert quotient(dividend, divisor) == expected


def test_the_error_for_a_long_quantity_names_field_and_length() -> None:
    with pytest.raises(ManifestError, match=r"^spec\.x\.cpu: .* 5000 characters; at most 400 are supported$"):
        quantity.read_list({"cpu": "0" * 5000}, "spec.x")
    with pytest.raises(ManifestError, match=r"^x: expected a quantity .* bits"):
        quantity.read(10**5000, "x")


def test_leading_zeros_are_ignored() -> None:
    assert parse("0" * 380 + "15e2") == parse("15e2")
    assert parse("00") == parse("0")
    assert parse("000.5") == parse("0.5")


def test_numbers_of_thousands_of_digits_are_added_as_in_go() -> None:
    huge, power = parse("1234567890123456789e5000"), parse("1e10000")
    assert (huge.value, huge.milli_value, huge.slow) == (0, 0, True)  # the low 64 bits
    assert (power.value, power.milli_value, power.slow) == (0, 0, False)
    assert (power - huge).slow
