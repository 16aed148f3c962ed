"""Whether the FederatedResourceQuotas of a namespace, some of them edited, admit a placement (``claims.quota``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from karmada_advisor.claims import quota
from karmada_advisor.claims.quota import KIND, Usage, usage
from karmada_advisor.whynot.edits import ObjectRef
from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.estimator.resources import CPU

__all__ = ["KIND", "Exceeded", "Usage", "exceeded", "shown", "times_left", "usage_of"]


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
    return usage(binding.spec, targets)


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
    for ref, manifest in quotas:
        if ref.namespace == namespace:
            found = quota.exceeded(quota.quota_of(ref.namespace, ref.name, manifest), before, after)
            if found is not None:
                return Exceeded(ref, found.resource, found.wanted, found.limit, found.used)
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
    found = [
        quota.times_left(quota.quota_of(ref.namespace, ref.name, manifest), before, one)
        for ref, manifest in quotas
        if ref.namespace == namespace
    ]
    return min((each for each in found if each is not None), default=None)
