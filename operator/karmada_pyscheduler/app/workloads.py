"""The metadata of workloads, for the plugins that declare that they need it."""

from __future__ import annotations

from collections.abc import Callable

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.metadata import MetadataClient
from karmada_pyscheduler.informer.requeue import Requeuer
from karmada_pyscheduler.informer.workloads import NotSynced, WorkloadInformer
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.workload import UndeclaredWorkloadError


class WorkloadSource:
    """The workload informer of the process, from the time when there is a connection."""

    def __init__(self, bindings: BindingCache) -> None:
        """Know no workload until ``connect``."""
        self._bindings = bindings
        self._informer: WorkloadInformer | None = None
        self._profiles: Profiles | None = None

    def connect(
        self,
        connection: Connection,
        profiles: Profiles,
        requeuer: Requeuer,
        *,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        """Watch what the plugins of the profiles need; a change of a workload requeues its bindings."""
        self._profiles = profiles
        informer = self._informer = WorkloadInformer(
            MetadataClient(connection),
            is_needed=profiles.needs_workload,
            on_change=requeuer.on_workload_changed,
            on_synced=requeuer.add_key,
            clock=clock,
        )
        self._bindings.add_listener(informer.on_binding_change)
        metrics.api_server.cached.labels("Workload").set_function(informer.__len__)
        metrics.api_server.unavailable_workloads.set_function(lambda: len(informer.unavailable()))
        self.follow()

    def follow(self) -> None:
        """Watch the metadata of the workloads of all bindings if a plugin needs it; called when plugins change."""
        assert self._informer is not None  # connected before plugins change
        assert self._profiles is not None
        self._informer.follow_all(self._bindings if self._profiles.need_workloads else ())

    def look_up(self, binding: Binding) -> WorkloadAnswer | NotSynced:
        """Return the workload of a binding for a decision."""
        assert self._informer is not None  # connected before bindings are scheduled
        return self._informer.look_up(binding)

    def stored(self, key: BindingKey) -> Workload | None:
        """Return the workload as it was last seen, None if it is not known."""
        return self._informer.stored(key) if self._informer is not None else None

    def stored_for_profile(self, profile: str, key: BindingKey) -> Workload | None:
        """Return the workload as it was last seen for a plugin's handle.

        Raises:
            UndeclaredWorkloadError: No plugin of the profile declares that it needs workloads.
        """
        if self._profiles is not None and not self._profiles.declares_workload(profile):
            raise UndeclaredWorkloadError
        return self.stored(key)

    def close(self) -> None:
        """End all watches."""
        if self._informer is not None:
            self._informer.close()
