"""The profiles of this process, by the scheduler name in bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.framework.binding_points import QueueSortPlugin
from karmada_scheduler.framework.runtime.framework import Framework


class Profiles:
    """Frameworks by scheduler name. The names are fixed; the frameworks can be replaced while the scheduler runs.

    Attributes:
        names: The scheduler names.
        needs_in_flight: Whether a plugin of any profile takes the bindings that are decided and not yet written.
        need_workloads: Whether a plugin of any profile needs the metadata of workloads.
    """

    def __init__(self, frameworks: Mapping[str, Framework]) -> None:
        """Take the frameworks."""
        self._frameworks = dict(frameworks)
        self.names: Final = frozenset(self._frameworks)
        self._update_needs()

    def of(self, binding: Binding) -> Framework | None:
        """Return the framework of a binding's profile, None if it is assigned to another scheduler."""
        return self._frameworks.get(binding.spec.responsible_scheduler)

    def needs_workload(self, binding: Binding) -> bool:
        """Return whether a plugin of the binding's profile needs the metadata of its workload."""
        framework = self.of(binding)
        return framework is not None and framework.needs_workload and binding.spec.placement is not None

    def declares_workload(self, name: str) -> bool:
        """Return whether a plugin of a profile declares that it needs the metadata of workloads."""
        return self._frameworks[name].needs_workload

    def items(self) -> list[tuple[str, Framework]]:
        """Return all profiles by name."""
        return sorted(self._frameworks.items())

    @property
    def queue_sort(self) -> QueueSortPlugin | None:
        """The QueueSort plugin that orders the queue of all profiles: the object of the first scheduler name in alphabetical order."""
        return self.items()[0][1].binding.queue_sort

    def replace(self, frameworks: Mapping[str, Framework]) -> None:
        """Replace all frameworks from the next decision on; decisions under way continue with the previous ones.

        Raises:
            ValueError: The names are not the same.
        """
        if frozenset(frameworks) != self.names:
            raise ValueError(f"the profiles {sorted(self.names)} cannot become {sorted(frameworks)}")
        self._frameworks = dict(frameworks)
        self._update_needs()

    def _update_needs(self) -> None:
        frameworks = self._frameworks.values()
        self.needs_in_flight = any(framework.pre_filter.needs_in_flight for framework in frameworks)
        self.need_workloads = any(framework.needs_workload for framework in frameworks)
