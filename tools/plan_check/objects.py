"""The clusters, policies and Deployments of the check, and the changes that are planned and made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tools import manifests
from tools.controlplane import ControlPlane
from tools.controlplane.karmada import CLUSTERS
from tools.controlplane.simulated import SimulatedMember
from tools.manifests import AGGREGATED, DYNAMIC, spread, static

Manifest = dict[str, Any]

NAMESPACE: Final = "plan-check"
SCHEDULER: Final = "my-scheduler"
_REGIONS: Final = 6
_CLUSTERS: Final = 24
_GROUPS: Final = 20


@dataclass(frozen=True, slots=True)
class Change:
    """A change to plan and to make.

    Attributes:
        name: For people.
        files: Manifests for ``-f``.
        flags: Further flags of ``plan``.
        make: Makes the change on the control plane.
        creates: Whether the manifests are of new workloads, whose uids are not known when the change is planned.
    """

    name: str
    files: Sequence[Manifest]
    flags: Sequence[str]
    make: Callable[[ControlPlane], object]
    creates: bool = False


def members() -> list[SimulatedMember]:
    """Return 24 members in 6 regions, of different sizes; each third one has the label ``tier=gold``."""
    return [
        SimulatedMember(
            f"m{number:02}",
            provider="paper",
            region=f"r{number % _REGIONS}",
            zone=f"r{number % _REGIONS}-{number}",
            labels={"kind": "sim", "tier": "silver" if number % 3 else "gold"},
            cpu=str(200 + 37 * number),
            memory="4Ti",
            pods="9000",
        )
        for number in range(_CLUSTERS)
    ]


def policy(number: int, *, is_edited: bool = False) -> Manifest:
    """Return the policy of a group of Deployments; groups have different placements."""
    return manifests.policy(
        NAMESPACE,
        f"group-{number}",
        _placement(number, is_edited=is_edited),
        scheduler=SCHEDULER,
        selector={"labelSelector": {"matchLabels": {"group": str(number)}}},
    )


def fallback() -> Manifest:
    """Return the ClusterPropagationPolicy that claims what no policy of the namespace selects."""
    found = policy(0)
    del found["metadata"]["namespace"]
    found |= {"kind": "ClusterPropagationPolicy", "metadata": {"name": "plan-check"}}
    found["spec"]["resourceSelectors"] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE}
    ]
    found["spec"]["placement"] = {
        "clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "gold"}}},
        "replicaScheduling": AGGREGATED,
    }
    return found


def deployment(number: int) -> Manifest:
    """Return a Deployment of 1 to 13 replicas."""
    return manifests.deployment(
        NAMESPACE,
        f"web-{number}",
        number % 13 + 1,
        cpu=f"{(number % 4 + 1) * 100}m",
        labels={"group": str(number % _GROUPS)},
    )


def policies() -> list[Manifest]:
    """Return all policies as they are at first."""
    return [policy(number) for number in range(_GROUPS)] + [fallback()]


def changes(deployments: int) -> list[Change]:
    """Return the changes, to be made one after the other."""
    edited = [policy(number, is_edited=True) for number in range(0, _GROUPS, 2)]
    scaled = range(3, deployments, 9)
    added = [deployment(deployments + number) for number in range(20)]
    rebalancer = {
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "metadata": {"name": "plan-check"},
        "spec": {
            "workloads": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "namespace": NAMESPACE,
                    "name": f"web-{number}",
                }
                for number in range(0, deployments, 2)
            ]
        },
    }
    return [
        Change("policies are edited", edited, (), lambda plane: _apply(plane, edited)),
        Change("workloads are rebalanced", [rebalancer], (), lambda plane: plane.client.create(rebalancer)),
        Change(
            "workloads are scaled",
            (),
            [f"--scale={NAMESPACE}/web-{number}={number % 7 * 3 + 1}" for number in scaled],
            lambda plane: _scale(plane, {number: number % 7 * 3 + 1 for number in scaled}),
        ),
        Change("workloads are added", added, (), lambda plane: _apply(plane, added), creates=True),
        Change(
            "labels of clusters change",
            (),
            ("--label=m01=tier=gold", "--label=m03=tier=silver"),
            lambda plane: [
                plane.client.patch(f"{CLUSTERS}/{name}", {"metadata": {"labels": {"tier": tier}}})
                for name, tier in (("m01", "gold"), ("m03", "silver"))
            ],
        ),
        Change(
            "policies are deleted",
            (),
            [f"--delete=PropagationPolicy/{NAMESPACE}/group-{number}" for number in (1, 7)],
            lambda plane: _delete(plane, [policy(number) for number in (1, 7)]),
        ),
        Change(
            "a cluster is deleted",
            (),
            ("--without=m06",),
            lambda plane: plane.client.delete(f"{CLUSTERS}/m06"),
        ),
    ]


def _placement(number: int, *, is_edited: bool) -> Manifest:
    """Return one of five kinds of placement; an edit changes its clusters, or its spread constraints."""
    regions = [f"r{(number + each) % _REGIONS}" for each in range(2 if is_edited else 3)]
    in_regions = {
        "fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": regions}]}
    }
    tier = {"labelSelector": {"matchLabels": {"tier": "gold"}}}
    most = 4 if is_edited else 2
    constraints = [spread("region", 1, 2), spread("cluster", 1, most)]
    weights: dict[tuple[str, ...], int] = {
        (f"m{each:02}",): each + 1 + is_edited for each in range(number % 5, number % 5 + 4)
    }
    match number % 5:
        case 0:
            return {"clusterAffinity": tier if is_edited else in_regions}
        case 1:
            return {"clusterAffinity": in_regions, "replicaScheduling": AGGREGATED}
        case 2:
            return {"clusterAffinity": tier, "spreadConstraints": constraints, "replicaScheduling": DYNAMIC}
        case 3:
            return {"replicaScheduling": static(weights)}
        case _:
            return {"clusterAffinity": in_regions, "replicaScheduling": DYNAMIC}


def _apply(plane: ControlPlane, manifests: Sequence[Manifest]) -> None:
    for each in manifests:
        plane.client.apply(each)


def _delete(plane: ControlPlane, manifests: Sequence[Manifest]) -> None:
    for each in manifests:
        plane.client.delete(_path(plane, each))


def _scale(plane: ControlPlane, replicas: Mapping[int, int]) -> None:
    for number, count in replicas.items():
        plane.client.patch(_path(plane, deployment(number)), {"spec": {"replicas": count}})


def _path(plane: ControlPlane, manifest: Manifest) -> str:
    return plane.client.path_of(manifest)
