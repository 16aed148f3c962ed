"""The law ``estimated``: replicas are divided by what estimators have responded in time, or by resource summaries.

A cluster without a response in time counts by its resource summary (docs/estimators.md); with the failure policy
``upstream`` all do then. Which requests a decision has waited for is not known, so each response of the last seconds
may have been used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Final

import orjson

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.core.available_replicas import NO_OPINION
from tools.apiserver_model import Write
from tools.manifests import targets_of
from tools.simulation.decisions import DecisionCore, Targets, read_binding
from tools.simulation.estimators import EstimatorCalls
from tools.simulation.harm_law import HarmLaw
from tools.simulation.network import Sent

if TYPE_CHECKING:
    from tools.simulation.run import Run

_USED_SECONDS: Final = 15.0
"""How old a response is at most that a write was decided with: the wait for others, and for the write to be sent."""
_THROTTLED_TIMES: Final = 3
"""How often in a row writes may have to wait for as long as a response has asked for."""
_IN_TIME_SECONDS: Final = 0.5
"""A call that takes longer may have ended after the decision."""
_MOST_ESTIMATES: Final = 64
"""A write that may have been decided with more different estimates is not judged."""


class EstimateLaw:
    """Judges writes of clusters by the calls of the estimators."""

    def __init__(self, run: Run, core: DecisionCore, harm: HarmLaw, add: Callable[[str, str], None]) -> None:
        """Judge by the states of clusters that ``harm`` knows."""
        self._run, self._core, self._harm, self._add = run, core, harm, add
        waits = (each.value for each in run.plan.faults if each.kind == "throttled")
        self._used_seconds = _USED_SECONDS + _THROTTLED_TIMES * max(
            (each for each in waits if isinstance(each, int | float)), default=0.0
        )

    def check(self, write: Write, sent: Sent) -> None:
        """Judge a write of clusters by a scheduler."""
        if not self._is_judged(write):
            return
        assert write.before is not None  # schedulers patch
        assert write.after is not None
        calls = next(
            each.estimator_calls for each in self._run.starts[sent.process] if each.identity == sent.identity
        )
        before, after = orjson.loads(write.before), targets_of(orjson.loads(write.after))
        if not self._explains(before, after, calls, sent.at):
            known = {name: self._possible(calls, name, sent.at) for name in sorted(calls.by_cluster)}
            self._add(
                "estimated", f"{write.key}: {targets_of(before)} -> {after} fits no estimates of {known}"
            )

    def _is_judged(self, write: Write) -> bool:
        """Return whether the clusters of a decision are known, and nothing but estimates counts besides them.

        They are if no list lacked any, and the binding could be read.
        """
        are_wrong = self._run.faults.had_wrong_list("clusters")
        counts_assumed = self._run.setup.gates.enabled("SchedulingOvercommitProtection")
        is_known = not write.epoch and not are_wrong and read_binding(write.before or b"{}") is not None
        return bool(self._run.setup.estimators) and is_known and not counts_assumed

    def _explains(
        self, before: dict[str, object], after: Targets, calls: EstimatorCalls, sent: float
    ) -> bool:
        binding = Binding.from_manifest(before)
        for clusters, hidden in self._harm.cluster_states():
            if hidden:
                return True
            names = [each.name for each in clusters]
            possible = {name: self._possible(calls, name, sent) for name in names}
            if prod(map(len, possible.values())) > _MOST_ESTIMATES:
                return True
            for estimates in self._estimates(possible):
                found = self._core.targets(binding, clusters, estimates=estimates.__getitem__)
                if found == after:
                    return True
        return False

    def _estimates(self, possible: Mapping[str, frozenset[int]]) -> Iterator[Mapping[str, int]]:
        """Yield what a decision may have used."""
        if self._run.setup.estimators == "upstream" and any(NO_OPINION in each for each in possible.values()):
            # One failure makes all estimates of an affinity term invalid.
            possible = {name: each | {NO_OPINION} for name, each in possible.items()}
        for numbers in product(*possible.values()):
            yield dict(zip(possible, numbers, strict=True))

    def _possible(self, calls: EstimatorCalls, cluster: str, sent: float) -> frozenset[int]:
        """Return the estimates that a decision may have had for a cluster."""
        noted = [each for each in calls.by_cluster.get(cluster, ()) if each.began <= sent]
        numbers = {
            max(each.number, NO_OPINION)  # less is no number of replicas, so the response cannot be read
            for each in noted
            if each.number is not None
            and each.ended is not None
            and sent - self._used_seconds <= each.ended <= sent
        }
        was_late = any(
            (each.number is None and each.ended is not None and each.ended <= sent)
            or min(each.ended or sent, sent) - each.began > _IN_TIME_SECONDS
            for each in noted
        )
        was_lost = self._run.faults.hits["estimator_lost", f"estimator {cluster}"] > 0
        return frozenset(numbers | ({NO_OPINION} if was_late or was_lost or not numbers else set()))
