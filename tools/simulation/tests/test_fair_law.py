"""The law about limits of tenants has a history that breaks it, and similar ones that do not; ``test_planted`` breaks the others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake_apiserver.objects import binding
from tools.simulation.fair_law import FairLaw
from tools.simulation.guard_history import Written

ARGS = {
    "tenants": [
        {"name": "one", "namespaces": ["default"], "nominalQuota": {"cpu": 4}, "borrowingLimit": {"cpu": "2"}}
    ]
}


def stored(name: str, replicas: int, placed: int) -> dict[str, Any]:
    found: dict[str, Any] = binding(name, replicas=replicas, placement={}, requests={"cpu": "1"})
    found["spec"]["clusters"] = [{"name": "m1", "replicas": placed}] if placed else []
    return found


@pytest.mark.parametrize(
    ("namespace", "has", "gets", "sent", "broken"),
    [
        ("default", 4, 2, 1.0, []),
        ("default", 4, 3, 1.0, ["within limits"]),
        ("default", 4, 3, None, []),  # not a scheduler
        ("other", 4, 3, 1.0, []),
        ("default", 7, 0, 1.0, []),
    ],
)
def test_no_write_of_a_scheduler_lets_a_tenant_have_more_than_its_limit(
    namespace: str, has: int, gets: int, sent: float | None, broken: list[str]
) -> None:
    found = list[str]()
    law = FairLaw(ARGS, lambda name, _: found.append(name))
    for name, count, by in (("a", has, None), ("b", gets, sent)):
        key = ("ResourceBinding", namespace, name)
        law.on_write(Written(1.0, key, stored(name, count, 0), stored(name, count, count), by, "x"))
    assert found == broken


def test_what_is_deleted_does_not_count_and_refusals_are_counted_from_a_time_on() -> None:
    found = list[str]()
    law = FairLaw(ARGS, lambda name, _: found.append(name))
    key = ("ResourceBinding", "default", "a")
    law.on_write(Written(1.0, key, None, stored("a", 6, 6), None, ""))
    law.on_write(Written(2.0, key, stored("a", 6, 6), None, None, ""))
    law.on_write(Written(3.0, ("ResourceBinding", "default", "b"), None, stored("b", 6, 6), 3.0, "x"))
    law.on_write(Written(4.0, ("ResourceBinding", "default", "c"), None, stored("c", 6, 0), 4.0, "x"))
    assert found == []
    assert [law.refused_since(at) for at in (3.5, 4.5)] == [1, 0]
