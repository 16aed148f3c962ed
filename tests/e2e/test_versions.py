"""On every tested version of Karmada: ours, by its rules, decides as karmada-scheduler of that version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import manifests
from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import DYNAMIC, WORK, condition, named, placed
from tests.served_fields import SERVED_SINCE_1_16
from tools.controlplane import ControlPlane, Object, SimulatedMember
from tools.oracle import fuzz

GPU = "nvidia.com/gpu"
CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
ON = "--feature-gates=CustomizedClusterResourceModeling=true"


def decisions_of(plane: ControlPlane) -> str:
    return "1.18" if plane.version.is_current else "1.17"


@pytest.fixture
def members(controlplane: ControlPlane) -> Iterator[list[str]]:
    """A cluster with GPUs that Karmada's default models do not name, and one with two zones."""
    names = ["with-gpus", "with-zones"]
    controlplane.add(*(SimulatedMember(each, labels={"kind": each}) for each in names), agents=False)
    paths = [f"{CLUSTERS}/{each}" for each in names]
    summary = {
        "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "220", GPU: "8"},
        "allocatableModelings": [{"grade": grade, "count": 2 if grade == 5 else 0} for grade in range(9)],
    }
    controlplane.client.patch(f"{paths[0]}/status", {"status": {"resourceSummary": summary}})
    controlplane.client.patch(paths[1], {"spec": {"zones": ["a", "b"]}})
    yield names
    for path in paths:
        controlplane.client.delete(path)
        # The bindings have no templates, so Karmada waits for Works that nobody makes.
        if controlplane.client.find(path) is not None:
            controlplane.client.patch(path, {"metadata": {"finalizers": None}})
    controlplane.wait_for(
        lambda: [each for each in paths if controlplane.client.find(each) is not None],
        "both to be gone",
        until=lambda left: not left,
    )


def test_both_schedulers_estimate_by_models_and_match_zones_as_the_version_does(
    controlplane: ControlPlane, namespace: str, members: list[str], start_scheduler: StartScheduler
) -> None:
    gpus, zones = members
    controlplane.start_karmada_scheduler("theirs", ON)
    start_scheduler(ON, f"--decisions-of={decisions_of(controlplane)}", name="ours")
    in_zone_a = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    of_zone = {"clusterAffinity": {"clusterNames": [zones], "fieldSelector": in_zone_a}}
    client, at = controlplane.client, f"{WORK}/namespaces/{namespace}/resourcebindings"
    for scheduler in ("theirs", "ours"):
        for what, placement in (("gpu", named(gpus, replicaScheduling=DYNAMIC)), ("zone", of_zone)):
            client.create(
                manifests.untemplated(
                    namespace,
                    f"{what}-{scheduler}",
                    uid=f"uid-{what}",
                    policy_id=what,
                    replicas=2,
                    replicaRequirements={"resourceRequest": {"cpu": "1", GPU: "1"}} if what == "gpu" else {},
                    schedulerName=scheduler,
                    placement=placement,
                )
            )

    def bindings() -> dict[str, Object]:
        return {each["metadata"]["name"]: each for each in client.list(at)}

    controlplane.wait_for(
        bindings, "decisions", until=lambda found: all(condition(each) for each in found.values())
    )
    found = {name: (placed(each), condition(each)["reason"]) for name, each in bindings().items()}
    assert found["gpu-ours"] == found["gpu-theirs"]
    assert found["zone-ours"] == found["zone-theirs"]
    if controlplane.version.is_current:
        assert found["gpu-ours"] == ({}, "Unschedulable")
        assert found["zone-ours"] == ({zones: 2}, "Success")
    else:
        assert found["gpu-ours"] == ({gpus: 2}, "Success")
        assert found["zone-ours"] == ({}, "NoClusterFit")


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
