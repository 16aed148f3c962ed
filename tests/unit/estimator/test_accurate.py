"""Estimates of a decision when estimators respond, fail or hang, with both failure policies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from karmada_pyscheduler.estimator.accurate import AccurateEstimator
from karmada_pyscheduler.estimator.pb import estimator_pb2 as pb
from karmada_pyscheduler.estimator.session import (
    PARTIAL,
    UPSTREAM,
    EstimationSession,
    FailurePolicy,
    keep_slot,
)
from karmada_pyscheduler.estimator.silence import SilentEstimators
from karmada_pyscheduler.estimator.transport import ConnectionState, EstimatorCallError
from karmada_pyscheduler.estimator.wire import MAX_AVAILABLE_REPLICAS
from karmada_scheduler.api import quantity
from karmada_scheduler.api.binding import AssumedWorkload, Component, ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.available_replicas import NO_OPINION, EstimationError
from karmada_scheduler.testing import binding, cluster

SMALL = ReplicaRequirements({"cpu": quantity.parse("100m")})
LARGE = ReplicaRequirements({"cpu": quantity.parse("2")})
TIMEOUT = 0.05
"""Seconds of real time, because the deadline of a hanging estimator uses it."""


class FakeTransport:
    """Estimators by cluster: a number, an error, or None for no response until ``change``."""

    def __init__(self, **answers: int | str | None) -> None:
        self.answers: dict[str, int | str | None] = dict(answers)
        self.states: dict[str, ConnectionState] = {}
        self.called: list[str] = []
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
        self.called.append(cluster)
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


class CountingObserver:
    """Counts requests."""

    def __init__(self) -> None:
        self.results: list[str] = []
        self.shares = 0

    def request_ended(self, method: str, result: str, seconds: float, /) -> None:
        self.results.append(result)

    def request_shared(self, method: str, /) -> None:
        self.shares += 1


class EstimatorHarness:
    """An accurate estimator with a manual clock and manual probes."""

    def __init__(
        self,
        transport: FakeTransport,
        policy: FailurePolicy,
        answer_ttl: float,
        timeout: float,
        silent: SilentEstimators | None = None,
    ) -> None:
        self.transport = transport
        self.seconds: float | None = None
        self.observer = CountingObserver()
        self.pauses: list[float] = []
        self._probing = asyncio.Event()
        self.estimator = AccurateEstimator(
            transport,  # type: ignore[arg-type]
            timeout=timeout,
            policy=policy,
            answer_ttl=answer_ttl,
            observer=self.observer,
            clock=self.clock,
            pause=self.pause,
        )
        if silent is not None:
            self.estimator.silent = silent

    def clock(self) -> float:
        return asyncio.get_running_loop().time() if self.seconds is None else self.seconds

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await self._probing.wait()
        self._probing.clear()

    async def probe(self, until: Callable[[], bool]) -> None:
        """Start one probe, and wait for a condition."""
        self._probing.set()
        async with asyncio.timeout(5):
            while not until():
                await asyncio.sleep(0)

    def session(self, slot: Slot | None = None) -> EstimationSession:
        return self.estimator.session(
            binding("web").replicas(3).build(), keep_slot if slot is None else slot.released
        )

    async def replicas(
        self, requirements: ReplicaRequirements | None = SMALL, *, slot: Slot | None = None
    ) -> list[int]:
        return await self.session(slot).max_available_replicas(self.clusters, requirements, {})

    @property
    def clusters(self) -> list[Cluster]:
        return [cluster(name).build() for name in self.transport.answers]


MakeHarness = Callable[..., EstimatorHarness]


@pytest.fixture
async def make_harness() -> AsyncIterator[MakeHarness]:
    harnesses: list[EstimatorHarness] = []

    def make(
        transport: FakeTransport,
        policy: FailurePolicy = PARTIAL,
        *,
        answer_ttl: float = 0.0,
        timeout: float = TIMEOUT,
        silent: SilentEstimators | None = None,
    ) -> EstimatorHarness:
        harnesses.append(EstimatorHarness(transport, policy, answer_ttl, timeout, silent))
        return harnesses[-1]

    yield make
    for each in harnesses:
        await each.estimator.close()


BOTH = pytest.mark.parametrize("policy", [UPSTREAM, PARTIAL])


@BOTH
async def test_every_cluster_gets_a_request_and_has_its_own_estimate(
    make_harness: MakeHarness, policy: FailurePolicy
) -> None:
    harness = make_harness(FakeTransport(m1=9, m2=0, m3=5), policy)
    session = harness.session()
    assert await session.max_available_replicas(harness.clusters, SMALL, {}) == [9, 0, 5]
    assert sorted(harness.transport.called) == ["m1", "m2", "m3"]
    assert [each.cluster for each in harness.transport.requests] == harness.transport.called
    assert session.fallbacks == {}
    assert harness.observer.results == ["success"] * 3


async def test_requests_name_the_workload(make_harness: MakeHarness) -> None:
    harness = make_harness(FakeTransport(m1=1))
    await harness.replicas()
    assert harness.transport.about == ["kind=Deployment, name=default/web"]


@BOTH
async def test_minus_one_is_no_opinion_but_no_failure(
    make_harness: MakeHarness, policy: FailurePolicy
) -> None:
    harness = make_harness(FakeTransport(m1=-1, m2=4), policy)
    session = harness.session()
    assert await session.max_available_replicas(harness.clusters, SMALL, {}) == [NO_OPINION, 4]
    assert session.fallbacks == {}


class TestUpstreamPolicy:
    async def test_one_failure_makes_all_estimates_invalid(self, make_harness: MakeHarness) -> None:
        harness = make_harness(
            FakeTransport(m1=9, m2="rpc error: code = Unavailable desc = gone", m3=5), UPSTREAM
        )
        session = harness.session()
        with pytest.raises(EstimationError, match="Unavailable"):
            await session.max_available_replicas(harness.clusters, SMALL, {})
        assert sorted(session.fallbacks) == ["m1", "m2", "m3"]

    async def test_a_failure_ends_the_wait_for_the_others(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=None, m2="refused"), UPSTREAM, timeout=600)
        with pytest.raises(EstimationError, match="refused"):
            await harness.replicas()

    async def test_a_cluster_without_a_connection_makes_all_invalid_without_requests(
        self, make_harness: MakeHarness
    ) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=9), UPSTREAM)
        harness.transport.states["m2"] = ConnectionState.ABSENT
        with pytest.raises(EstimationError, match="cluster m2 does not exist in estimator cache"):
            await harness.replicas()
        assert harness.transport.called == []

    async def test_an_unresponsive_estimator_makes_all_invalid_at_every_deadline(
        self, make_harness: MakeHarness
    ) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=None), UPSTREAM)
        for _ in range(2):
            with pytest.raises(EstimationError, match=r"no answer within 0\.05s"):
                await harness.replicas()
        assert harness.transport.called == ["m1", "m2"] * 2
        assert harness.estimator.unresponsive == frozenset()

    async def test_later_passes_of_a_decision_do_not_wait_again(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=None), UPSTREAM)
        session = harness.session()
        for _ in range(3):
            with pytest.raises(EstimationError):
                await session.max_available_replicas(harness.clusters, SMALL, {})
        assert harness.transport.called == ["m1", "m2"]

    async def test_requests_are_sent_on_a_lost_connection(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=9), UPSTREAM)
        harness.transport.states["m1"] = ConnectionState.LOST
        assert await harness.replicas() == [9]


class TestPartialPolicy:
    async def test_estimates_that_arrived_count_and_others_have_no_opinion(
        self, make_harness: MakeHarness
    ) -> None:
        harness = make_harness(FakeTransport(m1=9, m2="refused", m3=5, m4=5))
        harness.transport.states["m4"] = ConnectionState.ABSENT
        session = harness.session()
        assert await session.max_available_replicas(harness.clusters, SMALL, {}) == [
            9,
            NO_OPINION,
            5,
            NO_OPINION,
        ]
        assert session.fallbacks == {
            "m2": "refused",
            "m4": "cluster m4 does not exist in estimator cache",
        }

    async def test_an_unreadable_response_counts_as_a_failure(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=5))

        async def garbled(*_: object, **__: object) -> bytes:
            return b"\xff\xff"

        harness.transport.call = garbled  # type: ignore[method-assign]
        assert await harness.replicas() == [NO_OPINION, NO_OPINION]
        assert harness.observer.results == ["error", "error"]

    async def test_an_unresponsive_estimator_delays_one_decision_only(
        self, make_harness: MakeHarness
    ) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=None))
        assert await harness.replicas() == [9, NO_OPINION]
        assert harness.estimator.unresponsive == {"m2"}
        harness.estimator.timeout = 600  # a wait for it from now on would not end
        session = harness.session()
        assert await session.max_available_replicas(harness.clusters, LARGE, {}) == [9, NO_OPINION]
        assert "m2" in session.fallbacks
        assert harness.transport.called == ["m1", "m2", "m1"]

    async def test_an_unresponsive_estimator_counts_again_after_a_probe(
        self, make_harness: MakeHarness
    ) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=None))
        await harness.replicas()
        harness.transport.change("m2", 3)
        await harness.probe(lambda: not harness.estimator.unresponsive)
        harness.estimator.timeout = 600
        assert await harness.replicas() == [9, 3]

    async def test_probes_become_rarer_and_replace_the_connection(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=None), timeout=0.01)
        await harness.replicas()
        for count in range(2, 9):
            await harness.probe(lambda count=count: len(harness.pauses) >= count)  # type: ignore[misc]
        assert harness.pauses == [1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0, 30.0]
        assert harness.transport.reconnected == ["m1", "m1"]

    async def test_probing_ends_with_the_cluster(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=None))
        await harness.replicas()
        harness.transport.states["m1"] = ConnectionState.ABSENT
        await harness.probe(lambda: not harness.estimator.unresponsive)
        assert harness.transport.called == ["m1"]

    async def test_a_lost_connection_is_not_waited_for(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=None), timeout=600)
        harness.transport.states["m2"] = ConnectionState.LOST
        assert await harness.replicas() == [9, NO_OPINION]

    async def test_all_passes_of_a_decision_have_one_deadline(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=None), timeout=0.2)
        loop = asyncio.get_running_loop()
        began = loop.time()
        session = harness.session()
        for requirements in (SMALL, LARGE, None):
            replicas = await session.max_available_replicas(harness.clusters, requirements, {})
            assert replicas[1] == NO_OPINION
        assert loop.time() - began < 0.4

    async def test_requests_after_the_deadline_have_no_opinion_and_are_not_sent(
        self, make_harness: MakeHarness
    ) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=5))
        harness.seconds = 0.0
        session = harness.session()
        assert await session.max_available_replicas(harness.clusters, SMALL, {}) == [9, 5]
        harness.seconds = TIMEOUT
        assert await session.max_available_replicas(harness.clusters, LARGE, {}) == [NO_OPINION, NO_OPINION]
        assert session.fallbacks == dict.fromkeys(("m1", "m2"), f"no answer within {TIMEOUT:g}s")
        assert harness.transport.called == ["m1", "m2"]

    async def test_a_waiting_decision_does_not_block_others(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=None), timeout=600)
        waiting = asyncio.create_task(harness.replicas())
        await asyncio.sleep(0)
        quick = harness.session()
        assert await quick.max_available_replicas(harness.clusters[:1], LARGE, {}) == [9]
        assert not waiting.done()
        harness.transport.change("m2", 2)
        assert await waiting == [9, 2]


class SilentAtOnce(SilentEstimators):
    """Estimators of which some are silent from their first request on."""

    names: frozenset[str] = frozenset()

    @property
    def clusters(self) -> frozenset[str]:
        return self.names

    @contextmanager
    def watching(self, requests: Mapping[str, asyncio.Task[Any]]) -> Iterator[asyncio.Future[None]]:
        with super().watching(requests) as watch:
            watch.set_result(None)
            yield watch


class Slot:
    """A slot of a decision, which it may release and get again."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.refusals = 0
        self.free = asyncio.Event()
        self.free.set()

    @asynccontextmanager
    async def released(self) -> AsyncIterator[bool]:
        if self.refusals:
            self.refusals -= 1
            yield False
            return
        self.events.append("released")
        yield True
        await self.free.wait()
        self.events.append("acquired")


