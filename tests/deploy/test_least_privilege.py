"""The chart's roles grant exactly what the scheduler needs."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.chart import CHART, Values, helm, objects
from tests.e2e.workload import DUPLICATED, DYNAMIC, WORK, Workload, condition, is_settled, named, placed
from tests.plugin_sources import BY_TYPE
from tools.controlplane import ControlPlane, Object
from tools.controlplane.api import ApiError
from tools.controlplane.ours import Scheduler

pytestmark = pytest.mark.e2e

RBAC = "/apis/rbac.authorization.k8s.io/v1"
NOWHERE = {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "there-is-none"}}}}
StartScheduler = Callable[..., Scheduler]
Permission = tuple[str, str, str]  # API group, resource/subresource, verb
RULES: list[Object] = yaml.safe_load((CHART / "files" / "cluster-rules.yaml").read_text())


def user_of(name: str) -> str:
    return f"system:karmada:{name}"


@pytest.fixture(scope="module")
def identity(plane: ControlPlane) -> Iterator[Path]:
    """A client certificate of no group, and the chart's side of the Karmada API server, installed by Helm."""
    namespace = "--namespace=karmada-system"
    helm("install", "my-scheduler", str(CHART), "--set=side=karmada", namespace, kubeconfig=plane.kubeconfig)
    yield plane.kubeconfig_for(user_of("my-scheduler"))
    helm("uninstall", "my-scheduler", namespace, kubeconfig=plane.kubeconfig)


@dataclass(frozen=True)
class Audit:
    """What one user requested."""

    events: list[Any]

    @property
    def permissions(self) -> set[Permission]:
        """Requests for resources; every authenticated user may review its own permissions."""
        return {
            (
                reference.get("apiGroup", ""),
                "/".join(filter(None, (reference["resource"], reference.get("subresource")))),
                event["verb"],
            )
            for event in self.events
            if "resource" in (reference := event.get("objectRef", {}))
            and reference.get("apiGroup") != "authorization.k8s.io"
        }

    @property
    def paths(self) -> set[str]:
        """Requested paths outside the resources."""
        return {event["requestURI"].partition("?")[0] for event in self.events if "objectRef" not in event}

    @property
    def refused(self) -> list[str]:
        """Requests that were forbidden."""
        return [
            f"{event['verb']} {event['requestURI']}"
            for event in self.events
            if event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
        ]


def audit(plane: ControlPlane, user: str) -> Audit:
    return Audit(plane.requests(user))


def granted(values: Values) -> set[Permission]:
    """Everything that the chart's roles allow."""
    return {
        (group, resource, verb)
        for document in objects(values, side="karmada")
        for rule in document.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_an_identity_with_the_chart_s_roles_and_no_group_does_the_main_job_and_needs_every_verb(
    plane: ControlPlane, namespace: str, identity: Path, start_scheduler: StartScheduler
) -> None:
    _put_binding_on_an_unknown_cluster(plane, namespace)
    scheduler = start_scheduler("my-scheduler", identity)
    web = Workload(plane, namespace).create(named("sim-a1", "sim-a2", replicaScheduling=DYNAMIC), replicas=4)
    assert sum(web.wait_settled(replicas=4).values()) == 4
    web.wait_event_from("my-scheduler")
    web.scale(6)
    assert sum(web.wait_settled(replicas=6).values()) == 6
    web.apply_policy(named("sim-b1", replicaScheduling=DUPLICATED))
    web.wait_placed({"sim-b1": 6})
    _the_same_refusal_twice(web)
    with _cluster_scoped(plane, namespace) as path:
        plane.wait_for(lambda: plane.client.get(path), "the ClusterResourceBinding", until=is_settled)
        _someone_else_writes(plane, path, lambda: _is_requested(plane, "clusterresourcebindings", "get"))
    _someone_else_writes(plane, web.binding_path, lambda: _is_requested(plane, "resourcebindings", "get"))
    web.wait(is_settled, "settled in the end")

    found = plane.wait_for(
        lambda: audit(plane, user_of("my-scheduler")),
        "every permission to be used",
        until=lambda found: found.permissions >= granted({}),
    )
    assert found.permissions == granted({})
    assert found.refused == []
    # Discovery, which every authenticated user may read.
    assert {path.split("/")[1] for path in found.paths} <= {"api", "apis", "openapi", "version"}
    assert "orbidden" not in scheduler.log


def _put_binding_on_an_unknown_cluster(plane: ControlPlane, namespace: str) -> None:
    """Create a binding whose cluster is in no list, so that a scheduler reads the cluster by name."""
    template = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "lost", "namespace": namespace}
    plane.client.create(
        {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": {"name": "lost-deployment", "namespace": namespace},
            "spec": {
                "resource": template,
                "schedulerName": "my-scheduler",
                "clusters": [{"name": "unknown"}],
                "suspension": {"dispatching": True},
            },
        }
    )


