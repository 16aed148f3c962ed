"""Cases 1-13 of the specification's list, as far as they are ours."""

from __future__ import annotations

import pytest

from karmada_scheduler.framework import (
    SUCCESS,
    Code,
    CycleState,
    Diagnosis,
    FitError,
    PluginError,
    Result,
    SchedulingError,
    StateKey,
    UnschedulableError,
)


def refused(*reasons: str) -> Result:
    return Result.unschedulable(*reasons)


@pytest.mark.parametrize(
    ("result", "is_success", "message"),
    [
        pytest.param(SUCCESS, True, "", id="success"),
        pytest.param(refused(), False, "", id="refusal-without-reasons"),
        pytest.param(refused("reason1", "reason2"), False, "reason1, reason2", id="refusal"),
        pytest.param(Result.error(), False, "", id="error-without-reasons"),
        pytest.param(Result.error("a", "b"), False, "a,b", id="error-joins-without-space"),
    ],
)
def test_a_result_has_a_code_and_reasons(result: Result, is_success: bool, message: str) -> None:
    assert result.is_success is is_success
    assert result.message == message


def test_codes_have_upstreams_texts() -> None:
    assert {code.value for code in Code} >= {"Success", "Unschedulable", "Error"}


@pytest.mark.parametrize(
    ("count", "results", "text"),
    [
        pytest.param(0, {}, "0/0 clusters are available: no cluster exists.", id="no-clusters"),
        pytest.param(3, {}, "0/3 clusters are available: no cluster exists.", id="all-being-deleted"),
        pytest.param(
            3,
            {
                "c1": refused("insufficient CPU", "insufficient memory"),
                "c2": refused("insufficient CPU"),
                "c3": refused("taint mismatch"),
            },
            "0/3 clusters are available: 1 insufficient memory, 1 taint mismatch, 2 insufficient CPU.",
            id="reasons-are-counted",
        ),
        pytest.param(1, {"c1": refused()}, "0/1 clusters are available: .", id="no-reasons"),
        pytest.param(
            3,
            {name: refused("cluster(s) did not have the API resource") for name in ("c1", "c2")},
            "0/3 clusters are available: 2 cluster(s) did not have the API resource.",
            id="one-being-deleted",
        ),
        pytest.param(
            12,
            {f"a{i}": refused("a") for i in range(10)} | {f"b{i}": refused("b") for i in range(2)},
            "0/12 clusters are available: 10 a, 2 b.",
            id="sorted-as-strings",
        ),
        pytest.param(
            12,
            {f"a{i}": refused("a") for i in range(2)} | {f"b{i}": refused("b") for i in range(10)},
            "0/12 clusters are available: 10 b, 2 a.",
            id="sorted-as-strings-by-count",
        ),
        pytest.param(
            1, {"c1": refused("x", "x")}, "0/1 clusters are available: 2 x.", id="twice-in-one-result"
        ),
    ],
)
def test_a_fit_error_counts_reasons(count: int, results: dict[str, Result], text: str) -> None:
    error = FitError(count, Diagnosis(results))
    assert str(error) == text
    assert error.within("failed to find fit clusters") is error


@pytest.mark.parametrize("kind", [SchedulingError, UnschedulableError, PluginError])
def test_an_error_keeps_its_type_when_a_step_is_added(kind: type[SchedulingError]) -> None:
    wrapped = (
        kind("Insufficient CPU in all clusters")
        .within("failed to scale up")
        .within("failed to assign replicas")
    )
    assert type(wrapped) is kind
    assert str(wrapped) == "failed to assign replicas: failed to scale up: Insufficient CPU in all clusters"


def test_cycle_state_returns_the_value_of_a_key() -> None:
    key, state = StateKey[int]("PreFilter/Space"), CycleState()
    assert key not in state
    state.write(key, 7)
    assert key in state
    assert state.read(StateKey("PreFilter/Space")) == 7


def test_reading_an_unknown_key_names_the_key_and_the_known_ones() -> None:
    state = CycleState()
    state.write(StateKey("known"), 1)
    with pytest.raises(KeyError, match="no plugin wrote 'unknown' in this cycle; written: known"):
        state.read(StateKey("unknown"))
