"""With PlacementGuard, a plan says what is held, for how long, and what moves gracefully."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Ran
from tests.unit.plan import fleet
from tests.unit.plan.conftest import Run

GUARD = """\
apiVersion: pyscheduler.karmada.io/v1alpha1
kind: KarmadaSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins:
      multiPoint: {enabled: [{name: PlacementGuard}]}
    pluginConfig:
      - name: PlacementGuard
        args: %s
"""
GRACEFUL = {"enabled": True}
FIVE_EACH = {"budgets": [{"scope": "profile", "window": "10m", "bindings": 5}]}


def excluding(folder: Path) -> str:
    """Write policies that exclude the cluster with the most bindings; return the path."""
    path = folder / "excluding.json"
    policies = copy.deepcopy(fleet.policies())
    for each in policies:
        each["spec"]["placement"].setdefault("clusterAffinity", {})["exclude"] = ["us-east-7"]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": policies}))
    return str(path)


Planned = Callable[..., Ran]


@pytest.fixture(scope="module")
def healthy(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the fleet, whose clusters report all workloads healthy."""
    path = tmp_path_factory.mktemp("healthy") / "bindings.json"
    found = json.loads(Path(files[3]).read_text())
    for each in found["items"]:
        names = [target["name"] for target in each["spec"].get("clusters", ())]
        items = [{"clusterName": name, "applied": True, "health": "Healthy"} for name in names]
        each.setdefault("status", {})["aggregatedStatus"] = items
    path.write_text(json.dumps(found))
    return [*files[:3], str(path), *files[4:]]


@pytest.fixture(scope="module")
def made() -> dict[str, Ran]:
    """Return what has been planned: the edit moves so many bindings that each plan takes seconds."""
    return {}


@pytest.fixture
def planned(run: Run, healthy: list[str], made: dict[str, Ran], tmp_path: Path) -> Planned:
    """Return the plan of an edit that moves bindings off a cluster, with arguments of PlacementGuard."""
    change, config = excluding(tmp_path), tmp_path / "config.yaml"

    def plan(args: dict[str, Any], *flags: str) -> Ran:
        config.write_text(GUARD % json.dumps({"lastHealthyCopy": {"enabled": False}, **args}))
        key = f"{config.read_text()} {flags}"
        if key not in made:
            made[key] = run("-f", change, f"--current-config={config}", *flags, of=healthy)
        return made[key]

    return plan


def as_fields(ran: Ran) -> dict[str, Any]:
    assert ran.status == 0, ran.err
    return ran.fields


JSON = ("-o", "json", "--fail-on", "none", "--no-drift")


def test_moves_over_the_budget_are_held_with_the_time_that_they_take(planned: Planned) -> None:
    free, limited = (
        as_fields(planned({}, *JSON)),
        as_fields(planned({**FIVE_EACH, "graceful": GRACEFUL}, *JSON)),
    )
    moves = free["counts"]["moved"]
    assert moves > 10
    assert (limited["counts"]["moved"], limited["counts"]["held"]) == (5, moves - 5)
    minutes = -(-(moves - 5) // 5) * 10
    hours, rest = divmod(minutes, 60)
    shown = f"{minutes} min" if not hours else f"{hours} h {rest} min" if rest else f"{hours} h"
    [note] = [each for each in limited["notes"] if each.startswith("PlacementGuard holds")]
    assert note.startswith(f"PlacementGuard holds {moves - 5} of {moves} moves, the last for some {shown}: ")
    assert "the budget profile (5 bindings in 10m)" in note


def test_a_held_binding_keeps_its_clusters_and_shows_those_that_it_gets(planned: Planned) -> None:
    wanted = {
        each["name"]: each["after"]
        for each in as_fields(planned({}, *JSON))["bindings"]
        if each["effect"] == "moved"
    }
    held = [each for each in as_fields(planned(FIVE_EACH, *JSON))["bindings"] if each["effect"] == "held"]
    for each in held:
        assert each["after"] == each["before"]
        assert each["held"]["targets"] == wanted[each["name"]]
        assert each["held"]["plugin"] == "PlacementGuard"
        assert 0 < each["held"]["retryAfter"] <= 600
        assert (each["stops"], each["starts"]) == (0, 0)


def test_graceful_moves_are_counted_with_the_clusters_that_are_left(planned: Planned) -> None:
    found = as_fields(planned({"graceful": GRACEFUL}, *JSON))
    moved = [each for each in found["bindings"] if each["effect"] == "moved"]
    graceful = [each for each in moved if each["graceful"]]
    assert graceful
    for each in graceful:
        left = {target["name"] for target in each["before"]} - {target["name"] for target in each["after"]}
        assert set(each["graceful"]) <= left
    assert any(
        each.startswith(f"{len(graceful)} of {len(moved)} moves are graceful") for each in found["notes"]
    )


def test_fail_on_held_fails_a_job(planned: Planned) -> None:
    assert planned(FIVE_EACH, "--fail-on", "held").status == 1
    assert planned({}, "--fail-on", "held").status == 0


def test_a_move_off_the_last_healthy_copy_is_held_for_its_time(planned: Planned) -> None:
    waits = as_fields(planned({"lastHealthyCopy": {"enabled": True}}, *JSON))
    found = {each["held"]["retryAfter"] for each in waits["bindings"] if each["effect"] == "held"}
    assert found == {30}
    assert any("has the last healthy copy" in each for each in waits["notes"])


def test_the_text_shows_where_held_bindings_go(planned: Planned) -> None:
    lines = planned(FIVE_EACH, "--fail-on", "none", "--no-drift").out.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.strip() == "held:")
    assert "us-east-7" in lines[begin + 1]
    assert lines[begin + 2].lstrip().startswith("-> ")
    assert "us-east-7" not in lines[begin + 2]
    assert lines[-1].startswith("Plan: 5 moved, 0 unplaced, 0 stuck, ")
    assert lines[-1].endswith(" held.")
