"""FederatedResourceQuotas: what a namespace may use, and whether Karmada's webhook refuses the clusters of a binding.

The webhook enforces quotas with the gate FederatedQuotaEnforcement, which is off by default. It charges a binding with the
replicas that its ``spec.clusters`` has, so a binding without clusters uses nothing, and a write that changes no replicas
and no request is not looked at.

Source: karmada v1.18.2 pkg/webhook/resourcebinding/validating.go; pkg/util/helper/binding.go CalculateResourceUsage;
pkg/controllers/federatedresourcequota.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.binding_spec import BindingSpec, TargetCluster
from karmada_scheduler.api.manifest import (
    Manifest,
    ManifestError,
    read_mapping,
    read_optional_mapping,
    read_required_text,
    read_sequence,
)
from karmada_scheduler.api.quantity import Quantity, read_list
from karmada_scheduler.estimator.resources import CPU, PODS, Amounts, is_counted

KIND: Final = "FederatedResourceQuota"


@dataclass(frozen=True, slots=True, eq=False)
class Quota:
    """A FederatedResourceQuota. Amounts are int64: cpu in thousandths, other resources in whole units.

    Attributes:
        limits: ``spec.overall``.
        used: ``status.overallUsed``.
        is_static: Whether it assigns amounts to single clusters (``spec.staticAssignments``), which changes the meaning
            of ``used`` where quotas are not enforced.
        written: The limits as they are written, for people.
    """

    namespace: str
    name: str
    limits: Amounts
    used: Amounts
    is_static: bool = False
    written: Mapping[str, Quantity] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Excess:
    """A quota that refuses a write.

    Attributes:
        quota: The quota.
        resource: A resource of which more would be used than it allows.
        used: What would be used after the write.
        limit: What the quota allows.
    """

    quota: Quota
    resource: str
    used: int
    limit: int


def read_quota(manifest: Manifest) -> Quota:
    """Read a FederatedResourceQuota of policy.karmada.io/v1alpha1.

    Raises:
        ManifestError: A field is missing or of the wrong type.
    """
    if manifest.get("kind") != KIND:
        raise ManifestError("kind", f"expected {KIND}, got {manifest.get('kind')!r}")
    metadata, spec = read_mapping(manifest, "metadata", ""), read_mapping(manifest, "spec", "")
    status = read_optional_mapping(manifest, "status", "") or {}
    written = read_list(read_optional_mapping(spec, "overall", "spec") or {}, "spec.overall")
    used = read_list(read_optional_mapping(status, "overallUsed", "status") or {}, "status.overallUsed")
    return Quota(
        read_required_text(metadata, "namespace", "metadata"),
        read_required_text(metadata, "name", "metadata"),
        _units(written),
        _units(used),
        bool(read_sequence(spec, "staticAssignments", "spec")),
        written,
    )


def _units(quantities: Mapping[str, Quantity]) -> Amounts:
    return {name: amount.milli_value if name == CPU else amount.value for name, amount in quantities.items()}


def usage(spec: BindingSpec, clusters: Sequence[TargetCluster] | None = None) -> Amounts:
    """Return what a binding is charged with.

    Args:
        spec: Its replicas' requests, or its components; a set of components counts once for each cluster.
        clusters: Its clusters; those of the spec if None.
    """
    targets = spec.clusters if clusters is None else clusters
    if spec.components:
        return _times(_of_components(spec), len(targets))
    requirements = spec.replica_requirements
    request = _units(requirements.resource_request) if requirements is not None else {}
    return _times(request, sum(each.replicas for each in targets))


def _of_components(spec: BindingSpec) -> Amounts:
    total: Amounts = {}
    for component in spec.components:
        if component.replica_requirements is not None:
            for name, units in _units(component.replica_requirements.resource_request).items():
                total[name] = total.get(name, 0) + component.replicas * units
    return total


def _times(amounts: Amounts, count: int) -> Amounts:
    return {name: units * count for name, units in amounts.items() if units * count}


class Ledger:
    """What the quotas of all namespaces have left, while bindings are written one after the other."""

    def __init__(self, quotas: Iterable[Quota]) -> None:
        """Start with what the quotas say is used."""
        self._quotas: dict[str, list[tuple[Quota, Amounts]]] = {}
        for each in sorted(quotas, key=lambda quota: (quota.namespace, quota.name)):
            self._quotas.setdefault(each.namespace, []).append((each, dict(each.used)))

    def refusal(self, namespace: str, before: Amounts, after: Amounts) -> Excess | None:
        """Return why a write is refused, None if it is not.

        Args:
            namespace: Of the binding.
            before: What it is charged with now.
            after: What it would be charged with.
        """
        for quota, used in self._quotas.get(namespace, ()):
            total = _charged(quota, used, before, after)
            for name in sorted(total or ()):
                assert total is not None
                if total[name] > quota.limits.get(name, total[name]):
                    return Excess(quota, name, total[name], quota.limits[name])
        return None

    def charge(self, namespace: str, before: Amounts, after: Amounts) -> Excess | None:
        """Charge a write; return why it is refused, None if it is not. A refused one changes nothing."""
        found = self.refusal(namespace, before, after)
        if found is None:
            for quota, used in self._quotas.get(namespace, ()):
                used.update(_charged(quota, used, before, after) or {})
        return found

    def most_replicas(self, namespace: str, spec: BindingSpec) -> int | None:
        """Return how many replicas of a binding its quotas allow; None if they do not limit them.

        Replicas that the binding has on clusters already count as its own.
        """
        requirements = spec.replica_requirements
        if spec.components or requirements is None:
            return None
        own, found = usage(spec), None
        for quota, used in self._quotas.get(namespace, ()):
            for name, units in _units(requirements.resource_request).items():
                if units > 0 and name in quota.limits and _is_summed(name):
                    free = quota.limits[name] - used.get(name, 0) + own.get(name, 0)
                    most = max(0, free // units)
                    found = most if found is None else min(found, most)
        return found


def _charged(quota: Quota, used: Amounts, before: Amounts, after: Amounts) -> Amounts | None:
    """Return what is used after a write; None if the write does not concern the quota."""
    changed = {
        name: after.get(name, 0) - before.get(name, 0)
        for name in {*before, *after}
        if name in quota.limits and after.get(name, 0) != before.get(name, 0)
    }
    if not changed:
        return None
    total = {name: used.get(name, 0) + changed.get(name, 0) for name in {*used, *changed}}
    return {name: units for name, units in total.items() if _is_summed(name) and units > 0}


def _is_summed(name: str) -> bool:
    """Return whether the webhook adds up a resource; it loses others, so they are never exceeded."""
    return name == PODS or is_counted(name)


def is_enforced(quota: Quota, bindings: Iterable[Binding]) -> bool | None:
    """Return whether Karmada enforces a quota, by what its status says; None if it does not show that.

    With the gate FederatedQuotaEnforcement the status has what bindings use; without it, what the static assignments of
    clusters use.

    Args:
        quota: The quota.
        bindings: All bindings of its namespace.
    """
    charged: Amounts = {}
    for each in bindings:
        for name, units in usage(each.spec).items():
            if name in quota.limits:
                charged[name] = charged.get(name, 0) + units
    used = {name: units for name, units in quota.used.items() if units}
    if not charged and not used:
        return None
    return used == charged if quota.is_static or not used else True
