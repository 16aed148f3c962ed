"""Bindings: demand, previous targets, status, and the applied placement."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tools.oracle.generator.placements import draw_placement
from tools.oracle.generator.quantities import draw_request
from tools.oracle.generator.rng import Random, ScenarioProfile
from tools.oracle.generator.values import CONFIGS, GROUPS, ODD_KINDS, T0, T1, T2, WORKLOADS, Manifest


def draw_binding(
    rng: Random, profile: ScenarioProfile, names: Sequence[str], index: int, gates: dict[str, bool]
) -> Manifest:
    """Make one binding for these clusters."""
    cluster_scoped = rng.chance(0.12)
    version, kind = rng.pick(WORKLOADS if rng.chance(0.75) else CONFIGS)
    if rng.chance(0.01):
        version, kind = rng.pick(ODD_KINDS)
    resource: Manifest = {"apiVersion": version, "kind": kind, "name": f"w{rng.upto(6)}"}
    if not cluster_scoped:
        resource["namespace"] = "default" if rng.chance(0.9) else "other"
    if rng.chance(0.85):
        resource["uid"] = f"{rng.getrandbits(32):08x}-0000-4000-8000-{rng.getrandbits(48):012x}"
    spec: Manifest = {"resource": resource}
    _draw_demand(rng, profile, spec, gates)
    if rng.chance(0.6):
        spec["clusters"] = _draw_previous(rng, profile, names, spec.get("replicas", 0))
    if rng.chance(profile.strict * 0.3):
        spec["gracefulEvictionTasks"] = [
            {"fromCluster": rng.pick(names), "reason": "x", "producer": "y"} for _ in range(1 + rng.upto(1))
        ]
    if rng.chance(0.25):
        spec["rescheduleTriggeredAt"] = rng.pick((T0, T1, T2))
    if gates["WorkloadAffinity"] and rng.chance(0.6):
        groups = {
            field: rng.pick(GROUPS) for field in ("affinityGroup", "antiAffinityGroup") if rng.chance(0.5)
        }
        spec["workloadAffinityGroups"] = groups
    if not rng.chance(0.003):
        spec["placement"] = draw_placement(rng, profile, names, spec)
    metadata: Manifest = {
        "name": _draw_binding_name(rng, resource, index, fixed="workloadAffinityGroups" in spec),
        "generation": 1 + rng.upto(2),
        "uid": f"b{index}",
    }
    if not cluster_scoped:
        metadata["namespace"] = resource["namespace"]
        metadata["resourceVersion"] = "100"
    if (applied := _draw_applied(rng, profile, names, spec)) is not None:
        metadata["annotations"] = {"policy.karmada.io/applied-placement": applied}
    if rng.chance(0.01):
        metadata["deletionTimestamp"] = T0
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ClusterResourceBinding" if cluster_scoped else "ResourceBinding",
        "metadata": metadata,
        "spec": spec,
        "status": _draw_status(rng, spec),
    }


def _draw_binding_name(rng: Random, resource: Manifest, index: int, *, fixed: bool) -> str:
    """Name a binding as the detector does; upstream recognizes a member of a group by that name."""
    detected = f"{resource['name']}-{resource['kind'].lower()}"
    return detected if fixed or rng.chance(0.7) else f"b{index}"


def _draw_demand(rng: Random, profile: ScenarioProfile, spec: Manifest, gates: dict[str, bool]) -> None:
    if rng.chance(0.8):
        spec["replicas"] = _draw_replicas(rng)
    elif rng.chance(0.3):
        spec["replicas"] = 0
    if rng.chance(0.65):
        requirements: Manifest = {}
        if rng.chance(0.9):
            requirements["resourceRequest"] = draw_request(rng, profile)
        if rng.chance(0.1):
            requirements["nodeClaim"] = {
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "a", "operator": "Exists"}],
            }
        if rng.chance(0.1):
            requirements |= {"namespace": "default", "priorityClassName": "high"}
        spec["replicaRequirements"] = requirements
    if rng.chance(0.3 if gates["MultiplePodTemplatesScheduling"] else 0.05):
        spec["components"] = [
            draw_component(rng, profile, number) for number in range(rng.pick((0, 1, 1, 2, 2, 2, 3)))
        ]
        if spec["components"] and rng.chance(0.8):  # as the detector leaves them
            spec.pop("replicas", None)
            spec.pop("replicaRequirements", None)


def _draw_replicas(rng: Random) -> int:
    luck = rng.random()
    if luck < 0.05:
        return 0
    if luck < 0.5:
        return 1 + rng.upto(9)
    if luck < 0.9:
        return 1 + rng.upto(60)
    return rng.pick((100, 128, 500, 1000, 3000)) + rng.upto(20)


def draw_component(rng: Random, profile: ScenarioProfile, number: int) -> Manifest:
    component: Manifest = {"name": f"part{number}"}
    if rng.chance(0.95):
        component["replicas"] = rng.pick((0, 1, 1, 1, 2, 3, 5))
    if rng.chance(0.85):
        component["replicaRequirements"] = (
            {"resourceRequest": draw_request(rng, profile)} if rng.chance(0.95) else {}
        )
    return component


def _draw_previous(
    rng: Random, profile: ScenarioProfile, names: Sequence[str], replicas: int
) -> list[Manifest]:
    chosen = rng.some(names, 6)
    if rng.chance(0.08):
        chosen.append("gone")
    if chosen and rng.chance(0.02):
        chosen.append(chosen[0])
    targets: list[Manifest] = []
    share = max(1, replicas // max(1, len(chosen)))
    for name in chosen:
        target: Manifest = {"name": name}
        count = rng.pick((0, share, share, rng.upto(2 * share), rng.upto(20), replicas))
        if count or rng.chance(profile.tiny):
            target["replicas"] = count
        targets.append(target)
    if targets and rng.chance(0.2):  # exactly the requested replicas
        targets[0]["replicas"] = max(0, replicas - sum(target.get("replicas", 0) for target in targets[1:]))
    return targets


def _draw_status(rng: Random, spec: Manifest) -> Manifest:
    status: Manifest = {}
    if rng.chance(0.6):
        status["lastScheduledTime"] = rng.pick((T0, T1, T1, T2))
    if rng.chance(0.5):
        status["schedulerObservedGeneration"] = 1 + rng.upto(2)
    terms = (spec.get("placement") or {}).get("clusterAffinities") or ()
    if rng.chance(0.5 if terms else 0.05):
        names = [term["affinityName"] for term in terms if "affinityName" in term] or ["stale"]
        status["schedulerObservingAffinityName"] = rng.pick(names) if rng.chance(0.85) else "unknown"
    if rng.chance(0.5):
        status["conditions"] = [
            {
                "type": "Scheduled",
                "status": rng.pick(("True", "False")),
                "reason": rng.pick(("Success", "NoClusterFit", "Unschedulable")),
                "message": "Binding has been scheduled successfully." if rng.chance(0.5) else "x",
                "lastTransitionTime": T0,
            }
        ]
        if rng.chance(0.3):
            status["conditions"].append(
                {
                    "type": "FullyApplied",
                    "status": "True",
                    "reason": "Y",
                    "message": "",
                    "lastTransitionTime": T0,
                }
            )
    return status


def _draw_applied(rng: Random, profile: ScenarioProfile, names: Sequence[str], spec: Manifest) -> str | None:
    luck = rng.random()
    current: Manifest = spec.get("placement") or {}
    if luck < 0.3:
        return None
    if luck < 0.75:
        return json.dumps(current, separators=(",", ":"))
    if luck < 0.8:
        return rng.pick(
            (
                "",
                "null",
                "{}",
                "[]",
                "not json",
                '{"clusterAffinity": 5}',
                '{"spreadConstraints": {}}',
                '"x"',
                "5",
            )
        )
    other: Manifest = json.loads(json.dumps(current))
    field = rng.pick(tuple(current) or ("clusterTolerations",))
    if luck < 0.88:
        other.pop(field, None)
    elif luck < 0.94:
        replacement = draw_placement(rng, profile, names, spec)
        if field in replacement:
            other[field] = replacement[field]
        else:
            other["clusterTolerations"] = [{"operator": "Exists"}]
    elif other.get("clusterAffinities"):
        term = rng.pick(other["clusterAffinities"])
        edit = rng.upto(3)
        if edit == 0:
            term["clusterNames"] = rng.some(names, 2)
        elif edit == 1:
            other["clusterAffinities"].reverse()
        elif edit == 2:
            other["clusterAffinities"].remove(term)
        else:
            term["affinityName"] = "renamed"
    else:
        other["unknownField"] = 1
        if rng.chance(profile.tiny):
            other.setdefault("clusterTolerations", [])
    return json.dumps(other)
