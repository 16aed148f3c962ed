"""Estimates of a decision when estimators respond, fail or hang, with both failure policies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from karmada_scheduler.api import quantity
from karmada_scheduler.api.binding import AssumedWorkload, Component, ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.available_replicas import NO_OPINION, EstimationError
from karmada_scheduler.estimator.accurate import AccurateEstimator
from karmada_scheduler.estimator.pb import estimator_pb2 as pb
from karmada_scheduler.estimator.session import EstimationSession
from karmada_scheduler.estimator.shared_requests import PARTIAL, UPSTREAM, FailurePolicy, SharedRequests
from karmada_scheduler.estimator.transport import ConnectionState, EstimatorCallError
from karmada_scheduler.estimator.wire import MAX_AVAILABLE_REPLICAS
from karmada_scheduler.testing import binding, cluster

SMALL = ReplicaRequirements({"cpu": quantity.parse("100m")})
LARGE = ReplicaRequirements({"cpu": quantity.parse("2")})
TIMEOUT = 0.05
"""Seconds; real ones, for a hanging estimator is one that real time passes by."""


class FakeTransport:
    """Estimators by cluster: a number, a refusal, or silence until told otherwise."""

    def __init__(self, **answers: int | str | None) -> None:
        self.answers: dict[str, int | str | None] = dict(answers)
        self.states: dict[str, ConnectionState] = {}
        self.asked: list[str] = []
        self.requests: list[pb.MaxAvailableReplicasRequest] = []
        self.about: list[str] = []
        self.reconnected: list[str] = []
        self.changed = asyncio.Event()

    def state(self, cluster: str, /) -> ConnectionState:
        return self.states.get(cluster, ConnectionState.CONNECTED)

    async def wait_first_attempt(self, cluster: str, /) -> None:
        while self.states.get(cluster) is ConnectionState.NEW:
            await self.changed.wait()

    def reconnect(self, cluster: str, /) -> None:
        self.reconnected.append(cluster)

    async def call(self, cluster: str, method: str, request: bytes, *, timeout: float, about: str) -> bytes:
        self.asked.append(cluster)
        self.about.append(about)
        if method == MAX_AVAILABLE_REPLICAS:
            self.requests.append(pb.MaxAvailableReplicasRequest.FromString(request))
        try:
            async with asyncio.timeout(timeout):
                while self.answers[cluster] is None:
                    await self.changed.wait()
        except TimeoutError:
            raise EstimatorCallError(f"no answer within {timeout:g}s", timed_out=True) from None
        answer = self.answers[cluster]
        if isinstance(answer, str):
            raise EstimatorCallError(answer)
        return pb.MaxAvailableReplicasResponse(max_replicas=answer).SerializeToString()

    def change(self, cluster: str, answer: int | str | None) -> None:
        self.answers[cluster] = answer
        self.changed.set()
        self.changed.clear()

    def connect(self, cluster: str, state: ConnectionState) -> None:
        self.states[cluster] = state
        self.changed.set()
        self.changed.clear()


class Counted:
    """Counts what is reported."""

    def __init__(self) -> None:
        self.results: list[str] = []
        self.shares = 0

    def request_ended(self, method: str, result: str, seconds: float, /) -> None:
        self.results.append(result)

    def request_shared(self, method: str, /) -> None:
        self.shares += 1


class World:
    """An estimator, a time that is set by hand, and probes that are let go by hand."""

    def __init__(
        self, transport: FakeTransport, policy: FailurePolicy, answer_ttl: float, timeout: float
    ) -> None:
        self.transport = transport
        self.seconds: float | None = None
        self.counted = Counted()
        self.pauses: list[float] = []
        self._probing = asyncio.Event()
        self.estimator = AccurateEstimator(
            transport,
            timeout=timeout,
            policy=policy,
            answer_ttl=answer_ttl,
            observer=self.counted,
            clock=self.clock,
            pause=self.pause,
        )

    def clock(self) -> float:
        return asyncio.get_running_loop().time() if self.seconds is None else self.seconds

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await self._probing.wait()
        self._probing.clear()

    async def probe(self, until: Callable[[], bool]) -> None:
        """Let one probe go, and wait for what comes of it."""
        self._probing.set()
        async with asyncio.timeout(5):
            while not until():
                await asyncio.sleep(0)

    @property
    def requests(self) -> SharedRequests:
        return self.estimator.requests

    def session(self) -> EstimationSession:
        return self.estimator.session(binding("web").replicas(3).build())

    async def rooms(self, requirements: ReplicaRequirements | None = SMALL) -> list[int]:
        return await self.session().max_available_replicas(self.clusters, requirements, {})

    @property
    def clusters(self) -> list[Cluster]:
        return [cluster(name).build() for name in self.transport.answers]


MakeWorld = Callable[..., World]


@pytest.fixture
async def world() -> AsyncIterator[MakeWorld]:
    worlds: list[World] = []

    def make(
        transport: FakeTransport,
        policy: FailurePolicy = PARTIAL,
        *,
        answer_ttl: float = 0.0,
        timeout: float = TIMEOUT,
    ) -> World:
        worlds.append(World(transport, policy, answer_ttl, timeout))
        return worlds[-1]

    yield make
    for each in worlds:
        await each.estimator.close()


BOTH = pytest.mark.parametrize("policy", [UPSTREAM, PARTIAL])


@BOTH
async def test_every_cluster_gets_a_request_and_has_its_own_estimate(
    world: MakeWorld, policy: FailurePolicy
) -> None:
    made = world(FakeTransport(m1=9, m2=0, m3=5), policy)
    session = made.session()
    assert await session.max_available_replicas(made.clusters, SMALL, {}) == [9, 0, 5]
    assert sorted(made.transport.asked) == ["m1", "m2", "m3"]
    assert [each.cluster for each in made.transport.requests] == made.transport.asked
    assert session.fallbacks == {}
    assert made.counted.results == ["success"] * 3


async def test_requests_name_the_workload(world: MakeWorld) -> None:
    made = world(FakeTransport(m1=1))
    await made.rooms()
    assert made.transport.about == ["kind=Deployment, name=default/web"]


@BOTH
async def test_minus_one_is_no_opinion_but_no_failure(world: MakeWorld, policy: FailurePolicy) -> None:
    made = world(FakeTransport(m1=-1, m2=4), policy)
    session = made.session()
    assert await session.max_available_replicas(made.clusters, SMALL, {}) == [NO_OPINION, 4]
    assert session.fallbacks == {}


class TestUpstreamsPolicy:
    async def test_one_failure_makes_all_estimates_invalid(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9, m2="rpc error: code = Unavailable desc = gone", m3=5), UPSTREAM)
        session = made.session()
        with pytest.raises(EstimationError, match="Unavailable"):
            await session.max_available_replicas(made.clusters, SMALL, {})
        assert sorted(session.fallbacks) == ["m1", "m2", "m3"]

    async def test_a_failure_ends_the_wait_for_the_others(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=None, m2="refused"), UPSTREAM, timeout=600)
        with pytest.raises(EstimationError, match="refused"):
            await made.rooms()

    async def test_a_cluster_without_a_connection_makes_all_invalid_without_requests(
        self, world: MakeWorld
    ) -> None:
        made = world(FakeTransport(m1=9, m2=9), UPSTREAM)
        made.transport.states["m2"] = ConnectionState.ABSENT
        with pytest.raises(EstimationError, match="cluster m2 does not exist in estimator cache"):
            await made.rooms()
        assert made.transport.asked == []

    async def test_an_unresponsive_estimator_makes_all_invalid_at_every_deadline(
        self, world: MakeWorld
    ) -> None:
        made = world(FakeTransport(m1=9, m2=None), UPSTREAM)
        for _ in range(2):
            with pytest.raises(EstimationError, match=r"no answer within 0\.05s"):
                await made.rooms()
        assert made.transport.asked == ["m1", "m2"] * 2
        assert made.requests.unresponsive == frozenset()

    async def test_later_passes_of_a_decision_do_not_wait_again(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9, m2=None), UPSTREAM)
        session = made.session()
        for _ in range(3):
            with pytest.raises(EstimationError):
                await session.max_available_replicas(made.clusters, SMALL, {})
        assert made.transport.asked == ["m1", "m2"]

    async def test_requests_are_sent_on_a_lost_connection(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9), UPSTREAM)
        made.transport.states["m1"] = ConnectionState.LOST
        assert await made.rooms() == [9]


class TestPartialPolicy:
    async def test_estimates_that_arrived_count_and_others_have_no_opinion(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9, m2="refused", m3=5, m4=5))
        made.transport.states["m4"] = ConnectionState.ABSENT
        session = made.session()
        assert await session.max_available_replicas(made.clusters, SMALL, {}) == [
            9,
            NO_OPINION,
            5,
            NO_OPINION,
        ]
        assert session.fallbacks == {
            "m2": "refused",
            "m4": "cluster m4 does not exist in estimator cache",
        }

    async def test_an_unreadable_response_counts_as_a_failure(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9, m2=5))

        async def garbled(*_: object, **__: object) -> bytes:
            return b"\xff\xff"

        made.transport.call = garbled  # type: ignore[method-assign]
        assert await made.rooms() == [NO_OPINION, NO_OPINION]
        assert made.counted.results == ["error", "error"]

    async def test_an_unresponsive_estimator_delays_one_decision_only(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9, m2=None))
        assert await made.rooms() == [9, NO_OPINION]
        assert made.requests.unresponsive == {"m2"}
        made.requests.timeout = 600  # whoever waited for it now would wait for ever
        session = made.session()
        assert await session.max_available_replicas(made.clusters, LARGE, {}) == [9, NO_OPINION]
        assert "m2" in session.fallbacks
        assert made.transport.asked == ["m1", "m2", "m1"]

    async def test_an_unresponsive_estimator_counts_again_after_a_probe(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9, m2=None))
        await made.rooms()
        made.transport.change("m2", 3)
        await made.probe(lambda: not made.requests.unresponsive)
        assert await made.rooms() == [9, 3]

    async def test_probes_become_rarer_and_replace_the_connection(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=None), timeout=0.01)
        await made.rooms()
        for count in range(2, 9):
            await made.probe(lambda count=count: len(made.pauses) >= count)  # type: ignore[misc]
        assert made.pauses == [1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0, 30.0]
        assert made.transport.reconnected == ["m1", "m1"]

    async def test_probing_ends_with_the_cluster(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=None))
        await made.rooms()
        made.transport.states["m1"] = ConnectionState.ABSENT
        await made.probe(lambda: not made.requests.unresponsive)
        assert made.transport.asked == ["m1"]

    async def test_a_lost_connection_is_not_waited_for(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9, m2=None), timeout=600)
        made.transport.states["m2"] = ConnectionState.LOST
        assert await made.rooms() == [9, NO_OPINION]

    async def test_all_passes_of_a_decision_have_one_deadline(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9, m2=None), timeout=0.2)
        loop = asyncio.get_running_loop()
        began = loop.time()
        session = made.session()
        for requirements in (SMALL, LARGE, None):
            rooms = await session.max_available_replicas(made.clusters, requirements, {})
            assert rooms[1] == NO_OPINION
        assert loop.time() - began < 0.4

    async def test_a_waiting_decision_does_not_block_others(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9, m2=None), timeout=600)
        waiting = asyncio.create_task(made.rooms())
        await asyncio.sleep(0)
        quick = made.session()
        assert await quick.max_available_replicas(made.clusters[:1], LARGE, {}) == [9]
        assert not waiting.done()
        made.transport.change("m2", 2)
        assert await waiting == [9, 2]


class TestTheFirstConnection:
    @BOTH
    async def test_a_decision_waits_for_the_first_attempt(
        self, world: MakeWorld, policy: FailurePolicy
    ) -> None:
        made = world(FakeTransport(m1=9), policy, timeout=600)
        made.transport.states["m1"] = ConnectionState.NEW
        waiting = asyncio.create_task(made.rooms())
        await asyncio.sleep(0)
        assert made.transport.asked == []
        made.transport.connect("m1", ConnectionState.CONNECTED)
        assert await waiting == [9]

    async def test_a_decision_does_not_wait_beyond_its_deadline(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9))
        made.transport.states["m1"] = ConnectionState.NEW
        assert await made.rooms() == [NO_OPINION]
        assert made.transport.asked == []


class TestSharing:
    async def ask_twice(
        self, made: World, second: ReplicaRequirements = SMALL, *, after: float = 0.0
    ) -> None:
        made.seconds = 100.0
        await made.rooms()
        made.seconds += after
        await made.rooms(second)

    async def test_equal_requests_within_the_ttl_are_sent_once(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9, m2=4), answer_ttl=1.0)
        await self.ask_twice(made, after=1.0)
        assert made.transport.asked == ["m1", "m2"]
        assert made.counted.shares == 2

    async def test_equal_requests_after_the_ttl_are_sent_again(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9), answer_ttl=1.0)
        await self.ask_twice(made, after=1.001)
        assert made.transport.asked == ["m1", "m1"]

    async def test_different_requests_are_not_shared(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9), answer_ttl=1.0)
        await self.ask_twice(made, LARGE)
        assert made.transport.asked == ["m1", "m1"]

    async def test_a_ttl_of_zero_shares_nothing(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9), answer_ttl=0.0)
        await self.ask_twice(made)
        assert made.transport.asked == ["m1", "m1"]

    async def test_a_pending_request_is_shared(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=None), answer_ttl=1.0, timeout=600)
        both = asyncio.gather(made.rooms(), made.rooms())
        await asyncio.sleep(0)
        made.transport.change("m1", 6)
        while not both.done():
            await asyncio.sleep(0)
            made.transport.change("m1", 6)
        assert list(await both) == [[6], [6]]
        assert made.transport.asked == ["m1"]

    async def test_a_cancelled_decision_does_not_cancel_a_shared_request(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=None), answer_ttl=1.0, timeout=600)
        first, second = (asyncio.create_task(made.rooms()) for _ in range(2))
        while not made.transport.asked:
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait({first})
        made.transport.change("m1", 6)
        assert await second == [6]

    async def test_a_decision_never_sends_a_request_twice(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9), answer_ttl=0.0)
        session = made.session()
        for _ in range(3):
            await session.max_available_replicas(made.clusters, SMALL, {})
        assert made.transport.asked == ["m1"]

    async def test_assumed_workloads_are_part_of_the_request(self, world: MakeWorld) -> None:
        made = world(FakeTransport(m1=9, m2=4), answer_ttl=1.0)
        session = made.session()
        assumed: dict[str, Sequence[AssumedWorkload]] = {
            "m1": [AssumedWorkload("shop", (Component("web", 2, SMALL),))]
        }
        await session.max_available_replicas(made.clusters, SMALL, {})
        await session.max_available_replicas(made.clusters, SMALL, assumed)
        assert made.transport.asked == ["m1", "m2", "m1"]
        (workload,) = made.transport.requests[2].assumed_workloads
        assert (workload.namespace, workload.components[0].replicas) == ("shop", 2)


async def test_sets_of_components_are_requested_together(world: MakeWorld) -> None:
    made = world(FakeTransport(m1=9))
    session = made.session()
    assert await session.max_available_component_sets(
        made.clusters, [Component("a", 2, SMALL)], "shop", {}
    ) == [9]


@BOTH
async def test_requirements_that_cannot_be_encoded_make_all_invalid(
    world: MakeWorld, policy: FailurePolicy
) -> None:
    made = world(FakeTransport(m1=9), policy)
    with pytest.raises(EstimationError, match="cannot be encoded"):
        await made.rooms(ReplicaRequirements(node_claim={"tolerations": [{"key": 5}]}))


@pytest.mark.parametrize(("policy", "rooms"), [(PARTIAL, [NO_OPINION, 4]), (UPSTREAM, None)])
async def test_an_estimate_below_minus_one_counts_as_a_failure(
    world: MakeWorld, policy: FailurePolicy, rooms: list[int] | None
) -> None:
    made = world(FakeTransport(m1=-(2**31), m2=4), policy)
    session = made.session()
    if rooms is None:
        with pytest.raises(EstimationError):
            await session.max_available_replicas(made.clusters, SMALL, {})
    else:
        assert await session.max_available_replicas(made.clusters, SMALL, {}) == rooms
    assert "no number of replicas" in session.fallbacks["m1"]
