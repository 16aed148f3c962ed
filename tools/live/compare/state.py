"""The compared state of a binding: everything that a scheduler writes, and its inputs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from tools.controlplane import Object

from .fleet import APPLIED

RETRIED = frozenset({"Unschedulable", "SchedulerError", "QuotaExceeded"})
_FIT = re.compile(r"^(0/\d+ clusters are available: )(.*)\.$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class State:
    """One binding at rest.

    Attributes:
        clusters: (name, replicas) in the order written; 0 replicas when absent.
        applied: The applied-placement annotation, parsed; None without one.
        condition: status, reason and message of the Scheduled condition. The message of NoClusterFit names
            every cluster under one of the plugins that refuse it, which one being random: only counts are kept.
        observed: schedulerObservedGeneration against the generation: none, older or current.
        term: schedulerObservingAffinityName.
        time: lastScheduledTime, None if it was never set.
        generation: metadata.generation; not to be compared between planes.
        inputs: What the scheduler is given: the rest of the spec, the claim, whether it is being deleted.
    """

    clusters: tuple[tuple[str, int], ...]
    applied: object
    condition: tuple[str, str, str] | None
    observed: str
    term: str
    time: str | None
    generation: int
    inputs: str

    @property
    def is_retried(self) -> bool:
        """Whether a scheduler tries this binding again by itself."""
        return self.condition is not None and self.condition[1] in RETRIED

    @property
    def fits(self) -> bool:
        """Whether the last attempt succeeded."""
        return self.condition is not None and self.condition[0] == "True"

    @property
    def is_claimed(self) -> bool:
        """Whether a policy claims it, so that schedulers react to its changes."""
        return bool(json.loads(self.inputs)["claims"])


def state_of(binding: Object) -> State:
    """Read the state of a binding's manifest."""
    spec, status, metadata = binding["spec"], binding.get("status", {}), binding["metadata"]
    text = metadata.get("annotations", {}).get(APPLIED)
    return State(
        clusters=tuple((item["name"], item.get("replicas", 0)) for item in spec.get("clusters") or ()),
        applied=None if text is None else _parsed(text),
        condition=_scheduled(status.get("conditions") or ()),
        observed=_observed(status.get("schedulerObservedGeneration"), metadata["generation"]),
        term=status.get("schedulerObservingAffinityName", ""),
        time=status.get("lastScheduledTime"),
        generation=metadata["generation"],
        inputs=json.dumps(_inputs(binding), sort_keys=True),
    )


def _scheduled(conditions: Any) -> tuple[str, str, str] | None:
    for item in conditions:
        if item["type"] == "Scheduled":
            return item["status"], item["reason"], without_plugins(item["message"])
    return None


def without_plugins(message: str) -> str:
    """Return a message in which the reasons of a FitError are replaced by how many clusters they add up to."""
    match = _FIT.match(message)
    if match is None:
        return message
    counts = re.findall(r"(?:^|, )(\d+) (?=cluster|ResourceBinding)", match[2])
    return f"{match[1]}{sum(map(int, counts))} refused" if counts else message


def _observed(observed: int | None, generation: int) -> str:
    if observed is None:
        return "none"
    return "current" if observed == generation else "older"


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return f"not JSON: {text}"


def _inputs(binding: Object) -> Object:
    spec = dict(binding["spec"])
    resource = dict(spec.pop("resource"))
    # What differs between two installations, or is written at another moment.
    for name in ("uid", "resourceVersion"):
        resource.pop(name, None)
    for name in ("clusters", "rescheduleTriggeredAt"):
        spec.pop(name, None)
    spec["gracefulEvictionTasks"] = [
        {name: value for name, value in task.items() if name != "creationTimestamp"}
        for task in spec.get("gracefulEvictionTasks") or ()
    ]
    labels = binding["metadata"].get("labels", {})
    claims = sorted(
        name for name, value in labels.items() if name.endswith("policy.karmada.io/permanent-id") and value
    )
    return {
        "spec": spec,
        "resource": resource,
        "claims": claims,
        "deleting": "deletionTimestamp" in binding["metadata"],
    }
