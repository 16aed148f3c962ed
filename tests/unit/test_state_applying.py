"""Remedies are sent as patches of the objects that they name, one request per object."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.e2e.state.applying import apply, is_patch, promised

CLUSTER = {"kind": "Cluster", "namespace": "", "name": "m1"}
BINDING = {"kind": "ResourceBinding", "namespace": "demo", "name": "web-deployment"}


def operation(path: str) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": 1}


def test_operations_of_one_object_are_one_request_and_its_status_is_another() -> None:
    sent: list[tuple[str, Any]] = []
    client = SimpleNamespace(
        path_of=lambda manifest: f"/{manifest['kind']}/{manifest['metadata']['name']}",
        request=lambda _, path, **kwargs: sent.append((path, kwargs["body"])),
    )
    remedy = {
        "apply": [
            {"object": BINDING, "patch": [operation("/spec/replicas")]},
            {"object": CLUSTER, "patch": [operation("/status/a"), operation("/spec/b")]},
            {"object": BINDING, "patch": [operation("/spec/schedulerName")]},
        ]
    }
    apply(SimpleNamespace(client=client), remedy)  # type: ignore[arg-type]
    assert [(path, len(body)) for path, body in sent] == [
        ("/ResourceBinding/web-deployment", 2),
        ("/Cluster/m1/status", 1),
        ("/Cluster/m1", 1),
    ]


def test_only_a_remedy_with_operations_on_known_kinds_is_a_patch() -> None:
    assert is_patch({"apply": [{"object": CLUSTER, "patch": [operation("/spec")]}]})
    assert not is_patch({"apply": []})
    assert not is_patch({"apply": [{"object": CLUSTER, "patch": []}]})
    assert not is_patch({"apply": [{"object": {"kind": "Deploy"}, "patch": [operation("/spec")]}]})


def test_what_a_remedy_promises_is_replicas_by_cluster() -> None:
    assert promised({"result": [{"name": "m1", "replicas": 2}, {"name": "m2"}]}) == {"m1": 2, "m2": 0}
