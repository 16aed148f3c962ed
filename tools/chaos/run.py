"""One run: everything is started, faults are injected, and all of it is left to rest."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tools.chaos.etcd import Etcd
from tools.chaos.faults import Injector
from tools.chaos.keeper import Keeper
from tools.chaos.plan import faults_for
from tools.chaos.plane import ChaosPlane, chaos_plane
from tools.chaos.recorder import Journal, StateRecorder
from tools.chaos.workload import NAMESPACE, Workload

SETTLE_SECONDS: Final = 60.0
"""After so long without faults every binding must have what the core decides."""

QUIET_SECONDS: Final = 30.0
"""How long nobody may write then."""

_BINDINGS: Final = f"/apis/work.karmada.io/v1alpha2/namespaces/{NAMESPACE}/resourcebindings"
_FIRST_PLACEMENTS_SECONDS: Final = 180.0


def run(
    folder: Path,
    *,
    minutes: float,
    seed: int,
    bindings: int,
    replicas: int,
    program: Sequence[str],
    say: Callable[[str], None],
) -> None:
    """Run and write the records into a folder; nothing is judged."""
    records = folder / "records"
    records.mkdir(parents=True)
    faults = faults_for(seed, minutes)
    (folder / "plan.json").write_text(
        json.dumps([[each.at, each.kind, each.seconds, each.choice] for each in faults], indent=0)
    )
    marks = Journal(records / "marks.jsonl")
    with chaos_plane(folder, replicas=replicas, program=program, say=say) as plane:
        (records / "facts.json").write_text(json.dumps({**plane.facts(), "seed": seed, "minutes": minutes}))
        recorder = StateRecorder(records, Etcd(plane.karmada.etcd))
        recorder.start()
        keeper = Keeper(
            plane.karmada,
            Journal(records / "processes.jsonl"),
            health={each.name: f"{each.scheduler.health}/healthz" for each in plane.replicas},
        )
        workload = Workload(
            plane.karmada.client,
            list(plane.karmada.simulated.values()),
            Journal(records / "steps.jsonl"),
            seed=seed,
            bindings=bindings,
        )
        workload.create()
        plane.karmada.wait_for(
            lambda: sum(_is_observed(each) for each in plane.karmada.client.list(_BINDINGS)),
            f"{bindings} bindings to be scheduled",
            until=lambda number: number >= bindings,
            timeout=_FIRST_PLACEMENTS_SECONDS,
        )
        say(f"{bindings} bindings are scheduled")
        injector = Injector(plane, keeper, Journal(records / "faults.jsonl"), may_compact=recorder.is_current)
        keeper.start()
        workload.start()
        marks.add(mark="begin")
        injector.run(faults, say)
        workload.stop()
        marks.add(mark="faults end")
        say(f"the last fault has ended; all is left to rest for {SETTLE_SECONDS + QUIET_SECONDS:g} s")
        time.sleep(SETTLE_SECONDS)
        marks.add(mark="settled")
        time.sleep(QUIET_SECONDS)
        marks.add(mark="end")
        _write_final(records, plane, injector, workload)
        keeper.stop()
        recorder.stop()


def _is_observed(binding: dict[str, object]) -> bool:
    status = binding.get("status")
    return isinstance(status, dict) and bool(status.get("conditions"))


def _write_final(records: Path, plane: ChaosPlane, injector: Injector, workload: Workload) -> None:
    """Write the state at the end, as the processes and the API server report it."""
    listed = plane.karmada.client.list(_BINDINGS)
    final = {
        "at": time.time(),
        "versions": {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in listed},
        "ready": {each.name: each.status("/readyz") for each in plane.replicas},
        "healthy": {each.name: each.status("/healthz") for each in plane.replicas},
        "leads": [each.name for each in plane.replicas if each.leads()],
        "faults": injector.counted,
        "problems": injector.problems,
        "steps": workload.taken,
        "failed steps": workload.failed,
        "cut connections": sum(each.proxy.cut_connections for each in plane.replicas),
        "connections": sum(each.proxy.connections for each in plane.replicas),
    }
    (records / "final.json").write_text(json.dumps(final, indent=1))
    for each in plane.replicas:
        (records / f"{each.name}.metrics").write_text(each.metrics())
