"""Reading a control plane: what is read, with which requests, and which error a person gets when it cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from karmada_advisor.explain.policies import names_priority_class
from karmada_advisor.fleet.errors import LiveError
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.live import read_bindings, read_live
from karmada_advisor.fleet.named_binding import NamedBinding, NoSuchBindingError, workload_of
from karmada_advisor.fleet.source import ControlPlane
from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, BindingKey
from karmada_scheduler.structs import replace
from tests.fake_apiserver import Answer, FakeApiServer, Gate, binding, cluster, html, policy, status
from tests.fake_apiserver.process import write_kubeconfig

WEB = NamedBinding("web", "default")


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(binding("web", replicas=2))
        server.put(policy("p"))
        yield server


@pytest.fixture
def plane(server: FakeApiServer, tmp_path: Path) -> ControlPlane:
    return ControlPlane(kubeconfig=str(write_kubeconfig(server, tmp_path / "config")))


def _names(found: Fleet) -> dict[str, list[str]]:
    return {
        "clusters": [each.name for each in found.clusters],
        "bindings": [each.key.name for each in found.bindings],
        "policies": [each["metadata"]["name"] for each in found.policies or ()],
    }


def test_one_binding_is_read_with_all_clusters_and_policies_and_nothing_is_written(
    server: FakeApiServer, plane: ControlPlane
) -> None:
    server.put(binding("other"))
    found = read_live(plane, WEB)
    assert _names(found) == {"clusters": ["m1"], "bindings": ["web"], "policies": ["p"]}
    assert {each["kind"] for each in (*found.manifests.values(), *(found.policies or ()))} == {
        "Cluster", "ResourceBinding", "PropagationPolicy"
    }  # fmt: skip
    assert {request.verb for request in server.requests} == {"GET", "LIST"}


def test_all_bindings_can_be_read_with_the_wanted_one_first(
    server: FakeApiServer, plane: ControlPlane
) -> None:
    server.put(binding("api"))
    assert _names(read_live(plane, WEB, all_bindings=True))["bindings"] == ["web", "api"]
    assert _names(read_live(plane, all_bindings=True))["bindings"] == ["api", "web"]


def test_bindings_can_be_read_without_the_rest(server: FakeApiServer, plane: ControlPlane) -> None:
    server.put(binding("api", namespace="shop"))
    assert _names(read_bindings(plane)) == {"clusters": [], "bindings": ["web", "api"], "policies": []}
    server.fault(method="LIST", path="/resourcebindings$", answer=status(403, "Forbidden", "no bindings"))
    with pytest.raises(LiveError, match="no bindings"):
        read_bindings(plane)


@pytest.mark.parametrize(
    ("stored", "namespace", "name", "problem"),
    [
        ("webb", "elsewhere", "rb/wb", r"default/wb\b.* does not exist\. Nearest: web$"),
        ("api-deployment", "default", "rb/api", r"Nearest: api-deployment$"),
        ("api", "shop", "rb/api", "There is one in namespace shop"),
    ],
    ids=["the nearest of its namespace", "that of a workload", "that of another namespace"],
)
def test_an_unknown_binding_names_what_was_meant(
    stored: str, namespace: str, name: str, problem: str, server: FakeApiServer, plane: ControlPlane
) -> None:
    server.put(binding(stored, namespace=namespace))
    with pytest.raises(NoSuchBindingError, match=problem):
        read_live(plane, NamedBinding(name, "default"))


API = NamedBinding("deployment/api", "default")


def serve_api(server: FakeApiServer) -> None:
    """Serve the metadata of a Deployment without binding."""
    server.put({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "default", "name": "api", "labels": {"app": "api"}}})  # fmt: skip


def test_a_workload_without_binding_is_read_instead(server: FakeApiServer, plane: ControlPlane) -> None:
    serve_api(server)
    found = read_live(plane, API, names_priority_class=names_priority_class)
    assert found.bindings == []
    [template] = found.workloads or []
    assert (template.kind, template.labels) == ("Deployment", {"app": "api"})
    assert _names(found)["policies"] == ["p"]


def _named_by(name: str, *, of: str) -> dict[str, Any]:
    """Return a policy that names a PriorityClass and selects a Deployment."""
    made = policy(name)
    made["spec"] |= {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": of}],
        "schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": "hgh"},
    }
    return made


def _reads_of_priority_classes(server: FakeApiServer) -> int:
    return sum("priorityclasses" in request.path for request in server.requests)


def test_priority_classes_are_read_once_if_the_policy_of_a_workload_without_binding_names_one(
    server: FakeApiServer, plane: ControlPlane
) -> None:
    serve_api(server)
    listed = {
        "kind": "PriorityClassList",
        "metadata": {"resourceVersion": "7"},
        "items": [{"metadata": {"name": "high"}}],
    }
    server.fault(method="GET", path="/priorityclasses$", answer=Answer(200, orjson.dumps(listed)))
    server.put(_named_by("other", of="other"))
    assert read_live(plane, API, names_priority_class=names_priority_class).priority_classes is None
    assert _reads_of_priority_classes(server) == 0

    server.put(_named_by("mine", of="api"))
    assert read_live(plane, API, names_priority_class=names_priority_class).priority_classes == ["high"]
    assert read_live(plane, WEB).priority_classes is None
    assert _reads_of_priority_classes(server) == 1


def test_priority_classes_that_may_not_be_read_are_a_warning(
    server: FakeApiServer, plane: ControlPlane
) -> None:
    serve_api(server)
    server.put(_named_by("mine", of="api"))
    text = 'User "eve" cannot list resource "priorityclasses"'
    server.fault(method="GET", path="/priorityclasses$", answer=status(403, "Forbidden", text))
    found = read_live(plane, API, names_priority_class=names_priority_class)
    assert found.priority_classes is None
    [warning] = found.warnings
    assert text in warning


def test_a_workload_that_does_not_exist_is_an_unknown_binding(
    server: FakeApiServer, plane: ControlPlane
) -> None:
    serve_api(server)
    with pytest.raises(NoSuchBindingError, match="other-deployment"):
        read_live(plane, NamedBinding("deployment/other", "default"))


def test_a_workload_that_may_not_be_read_is_named(server: FakeApiServer, plane: ControlPlane) -> None:
    serve_api(server)
    text = 'deployments.apps "api" is forbidden: User "eve" cannot get resource "deployments"'
    server.fault(method="GET", path="/deployments/api$", answer=status(403, "Forbidden", text))
    with pytest.raises(NoSuchBindingError, match=r'does not exist.*cannot be read: .*User "eve" cannot get'):
        read_live(plane, API, names_priority_class=names_priority_class)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("deploy/api", "Deployment"),
        ("deployments.apps/api", "Deployment"),
        ("sts/api", "StatefulSet"),
        ("cm/api", "ConfigMap"),
        ("crb/api", None),
        ("api", None),
        ("flinkdeployment/api", None),
    ],
)
def test_the_workload_of_a_name(name: str, kind: str | None) -> None:
    found = workload_of(NamedBinding(name, "shop"))
    assert (found.kind if found else None) == kind
    assert found is None or (found.namespace, found.name) == ("shop", "api")


def test_a_refused_list_of_clusters_names_the_permission(server: FakeApiServer, plane: ControlPlane) -> None:
    text = 'clusters.cluster.karmada.io is forbidden: User "eve" cannot list resource "clusters"'
    server.fault(method="LIST", path="/clusters$", answer=status(403, "Forbidden", text))
    with pytest.raises(
        LiveError, match=r'User "eve" cannot list resource "clusters" \(`status` shows the missing'
    ):
        read_live(plane, WEB)


def test_other_bindings_that_may_not_be_listed_are_named(server: FakeApiServer, plane: ControlPlane) -> None:
    server.put(binding("other"))
    server.fault(method="LIST", path="bindings$", answer=status(403, "Forbidden", "bindings are forbidden"))
    found = read_live(plane, WEB, all_bindings=True)
    assert _names(found)["bindings"] == ["web"]
    assert found.unlisted == ["bindings are forbidden", "bindings are forbidden"]
    assert found.coverage.refused.keys() == {RESOURCE_BINDING, CLUSTER_RESOURCE_BINDING}
    assert found.coverage.whole == {"Cluster", "PropagationPolicy", "ClusterPropagationPolicy"}
    with pytest.raises(LiveError, match="bindings are forbidden"):
        read_live(plane, all_bindings=True)


def test_refused_policies_are_a_warning_and_not_the_end(server: FakeApiServer, plane: ControlPlane) -> None:
    server.fault(method="LIST", path="policies", answer=status(403, "Forbidden", "policies are forbidden"))
    found = read_live(plane, WEB)
    assert _names(found)["bindings"] == ["web"]
    assert found.policies is None
    assert [each.partition(":")[0] for each in found.warnings] == [
        "propagationpolicies", "clusterpropagationpolicies"
    ]  # fmt: skip


def test_a_role_for_one_namespace_that_may_not_read_the_cluster_scoped_kind_gets_the_nearest_names(
    server: FakeApiServer, plane: ControlPlane
) -> None:
    server.fault(method="GET", path="/clusterresourcebindings/", answer=status(403, "Forbidden", "no"))
    with pytest.raises(NoSuchBindingError, match="Nearest: web"):
        read_live(plane, NamedBinding("wbe", "default"))


def test_a_role_that_may_read_no_bindings_gets_the_permission_and_not_that_there_is_none(
    server: FakeApiServer, plane: ControlPlane
) -> None:
    text = 'User "eve" cannot get resource "resourcebindings"'
    server.fault(method="GET", path="resourcebindings/", answer=status(403, "Forbidden", text))
    with pytest.raises(LiveError, match=r'the binding: .*User "eve" cannot get resource "resourcebindings"'):
        read_live(plane, NamedBinding("web", "default"))


def test_an_api_server_without_karmada_is_named(server: FakeApiServer, plane: ControlPlane) -> None:
    server.fault(method="LIST", path="/clusters$", answer=html(404))
    with pytest.raises(
        LiveError,
        match=r"does not serve clusters\.cluster\.karmada\.io/v1alpha1: is this the Karmada API server",
    ):
        read_live(plane)


def test_an_api_server_without_karmada_is_named_when_a_binding_is_wanted(
    server: FakeApiServer, plane: ControlPlane
) -> None:
    server.fault(path="resourcebindings", answer=html(404))
    text = r"does not serve resourcebindings\.work\.karmada\.io/v1alpha2: is this the Karmada API server"
    with pytest.raises(LiveError, match=text):
        read_live(plane, NamedBinding("web", "default"))
    with pytest.raises(LiveError, match=text):
        read_bindings(plane)


def test_an_api_server_that_hangs_ends_the_command(server: FakeApiServer, plane: ControlPlane) -> None:
    server.fault(method="LIST", path="/clusters$", gate=Gate())
    with pytest.raises(LiveError, match=r"has not answered within 0\.3 s"):
        read_live(replace(plane, timeout=0.3))


def test_an_api_server_that_is_away_is_named(tmp_path: Path) -> None:
    with FakeApiServer() as gone:
        path = write_kubeconfig(gone, tmp_path / "config")
    with pytest.raises(LiveError, match=r"cannot reach http://127\.0\.0\.1"):
        read_live(ControlPlane(kubeconfig=str(path)), WEB)


def test_another_context_of_the_kubeconfig_can_be_chosen(server: FakeApiServer, tmp_path: Path) -> None:
    path = write_kubeconfig(server, tmp_path / "config")
    document = orjson.loads(path.read_bytes())
    path.write_bytes(orjson.dumps({**document, "current-context": "host"}))
    assert _names(read_live(ControlPlane(kubeconfig=str(path), context="c")))["clusters"] == ["m1"]
    with pytest.raises(LiveError, match="nowhere"):
        read_live(ControlPlane(kubeconfig=str(path), context="nowhere"))


def test_an_unreadable_cluster_is_a_problem_and_the_others_are_read(
    server: FakeApiServer, plane: ControlPlane
) -> None:
    server.put(cluster("m2"))
    server.corrupt(
        "Cluster", "m2", b'{"metadata":{"name":"m2","resourceVersion":"7"},"spec":{,}}', namespace=""
    )
    found = read_live(plane)
    assert _names(found)["clusters"] == ["m1"]
    assert any("m2" in problem for problem in found.problems)


def test_a_binding_that_is_no_json_exists_and_cannot_be_read(
    server: FakeApiServer, plane: ControlPlane
) -> None:
    broken = b'{"metadata":{"name":"web","namespace":"default","resourceVersion":"7"},"spec":{,}}'
    server.corrupt("ResourceBinding", "web", broken)
    found = read_live(plane, all_bindings=True)
    assert found.unreadable == {
        BindingKey(RESOURCE_BINDING, "default", "web"): found.problems[0].partition(": ")[2]
    }


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("web", {("ResourceBinding", "web"), ("ClusterResourceBinding", "web")}),
        ("rb/web", {("ResourceBinding", "web")}),
        ("resourcebindings.work.karmada.io/web", {("ResourceBinding", "web")}),
        ("crb/web", {("ClusterResourceBinding", "web")}),
        ("deploy/web", {("ResourceBinding", "web-deployment"), ("ClusterResourceBinding", "web-deployment")}),
        ("Deployments.apps/web", {("ResourceBinding", "web-deployment"), ("ClusterResourceBinding", "web-deployment")}),
        ("ClusterRole/system:a", {("ResourceBinding", "system.a-clusterrole"), ("ClusterResourceBinding", "system.a-clusterrole")}),
    ],
)  # fmt: skip
def test_a_name_may_be_that_of_a_binding_or_of_a_workload(given: str, names: set[tuple[str, str]]) -> None:
    keys = NamedBinding(given, "shop").keys
    assert {(key.kind, key.name) for key in keys} == names
    assert {key.namespace for key in keys if key.kind == RESOURCE_BINDING} <= {"shop"}
    assert {key.namespace for key in keys if key.kind == CLUSTER_RESOURCE_BINDING} <= {""}


def test_a_name_with_a_namespace_is_read_there(server: FakeApiServer, plane: ControlPlane) -> None:
    server.put(binding("api", namespace="shop"))

    found = read_live(plane, NamedBinding("shop/api", "default", is_namespace_given=False))

    assert [each.key.namespace for each in found.bindings] == ["shop"]
    assert found.asked == NamedBinding("api", "shop")


def test_a_name_with_two_readings_is_refused_with_both_spellings(
    server: FakeApiServer, plane: ControlPlane
) -> None:
    server.put(binding("web", namespace="deployment"))
    server.put(binding("web-deployment"))

    with pytest.raises(NoSuchBindingError) as error:
        read_live(plane, NamedBinding("deployment/web", "default", is_namespace_given=False))

    assert str(error.value).endswith("Write default/deployment/web, or -n deployment web")
    for name, namespace in (("web", "deployment"), ("deployment/web", "default")):
        assert read_live(plane, NamedBinding(name, namespace)).asked == NamedBinding(name, namespace)


def test_a_namespace_that_may_not_be_read_is_not_meant(server: FakeApiServer, plane: ControlPlane) -> None:
    server.put(binding("web-deployment"))
    server.fault(method="GET", path="/namespaces/deployment/", answer=status(403, "Forbidden", "not there"))

    asked = NamedBinding("deployment/web", "default", is_namespace_given=False)

    assert read_live(plane, asked).asked == NamedBinding("deployment/web", "default")


def test_cluster_and_user_of_the_kubeconfig_are_replaced(server: FakeApiServer, tmp_path: Path) -> None:
    path = write_kubeconfig(server, tmp_path / "config")
    document = orjson.loads(path.read_bytes())
    [right] = document["clusters"]
    document["clusters"] = [{"name": "wrong", "cluster": {"server": "https://127.0.0.1:1"}}, right]
    document["contexts"][0]["context"] |= {"cluster": "wrong", "user": "nobody"}
    path.write_bytes(orjson.dumps(document))

    user = document["users"][0]["name"]
    plane = ControlPlane(kubeconfig=str(path), cluster=right["name"], user=user)

    assert read_live(plane, WEB).asked == WEB
    with pytest.raises(LiveError, match="Nearest: wrong"):
        read_live(ControlPlane(kubeconfig=str(path), cluster="wrnog"), WEB)
