"""Retries: a failed key is retried later, even if its binding was deleted or replaced meanwhile."""

from __future__ import annotations

from tests.e2e.conftest import StartEither
from tests.e2e.workload import DYNAMIC, WORK, condition, placed
from tools.controlplane import ControlPlane, Object

SLOW = "--rate-limiter-base-delay=4s"
CLAIM = {"propagationpolicy.karmada.io/permanent-id": "claimed"}


def test_a_pending_retry_of_a_deleted_binding_schedules_an_unclaimed_binding_of_the_same_name(
    controlplane: ControlPlane, namespace: str, start_either: StartEither
) -> None:
    """Only the old retry can enqueue a new binding that no policy claims."""
    path = f"{WORK}/namespaces/{namespace}/resourcebindings"
    scheduler = "retries"
    start_either(scheduler, SLOW)
    create(controlplane, namespace, scheduler, "again", replicas=100_000, labels=CLAIM)
    controlplane.wait_for(
        lambda: condition(controlplane.client.get(f"{path}/again")),
        "the failure",
        until=lambda found: found.get("reason") == "Unschedulable",
    )
    controlplane.client.delete(f"{path}/again")
    for name in ("again", "other"):
        create(controlplane, namespace, scheduler, name, replicas=1)
    controlplane.wait_for(
        lambda: controlplane.client.get(f"{path}/again"), "the retry", until=placed, timeout=30
    )
    assert not placed(controlplane.client.get(f"{path}/other"))


def create(
    plane: ControlPlane,
    namespace: str,
    scheduler: str,
    name: str,
    *,
    replicas: int,
    labels: Object | None = None,
) -> None:
    """Create a binding without a template, to be divided by available replicas among the simulated members."""
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": namespace, "name": name}
    plane.client.create(
        {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
            "spec": {
                "resource": {**resource, "uid": f"uid-{name}"},
                "replicas": replicas,
                "replicaRequirements": {"resourceRequest": {"cpu": "100m"}},
                "schedulerName": scheduler,
                "placement": {
                    "clusterAffinity": {"labelSelector": {"matchLabels": {"kind": "sim"}}},
                    "replicaScheduling": DYNAMIC,
                },
            },
        }
    )
