"""FederatedResourceQuotas: what a namespace may use, and whether Karmada's webhook refuses the clusters of a binding.

The webhook enforces quotas with the gate FederatedQuotaEnforcement, which is off by default. It charges a binding with the
replicas that its ``spec.clusters`` has, so a binding without clusters uses nothing, and a write that changes no replicas
and no request is not looked at. It compares sums, not differences: while a quota is exceeded, a write that frees too little
is refused as well.

Source: karmada v1.18.2 pkg/webhook/resourcebinding/validating.go; pkg/util/helper/binding.go CalculateResourceUsage;
pkg/util/resource.go Add; pkg/controllers/federatedresourcequota.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from karmada_advisor.state.model import Target
from karmada_advisor.state.stored import condition_of
from karmada_scheduler.api.binding import Binding, BindingSpec, ReplicaRequirements, TargetCluster
from karmada_scheduler.api.manifest import (
    Manifest,
    ManifestError,
    read_mapping,
    read_optional_mapping,
    read_required_text,
    read_sequence,
)
from karmada_scheduler.api.quantity import Quantity, read_list
from karmada_scheduler.core.condition import QUOTA_EXCEEDED
from karmada_scheduler.estimator.nodes import CPU, PODS, is_counted
from karmada_scheduler.structs import Struct

KIND: Final = "FederatedResourceQuota"

NOT_READ: Final = "whether a FederatedResourceQuota refuses what is placed is not known: quotas were not read"

_Assigned = Target | TargetCluster
Usage = Mapping[str, Fraction]
"""Amounts by resource, in cores of cpu and whole units of the others."""


class Quota(Struct, frozen=True, eq=False):
    """A FederatedResourceQuota.

    Attributes:
        limits: ``spec.overall``.
        used: ``status.overallUsed``.
        is_static: Whether it assigns amounts to single clusters (``spec.staticAssignments``), which changes the meaning
            of ``used`` where quotas are not enforced.
        is_reported: Whether it has a status.
    """

    namespace: str
    name: str
    limits: Usage
    used: Usage
    is_static: bool = False
    is_reported: bool = True

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Excess(Struct, frozen=True):
    """A quota that refuses a write. Amounts are integers: thousandths of cpu, whole units of others.

    Attributes:
        quota: The quota.
        resource: A resource of which more would be used than it allows.
        wanted: What would be used after the write.
        limit: What the quota allows, rounded down.
        used: What is used now.
    """

    quota: Quota
    resource: str
    wanted: int
    limit: int
    used: int

    def __str__(self) -> str:
        """Return it as a sentence without a full stop."""
        amounts = self.wanted, self.limit, self.used
        wanted, limit, used = (quantity_text(self.resource, amount) for amount in amounts)
        use = f"{wanted} would be used ({used} now)"
        return f"the quota {self.quota} allows {limit} {self.resource}, and {use}"


def quantity_text(resource: str, amount: int) -> str:
    """Return an amount of an ``Excess`` as a quantity of a manifest: ``500m``, ``6``, ``512Mi``."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    for suffix, bits in (("Gi", 30), ("Mi", 20), ("Ki", 10)):
        if amount and amount % (1 << bits) == 0:
            return f"{amount >> bits}{suffix}"
    return str(amount)


def read_quota(manifest: Manifest) -> Quota:
    """Read a FederatedResourceQuota of policy.karmada.io/v1alpha1.

    Raises:
        ManifestError: A field is missing or of the wrong type.
    """
    if manifest.get("kind") != KIND:
        raise ManifestError("kind", f"expected {KIND}, got {manifest.get('kind')!r}")
    metadata = read_mapping(manifest, "metadata", "")
    namespace, name = (read_required_text(metadata, key, "metadata") for key in ("namespace", "name"))
    limits, used = _list(manifest, "spec", "overall"), _list(manifest, "status", "overallUsed")
    is_static = bool(read_sequence(read_mapping(manifest, "spec", ""), "staticAssignments", "spec"))
    is_reported = bool(read_optional_mapping(manifest, "status", ""))
    return Quota(namespace, name, limits, used, is_static, is_reported)


def _list(manifest: Manifest, part: str, name: str) -> Usage:
    given = read_optional_mapping(manifest, part, "") or {}
    listed = read_optional_mapping(given, name, part) or {}
    return {key: _exact(amount) for key, amount in read_list(listed, f"{part}.{name}").items()}


def _exact(amount: Quantity) -> Fraction:
    return Fraction(amount.unscaled) * Fraction(10) ** amount.exponent


def usage(spec: BindingSpec, clusters: Sequence[TargetCluster] | None = None) -> Usage:
    """Return what a binding is charged with.

    Args:
        spec: Its replicas' requests, or its components; a set of components counts once for each cluster.
        clusters: Its clusters; those of the spec if None.
    """
    targets = spec.clusters if clusters is None else clusters
    found: dict[str, Fraction] = {}
    if spec.components:
        for component in spec.components:
            _add(found, component.replica_requirements, component.replicas * len(targets))
    else:
        _add(found, spec.replica_requirements, sum(target.replicas for target in targets))
    return found


def grows(spec: BindingSpec, before: Iterable[_Assigned], after: Iterable[_Assigned]) -> bool:
    """Return whether a binding is charged with more after a change of its clusters."""
    targets = ([TargetCluster(target.name, target.replicas) for target in side] for side in (before, after))
    charged_before, charged_after = (sum(usage(spec, side).values()) for side in targets)
    return charged_after > charged_before


def _add(total: dict[str, Fraction], requirements: ReplicaRequirements | None, times: int) -> None:
    for name, amount in (requirements.resource_request if requirements is not None else {}).items():
        if added := _exact(amount) * times:
            total[name] = total.get(name, Fraction()) + added


