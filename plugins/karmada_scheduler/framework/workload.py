"""The metadata of the workload in contexts, and the declaration of plugins that need it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karmada_scheduler.api.workload import Workload, WorkloadAnswer

if TYPE_CHECKING:
    from karmada_scheduler.framework.cycle import Cycle

NEEDS_WORKLOAD: Final = "needs_workload"
"""The attribute of a plugin that needs the metadata of the workload."""


class UndeclaredWorkloadError(RuntimeError):
    """A plugin accessed the workload, and no plugin of its profile declares that it needs it."""

    def __init__(self) -> None:
        """Set the text, which names the declaration."""
        super().__init__(
            f"the workload is not read: no plugin of this profile has {NEEDS_WORKLOAD} = True in its class"
        )


def needs_workload(plugin: object) -> bool:
    """Return whether a plugin declares that it needs the metadata of the workload."""
    return getattr(plugin, NEEDS_WORKLOAD, False) is True


def workload_in(answer: WorkloadAnswer | None) -> Workload | None:
    """Return the workload of an answer; UndeclaredWorkloadError if ``answer`` is None."""
    if answer is None:
        raise UndeclaredWorkloadError
    return answer.workload


def problem_in(answer: WorkloadAnswer | None) -> str:
    """Return why an answer has no workload; UndeclaredWorkloadError if ``answer`` is None."""
    if answer is None:
        raise UndeclaredWorkloadError
    return answer.problem


class WorkloadAccess:
    """The workload of contexts that have a cycle."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def cycle(self) -> Cycle: ...

    @property
    def workload(self) -> Workload | None:
        """As ``Cycle.workload``."""
        return self.cycle.workload

    @property
    def workload_problem(self) -> str:
        """As ``Cycle.workload_problem``."""
        return self.cycle.workload_problem