class TestSilentEstimators:
    def harness(self, make_harness: MakeHarness, policy: FailurePolicy, timeout: float) -> EstimatorHarness:
        return make_harness(
            FakeTransport(m1=9, m2=None),
            policy,
            timeout=timeout,
            silent=SilentAtOnce(lambda: 0.0, names=frozenset({"m2"})),
        )

    @BOTH
    async def test_a_decision_waits_for_them_without_its_slot_and_counts_their_late_response(
        self, make_harness: MakeHarness, policy: FailurePolicy
    ) -> None:
        harness, slot = self.harness(make_harness, policy, 600), Slot()
        waiting = asyncio.create_task(harness.replicas(slot=slot))
        while not slot.events:
            await asyncio.sleep(0)
        assert slot.events == ["released"]
        harness.transport.change("m2", 4)
        assert await waiting == [9, 4]
        assert slot.events == ["released", "acquired"]

    async def test_a_decision_waits_for_them_until_its_deadline(self, make_harness: MakeHarness) -> None:
        harness, slot = self.harness(make_harness, PARTIAL, TIMEOUT), Slot()
        assert await harness.replicas(slot=slot) == [9, NO_OPINION]
        assert slot.events == ["released", "acquired"]

    async def test_a_decision_that_cannot_release_its_slot_tries_again(
        self, make_harness: MakeHarness
    ) -> None:
        harness, slot = self.harness(make_harness, PARTIAL, 600), Slot()
        slot.refusals = 3
        waiting = asyncio.create_task(harness.replicas(slot=slot))
        while not slot.events:
            await asyncio.sleep(0)
        harness.transport.change("m2", 4)
        assert await waiting == [9, 4]

    async def test_the_wait_for_a_slot_is_not_part_of_the_deadline(self, make_harness: MakeHarness) -> None:
        harness, slot = self.harness(make_harness, UPSTREAM, 600), Slot()
        harness.seconds = 0.0
        slot.free.clear()
        session = harness.session(slot)
        waiting = asyncio.create_task(session.max_available_replicas(harness.clusters, SMALL, {}))
        while not slot.events:
            await asyncio.sleep(0)
        harness.transport.change("m2", 4)
        for _ in range(20):
            await asyncio.sleep(0)
        harness.seconds = 700.0
        slot.free.set()
        assert await waiting == [9, 4]
        assert await session.max_available_replicas(harness.clusters, LARGE, {}) == [9, 4]

    @BOTH
    async def test_a_decision_with_all_responses_keeps_its_slot(
        self, make_harness: MakeHarness, policy: FailurePolicy
    ) -> None:
        harness, slot = make_harness(FakeTransport(m1=9, m2=4), policy), Slot()
        assert await harness.replicas(slot=slot) == [9, 4]
        assert slot.events == []


