"""The model of the API server in tools/apiserver_model behaves as a real one.

The real one is etcd, kube-apiserver with Karmada's types, and karmada-aggregated-apiserver, without webhooks and
controllers, so that nobody else changes objects. ``APISERVER_SEQUENCES=1000 pytest tests/e2e/test_apiserver_model.py``
compares more random requests.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import orjson
import pytest
import requests

from tools.apiserver_model import (
    BY_NAME,
    ApiServerModel,
    Kind,
    Object,
    Request,
    Response,
    request_of,
)
from tools.apiserver_model.comparison import DecodedResponse, Run, Step, compared, play
from tools.apiserver_model.random_requests import KINDS, RandomRequests
from tools.controlplane import binaries, wait_for
from tools.controlplane.api import Client
from tools.controlplane.installation import Installation
from tools.controlplane.processes import Supervisor

SEQUENCES = int(os.environ.get("APISERVER_SEQUENCES", "60"))
_BINDINGS = "/apis/work.karmada.io/v1alpha2/namespaces/watched/resourcebindings"


class RealServer:
    """The API servers of Karmada, with a watch of every kind that the sequences use."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.events: dict[str, list[Object]] = {name: [] for name in KINDS}
        self._ended = threading.Event()
        for kind in (BY_NAME[name] for name in KINDS):
            version = wait_for(partial(_version, client, kind), f"the storage of {kind.name} to be ready")
            threading.Thread(target=self._watch, args=(kind, version), daemon=True).start()

    def send(self, step: Step) -> DecodedResponse:
        """Send a step."""
        response = self.client.send(
            step.method,
            step.path,
            body=step.body,
            content_type=step.content_type,
            accept=step.accept,
            params=step.query,
        )
        is_json = response.headers["Content-Type"].startswith("application/json")
        return DecodedResponse(response.status_code, response.json() if is_json else response.text)

    def watch_for_a_second(self, query: str) -> tuple[int, list[Object]]:
        """Return the status and the events of a watch."""
        response = self.client.send("GET", f"{_BINDINGS}?watch=true&timeoutSeconds=1{query}")
        return response.status_code, [json.loads(line) for line in response.text.splitlines()]

    def close(self) -> None:
        """End the watches, which takes up to their time limit of a few seconds."""
        self._ended.set()

    def _watch(self, kind: Kind, version: str) -> None:
        """Take every event after a version; a list would leave out what came and went meanwhile."""
        try:
            for event, found in self.client._stream(kind.path, version, stop=self._ended, timeout=3600):
                self.events[kind.name].append({"type": event, "object": found})
        except requests.RequestException:
            if not self._ended.is_set():
                raise


def _version(client: Client, kind: Kind) -> str:
    found: str = client.get(kind.path)["metadata"]["resourceVersion"]
    return found


class ModelServer:
    """The model, with a watch of every kind."""

    def __init__(self) -> None:
        uids = itertools.count(1)
        self.model = ApiServerModel(
            lambda: datetime.now(UTC), lambda: f"uid-{next(uids)}", requires_namespaces=True
        )
        self.events: dict[str, list[Object]] = {name: [] for name in KINDS}
        for name in KINDS:
            self.model.watch(
                request_of("GET", f"{BY_NAME[name].path}?watch=true", {}), self._taking(self.events[name])
            )

    def send(self, step: Step) -> DecodedResponse:
        """Send a step."""
        body = b"" if step.body is None else orjson.dumps(step.body)
        response = self.model.handle(
            Request(step.method, step.path, step.query, body, "me", step.accept, step.content_type)
        )
        is_json = response.headers["content-type"] == "application/json"
        return DecodedResponse(
            response.status, orjson.loads(response.body) if is_json else response.body.decode()
        )

    def watch_for_a_second(self, query: str) -> tuple[int, list[Object]]:
        """Return the status and the events of a watch."""
        events: list[Object] = []
        target = f"{_BINDINGS}?watch=true{query}"
        watch = self.model.watch(request_of("GET", target, {}), self._taking(events))
        if isinstance(watch, Response):
            return watch.status, [orjson.loads(watch.body)]
        watch.close()
        return 200, events

    @staticmethod
    def _taking(events: list[Object]) -> Callable[[bytes | None], None]:
        return lambda line: events.append(orjson.loads(line)) if line is not None else None


@pytest.fixture(scope="module")
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """API servers of their own: karmada-webhook and the controllers would change what the sequences write."""
    folder = tmp_path_factory.mktemp("apiservers")
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        programs = binaries.ensure(quiet=True)
    supervisor = Supervisor(folder / "logs")
    try:
        server = RealServer(_started(folder, programs, supervisor))
        yield server
        server.close()
    finally:
        supervisor.close()


