"""Members whose API server is ended: once with Karmada's defaults, once with all that evicts from a lost cluster switched on.

Each kind of placement has one workload, so that every class occurs. Besides where each binding is, this compares when the loss
is noticed, when a toleration ends, and that nothing is written of a binding that waits for the lost cluster.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tools import manifests
from tools.controlplane import ControlPlane, WaitTimeoutError
from tools.controlplane.karmada import CLUSTERS
from tools.plan_check.objects import SCHEDULER
from tools.survive_check.killed_objects import (
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
from tools.survive_check.placed import REST_SECONDS, Manifest, PlacedWorkloads, Placement, outcomes

_BLOCKED_SECONDS: Final = 60.0


class KilledMember(PlacedWorkloads):
    """A control plane on which the API server of one member is ended.

    Attributes:
        compared: How many bindings were compared.
    """

    def __init__(self, plane: ControlPlane) -> None:
        """Take a control plane with ``members`` and a scheduler, and create the workloads."""
        self.compared = 0
        super().__init__(
            plane,
            SPACE,
            [
                manifests.policy(SPACE, name, each.placement, scheduler=SCHEDULER, **each.policy)
                for name, each in WORKLOADS.items()
            ],
            [
                manifests.deployment(SPACE, name, each.replicas, cpu=each.cpu)
                for name, each in WORKLOADS.items()
            ],
        )
        plane.client.patch(
            f"{self.bindings}/frozen-deployment", {"spec": {"suspension": {"scheduling": True}}}
        )
        plane.client.patch(f"{CLUSTERS}/k3", {"metadata": {"labels": {"tier": "silver"}}})
        time.sleep(REST_SECONDS)

    def _taints(self) -> dict[str, Manifest]:
        cluster = self.plane.client.get(f"{CLUSTERS}/{LOST}")
        return {each["effect"]: each for each in cluster["spec"].get("taints") or ()}

    def by_default(self) -> None:
        """End the API server where nothing evicts: only what chooses its region again moves; then scale up."""
        wanted, _ = self._forecast("itself", {"not-evicted", "swept"})
        self.plane.members[LOST].kill()
        taints = self.plane.wait_for(self._taints, f"{LOST} to be tainted", timeout=240)
        self.expect("only NoSchedule taints", sorted(taints), ["NoSchedule"])
        self._compare("killed, by Karmada's defaults", wanted)
        self.expect("the same taints later", sorted(self._taints()), ["NoSchedule"])
        path = f"/apis/apps/v1/namespaces/{SPACE}/deployments/wide"
        before = self.targets()["wide"]
        self.plane.client.patch(path, {"spec": {"replicas": 16}})
        after = self.plane.wait_for(
            lambda: self.targets()["wide"],
            "more replicas",
            timeout=240,
            until=lambda found: sum(found.values()) == 16,
        )
        more = after.get(LOST, 0) - before.get(LOST, 0)
        print(
            f"8 more replicas of what is on {LOST}, which is not ready: {more} of them go there", flush=True
        )

    def evicted(self) -> None:
        """End the API server where a ClusterTaintPolicy, the gate and the flag evict; then start it again."""
        self.plane.client.apply(TAINT_POLICY)
        wanted, report = self._forecast(
            "itself",
            {"moves", "holds", "swept", "unplaced", "stuck", "cleared", "short", "not-evicted", "blocked", "frozen"},
        )  # fmt: skip
        noticed = report["domains"][0]["times"]["noticed"]
        self.plane.members[LOST].kill()
        began = time.monotonic()
        taint = self.plane.wait_for(
            lambda: self._taints().get("NoExecute"), f"{LOST} to have a NoExecute taint", timeout=240
        )
        assert taint is not None
        took = time.monotonic() - began
        self.expect(f"noticed after {took:.0f} s (estimated: {noticed})", abs(took - noticed) <= 15, True)
        added = dt.datetime.fromisoformat(taint["timeAdded"])
        self.plane.wait_for(
            lambda: LOST not in self.targets()["later"], "the end of the toleration", timeout=240
        )
        seconds = (dt.datetime.now(dt.UTC) - added).total_seconds()
        self.expect(
            f"evicted after {seconds:.0f} s of {TOLERATED_SECONDS}",
            abs(seconds - TOLERATED_SECONDS) <= 5,
            True,
        )
        self._compare("killed, with a ClusterTaintPolicy and eviction", wanted)
        self._blocked(wanted, restarts=True)

    def blocked_until_the_timeout(self) -> None:
        """End the API server where a graceful eviction has a short timeout, and leave it ended."""
        self.plane.client.apply(TAINT_POLICY)
        wanted, _ = self._forecast("itself", {"blocked"})
        self.plane.members[LOST].kill()
        self._compare("killed, with a short timeout of graceful evictions", wanted)
        self._blocked(wanted, restarts=False)

    def _blocked(self, wanted: Mapping[str, Placement], *, restarts: bool) -> None:
        """Compare when the Works of new replicas are written: at once where what is left is healthy, and not in a new cluster."""

        def written(name: str) -> Placement:
            return {cluster: self._replicas_of_work(cluster, name) for cluster in wanted[name]}

        self.expect("the Work of what was healthy elsewhere", written("purged"), wanted["purged"])
        seconds = _BLOCKED_SECONDS if restarts else TIMEOUT_SECONDS / 4
        end, is_early = time.monotonic() + seconds, False
        while time.monotonic() < end and not is_early:
            is_early = written("blocked") == wanted["blocked"]
            time.sleep(1)
        self.expect(f"a Work in the new cluster within {seconds:.0f} s", is_early, False)
        if restarts:
            self.plane.members[LOST].restart(self.plane.check)
        began = time.monotonic()
        with contextlib.suppress(WaitTimeoutError):
            self.plane.wait_for(
                lambda: written("blocked"),
                "the Work",
                timeout=240,
                until=lambda found: found == wanted["blocked"],
            )
        why = f"{LOST} is back" if restarts else "the timeout"
        what = f"the Work {time.monotonic() - began:.0f} s later, because of {why}"
        self.expect(what, written("blocked"), wanted["blocked"])

    def _replicas_of_work(self, cluster: str, name: str) -> int:
        """Return the replicas of a Deployment in the Work for a cluster, 0 without a Work."""
        works = self.plane.client.list(
            f"/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{cluster}/works"
        )
        for each in works:
            for made in each["spec"]["workload"].get("manifests") or ():
                if (made["kind"], made["metadata"]["name"]) == ("Deployment", name):
                    return int(made["spec"]["replicas"])
        return 0

    def _forecast(self, loss: str, classes: set[str]) -> tuple[dict[str, Placement], Manifest]:
        """Return where each binding will be, and the report; each of some classes has to be there."""
        flags = [f"--loss={loss}"]
        if self._evicts:
            path = self.plane.folder / "controller-manager.json"
            path.write_text(json.dumps(MANAGER))
            flags.append(f"--controller-manager={path}")
        report = self.forecast(LOST, *flags)
        found = outcomes(report)
        stays = {name for name, (effect, _) in found.items() if effect == "not-evicted"}
        wanted = self.targets() | {name: after for name, (_, after) in found.items() if name not in stays}
        print(
            f"forecast: {', '.join(f'{name} {effect}' for name, (effect, _) in sorted(found.items()))}",
            flush=True,
        )
        self.expect(
            "classes without a workload", sorted(classes - {effect for effect, _ in found.values()}), []
        )
        return wanted, report

    @property
    def _evicts(self) -> bool:
        return self.plane.feature_gates["Failover"]

    def _compare(self, what: str, wanted: Mapping[str, Placement]) -> None:
        """Wait until every binding is as forecast, and compare again when nothing has moved for some seconds."""
        with contextlib.suppress(WaitTimeoutError):
            self.plane.wait_for(
                self.targets, "the forecast to come true", timeout=180, until=lambda found: found == wanted
            )
        time.sleep(REST_SECONDS)
        found = self.targets()
        wrong = sorted(name for name in wanted if found.get(name) != wanted[name])
        self.compared += len(wanted)
        self.different += len(wrong)
        print(f"{what}: {len(wanted)} bindings, {len(wrong)} different", flush=True)
        for name in wrong:
            print(f"  {name}: expected {wanted[name]}, is on {found.get(name)}", flush=True)


PARTS: Final[Mapping[str, tuple[Callable[[KilledMember], None], Mapping[str, Sequence[str]] | None]]] = {
    "default": (KilledMember.by_default, None),
    "evicted": (KilledMember.evicted, EVICTING),
    "timeout": (KilledMember.blocked_until_the_timeout, IMPATIENT),
}
"""Each part needs a control plane of its own: what is done there, and further flags; None without the gate Failover."""


def check_part(name: str, folder: Path, start: Callable[[ControlPlane], object]) -> bool:
    """Run one of ``PARTS``; return whether everything is as forecast.

    Args:
        name: The part.
        folder: Where the files of the control plane go.
        start: Starts the scheduler.
    """
    part, flags = PARTS[name]
    gates = {"Failover": flags is not None}
    with ControlPlane(folder, feature_gates=gates, extra_flags=flags) as plane:
        plane.add(*members())
        start(plane)
        made = KilledMember(plane)
        part(made)
    print(f"{name}: {made.compared} bindings compared, {made.different} different", flush=True)
    return not made.different
