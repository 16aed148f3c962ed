"""``explain`` and ``why-not`` on an API server that refuses, fails, hangs or sends nonsense for one kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler import command
from karmada_scheduler.testing import binding, cluster
from tests.commands import run
from tests.fake_apiserver import FakeApiServer, Gate, html, status
from tests.fake_apiserver.process import write_kubeconfig
from tests.unit.explain.fleet import billing, fleet, manifests, placed_checkout

FAULTS: dict[str, dict[str, Any]] = {
    "forbidden": {"answer": status(403, "Forbidden", 'User "eve" cannot do that')},
    "unauthorized": {"answer": status(401, "Unauthorized", "Unauthorized")},
    "too many": {"answer": status(429, "TooManyRequests", "too many requests")},
    "error": {"answer": status(500, "InternalError", "etcd is away")},
    "a page of a proxy": {"answer": html(502)},
}
KINDS = {
    "the binding": ("GET", "/resourcebindings/"),
    "clusters": ("LIST", "/clusters$"),
    "resourcebindings": ("LIST", "/resourcebindings$"),
    "propagationpolicies": ("LIST", "/propagationpolicies$"),
}


@dataclass(frozen=True)
class Plane:
    """The API server, and commands against it."""

    server: FakeApiServer
    kubeconfig: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        scope = [] if "-n" in arguments else ["-n", "shop"]
        status_ = command.main([*arguments, f"--kubeconfig={self.kubeconfig}", *scope])
        captured = self.capsys.readouterr()
        assert "Traceback" not in captured.err
        return status_, captured.out, captured.err


@pytest.fixture
def plane(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Plane]:
    with FakeApiServer() as server:
        for manifest in manifests(*fleet(), placed_checkout(), billing()):
            server.put(manifest)
        yield Plane(server, write_kubeconfig(server, tmp_path / "config"), capsys)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", ["the binding", "clusters"])
def test_without_the_binding_or_the_clusters_there_is_no_answer_and_the_kind_is_named(
    plane: Plane, kind: str, fault: str
) -> None:
    method, path = KINDS[kind]
    plane.server.fault(method=method, path=path, **FAULTS[fault])

    found, out, err = plane("explain", "rb/checkout-deployment", "--request-timeout=5s")

    assert (found, out) == (2, "")
    assert err.startswith(f"Error: {kind}: ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_without_policies_the_answer_is_there_and_the_kind_is_named(plane: Plane, fault: str) -> None:
    plane.server.fault(method="LIST", path="/propagationpolicies$", **FAULTS[fault])

    found, out, err = plane("explain", "checkout-deployment")

    assert found == 0
    assert "PLACED" in out
    assert err.startswith("propagationpolicies: ")


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - {"forbidden"}))
def test_why_not_names_the_kind_that_it_cannot_read(plane: Plane, fault: str) -> None:
    plane.server.fault(method="LIST", path="/resourcebindings$", **FAULTS[fault])

    found, out, err = plane("why-not", "checkout-deployment", "us-east-1")

    assert (found, out) == (2, "")
    assert err.startswith("Error: resourcebindings: ")


@pytest.mark.parametrize("kind", ["the binding", "clusters", "propagationpolicies"])
def test_an_api_server_that_hangs_ends_the_command_and_the_kind_is_named(plane: Plane, kind: str) -> None:
    method, path = KINDS[kind]
    plane.server.fault(method=method, path=path, gate=Gate())

    found, out, err = plane("explain", "checkout-deployment", "--request-timeout=300ms")

    assert (found, out) == (2, "")
    assert f"has not answered within 0.3 s (reading {kind})" in err


def test_a_binding_that_cannot_be_read_is_unknown_for_its_own_reason(plane: Plane) -> None:
    for namespace, replicas in (("a", "many"), ("shop", "few")):
        broken = binding("twin", namespace=namespace).manifest()
        broken["spec"]["replicas"] = replicas
        plane.server.put(broken)

    found, out, _ = plane("explain", "twin-deployment", "--feature-gates=WorkloadAffinity=true")

    assert found == 2
    assert "UNKNOWN" in out
    assert "few" in out
    assert "many" not in out


def test_an_object_that_cannot_be_read_is_named_and_the_rest_explained(plane: Plane) -> None:
    broken = cluster("broken").manifest()
    broken["spec"]["taints"] = "none"
    plane.server.put(broken)
    plane.server.corrupt("Cluster", "edge-7", b'{"metadata":{"name":"edge-7","resourceVersion":"7"},"spec":{,}}', namespace="")  # fmt: skip

    found, out, err = plane("explain", "checkout-deployment")

    assert found == 2
    assert "PLACED" in out
    assert [line.partition(":")[0] for line in err.splitlines()] == ["Cluster edge-7", "Cluster broken"]


def test_hostile_names_do_not_reach_the_terminal(plane: Plane) -> None:
    asked = binding("evil", namespace="shop").replicas(1).duplicated().names("a\x1b]0;title\x07b")
    plane.server.put(asked.manifest())

    found, out, err = plane("explain", "evil-deployment", "--no-remedies")

    assert found == 1
    assert r"a\x1b]0;title\x07b" in out
    assert "\x1b" not in out + err
    assert plane("explain", "no\x1b[2Jsuch")[2].count("\x1b") == 0


def deployment(name: str, namespace: str = "shop") -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 2},
    }


def test_workloads_without_a_binding_are_in_the_overview(plane: Plane) -> None:
    for name in ("checkout", "orphan"):
        plane.server.put(deployment(name))

    status_, out, _ = plane("explain")

    assert status_ == 1
    assert "1 template has no binding and runs nowhere" in out
    assert "NOT CLAIMED" in out
    assert "shop/orphan" in out


def test_workloads_that_may_not_be_listed_are_said_to_be_unknown(plane: Plane) -> None:
    plane.server.fault(method="LIST", path="/deployments$", **FAULTS["forbidden"])

    _, out, err = plane("explain")

    assert "no binding" not in out
    assert "templates without a binding are not in it" in out
    assert "templates of kind Deployment: " in err
    assert "whether some have no binding is not known" in err


@pytest.mark.parametrize(
    ("namespace", "answer", "expected"),
    [
        ("shpo", None, (2, "namespace shpo does not exist. Nearest: shop")),
        ("shpo", "forbidden", (0, "whether the namespace shpo exists is not known")),
        ("empty", None, (0, "")),
    ],
)
def test_a_namespace_that_does_not_exist_is_no_health(
    plane: Plane, namespace: str, answer: str | None, expected: tuple[int, str]
) -> None:
    plane.server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "empty"}})
    if answer is not None:
        plane.server.fault(method="GET", path="/namespaces/shpo$", **FAULTS[answer])

    status_, _, err = plane("explain", "-n", namespace)

    assert (status_, expected[1] in err) == (expected[0], True)


def test_the_name_of_a_workload_is_enough(plane: Plane) -> None:
    assert plane("explain", "checkout", "-q")[0] == 0
    other = binding("checkout", namespace="shop").manifest()
    plane.server.put({**other, "metadata": {**other["metadata"], "name": "checkout-statefulset"}})
    status_, _, err = plane("explain", "checkout")
    assert status_ == 2
    assert "checkout has several bindings: checkout-deployment, checkout-statefulset. Name one of them" in err


def test_what_is_read_from_a_control_plane_is_decided_now_and_a_capture_of_it_is_replayed(
    plane: Plane, tmp_path: Path
) -> None:
    file = str(tmp_path / "capture.json")
    of_one, of_all = (
        plane("explain", "-n", "shop", *more, "-o", "json")[1]
        for more in (["checkout", "--capture", file], [])
    )
    replayed = run("explain", "-n", "shop", "checkout", "--replay", file, "-o", "json")

    tenses = [json.loads(text)["provenance"]["tense"] for text in (of_one, of_all, replayed.out)]
    assert tenses == ["recomputed", "recomputed", "replayed"]
