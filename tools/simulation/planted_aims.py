"""Bugs that are seen at one moment only, which the profile ``aimed`` brings about; see ``planted_bugs``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, Final

from karmada_scheduler.binding_cycle import spec_writer
from karmada_scheduler.informer.reflector import Reflector
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
