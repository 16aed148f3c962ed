"""The laws of FairShare.

- ``fair``: no binding is taken from the queue for a tenant while another with a smaller share has one in it. So of two tenants with
  bindings in the queue neither gets further ahead than its next binding, the largest at most. Priorities of the whole
  fleet go first, and so does who stays within a nominal quota.
- ``within limits``: no write lets a tenant have more than ``nominalQuota`` and ``borrowingLimit``.

Shares are computed from the cache of the process, and from what it has decided and not written, as the gate
SchedulingOvercommitProtection notes it. Everything is in thousandths of a CPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from karmada_pyscheduler.scheduling_queue.grouped_queue import GroupedSchedulingQueue
from karmada_scheduler.api.binding import AssumedWorkload, Binding, BindingKey
from karmada_scheduler.api.quantity import parse
from karmada_scheduler_plugins.fair_share import FairShare
from tools.manifests import targets_of
from tools.simulation.cluster_reports import cpu_of
from tools.simulation.guard_history import Id, Written

if TYPE_CHECKING:
    from tools.simulation.process import SchedulerProcess

Object = dict[str, Any]
_ROUNDING: Final = 1e-9


class FairLaw:
    """Judges the queues and the writes of a run."""

    def __init__(self, args: Object, add: Callable[[str, str], None]) -> None:
        """Judge by the args of FairShare; ``add`` gets the name of a law that is broken, and what happened."""
        self._tenants: list[Object] = args.get("tenants", [])
        self._global_from: float = args.get("globalPriorityFrom", float("inf"))
        self._add = add
        self._stored: dict[Id, tuple[str, int]] = {}
        self._used = Counter[str]()
        self._refused: dict[Id, float] = {}
        """When it was last written that a binding does not fit."""

    def _terms(self, namespace: str) -> Object:
        """Return the tenant of a namespace."""
        found = (tenant for tenant in self._tenants if namespace in tenant["namespaces"])
        return next(found, {"name": f"{namespace}/"})

    def _amount(self, terms: Object, of: str) -> int:
        return parse(str(terms.get(of, {}).get("cpu", "0"))).milli_value

    def watch(self, process: SchedulerProcess) -> None:
        """Judge each key that a process takes from now on."""
        assert process.application is not None
        queue = process.application.state.queue
        assert isinstance(queue, GroupedSchedulingQueue)
        take = queue.pop

        def pop() -> tuple[BindingKey, float] | None:
            taken = take()
            if taken is not None:
                self._judge(process, queue, taken[0])
            return taken

        queue.pop = pop  # type: ignore[method-assign]

    def _judge(self, process: SchedulerProcess, queue: Any, taken: BindingKey) -> None:
        state: Any = process.application and process.application.state
        others = {self._terms(key.namespace)["name"]: key for key in queue._items}
        mine, found = self._terms(taken.namespace), state.bindings.get(taken)
        others.pop(mine["name"], None)
        if not others or found is None or found.spec.priority >= self._global_from:
            return
        capacity = sum(
            each.resource_summary.allocatable["cpu"].milli_value
            for each in state.clusters.snapshot()
            if each.resource_summary is not None
        )
        used, at_most, unsure = Counter[str](), Counter[str](), _unsure(state.profiles.queue_sort)
        for each in state.bindings:
            name, count = self._terms(each.key.namespace)["name"], _cpus_of(each, state.assumed)
            used[name] += count
            at_most[name] += max(count, each.spec.replicas * _cpu(each)) if each.key in unsure else count
        asked = found.spec.replicas * _cpu(found) - _cpus_of(found, state.assumed)
        if asked > 0 and used[mine["name"]] + asked <= self._amount(mine, "nominalQuota"):
            return
        share = self._share(mine, used, capacity)
        for name, key in sorted(others.items()):
            other = self._share(self._terms(key.namespace), at_most, capacity)
            if other < share - _ROUNDING:
                text = f"{taken.display} of {mine['name']} ({share:.3f}) before {key.display} of {name} ({other:.3f})"
                self._add("fair", f"{process.name} takes {text}")

    def _share(self, terms: Object, used: Counter[str], capacity: int) -> float:
        borrowed = max(0, used[terms["name"]] - self._amount(terms, "nominalQuota"))
        return borrowed / capacity / terms.get("weight", 1.0) if capacity else 0.0

    def on_write(self, write: Written) -> None:
        """Judge what a tenant has after a write of a binding."""
        name, before = self._stored.pop(write.id, ("", 0))
        self._used[name] -= before
        if write.after is None:
            return
        if write.sent is not None and not targets_of(write.after):
            self._refused[write.id] = write.at
        terms = self._terms(write.id[1])
        now = sum(targets_of(write.after).values()) * cpu_of(write.after)
        self._stored[write.id] = terms["name"], now
        self._used[terms["name"]] += now
        limit = self._amount(terms, "nominalQuota") + self._amount(terms, "borrowingLimit")
        if (
            write.sent is not None
            and now > before
            and self._used[terms["name"]] > limit
            and "borrowingLimit" in terms
        ):
            has = self._used[terms["name"]]
            self._add("within limits", f"with {write.id} {terms['name']} has {has}m of {limit}m")

    def refused_since(self, at: float) -> int:
        """Return how many bindings were refused since a time: each 330 s, with what is available then."""
        return sum(each >= at for each in self._refused.values())


def _unsure(plugin: FairShare) -> set[BindingKey]:
    """Return the bindings of which a decision may be stored, because the answer to the write was lost."""
    return {key for key, version in plugin._tenants._decided.items() if version is None}


def _cpu(found: Binding) -> int:
    asked = found.spec.replica_requirements.resource_request if found.spec.replica_requirements else {}
    return asked["cpu"].milli_value if "cpu" in asked else 0


def _cpus_of(found: Binding, assumed: Any) -> int:
    """Return what a binding has, or will have if what is decided about it is written."""
    entry = assumed._entries.get(found.key)
    if entry is None or not entry.is_pending:
        return sum(each.replicas for each in found.spec.clusters) * _cpu(found)
    workloads: dict[str, AssumedWorkload] = entry.workloads
    counts = (each.components[0].replicas for name, each in workloads.items() if name not in entry.leaving)
    return sum(counts) * _cpu(found)