async def test_a_request_that_is_cancelled_was_not_answered(make_harness: MakeHarness) -> None:
    answered: list[bool] = []

    class Recording(SilentEstimators):
        def ended(self, cluster: str, number: int, *, responded: bool) -> None:
            answered.append(responded)
            super().ended(cluster, number, responded=responded)

    harness = make_harness(FakeTransport(m1=None), timeout=600, silent=Recording(lambda: 0.0))
    waiting = asyncio.create_task(harness.replicas())
    while not harness.transport.called:
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await harness.estimator.close()
    assert answered == [False]


class TestAMissedDeadline:
    async def test_ends_the_waits_of_all_decisions(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=None))
        first = asyncio.create_task(harness.replicas())
        while harness.transport.called != ["m1", "m2"]:
            await asyncio.sleep(0)
        harness.estimator.timeout = 600
        second = harness.session()
        later = asyncio.create_task(second.max_available_replicas(harness.clusters, LARGE, {}))
        assert list(await asyncio.gather(first, later)) == [[9, NO_OPINION], [9, NO_OPINION]]
        assert "is being probed" in second.fallbacks["m2"]
        assert sorted(harness.observer.results) == ["success", "success", "timeout", "timeout"]

    async def test_ends_only_the_wait_of_its_own_decision_under_upstream(
        self, make_harness: MakeHarness
    ) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=None), UPSTREAM)
        first = asyncio.create_task(harness.replicas())
        while harness.transport.called != ["m1", "m2"]:
            await asyncio.sleep(0)
        harness.estimator.timeout = 600
        later = asyncio.create_task(harness.replicas(LARGE))
        with pytest.raises(EstimationError):
            await first
        harness.transport.change("m2", 3)
        assert await later == [9, 3]


