"""Leader election: the holder, the duration, and the fields of the Lease."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from karmada_pyscheduler.client.leader import _JITTER, Elector
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.config.options import LeaderElection

START = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


class FakeRandom(Random):
    """Returns the largest number."""

    def uniform(self, a: float, b: float) -> float:
        assert a == 1.0
        return b


CONFLICT = ApiError("changed", code=409, reason="Conflict")
BROKEN = ApiError("broken", code=500)


class ElectionHarness:
    """One Lease on one API server, and a clock that moves only when a candidate sleeps."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.lease: dict[str, Any] | None = None
        self.failure: ApiError | None = None
        self.refusals: list[ApiError | None] = []
        """The answers to the next writes, None for those that are made."""
        self.on_sleep: Callable[[], None] = lambda: None
        self.requests: list[tuple[str, float]] = []
        self.slept: list[float] = []
        self._version = 0

    def clock(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.slept.append(seconds)
        self.on_sleep()
        await asyncio.sleep(0)

    async def request(self, method: str, path: str, *, body: Any = None, timeout: float = 0) -> Any:
        self.requests.append((method, timeout))
        if self.failure is not None:
            raise self.failure
        if method == "PUT" and self.refusals and (refusal := self.refusals.pop(0)) is not None:
            raise refusal
        if method == "GET":
            if self.lease is None:
                raise ApiError("not found", code=404, reason="NotFound")
            return self.lease
        if method == "PUT":
            if self.lease is None:
                raise ApiError("not found", code=404, reason="NotFound")
            if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                raise ApiError("changed", code=409, reason="Conflict")
        self._version += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self._version)}}
        return self.lease

    def hold(self, identity: str, *, duration: int = 15, transitions: int = 7) -> None:
        """Write the Lease as another process."""
        self._version += 1
        self.lease = {
            "metadata": {"name": "l", "namespace": "n", "resourceVersion": str(self._version)},
            "spec": {
                "holderIdentity": identity,
                "leaseDurationSeconds": duration,
                "leaseTransitions": transitions,
                "renewTime": f"{self._version}",
            },
        }

    def candidate(self, identity: str = "us", **settings: Any) -> Elector:
        return Elector(
            self,  # type: ignore[arg-type]
            LeaderElection(name="l", namespace="n", **settings),
            identity=identity,
            clock=self.clock,
            now=self.now,
            sleep=self.sleep,
            random=FakeRandom(),
        )

    async def renew_until(self, elector: Elector, seconds: float) -> asyncio.Task[Any]:
        """Let a leader renew its Lease up to a time; return the task, which goes on."""
        renewing = asyncio.create_task(elector.renew())
        while self.seconds < seconds:
            await asyncio.sleep(0)
        return renewing

    async def leader(self, identity: str = "us", **settings: Any) -> Elector:
        elector = self.candidate(identity, **settings)
        await elector.acquire()
        return elector

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec


@pytest.fixture
def harness() -> ElectionHarness:
    return ElectionHarness()


async def test_a_missing_lease_is_created_with_the_fields_of_client_go(harness: ElectionHarness) -> None:
    elector = await harness.leader()
    assert elector.is_leader()
    assert harness.spec == {
        "holderIdentity": "us",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-02T03:04:05.678901Z",
        "renewTime": "2026-01-02T03:04:05.678901Z",
        "leaseTransitions": 0,
    }


async def test_a_lease_that_is_renewed_by_another_is_not_taken(harness: ElectionHarness) -> None:
    harness.hold("them")
    harness.on_sleep = lambda: harness.hold("them")
    acquiring = asyncio.create_task(harness.candidate().acquire())
    while harness.seconds < 120:
        await asyncio.sleep(0)
    assert not acquiring.done()
    assert harness.spec["holderIdentity"] == "them"
    acquiring.cancel()


async def test_a_lease_is_taken_when_it_was_seen_unchanged_for_its_own_duration(
    harness: ElectionHarness,
) -> None:
    harness.hold("them", duration=40)
    await harness.candidate().acquire()
    assert 40 <= harness.seconds <= 45
    assert harness.spec["leaseTransitions"] == 8
    assert harness.spec["holderIdentity"] == "us"


async def test_a_released_lease_is_acquired_at_once(harness: ElectionHarness) -> None:
    harness.hold("")
    await harness.candidate().acquire()
    assert harness.seconds == 0


