"""Resource quantities with Kubernetes' exact arithmetic.

Go has two forms of a quantity: a fast one, an int64 mantissa with a power of ten, and a slow one, a big decimal. The form
shows in results at the edges, which Karmada's capacity arithmetic reaches: an over-allocated cluster has a negative
capacity, and thousandths overflow. Both forms therefore exist here, with the same rules of rounding, wrapping
and conversion.

Source: k8s.io/apimachinery v0.35.3 pkg/api/resource quantity.go, amount.go, math.go, scale_int.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from karmada_scheduler.api.content_cache import cached_by_content
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.structs import Struct

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1
_NANO: Final = 9
_FAST_DIGITS: Final = 18
_MAX_EXPONENT: Final = 10_000
"""No resource has a larger one."""

_MAX_LENGTH: Final = 400
"""Characters of a quantity; the API server writes any quantity that Kubernetes can compute with in less than 40."""
_CACHED_LENGTH: Final = 20
"""Characters of a cached quantity; its numbers are short as well."""

# Possessive, so that a mismatch is found at once: no digit can belong to another part.
_SYNTAX: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*+)(?:\.(?P<fraction>[0-9]*+))?+(?P<suffix>[eEinumkKMGTP]*+[+-]?+[0-9]*+)"
)
_DECIMAL_SUFFIXES: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_PLAIN_FACTORS: Final = frozenset({1, 2, 3, 6, 9})
"""Powers of ten by which Go multiplies at once; such an overflow wraps, any other gives 0."""


def wrap64(value: int) -> int:
    """Return the low 64 bits as a signed number, as Go's int64 arithmetic does."""
    return ((value + 2**63) & (2**64 - 1)) - 2**63


def wrap32(value: int) -> int:
    """Return the low 32 bits as a signed number, as a conversion to Go's int32 does."""
    return ((value + 2**31) & (2**32 - 1)) - 2**31


def quotient(dividend: int, divisor: int) -> int:
    """Return the quotient truncated towards zero, as in Go; 0 for a divisor of 0."""
    if divisor == 0:
        return 0
    magnitude = abs(dividend) // abs(divisor)
    return magnitude if (dividend < 0) == (divisor < 0) else -magnitude


def _ten_to(power: int) -> int:
    return int(10**power)  # pow() of ints is Any to mypy, as it may be a float


def _fits(value: int) -> bool:
    return -(2**63) <= value < 2**63


class Quantity(Struct, frozen=True):
    """An amount of a resource.

    Attributes:
        unscaled: The digits; the value is ``unscaled * 10**exponent``.
        exponent: The power of ten; at least -9.
        format: ``DecimalSI``, ``BinarySI``, ``DecimalExponent`` or empty (a null quantity).
        slow: Whether Go stores it as a big decimal.
    """

    unscaled: int
    exponent: int = 0
    format: str = DECIMAL_SI
    slow: bool = False

    @property
    def value(self) -> int:
        """Whole units, rounded up, with Go's int64 overflow."""
        return self._scaled(0)

    @property
    def milli_value(self) -> int:
        """Thousandths, rounded up, with Go's int64 overflow."""
        return self._scaled(-3)

    def _scaled(self, unit: int) -> int:
        if not self.slow and self.exponent == unit:
            return self.unscaled
        return _scaled_slow(self, unit) if self.slow else _scaled_fast(self, unit)

    def __add__(self, other: Quantity) -> Quantity:
        # A zero gets the format of the other.
        format_ = self.format if self.unscaled else other.format
        if not self.slow and not other.slow:
            total = _fast_sum(self, other)
            if total is not None:
                return Quantity(*total, format_)
        exponent = min(self.exponent, other.exponent)
        unscaled = self.unscaled * _ten_to(self.exponent - exponent)
        unscaled += other.unscaled * _ten_to(other.exponent - exponent)
        return Quantity(unscaled, exponent, format_, slow=True)

    def __sub__(self, other: Quantity) -> Quantity:
        if self.exponent == other.exponent and not self.slow and not other.slow:
            difference = self.unscaled - other.unscaled
            if _fits(difference) and other.unscaled != -(2**63):
                return Quantity(difference, self.exponent, self.format if self.unscaled else other.format)
        if other.unscaled == -(2**63) and not self.slow and not other.slow:
            # Go's int64 cannot negate this number: it is added unchanged, unless that overflows.
            total = _fast_sum(self, other)
            if total is not None:
                return Quantity(*total, self.format if self.unscaled else other.format)
            return self + Quantity(2**63, other.exponent, other.format, slow=True)
        return self + Quantity(-other.unscaled, other.exponent, other.format, other.slow)


ZERO: Final = Quantity(0)
NULL: Final = Quantity(0, format="")


def _scaled_fast(amount: Quantity, unit: int) -> int:
    shift = amount.exponent - unit
    if shift < 0:
        whole, rest = divmod(abs(amount.unscaled), _ten_to(-shift))
        magnitude = whole + bool(rest)
        return magnitude if amount.unscaled > 0 else -magnitude
    if shift > _FAST_DIGITS and amount.unscaled:
        return 0  # beyond int64, whatever the digits
    product = amount.unscaled * _ten_to(shift)
    if _fits(product):
        return product
    return wrap64(product) if shift in _PLAIN_FACTORS and amount.unscaled != -(2**63) else 0


