"""docs/move-a-namespace.md: its commands, and what they do to bindings."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import DYNAMIC, Workload, labelled, named, placed
from tools import manifests

PAGE = Path(__file__).parents[2] / "docs" / "move-a-namespace.md"
PLAN, MOVE, BACK = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
CLUSTER_POLICIES = "/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies"


@pytest.fixture
def general(web: Workload) -> Iterator[str]:
    """A ClusterPropagationPolicy that selects web, which a policy of its own has claimed before."""
    web.create(named("sim-a1"), scheduler=None).wait_placed({"sim-a1": 4})
    policy = manifests.policy("", web.namespace, named("sim-b1"), selector={"namespace": web.namespace})
    policy["kind"] = "ClusterPropagationPolicy"
    web.plane.client.create(policy)
    yield web.namespace
    web.plane.client.delete(f"{CLUSTER_POLICIES}/{web.namespace}")


def _execute(block: str, web: Workload, folder: Path) -> str:
    """Return what a block of the page prints, for the namespace of a workload."""
    (folder / "kubectl").unlink(missing_ok=True)
    (folder / "kubectl").symlink_to(web.plane.binaries.path("kubectl"))
    answer = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env={
            "KARMADA": str(web.plane.kubeconfig),
            "NAMESPACE": web.namespace,
            "PATH": f"{folder}:{Path(sys.executable).parent}:/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not answer.stderr
    return answer.stdout


def test_a_moved_namespace_keeps_bindings_and_placements_and_so_does_the_way_back(
    web: Workload, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    start_scheduler()
    many = Workload(web.plane, web.namespace, "many")
    lazy = Workload(web.plane, web.namespace, "lazy")
    web.create(named("sim-a1"), scheduler=None)
    many.create(labelled("sim", replicaScheduling=DYNAMIC), replicas=7, scheduler="default-scheduler")
    lazy.create(named("sim-a2"), scheduler=None)
    before = [
        web.wait_placed({"sim-a1": 4}),
        many.wait(lambda found: sum(placed(found).values()) == 7, "placed"),
    ]
    lazy.wait_placed({"sim-a2": 4})
    web.plane.client.patch(lazy.policy_path, {"spec": {"activationPreference": "Lazy"}})

    def wait_owner(name: str, *moved: Workload) -> None:
        for workload in moved:
            workload.wait(lambda found: found["spec"]["schedulerName"] == name, f"of {name}")

    def kept() -> list[tuple[str, dict[str, int]]]:
        return [(found["metadata"]["uid"], placed(found)) for found in (web.binding(), many.binding())]

    assert "another scheduler by being deleted and created" in _execute(PLAN, web, tmp_path)
    _execute(MOVE, web, tmp_path)
    wait_owner("my-scheduler", web, many)
    shown = _execute("karmada-pyscheduler status --kubeconfig $KARMADA || true", web, tmp_path)
    assert re.search(r"^my-scheduler +running +2 +11 ", shown, re.MULTILINE), shown
    assert re.search(r"^default-scheduler +seen at ", shown, re.MULTILINE), shown  # here it has no Lease
    assert kept() == [(found["metadata"]["uid"], placed(found)) for found in before]
    assert lazy.binding()["spec"]["schedulerName"] == "default-scheduler"
    lazy.scale(5)
    lazy.wait_placed({"sim-a2": 5})
    wait_owner("my-scheduler", lazy)

    web.plane.client.delete(many.policy_path)  # as if the way back had been interrupted before
    _execute(BACK, web, tmp_path)
    wait_owner("default-scheduler", web, many)
    assert kept() == [(found["metadata"]["uid"], placed(found)) for found in before]


def test_a_plan_shows_which_other_policy_would_take_and_move_a_workload(
    web: Workload, general: str, tmp_path: Path
) -> None:
    printed = _execute(PLAN, web, tmp_path)
    assert f"adopted by ClusterPropagationPolicy {general}" in printed
    assert "sim-b1 4" in printed
    _execute(MOVE, web, tmp_path)
    web.wait_placed({"sim-b1": 4})
