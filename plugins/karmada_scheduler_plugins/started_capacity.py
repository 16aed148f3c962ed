"""StartedCapacity: clusters get no more of what they do not start, and what waits there moves. Off by default.

docs/replicas-that-run.md explains it for operators.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from typing import Final, NamedTuple

from karmada_scheduler import framework as fw
from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import AGGREGATED
from karmada_scheduler.api.quantity import MAX_INT32, ZERO, Quantity
from karmada_scheduler.core.assign_replicas import DYNAMIC_WEIGHT, strategy_of
from karmada_scheduler.structs import Struct
from karmada_scheduler_plugins._start_evidence import StartEvidence, shape_of, without_node

NOT_STARTED: Final = "NotStarted"
_MOST_NAMES: Final = 5
MOST_AT_ONCE: Final = 200
"""Bindings that one call looks at; those of which nothing was reported for the longest time come first."""


class StartedCapacityArgs(Struct, frozen=True):
    """The args of StartedCapacity, each from 1 to 86,400.

    Attributes:
        start_seconds: How long a replica may wait for a node before that is evidence against its cluster.
        move_after_seconds: After this wait, at least ``start_seconds``, a replica goes elsewhere.
        cool_down_seconds: The shortest time between two moves of a binding.
        trial_seconds: The pause before a cluster gets a replica again in spite of evidence; doubled after each trial.
    """

    start_seconds: int = 60
    move_after_seconds: int = 60
    cool_down_seconds: int = 120
    trial_seconds: int = 300

    def __post_init__(self) -> None:
        """Check the ranges."""
        names = ("startSeconds", "moveAfterSeconds", "coolDownSeconds", "trialSeconds")
        values = (self.start_seconds, self.move_after_seconds, self.cool_down_seconds, self.trial_seconds)
        given = zip(names, values, strict=True)
        problems = [f"{name} must be 1 to 86400, got {n}" for name, n in given if not 1 <= n <= 86_400]
        if self.move_after_seconds < self.start_seconds:
            problems.append("moveAfterSeconds must not be less than startSeconds")
        if problems:
            raise ValueError("; ".join(problems))


class _Wait(NamedTuple):
    """A share of which not all replicas are ready.

    Attributes:
        most: The most that were ready at a time; more than these are Pods that have started.
        since: When replicas became ready last, or the share was given, in seconds since 1970.
    """

    share: int
    ready: int
    most: int
    since: float


class _Move(NamedTuple):
    """The last move of a binding.

    Attributes:
        at: When it was made, in seconds since 1970.
        pause: Seconds until the next one may be made if nothing becomes free: longer after a trial.
        limit: How many replicas the next one may take; 0 for no limit.
        careful: Whether the next one avoids clusters that do not start requests up to four times as large.
        targets: The next one, once accepted; it counts when it is reserved.
    """

    at: float = -math.inf
    pause: float = 0.0
    limit: int = 0
    careful: bool = True
    targets: tuple[TargetCluster, ...] = ()


class StartedCapacity:
    """Learn which clusters do not start what they are given, and move what waits there in one write."""

    name = "StartedCapacity"
    reconsider_seconds: Final = 5.0

    def __init__(self, args: StartedCapacityArgs, handle: fw.Handle) -> None:
        """Take the args of the profile."""
        self._args, self._handle = args, handle
        self._waits: dict[BindingKey, dict[str, _Wait]] = {}
        self._evidence = StartEvidence(args.trial_seconds)
        self._moves: dict[BindingKey, _Move] = {}
        self._looked = self._freed = -math.inf

    def observe(self, old: Binding | Cluster | None, new: Binding | Cluster | None, /) -> None:
        """Follow what clusters report, and their nodes."""
        present = new or old
        if present is None:
            for known in (self._waits, self._evidence.known, self._moves):
                known.clear()
        elif isinstance(present, Cluster):
            before = old if isinstance(old, Cluster) and new is not None else None
            if has_more := before is None or _has_more(before, present):
                self._evidence.known.pop(present.name, None)
            if has_more or self._evidence.has_freed(present):
                self._freed = self._handle.now()
            if before is None or _nodes(before) != _nodes(present):
                for waits in self._waits.values():
                    if present.name in waits:
                        waits[present.name] = waits[present.name]._replace(since=self._handle.now())
        else:
            earlier = old if isinstance(old, Binding) and old.uid == present.uid else None
            self._follow(present, earlier, exists=new is not None)

    def estimate_replicas(self, context: fw.EstimateContext, /) -> fw.ReplicaEstimate:
        """Let clusters take no more replicas of a shape that does not start there."""
        binding = context.cycle.binding
        if not self._evidence.known or len(binding.spec.components) > 1:
            return fw.ReplicaEstimate()
        stored, move = self._handle.binding(binding.key), self._moves.get(binding.key, _Move())
        is_move = stored is not None and stored.spec.clusters != binding.spec.clusters
        shape, now = shape_of(binding.spec), self._handle.now()
        most = self._evidence.limits(shape, context.cycle.snapshot, now, careful=is_move and move.careful)
        return fw.ReplicaEstimate(most, reason="replicas of this size or smaller wait there for a node")

    def reserve(self, context: fw.BindContext, /) -> fw.Result:
        """Count a move, and a trial, so that the next decision makes none."""
        binding, now = context.binding, self._handle.now()
        before, after = dict(binding.spec.clusters), dict(context.targets)
        gains = [name for name, replicas in context.targets if replicas > before.get(name, 0)]
        trials = [name for name in gains if self._evidence.tried(name, shape_of(binding.spec), now)]
        if self._moves.get(binding.key, _Move()).targets == tuple(context.targets):
            pause = max(self._args.cool_down_seconds, self._args.trial_seconds if trials else 0)
            self._moves[binding.key] = _Move(now, pause)
            left = sum(max(0, share - after.get(name, 0)) for name, share in before.items())
            text = f"{left} replicas that have not started leave their clusters"
            self._handle.record_event(binding, warning=False, reason=NOT_STARTED, text=text)
        return fw.SUCCESS

    def unreserve(self, context: fw.BindContext, /) -> None:
        """A trial counts, written or not."""

    def propose(self, binding: Binding, /) -> fw.Proposal | None:
        """Propose that replicas leave the clusters on which they wait for too long."""
        now = self._handle.now()
        if binding.key not in self._waits:
            return None
        if not 0 <= now - self._looked < self.reconsider_seconds:  # about all, before the first of them moves
            self._looked = now
            for waiting in filter(None, map(self._handle.binding, list(islice(self._waits, MOST_AT_ONCE)))):
                self._waiting(waiting, now)
        leaving = self._waiting(binding, now)
        last = self._moves.get(binding.key, _Move())
        pause = self._args.cool_down_seconds if self._freed >= last.at else last.pause
        if 0 <= now - last.at < pause or not any(leaving.values()):
            return None
        limit, kept = last.limit or MAX_INT32, {}
        for name, share in binding.spec.clusters:
            taken = min(leaving.get(name, 0), limit, share)
            kept[name], limit = share - taken, limit - taken
        return fw.Proposal(NOT_STARTED, fw.Terms.IN_FORCE, kept)

    def _waiting(self, binding: Binding, now: float) -> dict[str, int]:
        """Learn from the replicas of a binding that wait; return how many are to leave each cluster."""
        waits, shape, leaving = self._waits.get(binding.key, {}), shape_of(binding.spec), dict[str, int]()
        for name, wait in waits.items():
            waited, cluster = now - wait.since, self._handle.snapshot().get(name)
            if waited < 0:  # the clock was set back
                waits[name] = wait._replace(since=now)
            if cluster is None or waited < self._args.start_seconds:
                continue
            if waiting := min(wait.share - wait.ready, without_node(cluster, shape)):
                self._evidence.learn(cluster, shape, now)
                leaving[name] = waiting if waited >= self._args.move_after_seconds else 0
        return leaving

    def reconsider(self, context: fw.ReconsiderContext, /) -> fw.Result:
        """Let a move be written that takes only what waits, to where nothing is known to wait.

        Without one, the next proposal is less careful, and then moves half as many replicas each time.
        """
        if context.held:
            return fw.Result.unschedulable(str(context.error))
        key, kept = context.binding.key, context.proposal.kept or {}
        before, after = dict(context.binding.spec.clusters), dict(context.targets or ())
        now, number, problem = self._handle.now(), sum(before.values()) - sum(kept.values()), ""
        shape, snapshot = shape_of(context.binding.spec), self._handle.snapshot()
        limits = self._evidence.limits(shape, snapshot, now)
        if context.error is not None:
            problem = str(context.error).removesuffix(".")
        elif any(after.get(name, 0) < stays for name, stays in kept.items()):
            problem = "replicas that run would move"
        elif any(number - kept.get(name, 0) > limits.get(name, MAX_INT32) for name, number in after.items()):
            problem = "replicas would go where they do not start"
        elif all(after.get(name, 0) >= share for name, share in before.items()):
            problem = "replicas would stay where they wait"
        if problem:
            last, pause = self._moves.get(key, _Move()), self._args.cool_down_seconds
            avoids = last.careful and self._evidence.limits(shape, snapshot, now, careful=True) != limits
            is_last = number <= 1 and not avoids
            fewer = last._replace(limit=number if avoids else number // 2, careful=False)
            self._moves[key] = _Move(now, pause) if is_last else fewer
            ages = self._evidence.ages(shape, now)
            waits = [f"{name} {seconds:.0f} s ago" for name, seconds in ages.items()]
            text = (
                f"{problem}; such replicas waited for a node on {', '.join(waits[:_MOST_NAMES])}"
                if waits
                else problem
            )
            return fw.Result.unschedulable(text, retry_after=pause if is_last else 0.0)
        self._moves[key] = self._moves.get(key, _Move())._replace(targets=tuple(context.targets or ()))
        return fw.SUCCESS

    def _follow(self, binding: Binding, old: Binding | None, *, exists: bool) -> None:
        """Note which shares of a binding wait since when, and which clusters have started replicas."""
        known, waits, now = self._waits.pop(binding.key, {}), {}, self._handle.now()
        clusters = binding.spec.clusters if exists and self._divides(binding) else ()
        if old is None or not clusters:
            self._moves.pop(binding.key, None)
            known = {}
        reports = binding.status.reported_by_cluster()
        earlier = {} if old is None else old.status.reported_by_cluster()
        for name, share in clusters:
            total, ready = reports.get(name, (0, None))
            if ready is None or total > share:
                continue
            wait = known.get(name) or _Wait(share, ready, max(earlier.get(name, (0, 0))[1] or 0, ready), now)
            if ready > wait.most and self._evidence.started(name, shape_of(binding.spec)):
                self._freed = now
            is_new = ready > wait.ready or share > wait.share
            if ready < share:
                waits[name] = _Wait(share, ready, max(ready, wait.most), now if is_new else wait.since)
        if waits:
            self._waits[binding.key] = waits

    def _divides(self, binding: Binding) -> bool:
        """Return whether the plugin counts and moves replicas of a binding."""
        spec = binding.spec
        if spec.placement is None or spec.responsible_scheduler != self._handle.profile:
            return False
        try:
            return strategy_of(spec.placement) in (AGGREGATED, DYNAMIC_WEIGHT) and len(spec.components) < 2
        except fw.SchedulingError:
            return False


def _nodes(cluster: Cluster) -> tuple[int | None, Mapping[str, Quantity]]:
    summary = cluster.resource_summary
    return cluster.ready_nodes, {} if summary is None else summary.allocatable


def _has_more(old: Cluster, new: Cluster) -> bool:
    """Return whether a cluster has more ready nodes or allocatable resources than before."""
    (nodes, amounts), (nodes_now, amounts_now) = _nodes(old), _nodes(new)
    gains = [(amount - amounts.get(name, ZERO)).unscaled for name, amount in amounts_now.items()]
    return (nodes_now or 0) > (nodes or 0) or any(gain > 0 for gain in gains)
