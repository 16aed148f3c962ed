"""Answers of what ``--from`` names, and captures, of any shape: shown, or refused with the field; never an exception."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout, suppress
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from karmada_advisor.explain.inputs import recorded_decision
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.process_answers import state_of, view_of
from karmada_advisor.fleet.process_rules import ProcessConfiguration
from karmada_advisor.web.decisions import of_records
from karmada_scheduler import command, json_body
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.config import features
from tests.fuzz.measuring import fuzzed, measured
from tests.fuzz.strategies import Changed, mutated
from tests.unit.explain.fleet import billing, checkout, fleet
from tests.unit.web.site import write

_RECORD = {
    "key": "shop/checkout-deployment",
    "kind": "ResourceBinding",
    "generation": 7,
    "at": "2026-11-22T14:02:11.482Z",
    "tookMicros": 900,
    "process": "pod-a",
    "trigger": {"event": "BindingAdd", "class": "First"},
    "attempts": [{"stages": {"all": 8, "filtered": 5}, "refused": [{"by": "TaintToleration", "count": 3}]}],
    "before": {"eu-west-1": 1},
    "targets": {"ap-south-1": 4, "eu-west-1": 12},
    "targetCount": 2,
    "error": {"reason": "NoClusterFit", "message": "no"},
    "ending": "written",
    "fallbacks": [{"why": "silent", "count": 2, "names": ["eu-west-1"]}],
    "capacity": {"accurate": {"clusters": 3}, "general": {"oldestSeconds": 4.5}},
}
_ANSWER = {
    "record": _RECORD,
    "process": "pod-a",
    "error": {"message": ""},
    "queue": {"state": "unschedulable", "dueInSeconds": 5.5, "before": 3, "waitedSeconds": 0.5, "priority": 1,
              "proposal": {"plugin": "FailBack", "reason": "waits", "dueInSeconds": 5}},
}  # fmt: skip
_STATE = {
    "process": "pod-a", "version": "1", "leader": "pod-b", "leading": True, "queue": {"due": 1, "delayed": 2, "processing": 0},
    "gated": {"count": 1}, "waitingAtPermit": {"count": 1}, "assumedPlacements": {"bindings": 2}, "records": {"bindings": 3},
    "configuration": {
        "featureGates": {"WorkloadAffinity": True}, "plugins": ["*"], "pluginDirs": ["/plugins"], "schedulerName": "a",
        "profiles": [{"schedulerName": "a", "plugins": {"filter": ["Mine"]}, "extenders": 1}],
        "file": {
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "a", "plugins": {"filter": {"enabled": [{"name": "Mine"}]}},
                          "pluginConfig": [{"name": "Mine", "args": {"a": 1}}]}],
        },
    },
}  # fmt: skip


def _decoded(given: Changed) -> dict[str, Any]:
    try:
        found = json_body.decode(given.json.encode("utf-8", errors="surrogatepass"))
    except ValueError:
        found = None
    assume(isinstance(found, dict))
    return found  # type: ignore[no-any-return]


@fuzzed(200)
@given(given=mutated(_ANSWER))
def test_an_answer_about_a_binding_is_shown_or_refused(given: Changed) -> None:
    found = _decoded(given)
    with measured("answer of the scheduler", given):
        try:
            view = view_of(found, has_record=True)
        except ManifestError as error:
            assert ": " in str(error)  # noqa: PT017 (the field)
            return
        recorded_decision(view, {"m1": 1}, None, datetime.now(UTC))
        of_records([view.record] if view.record is not None else [])


@fuzzed(200)
@given(given=mutated(_STATE))
def test_the_state_of_a_process_is_shown_or_refused(given: Changed) -> None:
    found = _decoded(given)
    with measured("state of the scheduler", given):
        with suppress(ManifestError):
            state_of(found)
        configuration = ProcessConfiguration.of("http://localhost:1", found)
        try:
            features.parse([f"{name}={str(value).lower()}" for name, value in configuration.gates.items()])
            configuration.configuration({"Mine"})
        except (ValueError, NoAnswerError):
            pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("captures")


def _run(*arguments: str) -> tuple[int, str]:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = command.main(["explain", *arguments])
    return status, err.getvalue()


@pytest.fixture(scope="module")
def capture(folder: Path) -> dict[str, Any]:
    """A capture as ``explain`` writes it, with the answer of a scheduler."""
    files = {kind: folder / f"{kind}.json" for kind in ("clusters", "bindings")}
    write(files["clusters"], fleet())
    write(files["bindings"], [checkout(), billing()])
    flags = [f"--{kind}={path}" for kind, path in files.items()]
    _run("checkout-deployment", "-n", "shop", *flags, f"--capture={folder / 'whole.json'}")
    found: dict[str, Any] = json.loads((folder / "whole.json").read_text())
    found["process"] = {
        "record": _RECORD, "queue_state": "active", "due_in": 1.5, "before": 1, "waited": 2.0, "priority": 0,
        "proposal": {"plugin": "FailBack", "reason": "waits", "dueInSeconds": 5}, "process": "pod-a", "problem": "",
    }  # fmt: skip
    found["processConfiguration"] = {"url": "http://localhost:10353", "state": _STATE}
    return found


@fuzzed(60)
@given(data=st.data())
def test_a_capture_is_replayed_or_refused(folder: Path, capture: dict[str, Any], data: st.DataObject) -> None:
    given = data.draw(mutated(capture))
    file = folder / "changed.json"
    file.write_bytes(given.json.encode("utf-8", errors="surrogatepass"))
    status, err = _run(f"--replay={file}", "--timeout=10ms", "-o", "json")
    assert status in {0, 1, 2}
    assert "Traceback" not in err
    assert status != 2 or err
