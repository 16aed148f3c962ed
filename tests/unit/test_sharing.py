"""How the tests are shared out between processes, and the durations at the end of a run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.sharing import Durations, share_out


class _Item(SimpleNamespace):
    """What is needed of an item of pytest."""

    def __init__(self, nodeid: str, *, group: str | None = None) -> None:
        super().__init__(nodeid=nodeid, group=group)

    def get_closest_marker(self, _: str) -> str | None:
        found: str | None = self.group
        return found

    def add_marker(self, marker: Any) -> None:
        (self.group,) = marker.args


def _shared(*items: _Item, is_shared: bool = True) -> list[tuple[str, str]]:
    found: list[Any] = list(items)
    share_out(found, is_shared=is_shared)
    return [(item.nodeid, item.group) for item in found]


def test_a_module_is_one_group_unless_it_names_its_own() -> None:
    assert _shared(_Item("tests/unit/a.py::x[1::2]"), _Item("tests/unit/b.py::y", group="both")) == [
        ("tests/unit/a.py::x[1::2]", "tests/unit/a.py"),
        ("tests/unit/b.py::y", "both"),
    ]


def test_the_longest_folders_begin_first_if_processes_share_the_tests() -> None:
    names = [
        "tests/bad_days/a.py::x",
        "tests/e2e/a.py::z",
        "tests/e2e/a.py::y",
        "tests/unit/a.py::x",
        "tools/a.py::x",
    ]
    items = [_Item(name) for name in names]
    assert [name for name, _ in _shared(*items, is_shared=False)] == names
    assert [name for name, _ in _shared(*items)] == [
        "tests/e2e/a.py::z",
        "tests/e2e/a.py::y",
        "tests/bad_days/a.py::x",
        "tools/a.py::x",
        "tests/unit/a.py::x",
    ]


def _report(nodeid: str, when: Any, seconds: float) -> pytest.TestReport:
    return pytest.TestReport(nodeid, ("", 0, ""), {}, "passed", None, when, duration=seconds)


def test_durations_count_setup_and_teardown_and_forget_the_group() -> None:
    durations = Durations()
    durations.add(
        [
            _report("tests/e2e/a.py::x[a@b]@tests/e2e/a.py", "setup", 2.0),
            _report("tests/e2e/a.py::x[a@b]@tests/e2e/a.py", "call", 1.0),
            _report("tests/e2e/a.py::y@tests/e2e/a.py", "call", 4.0),
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
