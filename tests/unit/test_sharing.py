"""How the tests are shared out between processes, and the durations at the end of a run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.sharing import (
    LONGEST_FIRST,
    PLANES,
    TOGETHER,
    WITH_OWN_PLANE,
    Durations,
    ModuleScheduling,
    encodable,
    group_of,
    longest_first,
)

ROOT = Path(__file__).parents[2]


def test_a_module_is_a_group_and_modules_with_a_common_control_plane_are_one() -> None:
    assert group_of("tests/unit/a.py::x[1::2]") == "tests/unit/a.py"
    assert group_of("tests/deploy/test_operations.py::x") == group_of(
        "tests/deploy/test_least_privilege.py::y"
    )
    assert all((ROOT / module).exists() for module in (*TOGETHER, *LONGEST_FIRST, *WITH_OWN_PLANE))


class Worker:
    """A process that takes every test that it is sent."""

    shutting_down = False
    gateway = SimpleNamespace(id="gw")

    def __init__(self) -> None:
        self.sent: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def test_no_more_processes_than_some_start_the_shared_control_plane_while_there_is_other_work() -> None:
    count = PLANES + 2
    tests = [f"tests/e2e/{name}.py::x" for name in range(9)] + [f"tools/{name}.py::x" for name in range(40)]
    config: Any = SimpleNamespace(option=SimpleNamespace(), getvalue=lambda _: ["popen"] * count)
    scheduling, workers = ModuleScheduling(config), [Worker() for _ in range(count)]
    nodes: list[Any] = [*workers]
    for node in nodes:
        scheduling.add_node(node)
    for node in nodes:
        scheduling.add_node_collection(node, tests)
    scheduling.schedule()
    while scheduling.has_pending:
        for node in nodes:
            for sent in (node.sent.pop(0) for _ in node.sent[:1]):
                scheduling.mark_test_complete(node, sent)
    taken = [{group.partition("/")[0] for group in scheduling.assigned_work[node]} for node in nodes]
    assert sum("tests" in groups for groups in taken) == PLANES
    assert all("tools" in groups for groups in taken)


def test_the_longest_modules_begin_first_and_keep_their_order() -> None:
    names = [
        "tests/bad_days/a.py::x",
        "tests/e2e/a.py::z",
        "tests/e2e/a.py::y",
        "tests/unit/a.py::x",
        "tools/a.py::x",
    ]
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in names]
    longest_first(items)
    assert [item.nodeid for item in items] == [
        "tests/e2e/a.py::z",
        "tests/e2e/a.py::y",
        "tests/bad_days/a.py::x",
        "tools/a.py::x",
        "tests/unit/a.py::x",
    ]


def test_a_report_with_halves_of_surrogate_pairs_can_be_sent() -> None:
    report = {"sections": [("log", "half \ud800 \u00fc")], "duration": 1.5, "when": None}
    assert encodable(report) == {"sections": [("log", "half \\ud800 \u00fc")], "duration": 1.5, "when": None}


def _report(nodeid: str, when: Any, seconds: float) -> pytest.TestReport:
    return pytest.TestReport(nodeid, ("", 0, ""), {}, "passed", None, when, duration=seconds)


def test_durations_are_sums_of_setup_call_and_teardown() -> None:
    durations = Durations()
    durations.add(
        [
            _report("tests/e2e/a.py::x[a@b]", "setup", 2.0),
            _report("tests/e2e/a.py::x[a@b]", "call", 1.0),
            _report("tests/e2e/a.py::y", "call", 4.0),
            _report("tools/b.py::z", "call", 0.5),
            "a warning",
        ]
    )
    assert durations.slowest == [
        ("tests/e2e/a.py::y", 4.0),
        ("tests/e2e/a.py::x[a@b]", 3.0),
        ("tools/b.py::z", 0.5),
    ]
    assert durations.parts == {"tests/e2e": (7.0, 2), "tools/b.py": (0.5, 1)}
