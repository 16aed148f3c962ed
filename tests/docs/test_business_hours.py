"""BusinessHours: changes only when people are at work."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.testing import FakeHandle, Run, binding, cluster, schedule
from tests.docs.conftest import Example

BERLIN = ZoneInfo("Europe/Berlin")  # open from 8 to 18, Monday to Friday
MONDAY = datetime(2026, 3, 23, tzinfo=BERLIN)
FRIDAY = datetime(2026, 3, 27, tzinfo=BERLIN)  # the clocks change in the night to Sunday


def scheduled_at(moment: datetime, example: Example) -> Run:
    handle = FakeHandle().at(moment)
    moves = binding("web").replicas(2).on("m1").names("m2")
    return schedule(moves, cluster("m1"), cluster("m2"), plugins=example("business_hours", handle=handle))


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(MONDAY.replace(hour=8), id="first-minute"),
        pytest.param(FRIDAY.replace(hour=17, minute=59), id="last-minute"),
    ],
)
def test_changes_are_let_through_in_business_hours(moment: datetime, example: Example) -> None:
    assert scheduled_at(moment, example).placed == {"m2": 2}


@pytest.mark.parametrize(
    ("moment", "reason", "hours"),
    [
        pytest.param(MONDAY.replace(hour=7, minute=30), "Monday 08:00 CET", 0.5, id="early"),
        pytest.param(MONDAY.replace(hour=18), "Tuesday 08:00 CET", 14, id="late"),
        pytest.param(FRIDAY.replace(hour=18), "Monday 08:00 CEST", 61, id="weekend-an-hour-short"),
    ],
)
def test_outside_business_hours_the_placement_stays(
    moment: datetime, reason: str, hours: float, example: Example
) -> None:
    run = scheduled_at(moment, example)
    assert (
        run.condition.message == f"refused at Permit by BusinessHours: outside business hours until {reason}"
    )
    assert [target.name for target in run.binding.spec.clusters] == ["m1"]
    assert run.retry_after == hours * 3600
    assert run.methods_of("DefaultBinder") == []


def test_business_hours_without_days_are_an_error(example: Example) -> None:
    with pytest.raises(ConfigError, match=r"pluginConfig\[0\]\.args: at least one day is needed"):
        example("business_hours", days=[])