def _started(folder: Path, programs: binaries.Binaries, supervisor: Supervisor) -> Client:
    installation = Installation(
        folder,
        programs=programs,
        supervisor=supervisor,
        feature_gates={},
        extra_flags={},
        garbage_collection=False,
        audit_log=None,
    )
    installation.start_api_servers(lambda _: None)
    installation.wait_aggregated()
    return installation.client


def test_random_requests_have_the_same_responses_and_events(real: RealServer) -> None:
    modelled = ModelServer()
    sequences = [RandomRequests(number) for number in range(SEQUENCES)]
    responses = [(play(each.steps, real.send), play(each.steps, modelled.send)) for each in sequences]
    _wait(
        lambda: all(_counts(real.events, "seq-", "s")[name] >= len(modelled.events[name]) for name in KINDS)
    )
    found = []
    for sequence, (one, other) in zip(sequences, responses, strict=True):
        real_run = Run(one, _events(real.events, sequence), prefix=sequence.prefix)
        model_run = Run(other, _events(modelled.events, sequence), prefix=sequence.prefix)
        lines = compared(real_run, model_run, sequence.steps)
        found += [f"{sequence.prefix}: {line}" for line in lines]
    assert not found, "\n".join(found[:40])
    statuses = Counter(response.code for one, _ in responses for response in one)
    assert statuses.keys() >= {200, 201, 400, 403, 404, 409, 415, 422, 500}, "a kind of response never came"
    events = Counter(event["type"] for each in real.events.values() for event in each)
    assert min(events[name] for name in ("ADDED", "MODIFIED", "DELETED")) > SEQUENCES * 2 / 3


def test_watches_begin_alike_at_no_version_at_0_at_a_later_an_expired_and_a_future_one(
    real: RealServer,
) -> None:
    modelled = ModelServer()
    manifests = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "watched"}}]
    spec = {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    for name in ("a", "b"):
        metadata = {"name": name, "namespace": "watched"}
        manifests.append(
            {
                "apiVersion": "work.karmada.io/v1alpha2",
                "kind": "ResourceBinding",
                "metadata": metadata,
                "spec": spec,
            }
        )
    seen = []
    for server in (real, modelled):
        paths = ["/api/v1/namespaces", _BINDINGS, _BINDINGS]
        steps = [Step("POST", path, body=each) for path, each in zip(paths, manifests, strict=True)]
        steps.append(Step("DELETE", f"{_BINDINGS}/b"))
        responses = play(steps, server.send)
        first = int(responses[1].body["metadata"]["resourceVersion"])
        if isinstance(server, ModelServer):
            server.model.compact(first - 1)
        seen.append(
            {
                what: _outline(server.watch_for_a_second(query))
                for what, query in {
                    "none": "",
                    "zero": "&resourceVersion=0",
                    "later": f"&resourceVersion={first}",
                    "expired": "&resourceVersion=1",
                    "future": f"&resourceVersion={first + 10_000}",
                    "wrong": "&resourceVersion=abc",
                }.items()
            }
        )
    assert seen[0] == seen[1]
    assert seen[0]["later"] == (200, ["ADDED b", "DELETED b"])
    assert seen[0]["future"] == (200, [])
    assert seen[0]["expired"] == (200, ["ERROR 410 Expired"])


def _outline(watched: tuple[int, list[Object]]) -> tuple[int, list[str]]:
    status, events = watched
    if status != 200:
        return status, [events[0]["message"]]
    found = []
    for event in events:
        shown = event["object"]
        what = f"{shown['code']} {shown['reason']}" if event["type"] == "ERROR" else shown["metadata"]["name"]
        found.append(f"{event['type']} {what}")
    return status, found


def _events(events: dict[str, list[Object]], sequence: RandomRequests) -> list[Object]:
    """Return the events of all kinds about a sequence, by revision."""
    found = [event for each in events.values() for event in each if _is_of(event, sequence)]
    return sorted(found, key=lambda event: int(event["object"]["metadata"]["resourceVersion"]))


def _is_of(event: Object, sequence: RandomRequests) -> bool:
    metadata = event["object"]["metadata"]
    if "namespace" in metadata:
        return bool(metadata["namespace"] == sequence.namespace)
    return str(metadata["name"]).startswith(sequence.prefix)


def _counts(events: dict[str, list[Object]], namespaces: str, names: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for kind, each in events.items():
        for event in each:
            metadata = event["object"]["metadata"]
            is_ours = metadata.get("namespace", namespaces).startswith(namespaces)
            found[kind] += is_ours and metadata["name"].startswith(names)
    return found


def _wait(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until a condition holds, or for some seconds; the comparison tells what is missing."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