async def test_renewing_keeps_the_time_of_acquisition_and_the_transitions(harness: ElectionHarness) -> None:
    elector = await harness.leader()
    renewing = await harness.renew_until(elector, 10)
    renewing.cancel()
    assert harness.spec["acquireTime"] == "2026-01-02T03:04:05.678901Z"
    assert harness.spec["renewTime"] > "2026-01-02T03:04:13"
    assert harness.spec["leaseTransitions"] == 0
    assert elector.is_leader()


async def test_a_leader_that_cannot_renew_stops_leading_at_the_deadline(harness: ElectionHarness) -> None:
    elector = await harness.leader()
    harness.failure = ApiError("cannot reach it")
    why = await elector.renew()
    assert why == "the lease could not be renewed for 10s"
    assert harness.seconds == pytest.approx(10)
    assert not elector.is_leader()


async def test_a_leader_that_was_suspended_past_the_deadline_does_not_lead_any_more(
    harness: ElectionHarness,
) -> None:
    elector = await harness.leader()
    harness.seconds += 10.001
    assert not elector.is_leader()


async def test_a_leader_whose_lease_was_taken_stops_within_one_period(harness: ElectionHarness) -> None:
    elector = await harness.leader()
    harness.hold("them")
    assert await elector.renew() == "the lease is held by them"
    assert harness.seconds == pytest.approx(2)
    assert not elector.is_leader()


async def test_a_short_outage_of_the_api_server_costs_no_leadership(harness: ElectionHarness) -> None:
    elector = await harness.leader()
    harness.failure = ApiError("cannot reach it")

    def recover() -> None:
        if harness.seconds >= 6:
            harness.failure = None

    harness.on_sleep = recover
    renewing = await harness.renew_until(elector, 60)
    assert elector.is_leader()
    renewing.cancel()


async def test_a_released_lease_has_no_holder_and_is_free_at_once(harness: ElectionHarness) -> None:
    elector = await harness.leader()
    await elector.release()
    assert not elector.is_leader()
    assert harness.spec["holderIdentity"] == ""
    other = await harness.leader("them")
    assert other.is_leader()
    assert harness.spec["leaseTransitions"] == 1


@pytest.mark.parametrize(("holder", "left"), [("us", ""), ("them", "them")])
async def test_a_lease_is_released_if_it_is_ours_also_if_the_response_to_its_last_renewal_is_unknown(
    holder: str, left: str, harness: ElectionHarness
) -> None:
    elector = await harness.leader()
    harness.hold(holder)
    await elector.release()
    assert harness.spec["holderIdentity"] == left


async def test_a_release_that_the_api_server_refuses_is_logged_and_not_repeated(
    harness: ElectionHarness, caplog: pytest.LogCaptureFixture
) -> None:
    elector = await harness.leader()
    harness.requests.clear()
    harness.failure = BROKEN
    await elector.release()
    assert [method for method, _ in harness.requests] == ["PUT"]
    assert "Cannot release the lease" in caplog.text


async def test_only_one_of_two_racing_candidates_leads(harness: ElectionHarness) -> None:
    first, second = harness.candidate("first"), harness.candidate("second")
    tasks = [asyncio.create_task(each.acquire()) for each in (first, second)]
    while harness.seconds < 5:
        await asyncio.sleep(0)
    assert [task.done() for task in tasks].count(True) == 1
    assert first.is_leader() != second.is_leader()
    for task in tasks:
        task.cancel()


@pytest.mark.parametrize("late", [8, 11])
async def test_a_renewal_with_a_late_response_does_not_restore_the_leadership(
    harness: ElectionHarness, late: int
) -> None:
    elector = await harness.leader()
    request, seen = harness.request, []

    async def slow(method: str, path: str, *, body: Any = None, timeout: float = 0) -> Any:
        answer = await request(method, path, body=body)
        harness.seconds += late  # the server stores the Lease, and its response is late
        seen.append(elector.is_leader())
        return answer

    harness.request = slow  # type: ignore[method-assign]
    assert await elector.renew() == "the lease could not be renewed for 10s"
    assert seen == [False]
    assert not elector.is_leader()
    harness.request = request  # type: ignore[method-assign]
    harness.seconds -= 5
    assert not elector.is_leader(), "not even if the clock goes back"


