"""``why-not`` and ``explain`` on the control plane: their changes come true, and forbidden reads are named."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.asking import BINDINGS, CLUSTERS, POLICIES, WORKLOADS, Asking, reader
from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import DYNAMIC, Workload, condition, named, placed
from tools.controlplane import ControlPlane

MEMBERS = "/apis/cluster.karmada.io/v1alpha1/clusters"


@pytest.fixture
def ask(controlplane: ControlPlane, namespace: str) -> Asking:
    return Asking(reader(controlplane), namespace)


def apply(plane: ControlPlane, remedy: dict[str, Any]) -> None:
    """Send the patches of a remedy to the API server, those of one object as one request."""
    of_object: dict[str, tuple[dict[str, Any], list[Any]]] = {}
    for each in remedy["apply"]:
        target = each["object"]
        part = any(operation["path"].startswith("/status/") for operation in each["patch"])
        of_object.setdefault(f"{target} {part}", (target, []))[1].extend(each["patch"])
    for target, operations in of_object.values():
        if target["kind"] == "Cluster":
            path = f"{MEMBERS}/{target['name']}"
        else:
            path = f"/apis/work.karmada.io/v1alpha2/namespaces/{target['namespace']}/resourcebindings/{target['name']}"
        is_status = all(operation["path"].startswith("/status/") for operation in operations)
        plane.client.request(
            "PATCH",
            f"{path}/status" if is_status else path,
            body=operations,
            content_type="application/json-patch+json",
        )


def as_targets(binding: Any) -> list[dict[str, Any]]:
    return [{"name": name, "replicas": count} for name, count in sorted(placed(binding).items())]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_scheduler_does_what_a_change_of_why_not_promises(
    controlplane: ControlPlane, web: Workload, ask: Asking, start_scheduler: StartScheduler, number: int
) -> None:
    start_scheduler()
    web.create(named("sim-a1", "sim-a2", replicaScheduling=DYNAMIC), replicas=4, cpu="1")
    web.wait_settled(replicas=4)
    taints = {"spec": {"taints": [{"key": "team", "value": "red", "effect": "NoSchedule"}]}}
    controlplane.client.patch(f"{MEMBERS}/sim-b1", taints)
    try:
        answer = ask.why_not("deployment/web", "sim-b1", "--timeout=20s", "--max-runs=400")
        remedies = answer.fields["remedies"]
        assert answer.status == 0
        assert len(remedies) == 3
        remedy = remedies[number]
        assert "sim-b1" in {each["name"] for each in remedy["result"]}

        apply(controlplane, remedy)

        web.wait(
            lambda found: as_targets(found) == sorted(remedy["result"], key=lambda t: t["name"]), f"{remedy}"
        )
    finally:
        controlplane.client.patch(f"{MEMBERS}/sim-b1", {"spec": {"taints": None}})


def test_a_change_of_explain_places_a_binding(
    controlplane: ControlPlane, web: Workload, ask: Asking, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    web.create(named("sim-a9", replicaScheduling=DYNAMIC), replicas=4)
    web.wait(lambda found: condition(found).get("reason") == "NoClusterFit", "refused")

    answer = ask.explain("deployment/web", remedies=True)

    assert answer.status == 1
    remedy = answer.fields["remedies"][0]
    apply(controlplane, remedy)
    web.wait(lambda found: as_targets(found) == remedy["result"], "placed as promised")
    assert ask.explain().status == 0


def test_get_and_list_suffice_and_nothing_else_is_permitted(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    web.create(named("sim-a1", replicaScheduling=DYNAMIC), scheduler=None).wait_placed({"sim-a1": 4})

    assert ask.explain().status == 0
    assert ask.why_not("deployment/web", "sim-a2").status == 0
    with pytest.raises(RuntimeError, match="Forbidden"):
        controlplane.kubectl("delete", "resourcebinding", "-n", web.namespace, "web-deployment", kubeconfig=ask.kubeconfig)  # fmt: skip
    assert web.placed() == {"sim-a1": 4}


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("explain", ["deployment/web"]),
        ("why-not", ["deployment/web", "sim-a2"]),
        ("why-not", ["--cluster", "sim-a2"]),
        ("plan", ["--without", "sim-a1"]),
        ("rebalance", ["--max-moves=10"]),
    ],
)
def test_no_command_sends_a_write(
    controlplane: ControlPlane,
    web: Workload,
    command: str,
    arguments: list[str],
    request: pytest.FixtureRequest,
) -> None:
    """By the audit log of the API server. It contains refused requests as well."""
    user = f"audited-{request.node.callspec.id}"
    config = reader(controlplane, user)
    web.create(named("sim-a1", replicaScheduling=DYNAMIC), scheduler=None).wait_placed({"sim-a1": 4})

    answer = Asking(config, web.namespace).run(command, *arguments)

    assert answer.status in (0, 1), answer.err
    verbs = {entry["verb"] for entry in controlplane.requests(user)}
    assert "list" in verbs
    assert verbs <= {"get", "list"}


@pytest.mark.parametrize(
    ("user", "rules", "status", "problem"),
    [
        ("without-clusters", [BINDINGS, POLICIES, WORKLOADS], 2, "clusters: "),
        ("without-bindings", [CLUSTERS, POLICIES, WORKLOADS], 2, "resourcebindings"),
        ("without-policies", [CLUSTERS, BINDINGS, WORKLOADS], 0, "propagationpolicies: "),
    ],
)
def test_a_forbidden_read_is_named(
    controlplane: ControlPlane, web: Workload, user: str, rules: list[Any], status: int, problem: str
) -> None:
    web.create(named("sim-a1", replicaScheduling=DYNAMIC), scheduler=None).wait_placed({"sim-a1": 4})

    answer = Asking(reader(controlplane, user, *rules), web.namespace).explain(output="text")

    assert answer.status == status
    assert problem in answer.err
    assert f'User "{user}" cannot' in answer.err
    assert answer.out.startswith(f"{web.namespace}/web-deployment") is (status == 0)
