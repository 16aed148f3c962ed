"""The laws of StrictPriority, judged from the history of writes and from nothing else.

- ``no inversion``: nobody gets capacity of a cluster while a binding of better rank waits for it that holds capacity. Who needs one
  cluster may hold any, but no lower one gets anything of all of them. What those of a still better rank leave is the capacity
  of who waits, and what is reported for less than a report interval may be counted twice.
- ``bounded hold``: no hold is older than ``holdSeconds``, and low priorities together keep no more than ``maxHeldPercent``
  and the need of their first from those after them.
- ``progress``: when faults have ended, the first in rank order is placed soon after it fits, and a pause between attempts; at rest nobody waits that fits
  besides all that those of better rank may hold.
- ``honest``: who is named as the first waits and has a better rank; what is called held is free; no waiting binding is called
  scheduled.

What is free is what a cluster has and no binding was given, so it is at least what a scheduler knows to be free. A
binding holds capacity when the scheduler has written that it waits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from karmada_scheduler.api.manifest import parse_time
from karmada_scheduler.api.quantity import parse
from tools.manifests import targets_of
from tools.simulation.cluster_reports import REPORT_SECONDS, cpu_of
from tools.simulation.environment import START
from tools.simulation.guard_history import Id, Object, Written

SOON_SECONDS: Final = REPORT_SECONDS + 5.0
"""Besides a pause of ``retrySeconds``."""
_UNSEEN_SECONDS: Final = 8.0
"""How long a change may be unknown without late watches."""
_TWICE_SECONDS: Final = REPORT_SECONDS + _UNSEEN_SECONDS
"""How long a scheduler may deduct what its cluster reports, too: until its binding has reported it, and a report later."""
_LATE_SECONDS: Final = 60.0
"""How long what a text says may have been true before it is written: reports are retried, and watches may be late."""
_EARLIER_SECONDS: Final = 10.0
"""So long before it is written, a hold may have begun."""
_SAME_TIME_SECONDS: Final = 1.0
_WAITS: Final = "Waits for capacity"
_HELD: Final = re.compile(r"(\d+) of (\d+) replicas are held on .* since (\d\d):(\d\d) UTC")
_FIRST: Final = re.compile(r"first is (\S+?)[.,;]?$")

Rank = tuple[int, float, Id]


def rank_of(one: Id, found: Object) -> Rank:
    """Return the rank of a binding; the lowest is the first."""
    created = parse_time(found["metadata"]["creationTimestamp"]).timestamp()
    return -(found["spec"].get("schedulePriority") or {}).get("priority", 0), created, one


def missing_of(found: Object, clusters: Container[str]) -> int:
    """Return how many replicas are on none of some clusters."""
    there = sum(count for name, count in targets_of(found).items() if name in clusters)
    return max(0, int(found["spec"]["replicas"]) - there)


def needs_one_cluster(found: Object) -> bool:
    """Return whether all replicas have to be on one cluster."""
    return any(
        each.get("maxGroups") == 1 for each in found["spec"]["placement"].get("spreadConstraints") or ()
    )


def condition_of(found: Object | None) -> Object:
    """Return the condition Scheduled; empty without one."""
    conditions = ((found or {}).get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "Scheduled"), {})


@dataclass(slots=True)
class _Wait:
    """A binding that waits, as a scheduler has written.

    Attributes:
        since: When that was stored.
        identity: The scheduler.
        generation: Of the binding.
        touched: The clusters of which lower ranks have got something since.
    """

    since: float
    identity: str
    generation: int
    touched: set[str] = field(default_factory=set)


class HoldLaws:
    """Judges the writes of one run."""

    def __init__(self, args: Object, add: Callable[[str, str], None]) -> None:
        """Judge by the args of StrictPriority; ``add`` gets the name of a law that is broken, and what happened."""
        self._hold_from: int = args.get("holdFrom", 1)
        self._hold_seconds: float = args.get("holdSeconds", 3600)
        self._percent: float = args.get("maxHeldPercent", 5)
        self._soon: float = SOON_SECONDS + args.get("retrySeconds", 15)
        self._best_effort: frozenset[str] = frozenset(args.get("bestEffortNamespaces", ()))
        self._add = add
        self._clusters: dict[str, Object] = {}
        self._bindings: dict[Id, Object] = {}
        self._waits: dict[Id, _Wait] = {}
        self._changed: dict[Id, float] = {}
        """When the rank of a binding changed."""
        self._left: dict[str, float] = {}
        """When a binding, by namespace and name, last ceased to wait."""
        self._fits_since: tuple[Id, float] | None = None
        self._unreported: dict[str, float] = {}
        """When a cluster last reported other amounts than bindings have on it."""
        self._rewritten: dict[Id, float] = {}
        """When the text of a hold that can end was last written again."""
        self._suspected: list[tuple[float, Id, str]] = []
        """Inversions, unless the binding that waits was placed at the same time, and its write was the later one."""

    def on_cluster(self, at: float, name: str, after: Object | None) -> None:
        """Note a change of a cluster."""
        self._note_reports(at, [name])
        before = self._clusters.pop(name, None)
        if after is not None and not after["metadata"].get("deletionTimestamp"):
            self._clusters[name] = after
        if before is None or after is None or before["spec"] != after["spec"]:
            for wait in self._waits.values():
                wait.touched.clear()  # another cluster may be held now

    def on_write(self, write: Written) -> None:
        """Judge a write of a binding."""
        for found in (write.before, write.after):
            self._note_reports(write.at, targets_of(found) if found is not None else ())
        if write.sent is not None and write.before is not None and write.after is not None:
            self._check_honest(write, write.after)
            self._check_inversion(write, write.before, write.after, write.sent)
        before = self._bindings.pop(write.id, None)
        if write.after is not None:
            self._bindings[write.id] = write.after
            if before is not None and rank_of(write.id, before) != rank_of(write.id, write.after):
                self._changed[write.id] = write.at
        if (
            before is not None
            and self._missing(before)
            and (write.after is None or not self._missing(write.after))
        ):
            self._left["/".join(write.id[1:])] = write.at
        self._note_wait(write)
        self._note_text(write)
        self._judge_suspected(write.at)

    def _note_text(self, write: Written) -> None:
        before, after = (condition_of(each).get("message", "") for each in (write.before, write.after))
        if (
            self._hold_seconds
            and write.sent is not None
            and before != after
            and _WAITS in before
            and _WAITS in after
        ):
            self._rewritten[write.id] = write.at

    def rewritten_since(self, at: float) -> int:
        """Return how many bindings have got a new text, because holds end and begin again also while nothing happens."""
        return sum(each >= at for each in self._rewritten.values())

    def _note_reports(self, at: float, names: Iterable[str]) -> None:
        """Note what has not been reported until a change."""
        for name in names:
            if name in self._clusters and self.free_on(name) != self._unallocated(name):
                self._unreported[name] = at

    def _judge_suspected(self, at: float) -> None:
        while self._suspected and self._suspected[0][0] < at - _SAME_TIME_SECONDS:
            _, one, text = self._suspected.pop(0)
            if one in self._waits:
                self._add("no inversion", text)

    def _note_wait(self, write: Written) -> None:
        found, old = write.after, self._waits.get(write.id)
        if found is None or not self._missing(found):
            self._waits.pop(write.id, None)
            return
        generation = found["metadata"]["generation"]
        if old is not None and old.generation != generation:
            del self._waits[write.id]
        if write.sent is None or _WAITS not in condition_of(found).get("message", ""):
            return
        if old is None or (old.generation, old.identity) != (generation, write.identity):
            self._waits[write.id] = _Wait(write.at, write.identity, generation)

    def free_on(self, name: str) -> int:
        """Return the thousandths of a CPU of a cluster that no binding has."""
        cluster = self._clusters.get(name)
        if cluster is None:
            return 0
        has = parse(cluster["status"]["resourceSummary"]["allocatable"]["cpu"]).milli_value
        return has - sum(targets_of(found).get(name, 0) * cpu_of(found) for found in self._bindings.values())

    def _missing(self, found: Object) -> int:
        return missing_of(found, self._clusters)

    def _feasible(self, found: Object) -> list[str]:
        labels = ((found["spec"]["placement"].get("clusterAffinity") or {}).get("labelSelector") or {}).get(
            "matchLabels"
        ) or {}
        return [
            name
            for name, cluster in self._clusters.items()
            if not cluster["spec"].get("taints")
            and labels.items() <= (cluster["metadata"].get("labels") or {}).items()
        ]

    def _holds(self, one: Id, found: Object, at: float) -> bool:
        """Return whether a waiting binding certainly holds capacity for all that it needs: its clusters could take it."""
        if not self._fits(found, self._size):
            return False
        wait = self._waits.get(one)
        if wait is None or one[1] in self._best_effort or rank_of(one, found)[0] > -self._hold_from:
            return False
        return not self._hold_seconds or at < wait.since + self._hold_seconds - _EARLIER_SECONDS

    def _fits(self, found: Object, free_on: Callable[[str], int]) -> bool:
        cpu, has = cpu_of(found), targets_of(found)
        counts = {name: max(0, free_on(name)) // cpu for name in self._feasible(found)}
        if needs_one_cluster(found):  # of the replicas that it has, those of this cluster stay
            return any(
                count + has.get(name, 0) >= found["spec"]["replicas"] for name, count in counts.items()
            )
        return sum(counts.values()) >= self._missing(found)

    def _check_inversion(self, write: Written, before: Object, after: Object, sent: float) -> None:
        old, gained = targets_of(before), {}
        for name, count in targets_of(after).items():
            if count > old.get(name, 0):
                gained[name] = (count - old.get(name, 0)) * cpu_of(after)
        rank = rank_of(write.id, after)
        for one, wait in self._waits.items() if gained else ():
            found = self._bindings[one]
            is_judged = one != write.id and rank_of(one, found) < rank and self._holds(one, found, sent)
            if (
                not is_judged
                or sent <= wait.since
                or wait.identity != write.identity
                or self._fits(found, self.free_on)
            ):
                continue
            lost = {
                name for name in self._feasible(found) if self._is_lost(name, gained.get(name, 0), one, sent)
            }
            if needs_one_cluster(found):
                large = {
                    name
                    for name in self._feasible(found)
                    if self._size(name) >= self._missing(found) * cpu_of(found)
                }
                wait.touched |= lost
                lost = lost if large and large <= wait.touched else set()
            if lost:
                text = (
                    f"{write.id} gets capacity of {sorted(lost)} for which {one} waits since {wait.since:.1f}"
                )
                self._suspected.append((write.at, one, text))
                wait.touched.clear()

    def _is_lost(self, name: str, gained: int, one: Id, at: float) -> bool:
        """Return whether a cluster certainly has fewer places for a binding that waits than a scheduler knew of.

        That is so if it is, whatever those of better rank hold, and whatever was counted twice.
        """
        found, free = self._bindings[one], self.free_on(name)
        cpu, missing = cpu_of(found), self._missing(found)
        if not gained or free < cpu:
            return False
        is_reported = free == self._unallocated(name)
        is_known = is_reported and at >= self._unreported.get(name, -math.inf) + _TWICE_SECONDS
        step = math.gcd(free, gained, *map(cpu_of, self._bindings.values()))
        left = {free} if is_known else set(range(gained, free + 1, step))
        for other, better in sorted(self._bindings.items(), key=lambda each: rank_of(*each)):
            if other == one:
                break
            if self._missing(better) and name in self._feasible(better):
                takes, most, must = (
                    cpu_of(better),
                    self._missing(better),
                    self._holds_on_each(other, better, at),
                )
                left = {
                    each - count * takes
                    for each in left
                    for count in (
                        range(min(most, each // takes), -1, -1) if not must else [min(most, each // takes)]
                    )
                }
        # What those of better rank hold may be decided and not written; that they lose it is judged for each of them.
        return not any(
            min(missing, max(0, each - gained) // cpu) >= min(missing, each // cpu) for each in left
        )

    def _holds_on_each(self, one: Id, found: Object, at: float) -> bool:
        """Return whether a binding certainly holds capacity on each cluster."""
        return not needs_one_cluster(found) and self._holds(one, found, at)

    def _size(self, name: str) -> int:
        return parse(self._clusters[name]["status"]["resourceSummary"]["allocatable"]["cpu"]).milli_value

    def _check_honest(self, write: Written, after: Object) -> None:
        condition = condition_of(after)
        if condition == condition_of(write.before) or not condition:
            return
        if condition.get("status") == "True":
            lacking = missing_of(after, targets_of(after))
            if lacking and after["metadata"]["generation"] == after["status"].get(
                "schedulerObservedGeneration"
            ):
                self._add("honest", f"{write.id} lacks {lacking} replicas and is called scheduled")
            return
        message = condition.get("message", "")
        if found := _FIRST.search(message):
            self._check_first(write, after, found[1])
        if found := _HELD.search(message):
            count, of, hour, minute = map(int, found.groups())
            now = START + timedelta(seconds=write.at)
            age = (now - now.replace(hour=hour, minute=minute, second=0)).total_seconds() % 86400
            if self._hold_seconds and age > self._hold_seconds + 60 + _UNSEEN_SECONDS:
                self._add("bounded hold", f"{write.id} holds capacity for {age:.0f} s: {message}")
            # A new leader knows of what was decided before only what clusters report.
            most = (max(0, self.free_on(name), self._unallocated(name)) for name in self._feasible(after))
            free = sum(each // cpu_of(after) for each in most)
            if count > min(of, free):
                self._add("honest", f"{write.id} holds {count} of {of}, and {free} are free: {message}")

    def _check_first(self, write: Written, after: Object, named: str) -> None:
        one = next((each for each in self._bindings if "/".join(each[1:]) == named), None)
        if one is None or not self._missing(self._bindings[one]):
            if self._left.get(named, -math.inf) < write.at - _LATE_SECONDS:
                self._add("honest", f"{write.id} waits after {named}, which does not wait")
        elif rank_of(one, self._bindings[one]) > rank_of(write.id, after):
            changed = max(self._changed.get(each, -math.inf) for each in (one, write.id))
            if changed < write.at - _LATE_SECONDS:
                self._add("honest", f"{write.id} waits after {named}, whose rank is worse")

    def look(self, at: float) -> None:
        """Judge whether the first is placed soon; to be called every second while there are no faults."""
        first = next(self._ranked(), None)
        fits = first is not None and self._fits(self._bindings[first], self._reported)
        if first is None or not fits:
            self._fits_since = None
        elif self._fits_since is None or self._fits_since[0] != first:
            self._fits_since = first, at
        elif at - self._fits_since[1] > self._soon:
            self._add("progress", f"{first} is the first, fits since {self._fits_since[1]:.0f} s, and waits")
            self._fits_since = first, at

    def rest(self) -> None:
        """Judge who waits at rest."""
        self._judge_suspected(math.inf)
        left = {name: self._reported(name) for name in self._clusters}
        besides_low, most = dict(left), 0
        """What all of better rank leave at least, what those leave that hold all that they need, and the most a low one needs."""
        for one in self._ranked():
            found = self._bindings[one]
            needs, is_low = self._missing(found) * cpu_of(found), rank_of(one, found)[0] > -self._hold_from
            if self._fits(found, lambda name: left[name]):
                self._add("progress", f"{one} fits besides what those before it may hold")
            elif most and self._fits_low(found, besides_low, most):
                self._add("bounded hold", f"{one} waits for capacity that low priorities hold")
            if one[1] in self._best_effort:
                continue
            most = max(most, needs) if is_low else most
            for counts in (left,) if is_low else (left, besides_low):
                for name in self._feasible(found):
                    counts[name] -= min(max(0, counts[name]), needs)

    def _fits_low(self, found: Object, left: Mapping[str, int], most: int) -> bool:
        """Return whether a binding fits, whatever low priorities hold of what is left on clusters."""
        names = self._feasible(found)
        held = most + sum(map(self._size, self._clusters)) * self._percent / 100
        free = sum(max(0, left[name]) for name in names) - held
        return not needs_one_cluster(found) and free >= (self._missing(found) + len(names)) * cpu_of(found)

    def _ranked(self) -> Iterator[Id]:
        waiting = (
            one for one, found in self._bindings.items() if self._missing(found) and condition_of(found)
        )
        return iter(sorted(waiting, key=lambda one: rank_of(one, self._bindings[one])))

    def _reported(self, name: str) -> int:
        """Return what is free as the cluster reports, or less."""
        return min(self._unallocated(name), self.free_on(name))

    def _unallocated(self, name: str) -> int:
        summary: Any = self._clusters[name]["status"]["resourceSummary"]
        has, used = (parse(summary[each]["cpu"]).milli_value for each in ("allocatable", "allocated"))
        return has - used