async def test_a_candidate_whose_first_write_took_longer_than_the_deadline_goes_on_trying(
    harness: ElectionHarness,
) -> None:
    elector = harness.candidate()
    request, answers = harness.request, 0

    async def slow(method: str, path: str, *, body: Any = None, timeout: float = 0) -> Any:
        nonlocal answers
        answer = await request(method, path, body=body)
        answers += 1
        if answers == 1:
            harness.seconds += 11
        return answer

    harness.failure = None
    harness.request = slow  # type: ignore[method-assign]
    harness.hold("")
    await elector.acquire()
    assert elector.is_leader()
    assert answers == 4


async def test_a_candidate_that_cannot_read_the_lease_for_minutes_has_a_problem(
    harness: ElectionHarness,
) -> None:
    elector = harness.candidate()
    harness.failure = ApiError("Unauthorized", code=401)
    acquiring = asyncio.create_task(elector.acquire())
    while harness.seconds < 290:
        assert elector.problem is None
        await asyncio.sleep(0)
    while harness.seconds < 320:
        await asyncio.sleep(0)
    assert "n/l could not be read or written for 3" in (elector.problem or "")
    assert "Unauthorized" in (elector.problem or "")
    harness.failure = None
    await acquiring
    assert elector.problem is None


@pytest.mark.parametrize(
    "answer", [None, [], "x", {}, {"metadata": {}, "spec": []}, {"metadata": {}, "spec": 1}]
)
async def test_a_response_that_is_not_a_lease_is_an_api_error(harness: ElectionHarness, answer: Any) -> None:
    elector = harness.candidate()
    request = harness.request

    async def lie(method: str, path: str, *, body: Any = None, timeout: float = 0) -> Any:
        return answer

    harness.request = lie  # type: ignore[method-assign]
    acquiring = asyncio.create_task(elector.acquire())
    while harness.seconds < 20:
        await asyncio.sleep(0)
    assert not elector.is_leader()
    harness.request = request  # type: ignore[method-assign]
    await acquiring
    assert elector.is_leader()


