"""A fake binding transaction for the scheduling loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.binding_cycle.result import TransactionResult
from karmada_scheduler.core.decision import Decision


class FakeTransaction:
    """A transaction without plugins that is written by a function of the fake binding cycle."""

    runs_plugins = False

    def __init__(
        self,
        binding: Binding,
        decision: Decision,
        targets: tuple[TargetCluster, ...] | None,
        write: Callable[[FakeTransaction], Awaitable[TransactionResult]],
    ) -> None:
        self.binding = binding
        self.decision = decision
        self.targets = targets
        self._write = write

    def reserve(self) -> bool:
        return True

    async def run(self, _permit: object) -> TransactionResult:
        return await self._write(self)
