"""On every tested version of Karmada: ours, by its rules, decides as karmada-scheduler of that version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NamedTuple

import pytest

from tests import manifests
from tests.e2e.conftest import StartScheduler, StartUpstream
from tests.e2e.workload import DUPLICATED, DYNAMIC, WORK, condition, named, placed
from tests.served_fields import SERVED_SINCE_1_16
from tools import placements
from tools.controlplane import ControlPlane, Object, SimulatedMember
from tools.live.compare import fleet
from tools.oracle import fuzz
from tools.oracle.generator.rng import Random

GPU = "nvidia.com/gpu"
STORAGE = "ephemeral-storage"
ZONES = ("za", "zb", "zc")
CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
SEED: Final = 201
BINDINGS: Final = 60
ON = "--feature-gates=CustomizedClusterResourceModeling=true"


def decisions_of(plane: ControlPlane) -> str:
    return "1.18" if plane.version.is_current else "1.17"


class Decided(NamedTuple):
    """What a scheduler has written."""

    clusters: Mapping[str, int]
    reason: str
    term: str

    @classmethod
    def of(cls, binding: Object) -> Decided:
        term = binding["status"].get("schedulerObservingAffinityName", "")
        return cls(placed(binding), condition(binding)["reason"], term)


Decide = Callable[[Mapping[str, Object]], dict[str, tuple[Decided, Decided]]]
"""Lets both schedulers decide bindings by their names; returns what karmada-scheduler and ours have decided."""


@contextmanager
def added(plane: ControlPlane, *members: SimulatedMember) -> Iterator[list[str]]:
    """Add clusters without agents, and remove them in the end; yields their paths."""
    plane.add(*members, agents=False)
    paths = [f"{CLUSTERS}/{each.name}" for each in members]
    yield paths
    for path in paths:
        plane.client.delete(path)
        # The bindings have no templates, so Karmada waits for Works that nobody makes.
        if plane.client.find(path) is not None:
            plane.client.patch(path, {"metadata": {"finalizers": None}})
    plane.wait_for(
        lambda: [each for each in paths if plane.client.find(each) is not None],
        "all to be gone",
        until=lambda left: not left,
    )


@pytest.fixture
def members(controlplane: ControlPlane) -> Iterator[list[str]]:
    """A cluster with GPUs that Karmada's default models do not name, and one with two zones."""
    names = ["with-gpus", "with-zones"]
    with added(controlplane, *(SimulatedMember(each, labels={"kind": each}) for each in names)) as paths:
        summary = {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "220", GPU: "8"},
            "allocatableModelings": [{"grade": grade, "count": 2 if grade == 5 else 0} for grade in range(9)],
        }
        controlplane.client.patch(f"{paths[0]}/status", {"status": {"resourceSummary": summary}})
        controlplane.client.patch(paths[1], {"spec": {"zones": ["a", "b"]}})
        yield names


@pytest.fixture
def random_members(controlplane: ControlPlane) -> Iterator[None]:
    """Eight random clusters in one or two zones."""
    choices = Random(SEED)
    drawn = [replace(each, modelings=some_nodes(choices)) for each in fleet.members(choices)]
    with added(controlplane, *drawn) as paths:
        for path in paths:
            zones = choices.some(ZONES, 2, 1)
            controlplane.client.patch(path, {"spec": {"zones": zones}})
            summary = {"allocatable": {STORAGE: "40Gi"}}
            controlplane.client.patch(f"{path}/status", {"status": {"resourceSummary": summary}})
        yield


def some_nodes(choices: Random) -> tuple[int, ...]:
    """Draw how many nodes of each grade a cluster has; () for one without such numbers."""
    return tuple(choices.pick((0, 0, 1, 2)) for _ in range(9)) if choices.chance(0.6) else ()


@pytest.fixture
def decide(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler, start_upstream: StartUpstream
) -> Decide:
    """Both schedulers, by the rules of the version."""
    start_upstream("theirs", ON)
    start_scheduler(ON, f"--decisions-of={decisions_of(controlplane)}", name="ours")
    client, at = controlplane.client, f"{WORK}/namespaces/{namespace}/resourcebindings"

    def decide_all(specs: Mapping[str, Object]) -> dict[str, tuple[Decided, Decided]]:
        for name, spec in specs.items():
            for scheduler in ("theirs", "ours"):
                client.create(
                    manifests.untemplated(
                        namespace,
                        f"{name}-{scheduler}",
                        uid=f"uid-{name}",  # ties depend on it
                        policy_id=name,
                        schedulerName=scheduler,
                        **spec,
                    )
                )
        found = controlplane.wait_for(
            lambda: {each["metadata"]["name"]: each for each in client.list(at)},
            "decisions",
            until=lambda found: all(condition(each) for each in found.values()),
            timeout=60,
        )
        return {
            name: (Decided.of(found[f"{name}-theirs"]), Decided.of(found[f"{name}-ours"])) for name in specs
        }

    return decide_all


