"""A part of ``make check-state``: broken and healthy bindings, and what ``explain`` says about them.

The control plane is one of their own, with more schedulers and members than that of the other tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import fork_server
from tests.commands import run
from tools.state_check.asking import in_namespace, shown
from tools.state_check.check import Check, problems_of
from tools.state_check.model import Answer, Situation
from tools.state_check.plane import running
from tools.state_check.situations import SITUATIONS

CHOSEN = (
    "healthy-dynamic",
    "healthy-of-the-stock-scheduler",
    "cluster-name-mistyped",
    "taint",
    "request-too-large",
    "replicas-too-many-after-placing",
    "policy-name-mistyped",
    "policies-in-order",
    "claim-held",
    "policy-lazy",
    "policy-deleted",
    "dependency",
    "api-list-incomplete",
    "request-larger-than-a-node",
    "components-with-the-gate",
    "peer-there-and-the-process",
    "quota-refuses",
    "scheduling-suspended-in-part",
    "guard-budget",
    "moving",
    "plugin-of-the-process-refuses",
    "dispatching-suspended",
    "admission-refuses",
    "object-exists-there",
    "override-breaks-the-image",
    "cluster-not-ready",
    "scheduler-name-mistyped",
    "scheduler-killed-then-scaled",
    "without-the-right-to-read-leases-broken",
)


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Check]:
    with running(tmp_path_factory.mktemp("state") / "run", page=True, start=fork_server.start) as plane:
        yield Check(plane, ask=asked_here)


def asked_here(kubeconfig: Path, namespace: str, /, *arguments: str) -> Answer:
    words = [*arguments, *in_namespace(namespace)]
    done = run(*words, f"--kubeconfig={kubeconfig}")
    return Answer(shown(words), done.status, done.out, done.err)


def _named(name: str) -> Situation:
    return next(each for each in SITUATIONS if each.name == name)


@pytest.mark.parametrize("name", CHOSEN)
def test_headline_cause_remedy_exit_status_and_json_tell_what_is_true(check: Check, name: str) -> None:
    assert list(problems_of(check.check(_named(name)))) == []
