"""Losses where the decision about one binding can change that about another: on real snapshots, in the order of the queue.

That is so with the gate SchedulingOvercommitProtection, workload groups, Guard plugins, and plugins of the user's own, which may
read the taints of clusters or the tasks of bindings. It is slower: each domain has a snapshot of its own, in which the lost
clusters are tainted or being deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from karmada_advisor.whatif.plan.decide import PlanSide
from karmada_advisor.whatif.survive.classify import Evicted
from karmada_advisor.whatif.survive.decisions import LossDecisions
from karmada_advisor.whatif.survive.loss import NO_POLICIES, Loss, LossTaints
from karmada_advisor.whatif.survive.loss_decision import Sweeps, decided
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.framework.snapshot import ChangeLog, Snapshot


class CoupledLosses:
    """Decides after losses as the scheduler would, one binding after the other."""

    def __init__(self, side: PlanSide, bindings: Iterable[Binding], taints: LossTaints = NO_POLICIES) -> None:
        """Take the clusters as they are, all bindings, and the taints of lost clusters."""
        self._taints: Final = taints
        self._rules: Final = side.rules
        self._clusters: Final = {each.name: each for each in side.snapshot}
        self._bindings: Final = list(bindings)
        self._log: Final = ChangeLog()
        self._changed: Collection[str] = ()

    def after(
        self, asked: Mapping[int, LossDecisions], lost: Collection[str], loss: Loss
    ) -> Iterator[tuple[int, Evicted]]:
        """Yield what becomes of the bindings that a loss concerns, by their position.

        Args:
            asked: All bindings with a class, in the order of the queue.
            lost: The names of the lost clusters.
            loss: The world.
        """
        side = PlanSide(self._rules, self._snapshot(lost, loss), self._bindings)
        waiting: list[tuple[Binding, ScheduleType]] = []
        places: dict[int, int] = {}
        for place, each in asked.items():
            found = each.left(lost, loss)
            if found.decides or (
                not found.is_evicted and each.may_be_asked and Sweeps.concerns(each.binding)
            ):
                places[id(found.binding)] = place
                waiting.append((found.binding, side.type_of(found.binding)))
            elif found.present:
                yield place, each.undecided(found)
        for binding, _, decision in side.decisions_in_order(waiting):
            place = places[id(binding)]
            made = decided(decision, binding.spec.clusters)
            yield place, asked[place].made(asked[place].left(lost, loss), made, loss)

    def _snapshot(self, lost: Collection[str], loss: Loss) -> Snapshot:
        for name in (*self._changed, *lost):
            self._log.append(name)
        self._changed = lost
        return Snapshot.of(
            (
                self._taints.lost(each, loss) if name in lost else each
                for name, each in self._clusters.items()
            ),
            log=self._log,
        )
