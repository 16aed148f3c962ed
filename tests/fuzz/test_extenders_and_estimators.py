"""Responses of extenders and estimators, of any bytes: an error that names the server, or a result within the request."""

from __future__ import annotations

import asyncio
import copy
from contextlib import suppress
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from karmada_pyscheduler.estimator.accurate import AccurateEstimator
from karmada_pyscheduler.estimator.pb import estimator_pb2 as pb
from karmada_pyscheduler.estimator.session import PARTIAL, UPSTREAM, FailurePolicy
from karmada_pyscheduler.estimator.transport import DiscoveryError, addresses
from karmada_pyscheduler.estimator.wire import replicas_request, sets_request
from karmada_pyscheduler.extenders.http_extender import HttpExtender
from karmada_scheduler import json_body
from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.config.extenders import ExtenderConfig
from karmada_scheduler.core.available_replicas import NO_OPINION, EstimationError
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.runtime.extenders import (
    ExtenderError,
    filter_by_extenders,
    scores_of_extenders,
)
from karmada_scheduler.testing import binding, cluster
from tests.fuzz.delivery import recorded
from tests.fuzz.measuring import fuzzed, measured
from tests.fuzz.strategies import Changed, damaged, mutated
from tests.fuzz.test_manifests import DOCUMENTS, MOST_BYTES
from tests.unit.estimator.test_accurate import CountingObserver, FakeTransport
from tests.unit.extenders.fake import Scene

_NAMES = ("m1", "m2", "m3")
_URL = "http://extender.example/scheduler"
_LONGEST = 4_000
"""Characters of an error; it becomes a log line and a condition."""


class FuzzedExtender(HttpExtender, kw_only=True):
    """An extender whose server sends certain bytes."""

    scene: Scene
    body: bytes

    @classmethod
    def of(cls, body: bytes, **fields: Any) -> FuzzedExtender:
        config = ExtenderConfig(
            url_prefix=_URL,
            filter_verb="filter",
            prioritize_verb="prioritize",
            bind_verb="bind",
            weight=3,
            **fields,
        )
        scene = Scene(*_NAMES)
        return cls(config, scene.manifests, clock=lambda: 0.0, scene=scene, body=body)

    async def _post(self, verb: str, body: bytes) -> bytes:
        return self.body


_FILTER = {
    "Clusters": {"items": [{"metadata": {"name": "m1"}}]},
    "ClusterNames": ["m1", "m2"],
    "FailedClusters": {"m2": "full"},
    "FailedAndUnresolvableClusters": {"m3": "broken"},
    "Error": "",
}
_SCORES = [{"Host": "m1", "Score": 10}, {"Cluster": "m2", "Score": 0}]


def _bodies(document: Any) -> st.SearchStrategy[bytes]:
    changed = mutated({"": document}).filter(lambda each: "" in each.document)
    written = changed.map(lambda each: Changed(each.document[""], each.changes).json.encode())
    return damaged(written).filter(lambda each: len(each) <= MOST_BYTES)


@fuzzed(150)
@given(body=_bodies(_FILTER), by_names=st.booleans(), ignorable=st.booleans())
def test_any_response_to_filter_is_a_result_or_an_error(body: bytes, by_names: bool, ignorable: bool) -> None:
    extender = FuzzedExtender.of(body, node_cache_capable=by_names, ignorable=ignorable)
    scene = extender.scene
    text = ""
    with recorded(), measured("extender filter", body):
        try:
            kept, refused = asyncio.run(filter_by_extenders([extender], scene.cycle, scene.clusters))
        except PluginError as error:
            text = str(error)
    if text:
        assert not ignorable
        assert _URL in text
        assert len(text) < _LONGEST
    else:
        assert {each.name for each in kept} | set(refused) == set(_NAMES)


@fuzzed(150)
@given(body=_bodies(_SCORES))
def test_any_response_to_prioritize_is_a_result_or_logged(body: bytes) -> None:
    extender = FuzzedExtender.of(body)
    scene = extender.scene
    with recorded() as records, measured("extender prioritize", body):
        scores = asyncio.run(scores_of_extenders([extender], scene.cycle, scene.clusters))
    if scores:
        assert all(type(score) is int and 0 <= score <= 300 for score in scores[_URL])
    else:
        assert any(_URL in str(each.__dict__.get("error", "")) for each in records.all)
    assert all(len(str(each.__dict__)) < 2 * _LONGEST for each in records.all)


@fuzzed(150)
@given(body=_bodies({"Error": ""}))
def test_any_response_to_bind_is_a_success_or_an_error(body: bytes) -> None:
    extender = FuzzedExtender.of(body)
    with recorded(), measured("extender bind", body):
        try:
            asyncio.run(extender.bind(extender.scene.cycle, [TargetCluster("m1", 1)]))
        except ExtenderError as error:
            text = str(error)
        else:
            return
    assert _URL in text
    assert len(text) < _LONGEST


