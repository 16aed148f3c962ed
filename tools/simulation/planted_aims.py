"""Bugs that are seen at one moment only, which the profile ``aimed`` brings about; see ``planted_bugs``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, Final

from karmada_pyscheduler.binding_cycle import spec_writer, status_writer
from karmada_pyscheduler.binding_cycle.writer import OwnWrites
from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.informer.reflector import Reflector
from karmada_pyscheduler.scheduler import scheduler
from tools.simulation.planted_bugs import Patches, PlantedBug, plants

AIMED_BUGS: Final[list[PlantedBug]] = []
_bug = partial(plants, AIMED_BUGS)


@_bug("a decision is written over a newer spec", "converged", "no harm", found_by=("0", "aimed"))
def _written_over_a_newer_spec() -> Patches:
    yield spec_writer, "_decision_inputs", lambda binding: (binding.uid,)


@_bug("a watch swallows its cancellation", "stops", found_by=("6", "aimed"))
def _cancellation_is_swallowed() -> Patches:
    async def next_event(self: Reflector, events: AsyncGenerator[Any, None]) -> Any:
        self._waiting = asyncio.current_task()
        try:
            return await anext(events)
        except StopAsyncIteration:
            return None
        except asyncio.CancelledError:
            self._waiting.uncancel()  # type: ignore[union-attr]
            return None
        finally:
            self._waiting, self._is_interrupted = None, False

    yield Reflector, "_next", next_event


@_bug(
    "a watch waits for a response without end", "cached", "converged", "no lost key", found_by=("4", "aimed")
)
def _response_is_awaited_without_end() -> Patches:
    original = Reflector._check

    def check(self: Reflector) -> None:
        if self._is_accepted:
            original(self)

    yield Reflector, "_check", check


@_bug("a cluster that does not exist is not left", "converged", found_by=("8", "aimed"))
def _gone_cluster_is_kept() -> Patches:
    def is_gone(self: ClusterCache, name: str) -> bool:
        found = self.get(name)
        return found is not None and found.deleting

    yield ClusterCache, "is_gone", is_gone


@_bug("a success is not reported by the next leader", "converged", "no lost key", found_by=("9", "aimed"))
def _success_stays_unreported() -> Patches:
    yield status_writer, "is_unreported", lambda _: False


@_bug(
    "the affinity term of a result is lost with its leader", "converged", "no harm", found_by=("7", "aimed")
)
def _affinity_term_is_lost() -> Patches:
    yield scheduler, "unreported_term", lambda *_: ""


@_bug("why a binding has no clusters is lost with its leader", "converged", found_by=("9", "aimed"))
def _empty_result_stays_unreported() -> Patches:
    yield scheduler, "is_undecided_result", lambda _: False


@_bug("a late failure of a former leader stays", "converged", "no lost key", found_by=("10", "aimed"))
def _late_failure_stays() -> Patches:
    yield OwnWrites, "has_conditions_of", lambda *_: True