def _exceeded(quota: Quota, before: Usage, after: Usage, used: Usage) -> Excess | None:
    """Return the first limit of a quota that a write exceeds, None if it is admitted; ``used`` is what is used now."""
    changed = _changed(quota, before, after)
    for name in sorted(quota.limits) if changed else ():
        now = _units(name, used.get(name, Fraction()))
        wanted = now + _units(name, changed.get(name, Fraction()))
        limit = quota.limits[name] * (1000 if name == CPU else 1)
        if _is_summed(name) and wanted and wanted > limit:
            return Excess(quota, name, wanted, math.floor(limit), now)
    return None


def _changed(quota: Quota, before: Usage, after: Usage) -> Usage:
    """Return by how much a write changes the resources that a quota limits, without those that it does not change."""
    none, names = Fraction(), {*before, *after}
    changes = {name: after.get(name, none) - before.get(name, none) for name in names if name in quota.limits}
    return {name: change for name, change in changes.items() if change}


def _times_left(quota: Quota, before: Usage, one: Usage, used: Usage) -> int | None:
    """Return how many times an amount fits into a quota in place of what is charged now; None without a limit."""
    found = [
        max(0, math.floor((limit - used.get(name, Fraction()) + before.get(name, Fraction())) / one[name]))
        for name, limit in quota.limits.items()
        if one.get(name) and _is_summed(name)
    ]
    return min(found, default=None)


def _is_summed(name: str) -> bool:
    """Return whether the webhook adds up a resource; it loses others, so they are never exceeded."""
    return name == PODS or is_counted(name)


def _units(name: str, amount: Fraction) -> int:
    """Return thousandths of cpu, and whole units of other resources, rounded up."""
    return math.ceil(amount * 1000) if name == CPU else math.ceil(amount)


class Ledger:
    """What the quotas of all namespaces have left, while bindings are written one after the other."""

    def __init__(self, quotas: Iterable[Quota]) -> None:
        """Start with what the quotas say is used."""
        self._quotas: dict[str, list[tuple[Quota, dict[str, Fraction]]]] = {}
        for quota in sorted(quotas, key=lambda quota: (quota.namespace, quota.name)):
            self._quotas.setdefault(quota.namespace, []).append((quota, dict(quota.used)))

    def charge(self, namespace: str, before: Usage, after: Usage) -> Excess | None:
        """Charge a write; return why it is refused, None if it is not. A refused one changes nothing.

        Args:
            namespace: Of the binding.
            before: What it is charged with now.
            after: What it would be charged with.
        """
        quotas = self._quotas.get(namespace, ())
        for quota, used in quotas:
            if (found := _exceeded(quota, before, after, used)) is not None:
                return found
        for quota, used in quotas:
            for name, change in _changed(quota, before, after).items():
                used[name] = max(Fraction(), used.get(name, Fraction()) + change)
        return None

    def most_replicas(self, namespace: str, spec: BindingSpec, own: Usage) -> int | None:
        """Return how many replicas of a binding its quotas allow; None if they do not limit them.

        Args:
            namespace: Of the binding.
            spec: Its requests.
            own: What it is charged with now.
        """
        if spec.components:
            return None
        one = usage(spec, [TargetCluster("", 1)])
        found = [_times_left(quota, own, one, used) for quota, used in self._quotas.get(namespace, ())]
        return min((limit for limit in found if limit is not None), default=None)


def is_enforced(quota: Quota, bindings: Iterable[Binding], *, has_all: bool = True) -> bool | None:
    """Return whether Karmada enforces a quota, by what its status says; None if it does not show that.

    With the gate FederatedQuotaEnforcement the status has what bindings use; without it, what the static assignments of
    clusters use.

    Args:
        quota: The quota.
        bindings: All bindings of its namespace, as far as they are known.
        has_all: Whether these are all.
    """
    if not quota.is_reported or (quota.is_static and not has_all):
        return None
    charged: dict[str, Fraction] = {}
    for binding in bindings:
        for name, amount in usage(binding.spec).items():
            if name in quota.limits:
                charged[name] = charged.get(name, Fraction()) + amount
    used = {name: amount for name, amount in quota.used.items() if amount}
    if not charged and not used:
        return None
    return used == charged if quota.is_static or not used else True


def enforced(
    quotas: Iterable[Quota], bindings: Iterable[Binding], *, has_all: bool = True
) -> dict[Quota, bool]:
    """Return the quotas that Karmada enforces, or may enforce, and whether that is sure.

    Args:
        quotas: All quotas.
        bindings: The bindings as they are, as far as they are known.
        has_all: Whether these are all.
    """
    by_namespace: dict[str, list[Binding]] = {quota.namespace: [] for quota in quotas}
    has_refused = False
    for binding in bindings if by_namespace else ():
        has_refused |= condition_of(binding).reason == QUOTA_EXCEEDED
        if binding.key.namespace in by_namespace:
            by_namespace[binding.key.namespace].append(binding)
    found = {}
    for quota in quotas:
        is_enforced_now = has_refused or is_enforced(quota, by_namespace[quota.namespace], has_all=has_all)
        if is_enforced_now is not False:
            found[quota] = is_enforced_now is True
    return found


def not_sure(quotas: Mapping[Quota, bool]) -> str:
    """Return on what it depends whether some of the quotas of ``enforced`` count; "" if that is sure for all."""
    unsure = ", ".join(str(quota) for quota, is_sure in quotas.items() if not is_sure)
    gate = "quotas count only if karmada-webhook runs with the gate FederatedQuotaEnforcement"
    return f"{gate}, which the status of {unsure} does not tell" if unsure else ""