def _scaled_slow(amount: Quantity, unit: int) -> int:
    shift = unit - amount.exponent
    if shift == 0:
        return wrap64(amount.unscaled)
    if shift < 0:
        factor = _ten_to(-shift)
        return wrap64(wrap64(amount.unscaled) * (factor if _fits(factor) else -(2**63)))
    if amount.unscaled < MAX_INT64 and shift < 19:
        # Go ignores the sign in this comparison, so every negative amount is wrapped to 64 bits.
        cut = wrap64(amount.unscaled)
        whole, rest = divmod(abs(cut), _ten_to(shift))
        return (whole if cut >= 0 else -whole) + bool(rest)
    whole, rest = divmod(abs(amount.unscaled), _ten_to(shift))
    return wrap64(wrap64(whole if amount.unscaled >= 0 else -whole) + bool(rest))


def _fast_sum(one: Quantity, other: Quantity) -> tuple[int, int] | None:
    """Return the sum of two fast amounts; None if Go's int64 overflows."""
    if not other.unscaled:
        return one.unscaled, one.exponent
    if not one.unscaled:
        return other.unscaled, other.exponent
    exponent = min(one.exponent, other.exponent)
    left = one.unscaled * _ten_to(one.exponent - exponent)
    right = other.unscaled * _ten_to(other.exponent - exponent)
    if _fits(left) and _fits(right) and _fits(left + right):
        return left + right, exponent
    return None


@cached_by_content(entries=65536, short=_CACHED_LENGTH, long_bytes=0)
def parse(written: str) -> Quantity:
    """Parse a quantity; ValueError if Kubernetes refuses it, or if it is too long."""
    if written == "0":
        return ZERO
    if len(written) > _MAX_LENGTH:
        raise ValueError(
            f"expected a quantity like 500m or 2Gi, got one of {len(written)} characters; at most {_MAX_LENGTH} are supported"
        )
    found = _SYNTAX.fullmatch(written) if written else None
    if found is None:
        raise ValueError(f"expected a quantity like 500m or 2Gi, got {written!r}")
    sign = -1 if found["sign"] == "-" else 1
    whole, fraction, suffix = found["whole"].lstrip("0") or "0", found["fraction"] or "", found["suffix"]
    digits = int(whole + fraction)
    if suffix in _BINARY_SUFFIXES:
        return _binary(sign, whole, fraction, _BINARY_SUFFIXES[suffix])
    if suffix in _DECIMAL_SUFFIXES:
        exponent, format_ = _DECIMAL_SUFFIXES[suffix], DECIMAL_SI
    else:
        power = _EXPONENT.fullmatch(suffix)
        if power is None or abs(int(power[1])) > _MAX_EXPONENT:
            raise ValueError(f"expected a quantity like 500m or 2Gi, got {written!r} with suffix {suffix!r}")
        exponent, format_ = int(power[1]), DECIMAL_EXPONENT
    exponent -= len(fraction)
    if len(whole) + len(fraction) <= _FAST_DIGITS and exponent >= -_NANO:
        return Quantity(sign * digits, exponent, format_)
    return Quantity(sign * _nanos(digits, exponent), -_NANO, format_, slow=True)


def _binary(sign: int, whole: str, fraction: str, bits: int) -> Quantity:
    digits = int(whole + fraction)
    if not fraction and 15 - len(whole) - bits * 3 // 10 - 1 >= 0:
        return Quantity(sign * (digits << bits), 0, BINARY_SI)
    nanos = _nanos(digits << bits, -len(fraction))
    if nanos > MAX_INT64 * 10**_NANO:
        return Quantity(sign * MAX_INT64, 0, BINARY_SI, slow=True)
    format_ = DECIMAL_SI if 0 < nanos < 10**_NANO else BINARY_SI
    return Quantity(sign * nanos, -_NANO, format_, slow=True)


def _nanos(digits: int, exponent: int) -> int:
    """Return the number of 1e-9 units in a non-negative decimal, rounded up."""
    shift = exponent + _NANO
    return digits * _ten_to(shift) if shift >= 0 else -(-digits // _ten_to(-shift))


def read(value: object, path: str) -> Quantity:
    """Read a quantity from a manifest: a string, a number or null."""
    if isinstance(value, str):
        try:
            return parse(value.strip())
        except ValueError as problem:
            raise ManifestError(path, str(problem)) from None
    if value is None:
        return NULL
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, int) and abs(value) >> 1024:
            raise ManifestError(path, f"expected a quantity like 500m or 2Gi, got {value.bit_length()} bits")
        return read(str(value), path)
    raise ManifestError(path, f"expected a quantity like 500m or 2Gi, got {type(value).__name__}")


def read_list(parent: Mapping[str, Any], path: str) -> dict[str, Quantity]:
    """Read a ResourceList: resource name to quantity."""
    return {name: read(value, f"{path}.{name}") for name, value in parent.items()}