async def test_the_holder_of_the_lease_is_logged_once(
    harness: ElectionHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    harness.hold("them")
    await harness.candidate().acquire()
    assert [each.message for each in caplog.records if "held by" in each.message] == [
        "The lease is held by them, waiting for it"
    ]


async def test_a_lease_without_a_holder_that_another_candidate_takes_changes_hands(
    harness: ElectionHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    held_since(harness, "2026-01-01T00:00:00Z")
    del harness.spec["holderIdentity"]
    harness.refusals = [CONFLICT]
    await harness.candidate().acquire()
    assert "The lease is changing hands, waiting for it" in [each.message for each in caplog.records]


def held_since(harness: ElectionHarness, acquired: object) -> None:
    harness.hold("them")
    harness.spec["acquireTime"] = acquired


async def test_the_acquire_time_is_logged_once_for_each_holder(
    harness: ElectionHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    held_since(harness, "2026-01-01T00:00:00.000000Z")
    harness.on_sleep = lambda: held_since(
        harness, "2026-01-01T00:00:00.000000Z" if harness.seconds < 20 else "2026-01-02T03:04:25Z"
    )
    acquiring = asyncio.create_task(harness.candidate().acquire())
    while harness.seconds < 30:
        await asyncio.sleep(0)
    acquiring.cancel()
    first, second = [each.message for each in caplog.records if "held by" in each.message]
    assert first == "The lease is held by them since 2026-01-01T00:00:00Z (1 day, 3:04:05), waiting for it"
    assert second.startswith("The lease is held by them since 2026-01-02T03:04:25Z (0:00:0")


@pytest.mark.parametrize(
    ("acquired", "shown"),
    [
        (None, "them"),
        ("", "them"),
        ("soon", "them"),
        (7, "them"),
        ({}, "them"),
        ("2026-13-01T00:00:00Z", "them"),
        ("2026-01-03T00:00:00Z", "them since 2026-01-03T00:00:00Z (0:00:00)"),
    ],
)
async def test_an_invalid_acquire_time_does_not_end_the_wait(
    harness: ElectionHarness, caplog: pytest.LogCaptureFixture, acquired: object, shown: str
) -> None:
    caplog.set_level("INFO")
    held_since(harness, acquired)
    elector = await harness.leader()
    assert elector.is_leader()
    assert f"The lease is held by {shown}, waiting for it" in caplog.text


async def test_a_leader_leads_until_the_deadline(harness: ElectionHarness) -> None:
    elector = await harness.leader()
    harness.seconds += 9.5
    assert elector.is_leader()
    assert elector.seconds_left() == pytest.approx(0.5)


async def test_candidates_wait_for_a_period_and_a_random_part_of_another(harness: ElectionHarness) -> None:
    harness.hold("them", duration=5)
    await harness.candidate().acquire()
    assert set(harness.slept) == {2 * (1 + _JITTER)}


async def test_a_request_may_take_half_the_deadline_and_no_longer_than_is_left(
    harness: ElectionHarness,
) -> None:
    elector = harness.candidate()
    harness.hold("")
    await elector.acquire()
    assert harness.requests == [("GET", 5.0), ("PUT", 5.0)]
    harness.requests.clear()
    harness.failure = ApiError("cannot reach it")
    await elector.renew()
    assert harness.requests == [("PUT", 5.0), ("PUT", 5.0), ("PUT", 4.0), ("PUT", 2.0)]


async def test_the_last_renewal_may_be_just_before_the_deadline(harness: ElectionHarness) -> None:
    elector = await harness.leader()
    harness.failure = ApiError("cannot reach it")
    harness.seconds += 1.5

    def recover() -> None:
        if harness.seconds > 9:
            harness.failure = None

    harness.on_sleep = recover
    renewing = await harness.renew_until(elector, 20)
    assert elector.is_leader()
    renewing.cancel()


async def test_requests_that_hang_end_with_the_time_for_an_attempt(
    harness: ElectionHarness, caplog: pytest.LogCaptureFixture
) -> None:
    elector = harness.candidate(renew_deadline=0.1)
    request = harness.request

    async def hang(method: str, path: str, *, body: Any = None, timeout: float = 0) -> Any:
        harness.request = request  # type: ignore[method-assign]
        await asyncio.Event().wait()

    harness.request = hang  # type: ignore[method-assign]
    await asyncio.wait_for(elector.acquire(), timeout=5)
    assert elector.is_leader()
    # A busy machine may make asyncio log that a callback was slow.
    errors = [each.__dict__["error"].args[0] for each in caplog.records if "error" in each.__dict__]
    assert errors == ["no response within 0.1s"]


async def test_the_time_without_a_readable_lease_counts_from_the_first_failure(
    harness: ElectionHarness,
) -> None:
    elector = harness.candidate()
    harness.seconds = 1000.0
    harness.failure = ApiError("Unauthorized", code=401)
    acquiring = asyncio.create_task(elector.acquire())
    while harness.seconds < 1020:
        await asyncio.sleep(0)
    acquiring.cancel()
    harness.seconds = 1299.9
    assert elector.problem is None
    harness.seconds = 1300.0
    assert elector.problem == "the lease n/l could not be read or written for 300s: Unauthorized"


async def test_a_lease_that_cannot_be_read_is_not_created(harness: ElectionHarness) -> None:
    harness.failure = ApiError("no", code=500)
    acquiring = asyncio.create_task(harness.candidate().acquire())
    while harness.seconds < 10:
        await asyncio.sleep(0)
    acquiring.cancel()
    assert {method for method, _ in harness.requests} == {"GET"}


async def test_a_process_that_has_its_own_lease_again_keeps_its_history(harness: ElectionHarness) -> None:
    harness.hold("us")
    harness.spec["acquireTime"] = "2026-01-01T00:00:00.000000Z"
    await harness.candidate().acquire()
    assert harness.seconds == 0
    assert harness.spec["acquireTime"] == "2026-01-01T00:00:00.000000Z"
    assert harness.spec["leaseTransitions"] == 7


async def test_an_own_lease_without_a_time_of_acquisition_gets_one(harness: ElectionHarness) -> None:
    harness.hold("us")
    await harness.candidate().acquire()
    assert harness.spec["acquireTime"] == harness.spec["renewTime"]


async def test_a_candidate_whose_write_is_refused_does_not_lead(
    harness: ElectionHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.hold("")
    harness.refusals = [BROKEN]
    elector = harness.candidate()
    led = list[bool]()
    harness.on_sleep = lambda: led.append(elector.is_leader())
    await elector.acquire()
    assert led == [False]
    assert "Cannot read or write the lease" in caplog.text


async def test_a_leader_whose_renewal_conflicts_twice_leads_on(harness: ElectionHarness) -> None:
    elector = await harness.leader()
    harness.refusals = [CONFLICT, CONFLICT]
    renewing = await harness.renew_until(elector, 30)
    assert elector.is_leader()
    renewing.cancel()


async def test_a_leader_whose_lease_was_released_by_others_takes_it_as_a_new_one(
    harness: ElectionHarness,
) -> None:
    elector = await harness.leader()
    harness.hold("", transitions=7)
    harness.refusals = [None, BROKEN]  # the first write conflicts
    renewing = asyncio.create_task(elector.renew())
    while harness.spec["holderIdentity"] != "us":
        await asyncio.sleep(0)
    renewing.cancel()
    assert harness.spec["leaseTransitions"] == 8


async def test_a_lease_that_was_deleted_is_created_again(harness: ElectionHarness) -> None:
    elector = await harness.leader()
    harness.lease = None
    renewing = await harness.renew_until(elector, 3)
    renewing.cancel()
    assert harness.spec["holderIdentity"] == "us"
    assert elector.is_leader()


async def test_a_candidate_releases_nothing(harness: ElectionHarness) -> None:
    harness.hold("them")
    elector = harness.candidate()
    await elector.release()
    assert harness.requests == []
    assert harness.spec["holderIdentity"] == "them"


async def test_a_candidate_that_has_read_the_lease_of_another_releases_nothing(
    harness: ElectionHarness,
) -> None:
    harness.hold("them")
    elector = harness.candidate()
    acquiring = asyncio.create_task(elector.acquire())
    while not harness.slept:
        await asyncio.sleep(0)
    acquiring.cancel()
    await elector.release()
    assert [method for method, _ in harness.requests] == ["GET"]
    assert harness.spec["holderIdentity"] == "them"


async def test_a_leader_that_has_lost_its_lease_to_another_leaves_it_to_that_one_when_it_stops(
    harness: ElectionHarness,
) -> None:
    elector = await harness.leader()
    harness.hold("them")
    assert await elector.renew() == "the lease is held by them"
    held = harness.lease
    await elector.release()
    assert harness.lease is held


async def test_a_leader_releases_no_lease_that_was_given_up_by_others(harness: ElectionHarness) -> None:
    elector = await harness.leader()
    harness.hold("")
    harness.refusals = [None, BROKEN]  # of the renewal: a conflict, and an error after the Lease was read
    renewing = asyncio.create_task(elector.renew())
    while harness.refusals:
        await asyncio.sleep(0)
    renewing.cancel()
    held = harness.lease
    await elector.release()
    assert harness.lease is held


async def test_a_lease_that_expired_unseen_by_others_is_released(harness: ElectionHarness) -> None:
    """Another one can take it at once then, and need not wait until it has seen it for its duration."""
    elector = await harness.leader()
    harness.seconds += 11
    await elector.release()
    assert harness.spec["holderIdentity"] == ""


@pytest.mark.parametrize(
    ("duration", "written"), [(15.0, 15), (10.9, 11), (10.001, 11), (0.9, 1), (1.0, 1), (90.5, 91)]
)
async def test_the_duration_in_the_lease_is_rounded_up_to_whole_seconds(
    harness: ElectionHarness, duration: float, written: int
) -> None:
    """Others take it after that time, so it must not be less than the flag."""
    elector = await harness.leader(lease_duration=duration, renew_deadline=duration * 0.95)
    assert harness.spec["leaseDurationSeconds"] == written
    await elector._try_acquire_or_renew(timeout=1.0)
    assert harness.spec["leaseDurationSeconds"] == written


async def test_nobody_takes_a_lease_with_a_fraction_of_a_second_before_its_holder_stops_leading(
    harness: ElectionHarness,
) -> None:
    settings = {"lease_duration": 10.9, "renew_deadline": 10.5, "retry_period": 0.1}
    first, second = harness.candidate("first", **settings), harness.candidate("second", **settings)
    await first.acquire()
    await second.acquire()
    assert not first.is_leader()
    assert harness.seconds >= 10.9
