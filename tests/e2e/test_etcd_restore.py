"""A real etcd is restored from a backup: resourceVersions are lower, and both replicas of the scheduler detect it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import fork_server
from tests.e2e.workload import DUPLICATED, Workload, named
from tools.controlplane import ControlPlane
from tools.controlplane.fleet import simulated_members
from tools.controlplane.ours import start_scheduler

pytestmark = pytest.mark.e2e

MERGE_PATCH = "application/merge-patch+json"
OBJECTS_BETWEEN = 80
"""So many writes are undone, that the versions of before are out of reach for a while."""


def test_changes_after_a_restore_of_etcd_are_scheduled_despite_lower_resource_versions(
    tmp_path: Path,
) -> None:
    with ControlPlane(tmp_path / "plane", start=fork_server.start) as plane:
        plane.add(*simulated_members(3))
        first, second, third = plane.simulated
        schedulers = [
            start_scheduler(plane),
            start_scheduler(plane, process_name="standby"),
        ]
        for each in schedulers:
            each.process.stop_requested = (
                True  # one whose Lease is lost meanwhile ends, and the other one leads
            )
        plane.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "restored"}})
        web = Workload(plane, "restored").create(
            named(first, second, replicaScheduling=DUPLICATED), replicas=2
        )
        web.wait_settled(replicas=2)
        backup = plane.backup_etcd()
        plane.wait_for(lambda: plane.client.get(web.binding_path), "the API server to be back")
        for number in range(OBJECTS_BETWEEN):
            metadata = {"name": f"c{number}", "namespace": "restored"}
            plane.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        web.scale(6)
        newer = web.wait_placed({first: 6, second: 6})
        plane.restore_etcd(backup)
        older = plane.client.get(web.binding_path)
        assert int(older["metadata"]["resourceVersion"]) < int(newer["metadata"]["resourceVersion"])
        plane.client.request(
            "PATCH", web.binding_path, body={"spec": {"replicas": 3}}, content_type=MERGE_PATCH
        )
        # Karmada's own controllers watch on from versions that there are not; the binding is changed by hand.
        web.wait_placed({first: 3, second: 3}, timeout=60)
        placement = {**older["spec"]["placement"], "clusterAffinity": {"clusterNames": [third]}}
        plane.client.request(
            "PATCH", web.binding_path, body={"spec": {"placement": placement}}, content_type=MERGE_PATCH
        )
        web.wait_placed({third: 3}, timeout=60)
        alive = [each for each in schedulers if each.process.exit_status is None]
        assert alive
        for each in alive:
            assert "Objects went back to older versions" in each.log
