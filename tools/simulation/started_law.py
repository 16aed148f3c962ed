"""The laws of StartedCapacity, in runs whose members start the Pods that fit on a node (profile ``started``).

A write is a move by itself if nothing else requires it: the binding had as many replicas as it is to have.

- ``keeps what runs``: a move by itself leaves each cluster as many replicas as are reported as ready there.
- ``no to and fro``: a process moves a binding at most once per cool-down. Trials become rare: in the second half of the
  time after the last change there are few.
- ``started``: at rest, no replica waits for long while a node of another member has capacity for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import orjson

from tools.apiserver_model import ApiServerModel, Key, Write
from tools.manifests import targets_of
from tools.simulation.members import Member
from tools.simulation.network import Sent
from tools.simulation.simulation import Simulation
from tools.simulation.works import Works

REPORT_SECONDS: Final = 5.0
"""How often members start Pods, and report. Karmada's interval is ten seconds."""
MOST_MOVES: Final = 5
"""Of a binding in the second half."""
_LATE: Final = 2.0
"""A write may be answered so much later than another one, in seconds."""
LONGEST_WAIT: Final = 600.0
"""How long a replica may wait at rest although a node of another member has capacity."""


class StartedLaw:
    """Members, what they report, and the judgement of moves."""

    def __init__(
        self,
        simulation: Simulation,
        model: ApiServerModel,
        works: Works,
        members: Mapping[str, Member],
        cool_down: float,
        add: Callable[[str, str], None],
    ) -> None:
        """Take the members; ``add`` records a violation of a law, with a text."""
        self.members: Final = members
        self._simulation, self._model, self._works, self._add = simulation, model, works, add
        self._cool_down = cool_down
        self._reported: dict[str, Any] = {}
        self._moves: dict[Key, list[tuple[float, str]]] = {}
        self._changed = 0.0
        self._could_run_since: dict[Key, float] = {}
        works.status_of = lambda cluster, key, _: members[cluster].report(key[1])
        simulation.at(0.0, self._report)

    def on_change(self) -> None:
        """Note that a member has changed."""
        self._changed = self._simulation.now

    def on_write(self, write: Write, sent: Sent) -> None:
        """Judge a write of clusters by a scheduler."""
        assert write.before is not None  # schedulers patch
        assert write.after is not None
        before = orjson.loads(write.before)
        had, has = targets_of(before), targets_of(orjson.loads(write.after))
        if had == has or sum(had.values()) != before["spec"]["replicas"]:
            return
        for item in (before.get("status") or {}).get("aggregatedStatus") or ():
            name, ready = item["clusterName"], item["status"].get("readyReplicas", 0)
            if has.get(name, 0) < min(ready, had.get(name, 0)):
                self._add("keeps what runs", f"{write.key}: {had} -> {has}, {ready} are ready on {name}")
        now, moves = self._simulation.now, self._moves.setdefault(write.key, [])
        if moves and moves[-1][1] == sent.identity and now - moves[-1][0] < self._cool_down - _LATE:
            self._add("no to and fro", f"{write.key}: moves {now - moves[-1][0]:.1f} s after the last time")
        moves.append((now, sent.identity))

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong at rest."""
        half = (self._changed + self._simulation.now) / 2
        for key, moves in self._moves.items():
            if (late := sum(at >= half for at, _ in moves)) > MOST_MOVES:
                yield "no to and fro", f"{key}: has moved {late} times after {half:.0f} s"
        for key, since in self._could_run_since.items():
            if (seconds := self._simulation.now - since) > LONGEST_WAIT:
                yield "started", f"{key}: has waited for {seconds:.0f} s while a node had capacity"

    def _report(self) -> None:
        stored = {key: orjson.loads(raw) for key, raw in self._model.state("ResourceBinding").items()}
        shares = {key: self._works.replicas("ResourceBinding", key) for key in stored}
        for name, member in self.members.items():
            member.follow({
                key[1]: (share, _cpu(found)) for key, found in stored.items() if (share := shares[key].get(name, 0))
            })  # fmt: skip
            found = member.manifest(name, 0)
            del found["metadata"]["resourceVersion"]
            if self._reported.get(name) != found:
                self._reported[name] = found
                self._model.put(found)
        for key, found in stored.items():
            self._works.report("ResourceBinding", key)
            if not self._could_run(key[1], found):
                self._could_run_since[key] = math.inf
            elif self._could_run_since.get(key, math.inf) == math.inf:
                self._could_run_since[key] = self._simulation.now
        self._simulation.after(REPORT_SECONDS, self._report)

    def _could_run(self, name: str, found: Any) -> bool:
        """Return whether a replica of a binding does not run, and a node and the summary of a member have capacity."""
        running = sum(member.running(name) for member in self.members.values())
        missing = found["spec"]["replicas"] - sum(targets_of(found).values())
        if missing > sum(max(0, member.available // _cpu(found)) for member in self.members.values()):
            return False  # nothing is placed if not all can be
        return running < found["spec"]["replicas"] and any(
            member.available >= _cpu(found) and member.left(node) >= _cpu(found)
            for member in self.members.values()
            for node in range(len(member.nodes))
        )


def _cpu(found: Any) -> int:
    return int(found["spec"]["replicaRequirements"]["resourceRequest"]["cpu"])
