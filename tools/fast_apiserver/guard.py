"""PlacementGuard next to bindings that have moved and returned before, compared with none. Part of ``make bench``

    python -m tools.fast_apiserver.guard --history 100000 --json FILE

leave   Bindings are healthy on one cluster, and their policy is edited, so that all leave it. Without the guard, and with it: graceful
        moves, and budgets that do not hold them.
new     New bindings are created one after the other, and their time to a placement is measured: next to no held bindings, and next to
        those that a budget holds and lets move one by one.

Both on the fast fake API server, in turns, next to a fleet whose bindings have the records of a month ago. It fails if the guard makes
leaving slower than ``MOST_LEAVING`` times, or held bindings make new ones wait longer than ``MOST_NEW`` times as long.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from karmada_advisor.views.text import table
from karmada_scheduler.api.own_annotations import FAIL_BACK, LAST_MOVE
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION, MANAGED_BY_LABEL
from tests import manifests
from tools.bench import scenarios
from tools.bench.plane import machine
from tools.bench.scenarios import OURS
from tools.fast_apiserver import server as fast_apiserver
from tools.fast_apiserver.ceiling import NAMESPACE, fleet
from tools.fast_apiserver.schedulers import NAME, running, wait_until
from tools.fast_apiserver.server import FastApiServer
from tools.fast_apiserver.storms import BINDINGS, rest
from tools.manifests import AGGREGATED

MOST_LEAVING: Final = 1.2
MOST_NEW: Final = 1.5
_NOW: Final = "2026-01-02T03:04:05Z"
_HELD_SECONDS: Final = 20
_WINDOW: Final = 600.0
"""Seconds until a start or a storm counts as failed."""

GUARD: Final = f"""\
apiVersion: pyscheduler.karmada.io/v1alpha1
kind: KarmadaSchedulerConfiguration
profiles:
  - schedulerName: {NAME}
    plugins:
      multiPoint: {{enabled: [{{name: PlacementGuard}}, {{name: FailBack}}]}}
    pluginConfig:
      - name: PlacementGuard
        args:
          graceful: {{enabled: true}}
          budgets:
            - {{scope: profile, window: 10m, bindings: 100000, percent: 90, atOnce: 100000}}
            - {{scope: policy, window: {_HELD_SECONDS}s, bindings: 1}}
      - {{name: FailBack, args: {{atOnce: 10}}}}