def _is_requested(plane: ControlPlane, resource: str, verb: str) -> bool:
    return ("work.karmada.io", resource, verb) in audit(plane, user_of("my-scheduler")).permissions


def _the_same_refusal_twice(web: Workload) -> None:
    """Provoke the same Event twice; the second is a patch of the first."""

    def count(found: list[Object]) -> int:
        return max((event["count"] for event in found), default=0)

    for _ in range(2):
        web.apply_policy(NOWHERE)
        web.wait(lambda found: condition(found).get("reason") == "NoClusterFit", "to fit nowhere")
        web.apply_policy(named("sim-b1", replicaScheduling=DUPLICATED))
        web.wait(lambda found: placed(found) and is_settled(found), "to fit again")
    web.plane.wait_for(
        lambda: web.events("ScheduleBindingFailed"),
        "the second refusal in an Event",
        until=lambda found: count(found) > 1,
    )


@contextmanager
def _cluster_scoped(plane: ControlPlane, name: str) -> Iterator[str]:
    """A ClusterRole as a template with a policy; yields the path of its binding."""
    client = plane.client
    template = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    client.create(
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "ClusterPropagationPolicy",
            "metadata": {"name": name},
            "spec": {
                "schedulerName": "my-scheduler",
                "resourceSelectors": [{**template, "name": name}],
                "placement": named("sim-a1"),
            },
        }
    )
    client.create({**template, "metadata": {"name": name}, "rules": []})
    try:
        yield f"{WORK}/clusterresourcebindings/{name}-clusterrole"
    finally:
        client.delete(f"{RBAC}/clusterroles/{name}")
        client.delete(f"/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies/{name}")


def _someone_else_writes(plane: ControlPlane, path: str, until: Callable[[], bool]) -> None:
    """Write a binding from other clients while it is decided again and again, until `until` holds."""
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            try:
                plane.client.patch(path, {"metadata": {"annotations": {"example.com/count": str(number)}}})
            except ApiError:
                done.wait(0.1)

    writers = [threading.Thread(target=write, daemon=True) for _ in range(3)]
    for writer in writers:
        writer.start()
    targets = itertools.cycle(["sim-a1", "sim-a2", "sim-b1"])

    def move() -> bool:
        placement = {"clusterAffinity": {"clusterNames": [next(targets)]}}
        plane.client.patch(path, {"spec": {"placement": placement}})
        done.wait(0.3)
        return until()

    try:
        plane.wait_for(move, f"a write of {path} to conflict with another")
    finally:
        done.set()
        for writer in writers:
            writer.join()


@dataclass(frozen=True)
class Without:
    """A missing rule and its effect."""

    rule: str
    breaks: Callable[[Workload, Scheduler], object]
    log: str


def _never_ready(_: Workload, scheduler: Scheduler) -> None:
    assert scheduler.answers("/readyz") == 503


def _no_replica_leads(web: Workload, _: Scheduler) -> None:
    assert not placed(web.binding())


def _no_condition(web: Workload, _: Scheduler) -> None:
    web.wait(placed, "to be placed")
    assert not condition(web.binding())


def _no_event(web: Workload, _: Scheduler) -> None:
    web.wait(is_settled, "to be settled")
    assert not web.events("ScheduleBindingSucceed")


LOSSES = [
    Without("resourcebindings", _never_ready, "cannot list resource"),
    Without("resourcebindings/status", _no_condition, "cannot patch resource"),
    Without("propagationpolicies", _never_ready, "cannot list resource"),
    Without("clusters", _never_ready, "cannot list resource"),
    Without("events", _no_event, "cannot create resource"),
    Without("leases create", _no_replica_leads, "cannot create resource"),
    Without("leases get", _no_replica_leads, "cannot get resource"),
]


