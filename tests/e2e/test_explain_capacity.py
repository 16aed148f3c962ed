"""On real controllers: retries, estimators, and resources that no model names.

What else capacity counts is in ``test_state_situations.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests import manifests
from tests.e2e.asking import Asking, reader
from tests.e2e.conftest import StartScheduler, StartUpstream
from tests.e2e.workload import DYNAMIC, WORK, Workload, condition, named, placed
from tools.controlplane import ControlPlane, Object, SimulatedMember
from tools.controlplane.processes import free_port

GPU = "nvidia.com/gpu"
CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"


@pytest.fixture
def ask(controlplane: ControlPlane, namespace: str) -> Asking:
    return Asking(reader(controlplane), namespace)


class Status:
    """Changes the status of simulated members, and restores it at the end of the test."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._before: dict[str, Object] = {}

    def change(self, cluster: str, **fields: Any) -> None:
        """Replace fields of a status."""
        path = f"{CLUSTERS}/{cluster}"
        status = self._plane.client.get(path)["status"]
        self._before.setdefault(cluster, {name: status.get(name) for name in fields})
        self._plane.client.patch(f"{path}/status", {"status": fields})

    def restore(self) -> None:
        """Write what there was before."""
        for cluster, status in self._before.items():
            self._plane.client.patch(f"{CLUSTERS}/{cluster}/status", {"status": status})


@pytest.fixture
def status(controlplane: ControlPlane) -> Iterator[Status]:
    made = Status(controlplane)
    yield made
    made.restore()


def test_a_binding_that_fits_again_waits_for_its_retry(
    web: Workload, ask: Asking, status: Status, start_scheduler: StartScheduler
) -> None:
    scheduler = start_scheduler()
    web.create(named("sim-c1", replicaScheduling=DYNAMIC), replicas=4, cpu="5")
    web.wait(lambda found: condition(found).get("reason") == "Unschedulable", "unschedulable")
    not_placed = ask.explain()
    scheduler.process.stop()  # so that its retry does not come first
    summary = {"allocatable": {"cpu": "64", "memory": "32Gi", "pods": "220"}}
    status.change("sim-c1", resourceSummary=summary)

    answer = ask.explain()

    assert (not_placed.status, not_placed.codes) == (1, ["NotEnoughRoom"])
    assert (answer.status, answer.codes[0]) == (1, "BackingOff")
    assert answer.evidence["condition"] == "Unschedulable"
    assert web.placed() == {}


def test_estimators_that_do_not_answer_leave_the_resource_summaries(
    controlplane: ControlPlane, web: Workload, ask: Asking, start_scheduler: StartScheduler
) -> None:
    port = free_port()
    start_scheduler(
        "--enable-scheduler-estimator",
        *controlplane.estimator_client_flags(),
        f"--explain-bind-address=127.0.0.1:{port}",
    )
    web.create(named("sim-b1", replicaScheduling=DYNAMIC)).wait_placed({"sim-b1": 4})

    answer = controlplane.wait_for(
        lambda: ask.explain("deployment/web", f"--from=http://127.0.0.1:{port}"),
        "the record of the decision",
        until=lambda found: found.codes,
    )

    assert (answer.status, answer.codes) == (0, ["EstimatorFailed"])
    assert [each["names"] for each in answer.evidence["failed"]] == [["sim-b1"]]
    assert answer.evidence["countedInstead"] == "resource summaries (general estimator)"
    assert answer.evidence["oldestSummarySeconds"] > 0


@pytest.fixture
def gpu_cluster(controlplane: ControlPlane) -> Iterator[str]:
    """A cluster with eight free GPUs, and with the resource models that Karmada gives to every new cluster."""
    name = "gpus"
    controlplane.add(SimulatedMember(name, labels={"kind": "gpus"}), agents=False)
    path = f"{CLUSTERS}/{name}"
    models = controlplane.client.get(path)["spec"]["resourceModels"]
    assert [[each["name"] for each in model["ranges"]] for model in models] == 9 * [["cpu", "memory"]]
    summary = {
        "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "220", GPU: "8"},
        "allocatableModelings": [{"grade": grade, "count": 2 if grade == 5 else 0} for grade in range(9)],
    }
    controlplane.client.patch(f"{path}/status", {"status": {"resourceSummary": summary}})
    yield name
    controlplane.client.delete(path)
    # The bindings have no templates, so Karmada waits for Works that nobody makes.
    if controlplane.client.find(path) is not None:
        controlplane.client.patch(path, {"metadata": {"finalizers": None}})
    controlplane.wait_for(lambda: controlplane.client.find(path) is None, f"{name} to be gone")


