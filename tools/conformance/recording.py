"""The file format of a recording: the relevant state of a stable binding, and how it is written."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

Manifest = Mapping[str, Any]
Event = tuple[str, str, str]

KARMADA: Final = "v1.18.2"
APPLIED_PLACEMENT: Final = "policy.karmada.io/applied-placement"
REPLAYED_FLAGS: Final = ("--feature-gates", "--plugins", "--enable-empty-workload-propagation")
_CONDITION: Final = ("type", "status", "reason", "message")


@dataclass(frozen=True, slots=True)
class Run:
    """One binding in one run.

    Attributes:
        before: As it was when the scheduler started.
        after: As it was once nothing changed any more.
        events: Its Events, as (type, reason, message).
    """

    before: Manifest
    after: Manifest
    events: frozenset[Event] = field(default_factory=frozenset)


def document(
    clusters: Iterable[Manifest], runs: Sequence[Mapping[str, Run]], flags: Sequence[str]
) -> dict[str, Any]:
    """Put a recording together.

    Args:
        clusters: As the API server returns them.
        runs: The bindings of every run by `Kind/name`; those of the first run are what a replay starts from.
        flags: The scheduler's flags that change decisions.
    """
    return {
        "karmada": KARMADA,
        "schedulerFlags": list(flags),
        "clusters": [without_bookkeeping(cluster) for cluster in clusters],
        "cases": [_case(name, [run[name] for run in runs]) for name in sorted(runs[0])],
    }


def _case(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    outcomes: list[dict[str, Any]] = []
    for run in runs:
        if (found := outcome(run)) not in outcomes:
            outcomes.append(found)
    events = sorted({event for run in runs for event in run.events})
    return {
        "name": name,
        "binding": without_bookkeeping(runs[0].before),
        "outcomes": outcomes,
        "events": [list(event) for event in events],
    }


def outcome(run: Run) -> dict[str, Any]:
    """Return the relevant fields of the stable state."""
    spec, status = run.after["spec"], run.after.get("status", {})
    last = run.before.get("status", {}).get("lastScheduledTime")
    return {
        "clusters": [
            {"name": target["name"], "replicas": target.get("replicas", 0)}
            for target in spec.get("clusters", ())
        ],
        "appliedPlacement": applied_placement(
            run.after["metadata"].get("annotations", {}).get(APPLIED_PLACEMENT, "")
        ),
        "conditions": [
            {key: condition.get(key, "") for key in _CONDITION} for condition in status.get("conditions", ())
        ],
        "observedGeneration": observed_generation(
            status.get("schedulerObservedGeneration", 0), run.after["metadata"]["generation"]
        ),
        "schedulerObservingAffinityName": status.get("schedulerObservingAffinityName") or None,
        "lastScheduledTimeChanged": status.get("lastScheduledTime") != last,
    }


def applied_placement(text: str) -> Any:
    """Return the annotation, parsed if it is JSON."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def observed_generation(observed: int, generation: int) -> str:
    """Return how the generation that the scheduler agreed with compares to the present one."""
    return "none" if not observed else "current" if observed == generation else "older"


def without_bookkeeping(manifest: Manifest) -> dict[str, Any]:
    """Return an object without the record of who wrote which field."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "managedFields"}
    return {**manifest, "metadata": metadata}


def write(path: Path, recording: Mapping[str, Any]) -> None:
    """Write a recording; equal ones give equal bytes."""
    text = json.dumps(recording, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    buffer = io.BytesIO()
    with gzip.GzipFile(filename=path.name.removesuffix(".gz"), mode="wb", fileobj=buffer, mtime=0) as packed:
        packed.write(text.encode())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(buffer.getvalue())
