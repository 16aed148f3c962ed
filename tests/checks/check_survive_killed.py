"""Members whose API server is ended: once with Karmada's defaults, once with all that evicts from a lost cluster switched on.

Each kind of placement has one workload, so that every class occurs. Besides where each binding is, this compares when the loss
is noticed, when a toleration ends, and that nothing is written of a binding that waits for the lost cluster.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pytest

from tests.checks.conftest import StartAny
from tests.checks.killed_objects import (
    EVICTING,
    IMPATIENT,
    LOST,
    MANAGER,
    SPACE,
    TAINT_POLICY,
    TIMEOUT_SECONDS,
    TOLERATED_SECONDS,
    WORKLOADS,
    members,
)
from tests.checks.workloads import REST_SECONDS, SCHEDULER, Workloads, control_plane, losses_of
from tools import manifests
from tools.controlplane import WaitTimeoutError
from tools.controlplane.karmada import CLUSTERS
from tools.manifests import Manifest

_BLOCKED_SECONDS: Final = 60.0
Placements = dict[str, dict[str, int]]


class KilledMember(Workloads):
    """Workloads on members of which one loses its API server."""

    def taints(self) -> dict[str, Manifest]:
        """Return the taints of the lost member by effect."""
        cluster = self.plane.client.get(f"{CLUSTERS}/{LOST}")
        return {taint["effect"]: taint for taint in cluster["spec"].get("taints") or ()}

    def forecast(self, classes: set[str]) -> tuple[Placements, dict[str, Any]]:
        """Return where each binding will be, and what is said about the member; each of some classes has to occur."""
        flags = ["--domain=cluster", "--all", "--no-remedies", "--loss=itself", f"--namespace={SPACE}"]
        if self.plane.feature_gates["Failover"]:
            path = self.plane.folder / "controller-manager.json"
            path.write_text(json.dumps(MANAGER))
            flags.append(f"--controller-manager={path}")
        report = self.ask("survive", LOST, *flags)
        found = losses_of(report)
        print(f"forecast: {', '.join(f'{name} {effect}' for name, (effect, _) in sorted(found.items()))}")
        assert classes <= {effect for effect, _ in found.values()}
        moved = {name: after for name, (effect, after) in found.items() if effect != "not-evicted"}
        [domain] = report["domains"]
        return self.targets() | moved, domain

    def wait_for(self, wanted: Placements) -> Placements:
        """Return where each binding is, once all are as forecast, or much later, and nothing has moved for some seconds."""
        with contextlib.suppress(WaitTimeoutError):
            self.plane.wait_for(
                self.targets, "the forecast to come true", timeout=180, until=lambda found: found == wanted
            )
        time.sleep(REST_SECONDS)
        return self.targets()

    def written(self, name: str, clusters: Sequence[str] | Mapping[str, int]) -> dict[str, int]:
        """Return the replicas of a Deployment in the Works for some clusters, 0 without a Work."""
        return {cluster: self._replicas_of_work(cluster, name) for cluster in clusters}

    def _replicas_of_work(self, cluster: str, name: str) -> int:
        space = f"/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{cluster}/works"
        for work in self.plane.client.list(space):
            for manifest in work["spec"]["workload"].get("manifests") or ():
                if (manifest["kind"], manifest["metadata"]["name"]) == ("Deployment", name):
                    return int(manifest["spec"]["replicas"])
        return 0


@contextmanager
def _workloads(
    start_scheduler: StartAny, flags: Mapping[str, Sequence[str]] | None
) -> Iterator[KilledMember]:
    """Run a control plane with the workloads; flags are further ones of its programs, None without the gate Failover."""
    gates = {"Failover": flags is not None}
    with control_plane("check-survive-killed", feature_gates=gates, extra_flags=flags) as plane:
        plane.add(*members())
        start_scheduler(plane)
        workloads = KilledMember(
            plane,
            SPACE,
            [
                manifests.policy(SPACE, name, workload.placement, scheduler=SCHEDULER, **workload.policy)
                for name, workload in WORKLOADS.items()
            ],
            [
                manifests.deployment(SPACE, name, workload.replicas, cpu=workload.cpu)
                for name, workload in WORKLOADS.items()
            ],
        )
        frozen = {"spec": {"suspension": {"scheduling": True}}}
        plane.client.patch(f"{workloads.bindings_path}/frozen-deployment", frozen)
        plane.client.patch(f"{CLUSTERS}/k3", {"metadata": {"labels": {"tier": "silver"}}})
        time.sleep(REST_SECONDS)
        yield workloads


def test_where_nothing_evicts_only_what_chooses_its_region_again_moves(
    start_scheduler: StartAny, subtests: pytest.Subtests
) -> None:
    with _workloads(start_scheduler, None) as workloads:
        plane = workloads.plane
        wanted, _ = workloads.forecast({"not-evicted", "swept"})
        plane.members[LOST].kill()
        taints = plane.wait_for(workloads.taints, f"{LOST} to be tainted", timeout=240)
        with subtests.test("bindings are as forecast"):
            assert workloads.wait_for(wanted) == wanted
        assert taints.keys() == workloads.taints().keys() == {"NoSchedule"}
        path = f"/apis/apps/v1/namespaces/{SPACE}/deployments/wide"
        before = workloads.targets()["wide"]
        plane.client.patch(path, {"spec": {"replicas": 16}})
        after = plane.wait_for(
            lambda: workloads.targets()["wide"],
            "more replicas",
            timeout=240,
            until=lambda found: sum(found.values()) == 16,
        )
        more = after.get(LOST, 0) - before.get(LOST, 0)
        print(f"8 more replicas of what is on {LOST}, which is not ready: {more} of them go there")


def test_where_a_policy_the_gate_and_the_flag_evict_losses_are_noticed_and_evicted_as_forecast(
    start_scheduler: StartAny, subtests: pytest.Subtests
) -> None:
    with _workloads(start_scheduler, EVICTING) as workloads:
        plane = workloads.plane
        plane.client.apply(TAINT_POLICY)
        wanted, domain = workloads.forecast(
            {"moves", "holds", "swept", "unplaced", "stuck", "cleared", "short", "not-evicted", "blocked", "frozen"},
        )  # fmt: skip
        plane.members[LOST].kill()
        began = time.monotonic()
        taint = plane.wait_for(
            lambda: workloads.taints().get("NoExecute"), f"{LOST} to have a NoExecute taint", timeout=240
        )
        assert taint is not None
        with subtests.test("noticed when it is estimated"):
            assert time.monotonic() - began == pytest.approx(domain["times"]["noticed"], abs=15)
        plane.wait_for(
            lambda: LOST not in workloads.targets()["later"], "the end of the toleration", timeout=240
        )
        with subtests.test("evicted when the toleration ends"):
            seconds = (
                dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(taint["timeAdded"])
            ).total_seconds()
            assert seconds == pytest.approx(TOLERATED_SECONDS, abs=5)
        with subtests.test("bindings are as forecast"):
            assert workloads.wait_for(wanted) == wanted
        _blocked(workloads, wanted, subtests, restarts=True)


def test_where_a_graceful_eviction_has_a_short_timeout_it_ends_what_waits_for_the_lost_cluster(
    start_scheduler: StartAny, subtests: pytest.Subtests
) -> None:
    with _workloads(start_scheduler, IMPATIENT) as workloads:
        workloads.plane.client.apply(TAINT_POLICY)
        wanted, _ = workloads.forecast({"blocked"})
        workloads.plane.members[LOST].kill()
        with subtests.test("bindings are as forecast"):
            assert workloads.wait_for(wanted) == wanted
        _blocked(workloads, wanted, subtests, restarts=False)


def _blocked(
    workloads: KilledMember, wanted: Placements, subtests: pytest.Subtests, *, restarts: bool
) -> None:
    """Compare when the Works of new replicas are written: at once where what is left is healthy, and not in a new cluster."""
    plane, blocked = workloads.plane, wanted["blocked"]
    with subtests.test("the Work of what was healthy elsewhere is written"):
        assert workloads.written("purged", wanted["purged"]) == wanted["purged"]
    seconds = _BLOCKED_SECONDS if restarts else TIMEOUT_SECONDS / 4
    with subtests.test(f"no Work in the new cluster within {seconds:.0f} s"):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert workloads.written("blocked", blocked) != blocked
            time.sleep(1)
    if restarts:
        plane.members[LOST].restart(plane.check)
    began = time.monotonic()
    plane.wait_for(
        lambda: workloads.written("blocked", blocked),
        f"the Work, because {LOST} is back" if restarts else "the Work, because of the timeout",
        timeout=240,
        until=lambda found: found == blocked,
    )
    print(f"the Work was written {time.monotonic() - began:.0f} s later")
