"""What the watch delivers is out of step: lists in between, expired versions, old lines, several API servers of one address."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from tests.fake_apiserver import (
    FakeApiServer,
    SchedulerProcess,
    binding,
    cluster,
    start_scheduler,
    status,
    wait_for,
)
from tools.apiserver_model import ApiServerModel, FrontEnd, Write

CLUSTERS = ("m1", "m2", "m3")
NAMES = tuple(f"b{number}" for number in range(12))
EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Expired","code":410}}'


def fill(server: FakeApiServer) -> None:
    for name in CLUSTERS:
        server.put(cluster(name))
    for name in NAMES:
        server.put(binding(name, replicas=2))


def is_decided(server: FakeApiServer) -> bool:
    """Return whether every binding has all replicas on clusters that there are, by the newest generation."""
    names = {each["metadata"]["name"] for each in server.all("Cluster")}
    for each in server.all("ResourceBinding"):
        targets = each["spec"].get("clusters") or []
        if sum(target.get("replicas", 0) for target in targets) != each["spec"]["replicas"]:
            return False
        if not {target["name"] for target in targets} <= names:
            return False
        observed = each.get("status", {}).get("schedulerObservedGeneration")
        if (
            observed != each["metadata"]["generation"]
            or server.condition(each["metadata"]["name"]).get("status") != "True"
        ):
            return False
    return True


def churn(server: FakeApiServer, chance: random.Random, disturb: Callable[[], None], rounds: int) -> None:
    """Change, delete and create bindings and clusters, with a disturbance after each change."""
    pause = threading.Event()
    for _ in range(rounds):
        name = chance.choice(NAMES)
        match chance.randrange(6):
            case 0:
                server.delete("ResourceBinding", name)
                server.put(binding(name, replicas=chance.randint(1, 9)))
            case 1:
                server.put(cluster(chance.choice(CLUSTERS), labels={"round": str(chance.random())}))
            case 2:
                server.delete("Cluster", "m3")
                server.put(cluster("m3"))
            case _:
                server.change(
                    "ResourceBinding", name, lambda found: found["spec"].update(replicas=chance.randint(1, 9))
                )
        disturb()
        pause.wait(0.03)


def assert_harmless(server: FakeApiServer, scheduler: SchedulerProcess) -> None:
    """Everything is decided, nobody writes any more, and no write of the scheduler has cleared or guessed a placement."""
    wait_for(lambda: is_decided(server), "all to be decided", scheduler, timeout=60)
    before = len(server.requests)
    threading.Event().wait(2)
    assert [
        each for each in server.requests[before:] if each.verb == "PATCH" and "resourcebindings" in each.path
    ] == []
    for write in _written_bindings(server):
        assert write.after is not None
        spec = orjson.loads(write.after)["spec"]
        assert spec.get("clusters"), write.key
        assert orjson.loads(write.request.body)["metadata"]["resourceVersion"]  # type: ignore[union-attr]
    assert scheduler.exit_status is None
    assert "Traceback" not in scheduler.log


def _written_bindings(server: FakeApiServer) -> list[Write]:
    with server.lock:
        return [
            each
            for each in server.model.writes
            if each.kind == "ResourceBinding" and each.request is not None and not each.subresource
        ]


def test_lists_expired_versions_and_old_lines_in_between_change_no_result(tmp_path: Path) -> None:
    chance = random.Random(39)
    with FakeApiServer() as server:
        fill(server)
        old = [orjson.dumps({"type": "MODIFIED", "object": each}) for each in server.all("ResourceBinding")]
        gone = [orjson.dumps({"type": "DELETED", "object": each}) for each in server.all("ResourceBinding")]
        with start_scheduler(server, tmp_path) as scheduler:
            wait_for(lambda: is_decided(server), "the first decisions", scheduler, timeout=30)

            def disturb() -> None:
                kind = chance.choice(("ResourceBinding", "Cluster"))
                match chance.randrange(6):
                    case 0:
                        server.send(kind, EXPIRED)
                        server.end_watches(kind)
                    case 1:
                        server.fault(method="WATCH", times=1, answer=status(410, "Expired", "too old"))
                        server.end_watches(kind)
                    case 2:
                        server.end_watches()
                    case 3:
                        server.send("ResourceBinding", chance.choice(old))
                    case 4:
                        server.send("ResourceBinding", chance.choice(gone))
                        server.send("ResourceBinding", EXPIRED)
                        server.end_watches("ResourceBinding")

            churn(server, chance, disturb, rounds=120)
            server.heal()
            assert_harmless(server, scheduler)


class SeveralApiServers(FakeApiServer):
    """API servers behind one address: each connection goes to the next one; the second lags, the third fails.

    Attributes:
        lag: Seconds by which the watch caches of the second one are behind.
        closed: How many requests the third one has closed without an answer.
    """

    def __init__(self, lag: float) -> None:
        super().__init__()
        self.lag = lag
        self.closed = 0
        self._fronts = (FrontEnd(self.model), FrontEnd(self.model), None)
        self._front_of: dict[Any, int] = {}
        self.model.observers.append(self._on_write)

    def _on_write(self, write: Write) -> None:
        current, late, _ = self._fronts
        assert current is not None
        assert late is not None
        current.advance_to(write.revision)

        def advance() -> None:
            with self.lock:
                late.advance_to(write.revision)

        if self._began.is_set():
            self.loop.call_soon_threadsafe(self.loop.call_later, self.lag, advance)
        else:
            late.advance_to(write.revision)

    def _front(self, request: web.Request) -> ApiServerModel | FrontEnd | None:
        number = self._front_of.setdefault(request.transport, len(self._front_of) % len(self._fronts))
        front = self._fronts[number]
        self.closed += front is None
        return front

    def end_watches(self, kind: str | None = None) -> None:
        with self.lock:
            for front in self._fronts:
                for watch in front.watches.of(kind) if front is not None else ():
                    watch.end()


def test_several_api_servers_of_which_one_lags_and_one_fails_change_no_result(tmp_path: Path) -> None:
    chance = random.Random(7)
    with SeveralApiServers(lag=0.7) as server:
        fill(server)
        with start_scheduler(server, tmp_path) as scheduler:
            wait_for(lambda: is_decided(server), "the first decisions", scheduler, timeout=60)

            def disturb() -> None:
                if chance.random() < 0.2:
                    server.end_watches(chance.choice(("ResourceBinding", "Cluster")))

            churn(server, chance, disturb, rounds=120)
            assert_harmless(server, scheduler)
            assert server.closed
