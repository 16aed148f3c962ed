"""Amounts and times as people write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from karmada_advisor.state.quota import Excess, Ledger, usage
from karmada_scheduler.api.binding_spec import BindingSpec, Component
from karmada_scheduler.api.manifest import format_time
from karmada_scheduler.api.quantity import BINARY_SI, Quantity
from karmada_scheduler.estimator.nodes import CPU

_BINARY: Final = (("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))
_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")


def shown(name: str, amount: Quantity) -> str:
    """Return an amount of a resource, rounded to a tenth of its unit: ``500m``, ``5.5``, ``512Mi``."""
    if name == CPU:
        milli = amount.milli_value
        return f"{milli}m" if abs(milli) < 1000 else _decimal(milli / 1000)
    whole = amount.value
    if amount.format == BINARY_SI or name.startswith(_BYTES):
        for unit, bits in _BINARY:
            if abs(whole) >= 1 << bits:
                return f"{_decimal(whole / (1 << bits))}{unit}"
    milli = amount.milli_value
    return str(whole) if milli % 1000 == 0 or abs(milli) > 10**6 else f"{milli}m"


def shown_times(name: str, amount: Quantity, count: int) -> str:
    """Return an amount of a resource, ``count`` times."""
    return shown(name, Quantity(amount.unscaled * count, amount.exponent, amount.format, slow=True))


def units(name: str, amount: Quantity) -> int:
    """Return an amount of a resource as an integer: cpu in thousandths, others in whole units."""
    return amount.milli_value if name == CPU else amount.value


def request_of(spec: BindingSpec | Component) -> Mapping[str, Quantity]:
    """Return what one replica requests; nothing without requirements."""
    requirements = spec.replica_requirements
    return requirements.resource_request if requirements is not None else {}


def shown_units(name: str, units: int) -> str:
    """Return an amount of a resource that is given as an integer: cpu in thousandths, others in whole units."""
    return shown(name, Quantity(units, -3 if name == CPU else 0))


def quota_refusal(excess: Excess, ledger: Ledger, namespace: str, spec: BindingSpec) -> str:
    """Return what refuses a write of a binding, and how many replicas quotas allow, as a sentence without a full stop."""
    name, most = excess.resource, ledger.most_replicas(namespace, spec, usage(spec))
    limit, wanted = shown_units(name, excess.limit), shown_units(name, excess.wanted)
    allowed = (
        "" if most is None or most >= spec.replicas else f"; it allows {most} of {spec.replicas} replicas"
    )
    return f"quota {excess.quota} allows {limit} {name}, and {wanted} would be used{allowed}"


def listed(amounts: Mapping[str, str]) -> str:
    """Return requests in one line: ``500m cpu, 1Gi memory``."""
    return ", ".join(f"{amount} {name}" for name, amount in amounts.items())


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun, and a verb if there is one: ``1 binding moves``, ``2,000 bindings move``.

    Args:
        count: The number.
        one: The words after 1.
        many: The words after other numbers, if a last ``s`` is not enough.
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def first_names(names: Sequence[str], limit: int) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def _decimal(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") if abs(number) < 1e15 else f"{number:.3g}"


def at(moment: datetime | None) -> str:
    """Return a time in the format of the API; ``never`` without one."""
    return "never" if moment is None else format_time(moment)
