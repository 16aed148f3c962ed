"""The oracle, compared with the recordings: it has upstream's code and an API server of ours."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from karmada_scheduler.config.features import KNOWN
from karmada_scheduler.core.condition import NO_CLUSTER_FIT
from tools.conformance.replay import RECORDINGS
from tools.oracle.generator.scenarios import DECISION_GATES
from tools.oracle.program import Oracle, UpstreamResult, ensure

pytestmark = pytest.mark.e2e  # runs the real Go core

CASES_PER_RECORDING = 8


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle(ensure()) as running:
        yield running


def _settings(flags: list[str]) -> dict[str, Any]:
    gates = {name: KNOWN[name].default for name in DECISION_GATES}
    settings: dict[str, Any] = {"gates": gates, "plugins": ["*"], "emptyWorkloadPropagation": False}
    for flag in flags:
        name, _, value = flag.removeprefix("--").partition("=")
        if name == "feature-gates":
            gates.update(
                (gate, on == "true") for gate, _, on in (each.partition("=") for each in value.split(","))
            )
        elif name == "plugins":
            settings["plugins"] = value.split(",")
        else:
            assert name == "enable-empty-workload-propagation"
            settings["emptyWorkloadPropagation"] = value == "true"
    return settings


def _reaches_the_loop(spec: dict[str, Any]) -> bool:
    """Return whether the scheduler's event filter lets a binding pass; the oracle starts after that filter."""
    suspended = spec.get("suspension", {}).get("scheduling", False)
    return not suspended and spec.get("schedulerName", "default-scheduler") == "default-scheduler"


def _state(outcome: dict[str, Any]) -> dict[str, Any]:
    return {
        "clusters": sorted((target["name"], target.get("replicas", 0)) for target in outcome["clusters"]),
        "affinity": outcome["schedulerObservingAffinityName"] or "",
        "conditions": _conditions([[each[key] for key in ("type", "status", "reason", "message")] for each in outcome["conditions"]]),
        "scheduled": outcome["lastScheduledTimeChanged"],
        "observed": outcome["observedGeneration"] == "current",
    }  # fmt: skip


def _answer(upstream: UpstreamResult) -> dict[str, Any]:
    final = upstream["final"]
    return {
        "clusters": sorted(map(tuple, final["clusters"])),
        "affinity": final["affinity"],
        "conditions": _conditions(final["conditions"]),
        "scheduled": final["scheduledNow"],
        "observed": final["observedCurrent"],
    }


def _conditions(conditions: list[list[str]]) -> list[list[str]]:
    """Leave out the one text that is random upstream."""
    return sorted([*each[:3], "" if each[2] == NO_CLUSTER_FIT else each[3]] for each in conditions)


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name.split(".")[0]) for path in RECORDINGS])
def test_the_oracle_comes_to_the_recorded_state(path: Any, oracle: Oracle) -> None:
    document = json.loads(gzip.decompress(path.read_bytes()))
    cases = [case for case in document["cases"] if _reaches_the_loop(case["binding"]["spec"])]
    cases = cases[:: max(1, len(cases) // CASES_PER_RECORDING)]
    scenario = {
        **_settings(document["schedulerFlags"]),
        "clusters": document["clusters"],
        "bindings": [case["binding"] for case in cases],
    }
    for case, upstream in zip(cases, oracle.decide(scenario), strict=True):
        assert _answer(upstream) in [_state(outcome) for outcome in case["outcomes"]], case["name"]


def test_after_an_unreadable_scenario_the_next_one_is_decided(oracle: Oracle) -> None:
    scenario = {"gates": {}, "plugins": ["*"], "clusters": [{"metadata": 5}], "bindings": []}
    with pytest.raises(ValueError, match="cannot read the scenario"):
        oracle.decide(scenario)
    assert oracle.decide({**scenario, "clusters": []}) == []


def test_an_unknown_gate_is_refused(oracle: Oracle) -> None:
    with pytest.raises(ValueError, match="unrecognized feature gate: Nonesuch"):
        oracle.decide({"gates": {"Nonesuch": True}, "plugins": ["*"], "clusters": [], "bindings": []})
