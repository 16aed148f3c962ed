"""Forecasts of losses come true on a real control plane: ``make check-survive``.

A user who may only get and list asks ``survive`` about one cluster. Then the loss is made real, and every binding is compared
once nothing moves any more, those that the forecast does not list included. Losses are: a NoExecute taint, which
karmada-controller-manager evicts from; a NoSchedule taint, as a cluster that is not ready has it; the deletion of the Cluster.
``check_survive_killed`` ends API servers of members, and ``check_survive_full`` leaves too little capacity elsewhere.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Final, NamedTuple

import pytest

from karmada_advisor.whatif.survive.loss import UNREACHABLE
from tests.cases import number_of_cases
from tests.checks.conftest import StartAny
from tests.checks.workloads import REGIONS, Workloads, control_plane, deployment, members, policy
from tools import manifests
from tools.controlplane.karmada import CLUSTERS
from tools.manifests import AGGREGATED, CORDON, DUPLICATED, DYNAMIC, Manifest, spread, static, targets_of

_SPACE: Final = "survive-check"
_DEPLOYMENTS: Final = 1000
_GROUPS: Final = 24
_RATE: Final = 2
"""Evictions per second of each of the three workers."""
_NO_EXECUTE: Final = {"key": UNREACHABLE, "effect": "NoExecute"}


class Loss(NamedTuple):
    """A loss that is made real.

    Attributes:
        loss: The world of the forecast.
        name: What is lost.
        taint: The taint that makes it real; None if the Cluster is deleted.
        domain: What has the name.
    """

    loss: str
    name: str
    taint: Manifest | None
    domain: str = "cluster"


LOSSES: Final = (
    *(Loss("itself", name, CORDON) for name in ("m02", "m05", "m09")),
    *(Loss("gone", name, _NO_EXECUTE) for name in ("m00", "m03", "m07", "m11", "m16", "m23")),
    Loss("gone", "r1", _NO_EXECUTE, "region"),
    *(Loss("deleted", name, None) for name in ("m04", "m06", "m21")),
)


@pytest.fixture(scope="module")
def workloads(request: pytest.FixtureRequest, start_scheduler: StartAny) -> Iterator[Workloads]:
    """Return the Deployments, which lose one cluster after the other."""
    numbers = range(number_of_cases(request.config, _DEPLOYMENTS))
    flags = {"controller-manager": [f"--resource-eviction-rate={_RATE}"]}
    with control_plane(
        "check-survive", feature_gates={"Failover": True}, extra_flags=flags, audit_log=True
    ) as plane:
        plane.add(*members())
        start_scheduler(plane)
        policies = [policy(_SPACE, group, _placement(group)) for group in range(_GROUPS)]
        yield Workloads(
            plane, _SPACE, policies, [deployment(_SPACE, number, groups=_GROUPS) for number in numbers]
        )


@pytest.mark.parametrize("real", LOSSES, ids=[f"{real.loss} {real.name}" for real in LOSSES])
def test_a_forecast_comes_true(workloads: Workloads, real: Loss) -> None:
    before, client = workloads.settled(), workloads.plane.client
    report = workloads.ask(
        "survive", real.name, f"--domain={real.domain}", "--no-remedies", f"--loss={real.loss}", "--all"
    )
    [domain] = report["domains"]
    wanted = {name: targets_of(binding) for name, binding in before.items()}
    for forecast in report["bindings"]:
        [loss] = forecast["losses"]
        if loss["effect"] != "not-evicted":
            wanted[forecast["name"]] = {target["name"]: target["replicas"] for target in loss["after"]}
    paths = [f"{CLUSTERS}/{name}" for name in domain["clusters"]]
    for path in paths:
        if real.taint is None:
            client.delete(path)
        else:
            client.patch(path, {"spec": {"taints": [real.taint]}})
    after = workloads.settled()
    # What is not evicted is still there, and lost all the same.
    lost = frozenset(() if real.loss == "itself" else domain["clusters"])
    found = {name: _without(targets_of(binding), lost) for name, binding in after.items()}
    expected = {name: _without(wanted[name], lost) for name in found}
    different = {name for name in found if found[name] != expected[name]}
    # Evicted from one cluster after the other, the replicas are divided in another way, and as many run.
    divided = {
        name
        for name in different
        if len(lost & targets_of(before[name]).keys()) > 1
        and sum(found[name].values()) == sum(expected[name].values())
    }
    counts = {name: count for name, count in domain["chosen"]["counts"].items() if count}
    print(f"{counts}; {len(found)} bindings, {len(divided)} divided in another way")
    for path in paths if real.taint is not None else ():
        client.patch(path, {"spec": {"taints": None}})
    assert not [(name, expected[name], found[name]) for name in sorted(different - divided)]


def test_the_user_who_asks_writes_nothing(workloads: Workloads) -> None:
    assert not workloads.writes()


def _without(placement: dict[str, int], lost: Container[str]) -> dict[str, int]:
    return {cluster: count for cluster, count in placement.items() if cluster not in lost}


def _placement(number: int) -> Manifest:
    """Return one of twelve kinds of placement."""
    names = [f"m{(number * 5 + step * 7) % 24:02}" for step in range(5)]
    regions = [f"r{(number + step) % REGIONS}" for step in range(3)]
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