def test_both_schedulers_estimate_by_models_and_match_zones_as_the_version_does(
    controlplane: ControlPlane,
    members: list[str],
    decide: Decide,
) -> None:
    gpus, zones = members
    in_zone_a = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    of_zone = {"clusterAffinity": {"clusterNames": [zones], "fieldSelector": in_zone_a}}
    request = {"resourceRequest": {"cpu": "1", GPU: "1"}}
    found = decide(
        {
            "gpu": {
                "replicas": 2,
                "replicaRequirements": request,
                "placement": named(gpus, replicaScheduling=DYNAMIC),
            },
            "zone": {"replicas": 2, "placement": of_zone},
        }
    )
    is_current = controlplane.version.is_current
    for_gpu = Decided({}, "Unschedulable", "") if is_current else Decided({gpus: 2}, "Success", "")
    for_zone = Decided({zones: 2}, "Success", "") if is_current else Decided({}, "NoClusterFit", "")
    assert found == {"gpu": (for_gpu, for_gpu), "zone": (for_zone, for_zone)}


@pytest.mark.usefixtures("random_members")
def test_both_schedulers_decide_random_bindings_alike(
    controlplane: ControlPlane,
    decide: Decide,
) -> None:
    choices = Random(SEED)
    specs = {f"random-{number}": random_spec(choices) for number in range(BINDINGS)}
    found = decide(specs)

    def is_expected(theirs: Decided, ours: Decided) -> bool:
        lost_type = (theirs.reason, ours.reason) == ("SchedulerError", "Unschedulable")  # R3
        return theirs == ours or (
            lost_type and not controlplane.version.is_current and theirs._replace(reason=ours.reason) == ours
        )

    assert {name: (specs[name], *each) for name, each in found.items() if not is_expected(*each)} == {}
    assert len({ours.reason for _, ours in found.values()}) >= 3
    assert sum(len(ours.clusters) > 1 for _, ours in found.values()) > BINDINGS / 4


def random_spec(choices: Random) -> Object:
    """Draw what a binding asks for, on the random clusters only: those of other tests change."""
    placement = placements.placement(choices, fleet.CLUSTERS)
    terms = placement.get("clusterAffinities") or [placement.setdefault("clusterAffinity", {})]
    for each in [*terms, *(it for term in terms for it in term.get("overflowAffinities", ()))]:
        each.setdefault("clusterNames", list(fleet.CLUSTERS))
        if choices.chance(0.3):
            in_zones = {"key": "zone", "operator": "In", "values": choices.some(ZONES, 2, 1)}
            each["fieldSelector"] = {"matchExpressions": [in_zones]}
    strategy = placement.get("replicaScheduling", DUPLICATED)
    if strategy["replicaSchedulingType"] == "Duplicated":
        placement.pop("spreadConstraints", None)  # every selected cluster has a copy
    request = {"cpu": choices.pick(("10m", "1", "3")), choices.pick(("memory", STORAGE)): "2Gi"}
    return {
        "replicas": choices.pick((1, 3, 8, 20, 60)),
        "replicaRequirements": {"resourceRequest": request} if choices.chance(0.8) else {},
        "placement": placement,
    }


def test_no_generated_decision_differs_from_those_of_the_version(controlplane: ControlPlane) -> None:
    """Those of the current version are compared by tools/oracle/tests, with all gates."""
    cases = 300 if controlplane.version.is_current else 3000
    assert (
        fuzz.main(
            [
                f"--cases={cases}",
                "--seed=17",
                "--jobs=1",
                f"--against={controlplane.version.name}",
                f"--decisions-of={decisions_of(controlplane)}",
                "--default-gates",
            ]
        )
        == 0
    )


@pytest.mark.parametrize("plural", ["resourcebindings", "clusterresourcebindings"])
def test_every_field_that_is_written_is_served(controlplane: ControlPlane, plural: str) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.work.karmada.io"
    [schema] = [
        version["schema"]["openAPIV3Schema"]
        for version in controlplane.client.get(path)["spec"]["versions"]
        if version["name"] == "v1alpha2"
    ]
    assert [each for each in sorted(SERVED_SINCE_1_16) if not _is_served(schema, each)] == []
    assert not _is_served(schema, "spec.clusters[].weight")


def _is_served(schema: Object, path: str) -> bool:
    found: Object | None = schema
    for name in path.split("."):
        found = (found or {}).get("properties", {}).get(name.removesuffix("[]"))
        if name.endswith("[]"):
            found = (found or {}).get("items")
    return found is not None
