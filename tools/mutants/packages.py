"""Which modules are mutated, and whose tests have to see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tools.mutants.mutation import ROOT

_OPERATOR: Final = "operator/karmada_scheduler/"
_PLUGINS: Final = "plugins/karmada_scheduler_plugins/"


@dataclass(frozen=True, slots=True)
class Package:
    """Modules in which a mistake loses or moves a workload, and folders of tests, nearest first."""

    name: str
    modules: tuple[str, ...]
    """Glob patterns from the root of the repository."""
    tests: tuple[str, ...]

    def paths(self) -> Sequence[str]:
        """Return the modules, from the root of the repository."""
        found = {path for pattern in self.modules for path in ROOT.glob(pattern)}
        return sorted(str(path.relative_to(ROOT)) for path in found if path.name != "__init__.py")


def _tests(*directories: str) -> tuple[str, ...]:
    return tuple(f"tests/unit/{directory}" for directory in directories)


PACKAGES: Final = (
    Package(
        "core",
        (f"{_OPERATOR}core/**/*.py",),
        (
            *_tests("core", "estimator/test_capacity_columns.py", "informer", "scheduler"),
            *_tests(
                "framework/test_guard.py",
                "framework/test_reconsider.py",
                "framework/test_scheduling_points.py",
            ),
            "tools/conformance/tests/test_replay.py",
        ),
    ),
    Package(
        "framework",
        (f"{_OPERATOR}framework/**/*.py",),
        _tests("framework", "cache/test_clusters.py", "core/test_schedule.py", "scheduler"),
    ),
    Package(
        "scheduler",
        (f"{_OPERATOR}scheduler/*.py",),
        _tests(
            "scheduler",
            "framework/test_binding_points.py",
            "framework/test_guard.py",
            "framework/test_reconsider.py",
        ),
    ),
    Package(
        "binding_cycle",
        (f"{_OPERATOR}binding_cycle/*.py",),
        _tests("binding_cycle", "framework/test_binding_points.py", "framework/test_guard.py"),
    ),
    Package(
        "scheduling_queue",
        (f"{_OPERATOR}scheduling_queue/*.py",),
        _tests("scheduling_queue", "framework/test_binding_points.py"),
    ),
    Package("cache", (f"{_OPERATOR}cache/*.py",), _tests("cache")),
    Package("informer", (f"{_OPERATOR}informer/*.py",), _tests("informer")),
    Package(
        "plugins",
        (
            f"{_PLUGINS}*guard*.py",
            f"{_PLUGINS}*fail_back*.py",
            f"{_PLUGINS}*moves*.py",
            f"{_PLUGINS}fresh_first.py",
        ),
        _tests("plugins", "properties/test_moves_under_way.py"),
    ),
    Package(
        "leadership",
        (
            f"{_OPERATOR}app/leadership.py",
            f"{_OPERATOR}client/leader.py",
            f"{_OPERATOR}process/supervisor.py",
        ),
        _tests("app/test_leadership.py", "client/test_leader.py", "process/test_supervisor.py"),
    ),
    Package("estimator", (f"{_OPERATOR}estimator/*.py",), _tests("estimator")),
)