"""
"""Only the bindings of a policy are held; the others are managed by a controller."""


@dataclass(frozen=True, slots=True)
class Round:
    """What was measured with or without the guard.

    Attributes:
        guard: Whether it was with it.
        history: The bindings with records.
        leaving: The bindings that left a cluster.
        leave_seconds: From the edits to the last of them.
        cpu_ms: Of the scheduler per such binding.
        held: The bindings that the budget held.
        new_ms: The times of new bindings to their placement next to none that is held, in milliseconds.
        new_among_held_ms: The same next to those that are held; none without the guard.
    """

    guard: bool
    history: int
    leaving: int
    leave_seconds: float
    cpu_ms: float
    held: int
    new_ms: list[float]
    new_among_held_ms: list[float]


def _on(cluster: str) -> dict[str, Any]:
    return {"clusterAffinity": {"clusterNames": [cluster]}, "replicaScheduling": AGGREGATED}


def _placed(
    name: str, cluster: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> dict[str, Any]:
    """Return a binding that is scheduled on a cluster, and healthy there."""
    found = manifests.untemplated(
        NAMESPACE,
        name,
        uid=f"uid-{name}",
        policy_id="",
        replicas=2,
        schedulerName=NAME,
        placement=_on(cluster),
        clusters=[{"name": cluster, "replicas": 2}],
    )
    applied = {APPLIED_PLACEMENT_ANNOTATION: json.dumps(_on(cluster), separators=(",", ":"))}
    found["metadata"] |= {"labels": dict(labels), "annotations": applied | dict(annotations)}
    found |= scenarios.status_patch(1, _NOW)
    item = {"clusterName": cluster, "applied": True, "health": "Healthy", "status": {"readyReplicas": 2}}
    found["status"]["aggregatedStatus"] = [item]
    return found


def _records(number: int) -> Mapping[str, str]:
    """Return the annotations of a binding that has moved and returned a month ago; no two are the same."""
    at = f"2025-12-01T{number % 24:02}:{number // 24 % 60:02}:{number // 1440 % 60:02}.{number % 1000:03}Z"
    moves = {"moves": [{"at": at, "replicas": 2}], "from": ["m1"], "cause": "Rescheduled"}
    change = {"n": 1, "at": at, "from": "second", "to": "first"}
    return {LAST_MOVE: json.dumps(moves), FAIL_BACK: json.dumps(change)}


def _objects(history: int, leaving: int, held: int) -> Iterator[dict[str, Any]]:
    managed = {MANAGED_BY_LABEL: "bench"}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield from fleet(4)
    for number in range(history):
        yield _placed(f"old-{number}", "m3", managed, _records(number))
    for number in range(leaving):
        yield _placed(f"leave-{number}", "m1", managed, {})
    for number in range(held):
        yield _placed(f"held-{number}", "m1", {manifests.POLICY_LABEL: "held"}, {})


def _edit(server: FastApiServer, prefix: str, count: int) -> None:
    patch = {"spec": {"placement": _on("m2")}}
    server.patch((f"{BINDINGS}/{prefix}-{number}", patch) for number in range(count))


def _new(server: FastApiServer, prefix: str, count: int) -> list[float]:
    """Create bindings one after the other, and return the milliseconds until each was placed."""
    for number in range(count):
        name = f"{prefix}-{number}"
        server.request("POST", BINDINGS, json=scenarios.binding(NAMESPACE, name, number, "dynamic", NAME))
        if not wait_until(
            lambda: server.changed(f"{NAMESPACE}/{prefix}-", least=1) > number,  # noqa: B023 (called at once)
            _WINDOW,
            every=0.05,
        ):
            raise TimeoutError(f"{name} was not placed in {_WINDOW:g} s")
        time.sleep(0.4)
    rows = server.times(bindings=True)["bindings"]
    found = [row for key, row in rows.items() if f"/{prefix}-" in key]
    return [round(1e3 * (each["placed"] - each["created"]), 2) for each in found]


def measure(server: FastApiServer, *, guard: bool, history: int, leaving: int, held: int, new: int) -> Round:
    """Measure once.

    Raises:
        TimeoutError: The scheduler did not finish in time.
    """
    server.clear()
    server.load(_objects(history, leaving, held if guard else 0))
    with running(server, OURS, GUARD if guard else "") as found:
        rest(server, found, history, _WINDOW)
        server.reset()
        begun, cpu = server.times()["now"], found.cpu
        _edit(server, "leave", leaving)
        if not wait_until(
            lambda: server.changed(f"{NAMESPACE}/leave-", least=1) >= leaving, _WINDOW, every=0.05
        ):
            raise TimeoutError(f"not all of {leaving} bindings have left in {_WINDOW:g} s")
        rows = server.times(bindings=True)["bindings"]
        end = max(row["changed"] for key, row in rows.items() if "/leave-" in key)
        time.sleep(2.0)  # for the last statuses
        spent = found.cpu - cpu
        alone = _new(server, "new", new)
        among: list[float] = []
        if guard:
            _edit(server, "held", held)
            time.sleep(5.0)
            among = _new(server, "among", new)
    return Round(
        guard, history, leaving, end - begun, 1e3 * spent / leaving, held if guard else 0, alone, among
    )


def ratios(rounds: Sequence[Round]) -> tuple[float, float]:
    """Return by how much the guard makes leaving slower, and held bindings new ones: medians over all rounds."""

    def median(values: Callable[[Round], Sequence[float]], *, guard: bool) -> float:
        return statistics.median(value for each in rounds if each.guard == guard for value in values(each))

    leaving = [median(lambda each: [each.leave_seconds], guard=guard) for guard in (True, False)]
    new = (
        median(lambda each: each.new_among_held_ms, guard=True),
        median(lambda each: each.new_ms, guard=True),
    )
    return leaving[0] / leaving[1], new[0] / new[1]


def text(rounds: Sequence[Round]) -> str:
    """Return the table, and both ratios."""
    heading = ("GUARD", "HISTORY", "LEAVING", "SECONDS", "CPU MS", "HELD", "NEW P50 MS", "MAX", "AMONG HELD P50 MS", "MAX")  # fmt: skip
    rows = [
        ("yes" if each.guard else "no", f"{each.history:,}", str(each.leaving), f"{each.leave_seconds:.2f}",
         f"{each.cpu_ms:.2f}", str(each.held), *_shown(each.new_ms), *_shown(each.new_among_held_ms))
        for each in rounds
    ]  # fmt: skip
    leaving, new = ratios(rounds)
    return (
        f"{table(heading, rows)}\n\nleaving takes {leaving:.2f} times as long with the guard ({MOST_LEAVING} allowed), "
        f"a new binding waits {new:.2f} times as long next to held ones ({MOST_NEW} allowed)"
    )


def _shown(times: Sequence[float]) -> tuple[str, str]:
    return (f"{statistics.median(times):.1f}", f"{max(times):.1f}") if times else ("-", "-")


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print a table, and return 1 if a ratio is too high."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    option = parser.add_argument
    option(
        "--history", type=int, default=100_000, metavar="N", help="bindings that have moved before (100,000)"
    )
    option("--leaving", type=int, default=150, metavar="N", help="bindings that leave a cluster (150)")
    option("--held", type=int, default=400, metavar="N", help="bindings that a budget holds (400)")
    option("--new", type=int, default=40, metavar="N", help="new bindings, of each kind (40)")
    option("--rounds", type=int, default=3, metavar="N", help="each without and with the guard (3)")
    option("--quick", action="store_true", help="one round next to 20,000 bindings")
    option("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args(words)
    history, count = (20_000, 1) if chosen.quick else (chosen.history, chosen.rounds)
    rounds: list[Round] = []
    with fast_apiserver.running() as server:
        for number in range(count):
            for guard in (False, True) if number % 2 == 0 else (True, False):
                rounds.append(
                    measure(
                        server,
                        guard=guard,
                        history=history,
                        leaving=chosen.leaving,
                        held=chosen.held,
                        new=chosen.new,
                    )
                )
                print(rounds[-1], file=sys.stderr, flush=True)
                if chosen.json is not None:
                    document = {"machine": machine(), "runs": [asdict(each) for each in rounds]}
                    chosen.json.write_text(json.dumps(document, indent=1) + "\n")
    print(text(rounds))
    leaving, new = ratios(rounds)
    return int(leaving > MOST_LEAVING or new > MOST_NEW)


if __name__ == "__main__":
    sys.exit(main())
