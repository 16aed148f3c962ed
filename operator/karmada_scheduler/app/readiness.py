"""Whether the process is ready, from its start to its end; probes ask in the supervisor's thread."""

from __future__ import annotations

from typing import Final

from karmada_scheduler.informer.kopf_watch import EventSource

LOADING: Final = "plugins are being loaded"
FILLING: Final = "the caches are not filled yet"


class Readiness:
    """The phases of a start: plugins are loaded, the caches are filled, the watches work.

    Attributes:
        is_filled: Whether the caches have everything that the initial lists had.
    """

    def __init__(self) -> None:
        """Start with the loading of plugins."""
        self._phase = LOADING
        self._watch: EventSource | None = None

    def plugins_loaded(self) -> None:
        """Enter the phase in which the caches are filled."""
        self._phase = FILLING

    def caches_filled(self, watch: EventSource) -> None:
        """Enter the last phase: the process is ready as long as its watches have no problem."""
        self._watch = watch

    @property
    def is_filled(self) -> bool:
        return self._watch is not None

    @property
    def problem(self) -> str | None:
        """The reason why ``/readyz`` fails, None if it succeeds."""
        return self._phase if self._watch is None else self._watch.problem