class TestTheFirstConnection:
    @BOTH
    async def test_a_decision_waits_for_the_first_attempt(
        self, make_harness: MakeHarness, policy: FailurePolicy
    ) -> None:
        harness = make_harness(FakeTransport(m1=9), policy, timeout=600)
        harness.transport.states["m1"] = ConnectionState.NEW
        waiting = asyncio.create_task(harness.replicas())
        await asyncio.sleep(0)
        assert harness.transport.called == []
        harness.transport.connect("m1", ConnectionState.CONNECTED)
        assert await waiting == [9]

    async def test_a_decision_does_not_wait_beyond_its_deadline(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=9))
        harness.transport.states["m1"] = ConnectionState.NEW
        assert await harness.replicas() == [NO_OPINION]
        assert harness.transport.called == []


class TestSharing:
    async def request_twice(
        self, harness: EstimatorHarness, second: ReplicaRequirements = SMALL, *, after: float = 0.0
    ) -> None:
        harness.seconds = 100.0
        await harness.replicas()
        harness.seconds += after
        await harness.replicas(second)

    async def test_equal_requests_within_the_ttl_are_sent_once(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=4), answer_ttl=1.0)
        await self.request_twice(harness, after=1.0)
        assert harness.transport.called == ["m1", "m2"]
        assert harness.observer.shares == 2

    @pytest.mark.parametrize(
        ("second", "after", "ttl"),
        [
            pytest.param(SMALL, 1.001, 1.0, id="after-the-ttl"),
            pytest.param(LARGE, 0.0, 1.0, id="different-requests"),
            pytest.param(SMALL, 0.0, 0.0, id="a-ttl-of-zero"),
        ],
    )
    async def test_others_are_sent_again(
        self, second: ReplicaRequirements, after: float, ttl: float, make_harness: MakeHarness
    ) -> None:
        harness = make_harness(FakeTransport(m1=9), answer_ttl=ttl)
        await self.request_twice(harness, second, after=after)
        assert harness.transport.called == ["m1", "m1"]

    async def test_a_pending_request_is_shared(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=None), answer_ttl=1.0, timeout=600)
        both = asyncio.gather(harness.replicas(), harness.replicas())
        await asyncio.sleep(0)
        harness.transport.change("m1", 6)
        while not both.done():
            await asyncio.sleep(0)
            harness.transport.change("m1", 6)
        assert list(await both) == [[6], [6]]
        assert harness.transport.called == ["m1"]

    async def test_a_cancelled_decision_does_not_cancel_a_shared_request(
        self, make_harness: MakeHarness
    ) -> None:
        harness = make_harness(FakeTransport(m1=None), answer_ttl=1.0, timeout=600)
        first, second = (asyncio.create_task(harness.replicas()) for _ in range(2))
        while not harness.transport.called:
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait({first})
        harness.transport.change("m1", 6)
        assert await second == [6]

    async def test_a_decision_that_fails_does_not_cancel_a_shared_request(
        self, make_harness: MakeHarness
    ) -> None:
        harness = make_harness(FakeTransport(m1=None, m2="broken"), UPSTREAM, answer_ttl=1.0, timeout=600)
        with pytest.raises(EstimationError):
            await harness.replicas()
        [m1, _] = harness.clusters
        other = asyncio.create_task(harness.session().max_available_replicas([m1], SMALL, {}))
        await asyncio.sleep(0)
        harness.transport.change("m1", 6)
        assert await other == [6]
        assert harness.transport.called == ["m1", "m2"]

    async def test_a_decision_never_sends_a_request_twice(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=9), answer_ttl=0.0)
        session = harness.session()
        for _ in range(3):
            await session.max_available_replicas(harness.clusters, SMALL, {})
        assert harness.transport.called == ["m1"]

    async def test_assumed_workloads_are_part_of_the_request(self, make_harness: MakeHarness) -> None:
        harness = make_harness(FakeTransport(m1=9, m2=4), answer_ttl=1.0)
        session = harness.session()
        assumed: dict[str, Sequence[AssumedWorkload]] = {
            "m1": [AssumedWorkload("shop", (Component("web", 2, SMALL),))]
        }
        await session.max_available_replicas(harness.clusters, SMALL, {})
        await session.max_available_replicas(harness.clusters, SMALL, assumed)
        assert harness.transport.called == ["m1", "m2", "m1"]
        (workload,) = harness.transport.requests[2].assumed_workloads
        assert (workload.namespace, workload.components[0].replicas) == ("shop", 2)


