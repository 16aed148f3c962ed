"""Which events are sent, counted, combined or dropped."""

from datetime import UTC, datetime

import pytest

from karmada_pyscheduler.client.event_correlator import (
    COMBINED,
    Event,
    EventCorrelator,
    EventDecision,
    Involved,
)

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class CorrelatorHarness:
    """A correlator and its clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.correlator = EventCorrelator(lambda: self.now)

    def record(
        self, message: str, *, name: str = "web", version: str = "1", kind: str = "Warning"
    ) -> EventDecision | None:
        involved = Involved("ResourceBinding", "work.karmada.io/v1alpha2", "demo", name, "uid", version)
        return self.correlator.correlate(Event(involved, kind, "Reason", message, AT, "default-scheduler"))

    def message(self, message: str) -> str:
        sent = self.record(message)
        assert sent is not None
        return sent.event.message


@pytest.fixture
def harness() -> CorrelatorHarness:
    return CorrelatorHarness()


def test_an_event_that_is_new_is_sent_with_a_count_of_one(harness: CorrelatorHarness) -> None:
    sent = harness.record("a")
    assert sent is not None
    assert (sent.posted.name, sent.posted.count, sent.event.message) == ("", 1, "a")


def test_an_equal_event_counts_even_if_the_object_has_a_newer_version(harness: CorrelatorHarness) -> None:
    first = harness.record("a")
    assert first is not None
    first.posted.name = "posted"
    again = harness.record("a", version="2")
    assert again is not None
    assert (again.posted.name, again.posted.count) == ("posted", 2)


@pytest.mark.parametrize(
    "other", [{"name": "other"}, {"kind": "Normal"}], ids=["another-object", "another-type"]
)
def test_events_that_differ_are_counted_separately(harness: CorrelatorHarness, other: dict[str, str]) -> None:
    harness.record("a")
    sent = harness.record("a", **other)
    assert sent is not None
    assert sent.posted.count == 1


def test_the_tenth_different_message_within_ten_minutes_is_combined_with_those_that_follow(
    harness: CorrelatorHarness,
) -> None:
    assert [harness.message(str(number)) for number in range(9)] == [str(number) for number in range(9)]
    combined = harness.record("9")
    assert combined is not None
    assert combined.event.message == COMBINED + "9"
    more = harness.record("10")
    assert more is not None
    assert more.posted is combined.posted
    assert more.posted.count == 2


def test_after_ten_minutes_without_events_messages_are_sent_singly_again(harness: CorrelatorHarness) -> None:
    for number in range(10):
        harness.record(str(number))
    harness.now += 601
    assert harness.message("new") == "new"


def test_a_repeated_message_is_never_combined(harness: CorrelatorHarness) -> None:
    assert {harness.message("a") for _ in range(20)} == {"a"}


def test_an_object_gets_25_events_of_a_type_and_then_one_every_five_minutes(
    harness: CorrelatorHarness,
) -> None:
    passed = [harness.record("a") is not None for _ in range(30)]
    assert passed == [True] * 25 + [False] * 5
    assert harness.record("a", name="other") is not None
    assert harness.record("a", kind="Normal") is not None
    harness.now += 299
    assert harness.record("a") is None
    harness.now += 2
    assert harness.record("a") is not None
    assert harness.record("a") is None


def test_dropped_events_are_counted(harness: CorrelatorHarness) -> None:
    for _ in range(27):
        harness.record("a")
    harness.now += 301
    sent = harness.record("a")
    assert sent is not None
    assert sent.posted.count == 28
