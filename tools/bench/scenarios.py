"""The scenarios: clusters, placements, bindings. The same for every scheduler and for the bare client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests import manifests
from tools.controlplane.api import Object
from tools.controlplane.simulated import SimulatedMember
from tools.manifests import DUPLICATED, DYNAMIC, spread

BARE, DEFAULT, LIFTED, OURS = "bare client", "karmada-scheduler", "karmada-scheduler, lifted", "ours"
SCHEDULERS = (BARE, DEFAULT, LIFTED, OURS)
RECORDS = "ours, records"
"""Ours with --explain-bind-address, so that it keeps records of decisions."""
FRESH_FIRST = "ours, FreshFirst"
"""Ours with the QueueSort plugin FreshFirst."""
REGIONS = 10
REPLICAS = 5
REQUESTS = 20
"""Number of different resource requests; binding ``n`` has request ``n % REQUESTS``."""

_AFFINITY = {"labelSelector": {"matchLabels": {"kind": "sim"}}}


PLACEMENTS: Mapping[str, Object] = {
    "dynamic": {"clusterAffinity": _AFFINITY, "replicaScheduling": DYNAMIC},
    "duplicated": {
        "clusterAffinity": _AFFINITY,
        "replicaScheduling": DUPLICATED,
        "spreadConstraints": [spread("cluster", 2, 4)],
    },
    "region": {
        "clusterAffinity": _AFFINITY,
        "replicaScheduling": DYNAMIC,
        "spreadConstraints": [spread("region", 2, 2), spread("cluster", 2, 4)],
    },
}
_TARGETS = {"dynamic": REPLICAS, "duplicated": 4, "region": 4}


def fleet(first: int, count: int) -> list[SimulatedMember]:
    """Return clusters ``m<first>``, ...: over ten regions, of three sizes, each with different free resources.

    None can be filled by the bindings of a run; their statuses stay the same from beginning to end.
    """
    return [
        SimulatedMember(
            f"m{number}",
            provider="paper",
            region=f"r{number % REGIONS}",
            zone=f"r{number % REGIONS}-{number % 3}",
            labels={"kind": "sim", "tier": str(number % 4)},
            cpu=str(4000 * (1 + number % 3)),
            memory=f"{16000 * (1 + number % 3)}Gi",
            pods="110000",
            allocated={"cpu": str(number % 97), "memory": f"{number % 193}Gi", "pods": str(number % 89)},
        )
        for number in range(first, first + count)
    ]


def binding(namespace: str, name: str, number: int, placement: str, scheduler: str) -> Object:
    """Return a ResourceBinding without a template, so that only a scheduler acts on it."""
    return manifests.untemplated(
        namespace,
        name,
        uid=f"uid-{number}",
        policy_id="bench",
        replicas=REPLICAS,
        replicaRequirements={"resourceRequest": {"cpu": f"{100 + number % REQUESTS}m", "memory": "128Mi"}},
        schedulerName=scheduler,
        placement=PLACEMENTS[placement],
    )


def result_patch(number: int, placement: str, clusters: int) -> Object:
    """Return a patch as a scheduler would write it for ``number``: as many targets as the placement gives."""
    count = _TARGETS[placement]
    replicas = REPLICAS if placement == "duplicated" else 1
    targets = [
        {"name": f"m{(number * count + offset) % clusters}", "replicas": replicas} for offset in range(count)
    ]
    applied = json.dumps(PLACEMENTS[placement], separators=(",", ":"))
    return {
        "metadata": {"annotations": {"policy.karmada.io/applied-placement": applied}},
        "spec": {"clusters": targets},
    }


def fresh_first(name: str) -> str:
    """Return the configuration of a scheduler of this name that uses FreshFirst."""
    return f"""\
apiVersion: pyscheduler.karmada.io/v1alpha1
kind: KarmadaSchedulerConfiguration
profiles:
  - schedulerName: {name}
    plugins:
      queueSort: {{enabled: [{{name: FreshFirst}}], disabled: [{{name: PrioritySort}}]}}
"""


def targets_of(number: int, placement: str, clusters: int) -> list[Object]:
    """Return the placement of a binding before the cluster ``m0`` is lost: ``m0``, and others by the binding's number."""
    count = _TARGETS[placement]
    replicas = 1 if placement == "dynamic" else REPLICAS
    others = [f"m{1 + (number * (count - 1) + each) % (clusters - 1)}" for each in range(count - 1)]
    return [{"name": name, "replicas": replicas} for name in ("m0", *others)]


def placed(namespace: str, name: str, number: int, placement: str, clusters: int, scheduler: str) -> Object:
    """Return a binding that a scheduler has placed, with a part on ``m0``."""
    manifest = binding(namespace, name, number, placement, scheduler)
    manifest["metadata"] |= result_patch(number, placement, clusters)["metadata"]
    manifest["spec"]["clusters"] = targets_of(number, placement, clusters)
    return {**manifest, **status_patch(1, "2026-01-02T03:04:05Z")}


def status_patch(generation: int, now: str) -> Mapping[str, Any]:
    """Return the status that follows; ``now`` is a time as the API writes it."""
    condition = {
        "type": "Scheduled",
        "status": "True",
        "reason": "Success",
        "message": "Binding has been scheduled successfully.",
        "lastTransitionTime": now,
    }
    return {
        "status": {
            "conditions": [condition],
            "schedulerObservedGeneration": generation,
            "lastScheduledTime": now,
        }
    }