class FuzzedTransport(FakeTransport):
    """Estimators that send certain bytes."""

    def __init__(self, bodies: dict[str, bytes]) -> None:
        super().__init__()
        self._bodies = bodies

    async def call(self, cluster: str, method: str, request: bytes, *, timeout: float, about: str) -> bytes:
        return self._bodies[cluster]


_INT32 = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, 1, -1, -2, MAX_INT32, -(2**31)])
_ESTIMATES = damaged(
    st.one_of(
        _INT32.map(lambda number: pb.MaxAvailableReplicasResponse(max_replicas=number).SerializeToString()),
        _INT32.map(lambda number: pb.MaxAvailableComponentSetsResponse(max_sets=number).SerializeToString()),
        st.sampled_from(
            [b"\x08" + b"\xff" * 9 + b"\x01", b"\x08" + b"\x80" * 20, b"\x0a" + b"\xff" * 5, b""]
        ),
    )
)


@fuzzed(200)
@given(
    bodies=st.lists(_ESTIMATES, min_size=3, max_size=3),
    policy=st.sampled_from([UPSTREAM, PARTIAL]),
    sets=st.booleans(),
)
def test_any_response_of_an_estimator_is_a_number_or_no_opinion(
    bodies: list[bytes], policy: FailurePolicy, sets: bool
) -> None:
    async def estimates() -> tuple[list[int], set[str]]:
        estimator = AccurateEstimator(
            FuzzedTransport(dict(zip(_NAMES, bodies, strict=True))),  # type: ignore[arg-type]
            timeout=5.0,
            policy=policy,
            answer_ttl=0.0,
            observer=CountingObserver(),
            clock=lambda: 0.0,
        )
        session = estimator.session(binding("web").replicas(3).build())
        clusters = [cluster(name).build() for name in _NAMES]
        try:
            if sets:
                found = await session.max_available_component_sets(clusters, (), "demo", {})
            else:
                found = await session.max_available_replicas(clusters, None, {})
        except EstimationError:
            assert policy == UPSTREAM
            assert set(session.fallbacks) == set(_NAMES)
            return [], set()
        finally:
            await estimator.close()
        return found, set(session.fallbacks)

    with recorded(), measured("estimator", bodies):
        found, fallbacks = asyncio.run(estimates())
    for name, number in zip(_NAMES, found, strict=bool(found)):
        assert NO_OPINION <= number <= MAX_INT32
        assert name not in fallbacks or number == NO_OPINION


_REQUIREMENTS = {
    "hardNodeAffinity": {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
            }
        ]
    },
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [
        {"key": "a", "operator": "Exists", "value": "", "effect": "NoExecute", "tolerationSeconds": 5}
    ],
}


@fuzzed(150)
@given(data=st.data())
def test_any_requirements_are_encoded_or_refused(data: st.DataObject) -> None:
    manifest = copy.deepcopy(DOCUMENTS["ResourceBinding"][2])
    manifest["spec"]["replicaRequirements"]["nodeClaim"] = _REQUIREMENTS
    manifest["spec"]["components"][0]["replicaRequirements"]["nodeClaim"] = _REQUIREMENTS
    part = data.draw(st.sampled_from([("spec", "replicaRequirements"), ("spec", "components")]))
    changed = data.draw(mutated(manifest, inside=part))
    text = changed.json
    assume(len(text) <= MOST_BYTES)
    try:
        spec = Binding.from_manifest(json_body.checked(json_body.decode(text.encode()))).spec
    except ValueError:
        return
    with measured("estimator request", changed), suppress(ValueError):
        replicas_request(spec.replica_requirements)
    with measured("estimator request", changed), suppress(ValueError):
        sets_request(spec.components, "demo")


_SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "estimator-m1"},
    "spec": {
        "type": "ExternalName",
        "externalName": "estimator.example",
        "ports": [{"port": 10352, "targetPort": 10352, "protocol": "TCP"}, {"port": 1, "targetPort": "http"}],
    },
}


@fuzzed(200)
@given(mutated(_SERVICE))
def test_any_service_gives_addresses_or_an_error(changed: Changed) -> None:
    text = changed.json
    assume(len(text) <= MOST_BYTES)
    try:
        service = json_body.decode(text.encode())
    except ValueError:
        return
    with measured("Service of an estimator", changed):
        try:
            found = addresses(service, name="estimator-m1", namespace="demo", port=10352)
        except DiscoveryError:
            return
    assert all(type(each) is str for each in found)
