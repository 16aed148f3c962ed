"""Whether the FederatedResourceQuotas of a namespace admit a placement, by the arithmetic of Karmada's webhook.

Source: karmada v1.18.2 pkg/webhook/resourcebinding/validating.go processSingleFRQ and isAllowed, pkg/util/helper/binding.go
CalculateResourceUsage, pkg/util/resource.go Add. The webhook checks quotas with the gate FederatedQuotaEnforcement only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.manifest import Manifest, read_optional_mapping
from karmada_scheduler.api.quantity import Quantity, read_list
from karmada_scheduler.estimator.resources import CPU, PODS, is_counted
from karmada_scheduler.whynot.edits import ObjectRef

KIND: Final = "FederatedResourceQuota"

Usage = Mapping[str, Fraction]
"""Amounts by resource, in whole units."""


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit that a placement exceeds.

    Attributes:
        quota: The quota.
        resource: The resource.
        requested: What all placements of the namespace use together with this one: cpu in thousandths, other resources
            in whole units.
        limit: What the quota allows, in the same unit, rounded down.
        used: What they use now.
    """

    quota: ObjectRef
    resource: str
    requested: int
    limit: int
    used: int

    def __str__(self) -> str:
        """Return it as a sentence without a full stop."""
        wanted, limit, used = (shown(self.resource, each) for each in (self.requested, self.limit, self.used))
        return (
            f"the quota {self.quota.namespace}/{self.quota.name} allows {limit} {self.resource}, and {wanted} would be used "
            f"({used} now)"
        )


def shown(resource: str, amount: int) -> str:
    """Return an amount as a quantity of a manifest: ``500m``, ``6``, ``512Mi``."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    for suffix, bits in (("Gi", 30), ("Mi", 20), ("Ki", 10)):
        if amount and amount % (1 << bits) == 0:
            return f"{amount >> bits}{suffix}"
    return str(amount)


def usage_of(binding: Binding, targets: Sequence[TargetCluster]) -> Usage:
    """Return what a binding uses with some clusters: of its components in each, or of all replicas."""
    spec = binding.spec
    found: dict[str, Fraction] = {}
    if spec.components:
        for component in spec.components:
            _add(found, _requests(component.replica_requirements), component.replicas * len(targets))
        return found
    _add(found, _requests(spec.replica_requirements), sum(each.replicas for each in targets))
    return found


def _requests(requirements: object) -> Mapping[str, Quantity]:
    return getattr(requirements, "resource_request", None) or {}


def _add(total: dict[str, Fraction], requests: Mapping[str, Quantity], times: int) -> None:
    for name, amount in requests.items():
        added = _exact(amount) * times
        if added:
            total[name] = total.get(name, Fraction()) + added


def _exact(amount: Quantity) -> Fraction:
    return Fraction(amount.unscaled) * Fraction(10) ** amount.exponent


def exceeded(
    quotas: Iterable[tuple[ObjectRef, Manifest]], namespace: str, before: Usage, after: Usage
) -> Exceeded | None:
    """Return the first limit that a change of a binding exceeds, None if it is admitted.

    A quota without a change of one of its resources admits it, even if it is exceeded already.

    Args:
        quotas: The quotas, with what they count as used.
        namespace: The namespace of the binding.
        before: What the binding uses now.
        after: What it would use.

    Raises:
        ManifestError: A field of a quota has the wrong type.
    """
    delta = {
        name: change
        for name in before.keys() | after.keys()
        if (change := after.get(name, Fraction()) - before.get(name, Fraction()))
    }
    for ref, manifest in quotas:
        if ref.namespace != namespace:
            continue
        limits = _list(manifest, "spec", "overall")
        if not limits.keys() & delta.keys():
            continue
        used = _list(manifest, "status", "overallUsed")
        for name in sorted(limits):
            now = _units(name, _exact(used[name])) if name in used else 0
            wanted = now + (_units(name, delta[name]) if name in delta else 0)
            limit = _exact(limits[name]) * (1000 if name == CPU else 1)
            if _is_added(name) and wanted and wanted > limit:
                return Exceeded(ref, name, wanted, math.floor(limit), now)
    return None


def times_left(
    quotas: Iterable[tuple[ObjectRef, Manifest]], namespace: str, before: Usage, one: Usage
) -> int | None:
    """Return how many times an amount fits into the quotas, in place of what is used now; None without a limit.

    Args:
        quotas: The quotas.
        namespace: The namespace of the binding.
        before: What the binding uses now.
        one: The amount.

    Raises:
        ManifestError: A field of a quota has the wrong type.
    """
    found: list[int] = []
    for ref, manifest in quotas:
        if ref.namespace != namespace:
            continue
        used = _list(manifest, "status", "overallUsed")
        for name, limit in _list(manifest, "spec", "overall").items():
            if one.get(name) and _is_added(name):
                now = _exact(used[name]) if name in used else Fraction()
                free = _exact(limit) - now + before.get(name, Fraction())
                found.append(max(0, math.floor(free / one[name])))
    return min(found, default=None)


def _is_added(name: str) -> bool:
    return name == PODS or is_counted(name)


def _units(name: str, amount: Fraction) -> int:
    """Return thousandths of cpu, and whole units of other resources, rounded up."""
    return math.ceil(amount * 1000) if name == CPU else math.ceil(amount)


def _list(manifest: Manifest, part: str, name: str) -> Mapping[str, Quantity]:
    given = read_optional_mapping(manifest, part, "") or {}
    listed = read_optional_mapping(given, name, part)
    return {} if listed is None else read_list(listed, f"{part}.{name}")
