"""What an apply stores: the merges of kubectl apply on both sides, as tests/e2e/test_plan_apply.py measures them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from karmada_advisor.fleet.files import change_objects
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.objects import template_key
from karmada_advisor.whatif.plan.versions import SERVER, applied
from tests.unit.plan.asking import objects_of

Object = dict[str, Any]
DIVISION: Object = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
FULL: Object = {"placement": {"clusterAffinity": {"exclude": ["m2"]}, "replicaScheduling": DIVISION}}
LAST = "kubectl.kubernetes.io/last-applied-configuration"
OWNED: Object = {
    "f:spec": {
        "f:placement": {
            "f:clusterAffinity": {"f:exclude": {}},
            "f:replicaScheduling": {"f:replicaSchedulingType": {}, "f:replicaDivisionPreference": {}},
        }
    }
}


def policy(spec: Object, **metadata: Any) -> Object:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop"}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"namespace": "shop", "name": "web", **metadata},
        "spec": {"resourceSelectors": [selector], **spec},
    }


def stored(spec: Object, last: Object | None = None, **managers: Object) -> Object:
    """Return a stored policy; each manager of its fields is an Apply, but create and kubectl-client-side-apply."""
    noted = {} if last is None else {"annotations": {LAST: json.dumps(policy(last))}}
    listed = [
        {
            "manager": name.replace("_", "-"),
            "operation": "Apply" if name == "kubectl" else "Update",
            "fieldsV1": fields,
        }
        for name, fields in managers.items()
    ]
    return policy(spec, resourceVersion="7", **noted, **({"managedFields": listed} if listed else {}))


def placement(old: Object, spec: Object, side: str) -> Object:
    found: Object = applied(old, policy(spec), side).content["spec"]["placement"]
    return found


LESS: Object = {"placement": {"clusterAffinity": {"clusterNames": ["m1"]}}}
NULL: Object = {"placement": {"clusterAffinity": {"exclude": None}, "replicaScheduling": None}}


@pytest.mark.parametrize(
    ("old", "spec", "side", "expected"),
    [
        (stored(FULL, FULL), LESS, "client", {"clusterAffinity": {"clusterNames": ["m1"]}}),
        (stored(FULL), LESS, "client", {"clusterAffinity": {"exclude": ["m2"], "clusterNames": ["m1"]}, "replicaScheduling": DIVISION}),
        (stored(FULL), NULL, "client", {"clusterAffinity": {}}),
        (stored(FULL, NULL), NULL, "client", FULL["placement"]),
        (policy(FULL), LESS, "client", LESS["placement"]),
        (policy(FULL, resourceVersion="7", managedFields=[]), LESS, "client", LESS["placement"]),
        (stored(FULL, kubectl=OWNED), LESS, SERVER, LESS["placement"]),
        (stored(FULL, kubectl=OWNED), NULL, SERVER, {"clusterAffinity": {}, "replicaScheduling": {}}),
        (stored(FULL, kubectl_client_side_apply=OWNED), LESS, SERVER, LESS["placement"]),
        (stored(FULL, create=OWNED), LESS, SERVER, {"clusterAffinity": {"exclude": ["m2"], "clusterNames": ["m1"]}, "replicaScheduling": DIVISION}),
        (stored(FULL, create=OWNED), NULL, SERVER, {"clusterAffinity": {}, "replicaScheduling": DIVISION}),
        (stored(FULL, kubectl=OWNED, create=OWNED), LESS, SERVER, {"clusterAffinity": {"exclude": ["m2"], "clusterNames": ["m1"]}, "replicaScheduling": DIVISION}),
        (stored(FULL), LESS, SERVER, LESS["placement"]),
        (stored({"placement": {}}), NULL, SERVER, {"clusterAffinity": {}}),
    ],
    ids=[
        "what was applied is removed", "without the annotation it stays", "null removes", "null that was applied before does not",
        "a file was applied before", "a capture as well", "an owned field is removed", "null empties a struct",
        "fields of the client side are taken over", "those of others stay", "of null as well", "what two have stays",
        "without managers it was applied before", "null makes no struct",
    ],
)  # fmt: skip
def test_a_merge_with_what_is_stored(old: Object, spec: Object, side: str, expected: Object) -> None:
    assert placement(old, spec, side) == expected


def test_a_struct_that_is_replaced_as_a_whole_keeps_nothing() -> None:
    def of(label: str) -> Object:
        return {"placement": {"clusterAffinity": {"labelSelector": {"matchLabels": {label: "x"}}}}}

    owned: Object = {"f:spec": {"f:placement": {"f:clusterAffinity": {"f:labelSelector": {}}}}}
    assert placement(stored(of("a"), create=owned), of("b"), SERVER) == of("b")["placement"]


def test_the_server_side_names_the_managers_of_fields_that_the_file_changes() -> None:
    found = applied(
        stored(FULL, create=OWNED), policy({"placement": {"clusterAffinity": {"exclude": ["m3"]}}}), SERVER
    )
    assert found.conflicts == ("create: spec.placement.clusterAffinity.exclude",)
    for spec in (FULL, {"placement": {"replicaScheduling": None}}):
        assert not applied(stored(FULL, create=OWNED), policy(spec), SERVER).conflicts
    assert not applied(stored(FULL, kubectl=OWNED), policy(LESS), SERVER).conflicts


def _draft(side: str, old: Object, new: Object) -> Draft:
    draft = Draft(objects_of([old]))
    draft.side = side
    draft.put(new)
    return draft


def test_null_is_divided_after_a_server_side_apply_and_nothing_after_one_of_the_client() -> None:
    new = policy({"placement": {"replicaScheduling": None}})
    server = _draft("server", stored(FULL, kubectl=OWNED), new)
    [made] = (server.after.policies or {}).values()
    assert made["spec"]["placement"]["replicaScheduling"] == {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
    }
    assert any(
        "differs from the file alone: + spec.placement.replicaScheduling: " in each for each in server.notes
    )

    client = _draft("client", stored(FULL, FULL), new)
    [made] = (client.after.policies or {}).values()
    assert made["spec"]["placement"] == {}
    assert client.notes == []


def test_an_apply_keeps_what_the_server_wrote_and_the_replicas_that_the_file_leaves_out() -> None:
    metadata = {"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "7", "generation": 3}
    old = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**metadata, "labels": {"by": "hand"}},
        "spec": {"replicas": 9},
        "status": {"replicas": 9},
    }
    new = {
        **old,
        "metadata": {"namespace": "shop", "name": "web", "labels": {"team": "a"}},
        "spec": {"paused": True},
    }
    made = _draft("", old, {name: each for name, each in new.items() if name != "status"}).after
    assert made.templates[template_key(old)] == {
        **old,
        "metadata": {**metadata, "generation": 4, "labels": {"by": "hand", "team": "a"}},
        "spec": {"replicas": 9, "paused": True},
    }


def test_a_namespace_of_a_cluster_scoped_policy_is_dropped_as_by_kubectl() -> None:
    [found] = change_objects(
        "{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: a, namespace: prod}}"
    )
    assert found["metadata"] == {"name": "a"}
