"""What counts as the same as planned."""

from __future__ import annotations

from typing import Any

import pytest

from tests.checks.outcomes import Outcome, happened, predicted


def stored(status: str = "True", **replicas: int) -> dict[str, Any]:
    clusters = [{"name": name, "replicas": count} for name, count in replicas.items()]
    return {
        "spec": {"clusters": clusters},
        "status": {"conditions": [{"type": "Scheduled", "status": status}]},
    }


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (stored(a=1), stored(a=1), Outcome("unchanged", {"a": 1})),
        (stored(a=1), stored(b=1), Outcome("moved", {"b": 1})),
        (stored(a=1), stored(a=2), Outcome("moved", {"a": 2})),
        (stored(a=1), stored("False"), Outcome("unplaced", {})),
        (stored(a=1), stored("False", a=1), Outcome("stuck", {"a": 1})),
        (stored("False", a=1), stored("False", a=1), Outcome("unchanged", {"a": 1})),
        (stored("False"), stored(a=1), Outcome("placed", {"a": 1})),
        (None, stored(a=1), Outcome("placed", {"a": 1})),
        (None, stored("False"), Outcome("unplaced", {})),
        (stored(a=1), None, Outcome("deleted", {})),
    ],
)
def test_a_binding_has_the_class_of_its_change(
    before: dict[str, Any] | None, after: dict[str, Any] | None, expected: Outcome
) -> None:
    found = happened({} if before is None else {"x": before}, {} if after is None else {"x": after})
    assert found == {"x": expected}


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        ("moved", Outcome("moved", {"b": 2})),
        ("latent", Outcome("unchanged", {"a": 1})),
        ("deferred", Outcome("unchanged", {"a": 1})),
        ("stuck", Outcome("stuck", {"a": 1})),
        ("deleted", Outcome("deleted", {})),
    ],
)
def test_a_plan_says_what_becomes_of_a_binding(effect: str, expected: Outcome) -> None:
    plan = {"bindings": [{"name": "x", "effect": effect, "after": [{"name": "b", "replicas": 2}]}]}
    found = predicted(plan, {"x": stored(a=1), "y": stored(c=3)})
    assert found == {"x": expected, "y": Outcome("unchanged", {"c": 3})}
