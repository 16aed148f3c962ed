"""Whether forecasts of losses come true on a real control plane: ``python -m tools.survive_check --bindings N``.

A user who may only get and list asks ``survive`` about one cluster. Then the loss is made real, and every binding is compared
once nothing moves any more, those that the forecast does not list included. Losses are: a NoExecute taint, which
karmada-controller-manager evicts from; a NoSchedule taint, as a cluster that is not ready has it; the deletion of the
Cluster; real members whose API server is ended (``killed``); and losses with too little capacity elsewhere (``full``). Ends
with status 1 if a binding differs, or if the audit log has a write of the user who asks.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from karmada_advisor.survive.loss import UNREACHABLE
from tools import manifests
from tools.check_frame import on_control_plane, parser, report_of
from tools.controlplane import ControlPlane
from tools.controlplane.karmada import CLUSTERS
from tools.controlplane.ours import start_scheduler
from tools.manifests import AGGREGATED, CORDON, DUPLICATED, DYNAMIC, spread, static, targets_of
from tools.plan_check.__main__ import Check
from tools.plan_check.objects import NAMESPACE, SCHEDULER, members
from tools.survive_check.full import check_full
from tools.survive_check.killed import PARTS, check_part

Manifest = dict[str, Any]
Placement = dict[str, int]

_GROUPS: Final = 24
_LEASE: Final = (
    "--leader-elect-lease-duration=120s",
    "--leader-elect-renew-deadline=100s",
    "--leader-elect-retry-period=5s",
)
"""A busy machine may not renew a Lease in time, and the check is about something else."""
_REGIONS: Final = 6
_KILLED: Final = "killed"
_FULL: Final = "full"
_RATE: Final = 2
"""Evictions per second of each of the three workers."""


class RealLoss(NamedTuple):
    """A loss that is made real.

    Attributes:
        loss: The world of the forecast.
        name: What is lost.
        taint: The taint that makes it real; None if the Cluster is deleted.
        kind: What has the name.
    """

    loss: str
    name: str
    taint: Manifest | None
    kind: str = "cluster"


_NO_EXECUTE: Final = {"key": UNREACHABLE, "effect": "NoExecute"}
LOSSES: Final = (
    *(RealLoss("itself", name, CORDON) for name in ("m02", "m05", "m09")),
    *(RealLoss("gone", name, _NO_EXECUTE) for name in ("m00", "m03", "m07", "m11", "m16", "m23")),
    RealLoss("gone", "r1", _NO_EXECUTE, "region"),
    *(RealLoss("deleted", name, None) for name in ("m04", "m06", "m21")),
)


def placement(number: int) -> Manifest:
    """Return one of twelve kinds of placement."""
    names = [f"m{(number * 5 + each * 7) % 24:02}" for each in range(5)]
    regions = [f"r{(number + each) % _REGIONS}" for each in range(3)]
    in_regions = {
        "fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": regions}]}
    }
    tier = {"labelSelector": {"matchLabels": {"tier": "gold"}}}
    eternal = [{"operator": "Exists"}]
    weights: dict[tuple[str, ...], int] = {(name,): weight for weight, name in enumerate(names[:3], 1)}
    one_region = [spread("region", 1, 1), spread("cluster", 1, 2)]
    terms = [
        {"affinityName": "primary", "clusterNames": names[:1]},
        {"affinityName": "backup", "clusterNames": names[1:3]},
    ]
    made = manifests.placement
    kinds: Sequence[Manifest] = (
        made(DYNAMIC, clusterAffinity=in_regions),
        made(AGGREGATED, clusterAffinity=in_regions),
        made(DYNAMIC, spread("cluster", 2, 3), clusterAffinity=tier),
        made(DYNAMIC, spread("region", 2, 2), spread("cluster", 2, 4)),
        made(static(weights), clusterAffinity={"clusterNames": names[:3]}),
        made(DUPLICATED, clusterAffinity={"clusterNames": names[:4]}),
        made(DUPLICATED, *one_region),
        made(DUPLICATED, *one_region, clusterAffinity=tier),
        made(DYNAMIC, clusterAffinities=terms),
        made(DYNAMIC, clusterAffinity={"clusterNames": names[:1]}),
        made(DYNAMIC, spread("cluster", 2, 2), clusterAffinity={"clusterNames": names[:2]}),
        made(DYNAMIC, clusterAffinity=in_regions, clusterTolerations=eternal),
    )
    return kinds[number % len(kinds)]


class SurviveCheck(Check):
    """A control plane with workloads, on which losses are made real one after the other."""

    def policies(self) -> list[Manifest]:
        """Return a policy for each group of Deployments."""
        return [
            manifests.policy(
                NAMESPACE,
                f"group-{number}",
                placement(number),
                scheduler=SCHEDULER,
                selector={"labelSelector": {"matchLabels": {"group": str(number)}}},
            )
            for number in range(_GROUPS)
        ]

    def deployment(self, number: int) -> Manifest:
        """Return a Deployment of 1 to 13 replicas."""
        labels = {"group": str(number % _GROUPS)}
        cpu = f"{(number % 4 + 1) * 100}m"
        return manifests.deployment(NAMESPACE, f"web-{number}", number % 13 + 1, cpu=cpu, labels=labels)

    def check_loss(self, real: RealLoss) -> None:
        """Ask about a loss, make it real, and compare every binding."""
        before = self.settled()
        classes, wanted, clusters = self._forecast(real, before)
        for name in clusters:
            path = f"{CLUSTERS}/{name}"
            if real.taint is None:
                self.plane.client.delete(path)
            else:
                self.plane.client.patch(path, {"spec": {"taints": [real.taint]}})
        after = self.settled()
        # What is not evicted is still there, and lost all the same.
        lost = frozenset(() if real.loss == "itself" else clusters)
        found = {name: _without(targets_of(each), lost) for name, each in after.items()}
        expected = {name: _without(wanted[name], lost) for name in found}
        # Evicted from one cluster after the other, the replicas are divided in another way, and as many run.
        divided = {
            name
            for name in found
            if len(lost & targets_of(before[name]).keys()) > 1
            and found[name] != expected[name]
            and sum(found[name].values()) == sum(expected[name].values())
        }
        wrong = sorted(name for name in found if found[name] != expected[name] and name not in divided)
        self.different += len(wrong)
        counted = ", ".join(f"{count} {name}" for name, count in classes.most_common())
        order = f", {len(divided)} divided in another way" if len(lost) > 1 else ""
        print(
            f"{real.name} {real.loss}: {counted}; {len(found)} bindings, {len(wrong)} different{order}",
            flush=True,
        )
        for name in wrong[:10]:
            print(f"  {name}: expected {expected[name]}, is on {found[name]}", flush=True)
        if real.taint is not None:
            for name in clusters:
                self.plane.client.patch(f"{CLUSTERS}/{name}", {"spec": {"taints": None}})

    def _forecast(
        self, real: RealLoss, before: Mapping[str, Manifest]
    ) -> tuple[Counter[str], dict[str, Placement], list[str]]:
        """Return the number of bindings by class, where the forecast puts each, and the clusters that are lost."""
        report = report_of(
            "survive", real.name, f"--domain={real.kind}", "--no-remedies", f"--loss={real.loss}", "--all",
            f"--kubeconfig={self.kubeconfig}", f"--scheduler-name={SCHEDULER}", "--fail-on=none",
        )  # fmt: skip
        wanted = {name: targets_of(each) for name, each in before.items()}
        for each in report["bindings"]:
            [loss] = each["losses"]
            if loss["effect"] != "not-evicted":
                wanted[each["name"]] = {target["name"]: target["replicas"] for target in loss["after"]}
        [domain] = report["domains"]
        counts = Counter({name: count for name, count in domain["chosen"]["counts"].items() if count})
        return counts, wanted, domain["clusters"]


def _without(placement: Placement, lost: Container[str]) -> Placement:
    return {cluster: count for cluster, count in placement.items() if cluster not in lost}


def main() -> int:
    """Run the command; returns the exit status."""
    made = parser("make check-survive", __doc__, folder="survive-check")
    made.add_argument(
        "--bindings", type=int, default=1000, help="Deployments to create (default: %(default)s)"
    )
    made.add_argument(
        "--only",
        default="",
        help="losses of these worlds, such as itself,gone; killed for members whose API server is ended; full for losses after "
        "which there is too little capacity, without and with SchedulingOvercommitProtection",
    )
    made.add_argument(
        "--karmada-scheduler",
        action="store_true",
        help="let Karmada's own scheduler place the bindings: the forecast is about Karmada",
    )
    options = made.parse_args()
    losses = [each for each in LOSSES if not options.only or each.loss in options.only.split(",")]

    def start(plane: ControlPlane, *flags: str) -> None:
        if options.karmada_scheduler:
            plane.start_karmada_scheduler(SCHEDULER, *flags)
        else:
            start_scheduler(plane, *_LEASE, *flags, name=SCHEDULER)

    def check(folder: Path) -> bool:
        gates, flags = {"Failover": True}, {"controller-manager": [f"--resource-eviction-rate={_RATE}"]}
        with ControlPlane(folder, feature_gates=gates, extra_flags=flags, audit_log=True) as plane:
            plane.add(*members())
            start(plane)
            made = SurviveCheck(plane, options.bindings)
            made.prepare()
            print(f"{options.bindings} bindings are placed", flush=True)
            for each in losses:
                made.check_loss(each)
            writes = made.writes()
        print(f"{made.different} different, {writes} writes of the user who asks")
        return not (made.different or writes)

    statuses, only = [0], options.only.split(",") if options.only else []
    for is_protected in (False, True) if not only or _FULL in only else ():
        folder = options.folder.with_name(
            f"{options.folder.name}-{_FULL}{'-protected' if is_protected else ''}"
        )
        check_one = partial(check_full, start=start, is_protected=is_protected)
        statuses.append(on_control_plane(folder, check_one))
    for part in PARTS if not only or _KILLED in only else ():
        folder = options.folder.with_name(f"{options.folder.name}-{part}")
        statuses.append(on_control_plane(folder, partial(check_part, part, start=start)))
    if losses:
        statuses.append(on_control_plane(options.folder, check))
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