def test_every_rule_has_a_test_of_its_absence() -> None:
    rules = [rule["resources"][0] for rule in RULES]
    rules += [
        f"leases {rule['verbs'][0]}"
        for document in objects(side="karmada")
        if document["kind"] == "Role"
        for rule in document["rules"]
    ]
    assert [loss.rule for loss in LOSSES] == rules


@pytest.mark.parametrize("number", range(len(LOSSES)), ids=lambda number: LOSSES[number].rule)
def test_without_any_one_rule_a_function_fails_and_the_log_names_it(
    number: int, plane: ControlPlane, namespace: str, start_scheduler: StartScheduler
) -> None:
    loss = LOSSES[number]
    name = f"without-{number + 1}"
    left_out = 0
    for document in objects({"schedulerName": name}, side="karmada", release=name):
        kept = [rule for rule in document.get("rules", ()) if not _is_about(rule, loss.rule)]
        left_out += len(document.get("rules", ())) - len(kept)
        plane.client.apply({**document, "rules": kept} if "rules" in document else document)
    assert left_out == 1
    scheduler = start_scheduler(name, plane.kubeconfig_for(user_of(name)), wait_ready=False)
    web = Workload(plane, namespace).create(named("sim-a1"), replicas=1, scheduler=name)
    plane.wait_for(web.binding, "the binding")
    plane.wait_for(lambda: loss.log in scheduler.log, f"{loss.log!r} in the log")
    loss.breaks(web, scheduler)
    assert audit(plane, user_of(name)).refused


def _is_about(rule: Object, name: str) -> bool:
    resource, _, verb = name.partition(" ")
    return bool(rule["resources"][0] == resource and (not verb or rule["verbs"][0] == verb))


@pytest.mark.parametrize("given", [True, False], ids=["with the role", "without the role"])
def test_estimators_need_one_more_permission_that_the_chart_grants_only_for_them(
    given: bool, plane: ControlPlane, namespace: str, start_scheduler: StartScheduler
) -> None:
    name = "with-estimators" if given else "sans-estimators"
    values: Values = {"schedulerName": name, "estimator": {"enabled": given}}
    for document in objects(values, side="karmada", release=name):
        plane.client.apply(document)
    kubeconfig = plane.kubeconfig_for(user_of(name))
    start_scheduler(name, kubeconfig, "--enable-scheduler-estimator=true")
    web = Workload(plane, namespace)
    web.create(named("sim-a1", replicaScheduling=DYNAMIC), replicas=2, scheduler=name)
    plane.wait_for(web.binding, "the binding")
    services = ("", "services", "get")
    found = plane.wait_for(
        lambda: audit(plane, user_of(name)),
        "a request for a Service",
        until=lambda found: services in found.permissions,
    )
    assert found.permissions <= granted(values) | {services}
    assert (found.refused == []) is given


@pytest.mark.parametrize("given", [True, False], ids=["with the rule", "without the rule"])
def test_a_plugin_that_reads_workloads_needs_permissions_that_the_chart_grants_for_named_kinds_only(
    given: bool, plane: ControlPlane, namespace: str, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    name = "with-workloads" if given else "sans-workloads"
    deployments = {"apiGroups": ["apps"], "resources": ["deployments"]}
    values: Values = {
        "schedulerName": name,
        "workloadMetadata": {"resources": [deployments] if given else []},
    }
    for document in objects(values, side="karmada", release=name):
        plane.client.apply(document)
    (tmp_path / "by_type.py").write_text(BY_TYPE)
    scheduler = start_scheduler(name, plane.kubeconfig_for(user_of(name)), f"--plugin-dir={tmp_path}")
    web = Workload(plane, namespace).create(named("sim-a1"), replicas=1, scheduler=name)
    wanted = "not of type space" if given else "workloadMetadata of the chart's side=karmada grants"
    web.wait(lambda found: wanted in condition(found).get("message", ""), f"refused: {wanted}")
    found = plane.wait_for(
        lambda: audit(plane, user_of(name)),
        "requests for Deployments",
        until=lambda found: ("apps", "deployments", "watch" if given else "list") in found.permissions,
    )
    metadata = {permission for permission in found.permissions if permission[1] == "deployments"}
    assert metadata <= {("apps", "deployments", verb) for verb in ("get", "list", "watch")}
    assert found.permissions - metadata <= granted(values)
    assert all("deployments" in each for each in found.refused)
    assert (found.refused == []) is given
    assert ("Cannot watch the metadata of workloads" in scheduler.log) is not given
