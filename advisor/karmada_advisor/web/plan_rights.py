"""The parts of a change, and the right to each of them.

Plans are for those who may do what they plan: they would see its effect anyway. Others could measure the placements of others, one
supposed change at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from karmada_advisor.plan.model import Plan
from karmada_advisor.plan.objects import group_of, policy_key
from karmada_advisor.sources.change_files import change_objects
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.web.answers import AskedChange
from karmada_advisor.web.indexed_binding import IndexedBinding
from karmada_advisor.web.request_query import RequestRefusedError
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.policy import CLUSTER_PROPAGATION_POLICY, PROPAGATION_POLICY, PolicyKey
from karmada_scheduler.client.permissions import Permission
from karmada_scheduler.structs import Struct, replace

MOST_PARTS: Final = 20
"""Parts of one change; each is a review."""

_POLICIES: Final = {
    PROPAGATION_POLICY: "propagationpolicies",
    CLUSTER_PROPAGATION_POLICY: "clusterpropagationpolicies",
}
_CLUSTERS: Final = {
    "--without": ("delete", "is deleted"),
    "--cordon": ("update", "is cordoned"),
    "--uncordon": ("update", "is uncordoned"),
}
"""By flag, the verb that suffices to do it, whichever command is used."""
_SCALE: Final = "--scale"
_SCALED: Final = {
    ("apps", "Deployment"): "deployments",
    ("apps", "ReplicaSet"): "replicasets",
    ("apps", "StatefulSet"): "statefulsets",
}
"""Kinds with a subresource ``scale``; that of a custom resource is not known without its definition."""


class ChangePart(Struct, frozen=True):
    """A part of a change.

    Attributes:
        object: Kind and name, as a plan shows them.
        what: What happens to it.
        permission: The right to do it.
        namespace: Of the object; "" without one.
        cluster: The cluster that it changes; "" if it is no cluster.
    """

    object: str
    what: str
    permission: Permission
    namespace: str = ""
    cluster: str = ""

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.object} {self.what}"


class AskedScale(Struct, frozen=True):
    """New replicas of a workload; ``kind`` is "" if it is not given."""

    namespace: str
    kind: str
    name: str
    replicas: str


def policies_of(text: str) -> tuple[PolicyKey, ...]:
    """Return what a text has, which may be objects of other kinds. Raises NoAnswerError, which tells of the text alone."""
    return tuple(map(policy_key, change_objects(text)))


def parts_of_policies(policies: Iterable[PolicyKey]) -> Iterator[ChangePart]:
    """Yield the parts that policies are. Raises RequestRefusedError: it is something else."""
    for each in policies:
        if each.kind not in _POLICIES:
            text = f"a change of a {each.kind} is planned for those who may list everything only"
            raise RequestRefusedError(403, text)
        permission = Permission("update", "policy.karmada.io", _POLICIES[each.kind], each.name)
        yield ChangePart(f"{each.kind}/{each}", "as given", permission, each.namespace)


def parts_of_clusters(change: AskedChange) -> Iterator[ChangePart]:
    """Yield the parts of a change that are about clusters. Raises RequestRefusedError: nobody knows the right to a part."""
    for flag in change.flags:
        name, _, value = flag.partition("=")
        if name == _SCALE:
            continue
        if name not in _CLUSTERS:
            raise RequestRefusedError(403, f"{name} is for those who may list everything")
        verb, what = _CLUSTERS[name]
        for cluster in filter(None, value.split(",")):
            permission = Permission(verb, "cluster.karmada.io", "clusters", cluster)
            yield ChangePart(f"{CLUSTER}/{cluster}", what, permission, cluster=cluster)


def scale_of(change: AskedChange) -> AskedScale | None:
    """Return which workload a change scales; None for none. Raises RequestRefusedError: it has no namespace."""
    for flag in change.flags:
        name, _, value = flag.partition("=")
        if name != _SCALE:
            continue
        workload, _, replicas = value.rpartition("=")
        parts = workload.split("/")
        if len(parts) not in {2, 3} or not all(parts) or not replicas.isdecimal():
            raise RequestRefusedError(
                400, f"scale: expected NS/NAME=REPLICAS or NS/KIND/NAME=REPLICAS, got {value}"
            )
        return AskedScale(parts[0], parts[1] if len(parts) == 3 else "", parts[-1], replicas)
    return None


def part_of_scale(asked: AskedScale, bindings: Iterable[IndexedBinding]) -> ChangePart:
    """Return the part that a scaled workload is.

    Args:
        asked: The workload and its replicas.
        bindings: Those of its namespace, which say of which API group it is.

    Raises:
        NoAnswerError: None of them is of such a workload, or several are.
        RequestRefusedError: How workloads of its kind are scaled is not known.
    """
    found = {
        (group_of(each.api_version), each.kind, each.name)
        for each in (each.binding.spec.resource for each in bindings)
        if each.namespace == asked.namespace
        and each.name == asked.name
        and asked.kind.lower() in {"", each.kind.lower()}
    }
    if len(found) != 1:
        how_many = "several workloads have" if found else "no workload with a binding has"
        raise NoAnswerError(
            f"{how_many} the name {asked.namespace}/{asked.name}; NS/KIND/NAME names one kind"
        )
    [(group, kind, name)] = found
    if (group, kind) not in _SCALED:
        raise RequestRefusedError(403, f"scaling a {kind} is planned for those who may list everything only")
    permission = Permission("update", group, f"{_SCALED[group, kind]}/scale", name)
    shown = f"{kind}/{asked.namespace}/{name}"
    return ChangePart(shown, f"has {asked.replicas} replicas", permission, asked.namespace)


def with_scale(change: AskedChange, part: ChangePart, asked: AskedScale) -> AskedChange:
    """Return a change that scales the workload of a part and no other one of the same name."""
    kind, _, name = part.object.partition("/")
    namespace, _, name = name.partition("/")
    others = [each for each in change.flags if not each.startswith(f"{_SCALE}=")]
    return replace(change, flags=(*others, f"{_SCALE}={namespace}/{kind}/{name}={asked.replicas}"))


def creations(plan: Plan, parts: Iterable[ChangePart]) -> Iterator[tuple[Permission, str]]:
    """Yield the rights to create the policies that do not exist: the API server refuses an update of these."""
    existing = {each.object for each in plan.changes if each.sign in {"~", "="}}
    for each in parts:
        if each.permission.resource in _POLICIES.values() and each.object not in existing:
            yield each.permission._replace(verb="create", name=""), each.namespace