async def test_sets_of_components_are_requested_together(make_harness: MakeHarness) -> None:
    harness = make_harness(FakeTransport(m1=9))
    session = harness.session()
    assert await session.max_available_component_sets(
        harness.clusters, [Component("a", 2, SMALL)], "shop", {}
    ) == [9]


@BOTH
async def test_requirements_that_cannot_be_encoded_make_all_invalid(
    make_harness: MakeHarness, policy: FailurePolicy
) -> None:
    harness = make_harness(FakeTransport(m1=9), policy)
    with pytest.raises(EstimationError, match="cannot be encoded"):
        await harness.replicas(ReplicaRequirements(node_claim={"tolerations": [{"key": 5}]}))


@pytest.mark.parametrize(("policy", "replicas"), [(PARTIAL, [NO_OPINION, 4]), (UPSTREAM, None)])
async def test_an_estimate_below_minus_one_counts_as_a_failure(
    make_harness: MakeHarness, policy: FailurePolicy, replicas: list[int] | None
) -> None:
    harness = make_harness(FakeTransport(m1=-(2**31), m2=4), policy)
    session = harness.session()
    if replicas is None:
        with pytest.raises(EstimationError):
            await session.max_available_replicas(harness.clusters, SMALL, {})
    else:
        assert await session.max_available_replicas(harness.clusters, SMALL, {}) == replicas
    assert "no number of replicas" in session.fallbacks["m1"]
