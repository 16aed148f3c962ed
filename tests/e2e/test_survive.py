"""A forecast of losses comes true on the real control plane: what a cordon sweeps, and what a deleted cluster leaves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.commands import run
from tests.e2e.asking import BINDINGS, LEASES, POLICIES, reader
from tests.e2e.asking import CLUSTERS as CLUSTERS_READ
from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import DUPLICATED, DYNAMIC, Workload, is_settled, labelled, named, placed
from tools.controlplane import ControlPlane, Object
from tools.controlplane.karmada import CLUSTERS
from tools.controlplane.simulated import SimulatedMember

REGIONS = {"srv-x1": "srv-x", "srv-x2": "srv-x", "srv-y1": "srv-y", "srv-y2": "srv-y"}
TAINT_POLICIES: Object = {
    "apiGroups": ["policy.karmada.io"],
    "resources": ["clustertaintpolicies"],
    "verbs": ["get", "list"],
}
CORDON = {"key": "cluster.karmada.io/unschedulable", "effect": "NoSchedule"}
RIGHTS = (CLUSTERS_READ, BINDINGS, POLICIES, TAINT_POLICIES, LEASES)
_ONE_REGION = [
    {"spreadByField": "region", "minGroups": 1, "maxGroups": 1},
    {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1},
]
PLACEMENTS: Mapping[str, dict[str, Any]] = {
    "wide": labelled("srv", replicaScheduling=DYNAMIC),
    "copies": labelled("srv", replicaScheduling=DUPLICATED),
    "swept": labelled("srv", replicaScheduling=DUPLICATED, spreadConstraints=_ONE_REGION),
    "alone": named("srv-x1", replicaScheduling=DYNAMIC),
    "pair": named(
        "srv-x1",
        "srv-y1",
        replicaScheduling=DYNAMIC,
        spreadConstraints=[{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}],
    ),
}
Placement = dict[str, int]


def forecast(config: Path, namespace: str, lost: str, loss: str) -> dict[str, tuple[str, Placement]]:
    """Return the class and the clusters of each binding to which a loss does something, as a user who may only read."""
    flags = ["-n", namespace, "--domain=cluster", f"--loss={loss}", "--all", "-o=json", lost]
    done = run("survive", *flags, "--scheduler-name=my-scheduler", f"--kubeconfig={config}")
    assert (done.status in {0, 1}, done.err) == (True, "")
    found = {}
    for each in done.fields["bindings"]:
        [one] = each["losses"]
        after = {target["name"]: target["replicas"] for target in one["after"]}
        found[each["name"].removesuffix("-deployment")] = one["effect"], after
    return found


def test_what_is_swept_and_what_a_deleted_cluster_leaves_is_what_the_forecast_says(
    controlplane: ControlPlane, start_scheduler: StartScheduler, namespace: str
) -> None:
    controlplane.add(
        *(
            SimulatedMember(name, labels={"kind": "srv"}, region=region, cpu="100")
            for name, region in REGIONS.items()
        )
    )
    start_scheduler()
    workloads = {name: Workload(controlplane, namespace, name) for name in PLACEMENTS}
    for name, each in workloads.items():
        each.create(PLACEMENTS[name], replicas=8, cpu="1")
    for each in workloads.values():
        each.wait(lambda found: is_settled(found) and bool(placed(found)), "placed", timeout=60)
    config = reader(controlplane, "survive-reader", *RIGHTS)
    blind = reader(controlplane, "survive-blind", *(each for each in RIGHTS if each is not TAINT_POLICIES))
    said = run("survive", "-n", namespace, "--scheduler-name=my-scheduler", f"--kubeconfig={blind}").err
    assert "which taints they would add is not known" in said

    [home] = workloads["swept"].placed()
    [neighbour] = [name for name, region in REGIONS.items() if region == REGIONS[home] and name != home]
    expected = forecast(config, namespace, neighbour, "itself")
    assert expected["swept"][0] == "swept"
    before = {name: each.placed() for name, each in workloads.items()}
    controlplane.client.patch(f"{CLUSTERS}/{neighbour}", {"spec": {"taints": [CORDON]}})
    compare(workloads, before, expected, lost="", keeps=neighbour)
    controlplane.client.patch(f"{CLUSTERS}/{neighbour}", {"spec": {"taints": None}})

    expected = forecast(config, namespace, "srv-x1", "deleted")
    assert {name: effect for name, (effect, _) in expected.items() if name != "swept"} == {
        "wide": "moves",
        "copies": "holds",
        "alone": "unplaced",
        "pair": "stuck",
    }
    before = {name: each.placed() for name, each in workloads.items()}
    controlplane.client.delete(f"{CLUSTERS}/srv-x1")
    compare(workloads, before, expected, lost="srv-x1", keeps="")


def compare(
    workloads: Mapping[str, Workload],
    before: Mapping[str, Placement],
    expected: Mapping[str, tuple[str, Placement]],
    *,
    lost: str,
    keeps: str,
) -> None:
    """Wait until every binding is where the forecast says.

    Args:
        workloads: All of them, also those that are not touched.
        before: Where they were.
        expected: Class and clusters of those to which the loss does something.
        lost: The deleted cluster: what is still on it is lost.
        keeps: The cordoned cluster: what is on it stays there.
    """
    for name, each in workloads.items():
        effect, after = expected.get(name, ("untouched", before[name]))
        if effect == "not-evicted":
            after = before[name]
            assert keeps in after
        wanted = {cluster: count for cluster, count in after.items() if cluster != lost}

        def is_there(found: Any, wanted: Placement = wanted) -> bool:
            return {cluster: count for cluster, count in placed(found).items() if cluster != lost} == wanted

        each.wait(is_there, f"{effect}: on {wanted}", timeout=60)