def test_a_gpu_that_no_resource_model_names_counts_as_none_in_both_schedulers(
    controlplane: ControlPlane,
    namespace: str,
    gpu_cluster: str,
    ask: Asking,
    start_scheduler: StartScheduler,
    start_upstream: StartUpstream,
) -> None:
    off = "--feature-gates=CustomizedClusterResourceModeling=false"
    # It is off in the harness, and on by default.
    start_upstream("their-models", off.replace("false", "true"))
    start_upstream("their-sums", off)
    start_scheduler(name="our-models")
    start_scheduler(off, name="our-sums")
    client, at = controlplane.client, f"{WORK}/namespaces/{namespace}/resourcebindings"

    def bindings() -> dict[str, Object]:
        return {each["metadata"]["name"]: each for each in client.list(at)}

    def create(suffix: str, *schedulers: str) -> None:
        for name in schedulers:
            client.create(
                manifests.untemplated(
                    namespace,
                    f"{name}{suffix}",
                    uid=f"uid-{name}",
                    policy_id="gpus",
                    replicas=2,
                    replicaRequirements={"resourceRequest": {"cpu": "1", GPU: "1"}},
                    schedulerName=name,
                    placement=named(gpu_cluster, replicaScheduling=DYNAMIC),
                )
            )

    create("", "their-models", "their-sums", "our-models", "our-sums")
    controlplane.wait_for(
        bindings, "decisions", until=lambda found: all(condition(each) for each in found.values())
    )
    found = bindings()
    reasons = {name: condition(each).get("reason") for name, each in found.items()}
    assert reasons == {
        "their-models": "Unschedulable",
        "our-models": "Unschedulable",
        "their-sums": "Success",
        "our-sums": "Success",
    }
    assert placed(found["their-sums"]) == placed(found["our-sums"]) == {gpu_cluster: 2}
    messages = {condition(found[name])["message"] for name in ("their-models", "our-models")}
    assert messages == {
        "failed to assign replicas: failed to scale up: Clusters available replicas 0 are not enough to schedule."
    }

    for name in ("their-models", "our-models"):
        answer = ask.explain(name)
        assert answer.codes[0] == "ResourceNotInModels"
        assert answer.evidence == {"resource": GPU, "clusters": [gpu_cluster]}
        remedies = ask.why_not(name, "--placed").fields["remedies"]
        texts = [edit["text"] for each in remedies for edit in each["edits"]]
        assert any(f"a grade with {GPU} in spec.resourceModels" in each for each in texts), texts

    in_models = {
        "spec": {"resourceModels": [_grade(0, "0", "1"), _grade(1, "1", "9223372036854775807")]},
    }
    client.patch(f"{CLUSTERS}/{gpu_cluster}", in_models)
    counts = [{"grade": 0, "count": 0}, {"grade": 1, "count": 8}]
    client.patch(
        f"{CLUSTERS}/{gpu_cluster}/status", {"status": {"resourceSummary": {"allocatableModelings": counts}}}
    )
    create("-again", "their-models", "our-models")
    again = controlplane.wait_for(
        bindings,
        "decisions with the new models",
        until=lambda found: all(condition(found[f"{each}-again"]) for each in ("their-models", "our-models")),
    )
    assert placed(again["their-models-again"]) == placed(again["our-models-again"]) == {gpu_cluster: 2}


def _grade(number: int, least: str, most: str) -> Object:
    names = ("cpu", "memory", GPU)
    return {"grade": number, "ranges": [{"name": name, "min": least, "max": most} for name in names]}
