"""Plans come true on a real control plane: ``make check-plan``.

Each change is planned by a user who may only get and list, then made, and each binding is compared once nothing moves any
more. Karmada's own controllers derive the bindings; our scheduler decides.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from karmada_scheduler.core.algorithms.webster import prefers_descending_names
from tests.cases import number_of_cases
from tests.checks.conftest import StartAny
from tests.checks.outcomes import Outcome, happened, predicted
from tests.checks.workloads import REGIONS, Workloads, control_plane, deployment, members, policy
from tools.controlplane import ControlPlane
from tools.controlplane.karmada import CLUSTERS
from tools.manifests import AGGREGATED, DYNAMIC, Manifest, spread, static

_SPACE: Final = "plan-check"
_DEPLOYMENTS: Final = 1000
_GROUPS: Final = 20
_LATER_NAME: Final = "0"
"""A uid with which ties go to the later name; without one they go to the earlier."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change to plan and to make.

    Attributes:
        name: For people.
        make: Makes it on the control plane.
        files: Manifests for ``-f``.
        flags: Further flags of ``plan``.
        creates: Whether the manifests are of new workloads, whose uids are not known when the change is planned.
    """

    name: str
    make: Callable[[ControlPlane], object]
    files: Sequence[Manifest] = ()
    flags: Sequence[str] = ()
    creates: bool = False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each change."""
    if "change" in metafunc.fixturenames:
        found = changes(number_of_cases(metafunc.config, _DEPLOYMENTS))
        metafunc.parametrize("change", found, ids=[change.name for change in found])


@pytest.fixture(scope="module")
def workloads(request: pytest.FixtureRequest, start_scheduler: StartAny) -> Iterator[Workloads]:
    """Return the Deployments, which are changed by one test after the other."""
    numbers = range(number_of_cases(request.config, _DEPLOYMENTS))
    with control_plane("check-plan", audit_log=True) as plane:
        plane.add(*members())
        start_scheduler(plane)
        yield Workloads(plane, _SPACE, _policies(), [_deployment(number) for number in numbers])


def test_a_plan_comes_true(workloads: Workloads, change: Change, tmp_path: Path) -> None:
    before = workloads.settled()
    plan = _plan(workloads, change, change.files, tmp_path)
    later = [{**file, "metadata": {**file["metadata"], "uid": _LATER_NAME}} for file in change.files]
    other = _plan(workloads, change, later, tmp_path) if change.creates else plan
    change.make(workloads.plane)
    after = workloads.settled(at_least=plan["total"])
    found, wanted, otherwise = happened(before, after), predicted(plan, before), predicted(other, before)
    wanted |= {name: otherwise[name] for name in otherwise if _takes_the_later_name(after.get(name))}
    wrong = {
        name: (wanted.get(name), found.get(name))
        for name in wanted.keys() | found.keys()
        if wanted.get(name) != found.get(name)
    }
    counts = {name: count for name, count in plan["counts"].items() if count}
    effects = Counter(outcome.effect for outcome in found.values())
    print(f"planned {counts}, became {dict(effects)}")
    assert not wrong, _shown(wrong)


def test_the_user_who_plans_writes_nothing(workloads: Workloads) -> None:
    assert not workloads.writes()


def _plan(workloads: Workloads, change: Change, files: Sequence[Manifest], folder: Path) -> dict[str, Any]:
    path = folder / "change.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(files)}))
    return workloads.ask("plan", *(["-f", str(path)] if files else []), *change.flags)


def _takes_the_later_name(binding: Manifest | None) -> bool:
    """Return whether ties between clusters go to the later name, which the uid of the workload decides."""
    return binding is not None and prefers_descending_names(binding["spec"]["resource"].get("uid", ""))


def _shown(wrong: dict[str, tuple[Outcome | None, Outcome | None]]) -> str:
    lines = [f"{name}: planned {wanted}, became {found}" for name, (wanted, found) in sorted(wrong.items())]
    return "\n".join([f"{len(wrong)} bindings are different", *lines[:10]])


