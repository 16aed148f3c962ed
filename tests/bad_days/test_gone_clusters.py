"""Clusters that do not exist any more: what runs there is placed elsewhere, and what may exist is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_apiserver import FakeApiServer, cluster, start_scheduler, wait_for
from tests.fake_apiserver.objects import DUPLICATED, DYNAMIC, settled

ON_M1_ONLY = {
    "clusterAffinity": {"labelSelector": {"matchLabels": {"zone": "a"}}},
    "replicaScheduling": DYNAMIC,
}


def _fill(server: FakeApiServer) -> None:
    server.put(cluster("m1", labels={"zone": "a"}))
    server.put(cluster("m2", labels={"zone": "b"}))


@pytest.mark.parametrize(
    "when", ["before the start", "by force", "in a restore", "as its affinity has moved"]
)
def test_a_divided_binding_leaves_a_cluster_that_does_not_exist(tmp_path: Path, when: str) -> None:
    with FakeApiServer() as server:
        _fill(server)
        backup = server.backup()
        server.put(cluster("m3", labels={"zone": "c"}))
        if when != "before the start":
            server.put(cluster("m9"))
        for name, strategy in (("divided", DYNAMIC), ("duplicated", DUPLICATED)):
            server.put(settled(name, {"m9": 2}, placement={"replicaScheduling": strategy}))
        server.put(settled("elsewhere", {"m1": 2}, placement={"replicaScheduling": DYNAMIC}))
        if when == "as its affinity has moved":
            server.put(settled("divided", {"m9": 2}, placement=ON_M1_ONLY))
        with start_scheduler(server, tmp_path, "--resync-period=0.5s") as scheduler:
            wait_for(lambda: server.lease().get("holderIdentity"), "the Lease", scheduler)
            if when == "in a restore":
                bindings = server.all("ResourceBinding")
                server.restore(backup)
                for each in bindings:
                    server.put(each)
            elif when != "before the start":
                server.delete("Cluster", "m9")
            for name in ("divided", "duplicated"):
                wait_for(lambda: server.condition(name).get("status") == "True", name, scheduler)  # noqa: B023
                wait_for(
                    lambda: "m9" not in (server.targets(name) or {"m9": 0}),  # noqa: B023
                    f"{name} to leave m9",
                    scheduler,
                )
            assert sum((server.targets("divided") or {}).values()) == 2
            assert server.targets("elsewhere") == {"m1": 2}
