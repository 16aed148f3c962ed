"""Objects as an aggregated API server or a mutating webhook could deliver them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from karmada_pyscheduler.client.watch_requests import event_of
from karmada_pyscheduler.informer.object_kinds import namespace_and_name
from karmada_scheduler import json_body
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core import condition as outcome
from tests import manifests
from tests.fake_apiserver import cluster, deployment, policy
from tests.fuzz.delivery import DIVIDED, HEALTHY, NEW, PLACED, Neighbourhood, recorded
from tests.fuzz.measuring import fuzzed, measured
from tests.fuzz.strategies import Changed, mutated

_REQUIREMENTS = {
    "resourceRequest": {"cpu": "500m", "memory": "1Gi", "example.com/gpu": "1"},
    "nodeClaim": {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "a", "operator": "Exists"}]},
    "namespace": "demo",
    "priorityClassName": "high",
}
_AFFINITY = {
    "labelSelector": {
        "matchLabels": {"env": "prod"},
        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["test"]}],
    },
    "fieldSelector": {"matchExpressions": [{"key": "region", "operator": "NotIn", "values": ["far"]}]},
    "clusterNames": ["m1", "m2"],
    "exclude": ["m9"],
}
_TOLERATION = {"key": "busy", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
_STATIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {
        "staticWeightList": [
            {"targetCluster": {"clusterNames": ["m1"]}, "weight": 2},
            {"targetCluster": {"clusterNames": ["m2"]}, "weight": 1},
        ]
    },
}
_DYNAMIC = {**_STATIC, "weightPreference": {"dynamicWeight": "AvailableReplicas"}}
_PLACEMENTS: tuple[dict[str, Any], ...] = (
    {"clusterAffinity": {"clusterNames": ["m1", "m2"]}},
    {
        "clusterAffinity": {**_AFFINITY, "labelSelector": {"matchLabels": {}}},
        "clusterTolerations": [_TOLERATION],
        "replicaScheduling": _STATIC,
    },
    {
        "clusterAffinities": [
            {"affinityName": "first", **_AFFINITY},
            {"affinityName": "second", "clusterNames": ["m1", "m2"],
             "overflowAffinities": [{"affinityName": "more", "clusterNames": ["m2"]}]},
        ],
        "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2}],
        "replicaScheduling": _DYNAMIC,
        "workloadAffinity": {"affinity": {"groupByLabelKey": "app"}},
    },
)  # fmt: skip


def _bindings(kind: str) -> list[dict[str, Any]]:
    found = []
    for placement in _PLACEMENTS:
        manifest = manifests.binding(
            "bad",
            version=5,
            generation=2,
            placement=placement,
            clusters=[{"name": "m1", "replicas": 1, "unknown": {"a": 1}}],
            replicas=3,
            replicaRequirements=_REQUIREMENTS,
            components=[{"name": "main", "replicas": 1, "replicaRequirements": _REQUIREMENTS}],
            gracefulEvictionTasks=[{"fromCluster": "m2"}],
            suspension={"scheduling": False},
            schedulePriority={"priority": 7},
            rescheduleTriggeredAt="2026-01-01T00:00:01Z",
            workloadAffinityGroups={"affinityGroup": "app=web", "antiAffinityGroup": "app=db"},
        )
        if placement is not _PLACEMENTS[2]:
            del manifest["spec"]["components"]
        manifest["kind"] = kind
        manifest["metadata"] |= {
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"policy.karmada.io/applied-placement": '{"clusterAffinity":{}}'},
        }
        manifest["status"] = {
            "schedulerObservedGeneration": 1,
            "schedulerObservingAffinityName": "second",
            "lastScheduledTime": "2026-01-01T00:00:00Z",
            "conditions": [
                {"type": "Scheduled", "status": "True", "reason": "Success", "message": "",
                 "lastTransitionTime": "2026-01-01T00:00:00Z"},
                {"type": "FullyApplied", "status": "True"},
            ],
            "aggregatedStatus": [{"clusterName": "m1", "applied": True, "health": "Healthy", "status": {"a": 1}}],
        }  # fmt: skip
        found.append(manifest)
    return found


def _cluster() -> dict[str, Any]:
    manifest = cluster(
        "bad", labels={"env": "prod"}, region="near", taints=[{"key": "busy", "effect": "NoExecute"}]
    )
    manifest["metadata"]["resourceVersion"] = "5"
    manifest["spec"] |= {
        "provider": "cloud",
        "zones": ["z1"],
        "resourceModels": [{"grade": 0, "ranges": [{"name": "cpu", "min": "0", "max": "1"}]}],
    }
    manifest["status"]["resourceSummary"] |= {
        "allocating": {"cpu": "1"},
        "allocatableModelings": [{"grade": 0, "count": 3}],
    }
    return manifest


def _policy(kind: str) -> dict[str, Any]:
    manifest = policy("bad", namespace="demo")
    manifest["kind"] = kind
    manifest["metadata"] |= {
        "resourceVersion": "5",
        "labels": {"propagationpolicy.karmada.io/permanent-id": "p1"},
    }
    return manifest


DOCUMENTS: dict[str, list[dict[str, Any]]] = {
    "ResourceBinding": _bindings("ResourceBinding"),
    "ClusterResourceBinding": _bindings("ClusterResourceBinding"),
    "Cluster": [_cluster()],
    "PropagationPolicy": [_policy("PropagationPolicy")],
    "ClusterPropagationPolicy": [_policy("ClusterPropagationPolicy")],
}


@st.composite
def objects(draw: st.DrawFn, *kinds: str) -> tuple[str, Changed]:
    """A kind and a mutated object of that kind."""
    kind = draw(st.sampled_from(kinds))
    document = draw(st.sampled_from(DOCUMENTS[kind]))
    parts = [(), ("spec",), ("metadata",)]
    parts += [("status",)] if "status" in document else []
    parts += [("spec", "placement")] * 2 if "placement" in document["spec"] else []
    return kind, draw(mutated(document, inside=draw(st.sampled_from(parts))))


MOST_BYTES = 3 * 2**19
"""1.5 MiB, the size of an object that etcd takes by default."""
EVENTS = ("ADDED", "MODIFIED", "DELETED", "LIST")
BINDINGS = ("ResourceBinding", "ResourceBinding", "ClusterResourceBinding")
OTHERS = ("Cluster", "Cluster", "Cluster", "PropagationPolicy", "ClusterPropagationPolicy")
GATES = (
    FeatureGates(),
    FeatureGates({"AllAlpha": True}),
)


async def _deliver(kind: str, changed: Changed, event: str, gates: FeatureGates) -> None:
    """Deliver an object and let the scheduler run, with the checks that hold for any object."""
    document = changed.json
    assume(len(document) <= MOST_BYTES)
    state = Neighbourhood(gates=gates)
    area = f"{kind} {'list' if event == 'LIST' else 'event'}"
    with recorded() as records:
        with measured(area, changed):
            if event == "LIST":
                found: dict[str, Any] | None = state.listed(kind, document)
            else:
                found = state.watched(kind, event, document)
            while state.handlers._reconciler.step():
                pass
        if found is None:
            return
        name = namespace_and_name(found)[1]
        assume(name not in HEALTHY)
        is_left_alone = not state.is_cached(kind, found)
        if is_left_alone and event != "DELETED":
            assert state.malformed(kind) == 1
            assert records.names(name)
        with measured(f"{kind} decision", changed):
            await state.run()
        assert not records.tracebacks, records.tracebacks[0]
    _check_neighbours(state)
    if kind in ("ResourceBinding", "ClusterResourceBinding"):
        _check_writes(state, name, is_left_alone=is_left_alone)


def _check_neighbours(state: Neighbourhood) -> None:
    assert sorted(state.placed(NEW)) == [
        "m1",
        "m2",
    ]  # with SchedulingOvercommitProtection, the emptier one is first
    assert state.condition(NEW) == ("Success", "Binding has been scheduled successfully.")
    assert state.placed(DIVIDED) == ["m1", "m2"]
    assert state.condition(DIVIDED)[0] == "Success"
    assert state.placed(PLACED) == ["m1"]
    assert state.condition(PLACED)[0] == "Success"


def _check_writes(state: Neighbourhood, name: str, *, is_left_alone: bool) -> None:
    """Check that an unreadable binding is left alone, and that no decision about a readable one empties it by mistake.

    It is emptied if no cluster fits, or if it has no replicas to divide, as in Karmada.
    """
    requests = [each for each in state.server.requests if each[1] == name]
    assert not (is_left_alone and requests)
    for kind, _, body in requests:
        has_replicas = state.server.stored[name]["spec"].get("replicas", 0) > 0
        if kind == "spec" and body["clusters"] == [] and has_replicas:
            assert state.condition(name)[0] == outcome.NO_CLUSTER_FIT


@fuzzed(160)
@given(objects(*BINDINGS), st.sampled_from(EVENTS), st.sampled_from(GATES))
def test_an_invalid_binding_disturbs_no_other_one_and_keeps_its_clusters(
    changed: tuple[str, Changed], event: str, gates: FeatureGates
) -> None:
    asyncio.run(_deliver(*changed, event, gates))


@fuzzed(110)
@given(objects(*OTHERS), st.sampled_from(EVENTS), st.sampled_from(GATES))
def test_an_invalid_cluster_or_policy_disturbs_no_binding(
    changed: tuple[str, Changed], event: str, gates: FeatureGates
) -> None:
    asyncio.run(_deliver(*changed, event, gates))


_WORKLOAD = deployment("bad", labels={"app": "web"}, annotations={"a": "b"})
_WORKLOAD["metadata"] |= {
    "resourceVersion": "5",
    "generation": 2,
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "u", "controller": True},
    ],
}


@fuzzed(300)
@given(mutated(_WORKLOAD, inside=("metadata",)))
def test_the_metadata_of_a_workload_is_read_or_refused(changed: Changed) -> None:
    document = changed.json
    assume(len(document) <= MOST_BYTES)
    with measured("Workload event", changed):
        try:
            found = event_of(f'{{"type":"ADDED","object":{document}}}'.encode())["object"]
        except ValueError:
            return
        if json_body.unreadable(found) is None:
            with suppress(ManifestError):
                Workload.from_manifest(found, api_version="apps/v1", kind="Deployment")