def _deployment(number: int) -> Manifest:
    return deployment(_SPACE, number, groups=_GROUPS)


def _policies() -> list[Manifest]:
    """Return a policy for each group, and one that claims what no policy of the namespace selects."""
    fallback = policy(_SPACE, 0, {})
    fallback |= {"kind": "ClusterPropagationPolicy", "metadata": {"name": "plan-check"}}
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": _SPACE}
    fallback["spec"] |= {
        "resourceSelectors": [selector],
        "placement": {**_GOLD, "replicaScheduling": AGGREGATED},
    }
    return [policy(_SPACE, group, _placement(group)) for group in range(_GROUPS)] + [fallback]


def changes(deployments: int) -> list[Change]:
    """Return the changes, to be made one after the other."""
    edited = [policy(_SPACE, group, _placement(group, is_edited=True)) for group in range(0, _GROUPS, 2)]
    scaled = {number: number % 7 * 3 + 1 for number in range(3, deployments, 9)}
    added = [_deployment(deployments + number) for number in range(20)]
    deleted = [policy(_SPACE, group, {}) for group in (1, 7)]
    labelled = {"m01": "gold", "m03": "silver"}
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": _SPACE}
    rebalancer = {
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "metadata": {"name": "plan-check"},
        "spec": {"workloads": [{**workload, "name": f"web-{number}"} for number in range(0, deployments, 2)]},
    }

    def scale(plane: ControlPlane) -> None:
        for number, replicas in scaled.items():
            plane.client.patch(plane.client.path_of(_deployment(number)), {"spec": {"replicas": replicas}})

    def delete(plane: ControlPlane) -> None:
        for file in deleted:
            plane.client.delete(plane.client.path_of(file))

    def label(plane: ControlPlane) -> None:
        for name, tier in labelled.items():
            plane.client.patch(f"{CLUSTERS}/{name}", {"metadata": {"labels": {"tier": tier}}})

    return [
        Change("policies are edited", lambda plane: [plane.client.apply(file) for file in edited], edited),
        Change("workloads are rebalanced", lambda plane: plane.client.create(rebalancer), [rebalancer]),
        Change(
            "workloads are scaled",
            scale,
            flags=[f"--scale={_SPACE}/web-{number}={replicas}" for number, replicas in scaled.items()],
        ),
        Change(
            "workloads are added",
            lambda plane: [plane.client.apply(file) for file in added],
            added,
            creates=True,
        ),
        Change(
            "labels of clusters change",
            label,
            flags=[f"--label={name}=tier={tier}" for name, tier in labelled.items()],
        ),
        Change(
            "policies are deleted",
            delete,
            flags=[f"--delete=PropagationPolicy/{_SPACE}/{file['metadata']['name']}" for file in deleted],
        ),
        Change(
            "a cluster is deleted",
            lambda plane: plane.client.delete(f"{CLUSTERS}/m06"),
            flags=["--without=m06"],
        ),
    ]


_GOLD: Final = {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "gold"}}}}


def _placement(group: int, *, is_edited: bool = False) -> Manifest:
    """Return one of five kinds of placement; an edit changes its clusters, or its spread constraints."""
    regions = [f"r{(group + number) % REGIONS}" for number in range(2 if is_edited else 3)]
    chosen = {"matchExpressions": [{"key": "region", "operator": "In", "values": regions}]}
    in_regions: Manifest = {"clusterAffinity": {"fieldSelector": chosen}}
    constraints = [spread("region", 1, 2), spread("cluster", 1, 4 if is_edited else 2)]
    weights: dict[tuple[str, ...], int] = {
        (f"m{number:02}",): number + 1 + is_edited for number in range(group % 5, group % 5 + 4)
    }
    match group % 5:
        case 0:
            return _GOLD if is_edited else in_regions
        case 1:
            return {**in_regions, "replicaScheduling": AGGREGATED}
        case 2:
            return {**_GOLD, "spreadConstraints": constraints, "replicaScheduling": DYNAMIC}
        case 3:
            return {"replicaScheduling": static(weights)}
        case _:
            return {**in_regions, "replicaScheduling": DYNAMIC}
