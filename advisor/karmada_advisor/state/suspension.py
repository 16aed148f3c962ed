"""Who has suspended scheduling or dispatching.

Source: karmada v1.18.2 pkg/apis/work/v1alpha2/binding_types.go Suspension, pkg/apis/policy/v1alpha1 Suspension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from karmada_advisor.state.stored import mapping, mappings
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.policy import claims, policy_name

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Suspended:
    """The suspension of dispatching.

    Attributes:
        everywhere: Whether no cluster gets changes.
        clusters: The clusters of the binding that get none.
    """

    everywhere: bool
    clusters: frozenset[str]

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Read it from a binding."""
        spec = mapping(manifest.get("spec"))
        suspension = mapping(spec.get("suspension"))
        names = mapping(suspension.get("dispatchingOnClusters")).get("clusterNames")
        listed = names if isinstance(names, Sequence) and not isinstance(names, str) else ()
        stored = {str(each.get("name")) for each in mappings(spec.get("clusters"))}
        return cls(suspension.get("dispatching") is True, frozenset(map(str, listed)) & stored)

    def __bool__(self) -> bool:
        return self.everywhere or bool(self.clusters)

    def concerns(self, cluster: str) -> bool:
        """Return whether a cluster gets no changes."""
        return self.everywhere or cluster in self.clusters

    def text(self, binding: Binding, policies: Sequence[Manifest] | None) -> str:
        """Return who suspends it, for people."""
        field = "dispatching" if self.everywhere else "dispatchingOnClusters"
        where = "" if self.everywhere else f" to {', '.join(sorted(self.clusters))}"
        policy = next((each for each in policies or () if claims(each, binding.labels)), None)
        wanted = mapping(mapping(policy and policy.get("spec")).get("suspension"))
        by = policy_name(policy) if policy is not None and wanted.get(field) else "the binding itself"
        return (
            f"dispatching{where} is suspended by {by} (spec.suspension.{field}): changes do not arrive there"
        )


def manager_of(manifest: Manifest, *path: str) -> tuple[str, str]:
    """Return who wrote a field last, and when, as ``metadata.managedFields`` says; empty texts if it does not."""
    for each in reversed(mappings(mapping(manifest.get("metadata")).get("managedFields"))):
        found: Any = each.get("fieldsV1")
        for name in path:
            found = mapping(found).get(f"f:{name}")
        if found is not None:
            return str(each.get("manager") or ""), str(each.get("time") or "")
    return "", ""
