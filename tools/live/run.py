"""One run: everything is started, faults are injected while a workload goes on, and all of it is left to rest."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.live.etcd import Etcd
from tools.live.fault_plan import Fault
from tools.live.faults import Injector
from tools.live.keeper import Keeper
from tools.live.plane import LivePlane, live_plane
from tools.live.recorder import Journal, StateRecorder
from tools.live.workload import NAMESPACE, Workload

SETTLE_SECONDS: Final = 60.0
"""After so long without faults every binding must have what the core decides."""

QUIET_SECONDS: Final = 30.0
"""How long nobody may write then."""

BINDINGS: Final = f"/apis/work.karmada.io/v1alpha2/namespaces/{NAMESPACE}/resourcebindings"
_FIRST_PLACEMENTS_SECONDS: Final = 180.0


def chaos(
    folder: Path,
    faults: Sequence[Fault],
    *,
    seed: int,
    bindings: int,
    replicas: int,
    planted: str | None,
    say: Callable[[str], None],
) -> None:
    """Run and write the records into a folder; nothing is judged."""
    records = folder / "records"
    records.mkdir(parents=True)
    marks = Journal(records / "marks.jsonl")
    with live_plane(folder, replicas=replicas, planted=planted, say=say) as plane:
        (records / "facts.json").write_text(json.dumps(plane.facts()))
        recorder = StateRecorder(records, Etcd(plane.karmada.etcd))
        recorder.start()
        keeper = Keeper(
            plane.karmada,
            Journal(records / "processes.jsonl"),
            health={replica.name: f"{replica.scheduler.health}/healthz" for replica in plane.replicas},
        )
        workload = Workload(plane.karmada, Journal(records / "steps.jsonl"), seed=seed, bindings=bindings)
        workload.create()
        plane.karmada.wait_for(
            lambda: sum(map(_is_observed, plane.karmada.client.list(BINDINGS))),
            f"{bindings} bindings to be scheduled",
            until=lambda number: number >= bindings,
            timeout=_FIRST_PLACEMENTS_SECONDS,
        )
        say(f"{bindings} bindings are scheduled")
        injector = Injector(
            plane, keeper, Journal(records / "faults.jsonl"), compactable=recorder.current_revision
        )
        keeper.start()
        try:
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
        finally:
            keeper.stop()  # else it would start again what ends with the control plane
            recorder.stop()


def _is_observed(binding: Mapping[str, object]) -> bool:
    status = binding.get("status")
    return isinstance(status, dict) and bool(status.get("conditions"))


def _write_final(records: Path, plane: LivePlane, injector: Injector, workload: Workload) -> None:
    """Write the state at the end, as the processes and the API server report it."""
    listed, replicas = plane.karmada.client.list(BINDINGS), plane.replicas
    final = {
        "at": time.time(),
        "versions": {
            binding["metadata"]["name"]: binding["metadata"]["resourceVersion"] for binding in listed
        },
        "ready": {replica.name: replica.status("/readyz") for replica in replicas},
        "healthy": {replica.name: replica.status("/healthz") for replica in replicas},
        "leads": [replica.name for replica in replicas if replica.leads()],
        "faults": injector.counted,
        "problems": injector.problems,
        "steps": workload.taken,
        "failed steps": workload.failed,
    }
    (records / "final.json").write_text(json.dumps(final, indent=1))
    for replica in replicas:
        (records / f"{replica.name}.metrics").write_text(replica.metrics())
