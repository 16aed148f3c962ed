"""Replays recordings through the decision core and compares the settled states."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, Binding, BindingSpec, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.placement import AGGREGATED, Placement
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.config import features
from karmada_scheduler.config.features import RULES, FeatureGates
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.classify import ScheduleType, classify
from karmada_scheduler.core.condition import NO_CLUSTER_FIT, condition_for
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.guard_additions import with_targets
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.diagnosis import InvalidExpressionError, KeptError
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import framework
from tools.oracle.defects import has_invalid_expression, is_removed_by_reschedule

AVOID: Final = ScheduleType.AVOID
SCHEDULER_NAMES: Final = frozenset({"default-scheduler"})
RECORDINGS = sorted(Path(__file__).parent.glob("recordings/recording-*.json.gz"))
"""Of karmada-scheduler v1.18.2."""
RECORDINGS_1_19 = sorted(Path(__file__).parent.glob("recordings-1.19/world-*.json.gz"))

State = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """A case whose replay equals none of the recorded outcomes.

    It is intended if ours ends with an error about an expression that is not known, or keeps what a reschedule would remove
    (docs/differences-from-upstream.md).
    """

    case: str
    ours: State
    recorded: tuple[State, ...]
    is_intended: bool = False

    def __str__(self) -> str:
        lines = [self.case]
        for number, outcome in enumerate(self.recorded, 1):
            label = f" (outcome {number} of {len(self.recorded)})" if len(self.recorded) > 1 else ""
            for field in sorted({*self.ours, *outcome}):
                if self.ours.get(field) != outcome.get(field):
                    lines.append(f"  {field}{label}")
                    lines.append(f"    - recorded {json.dumps(outcome.get(field), ensure_ascii=False)}")
                    lines.append(f"    + ours     {json.dumps(self.ours.get(field), ensure_ascii=False)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Recording:
    """One recording, with the configuration of the scheduler that its flags describe."""

    name: str
    clusters: tuple[Cluster, ...]
    cases: list[dict[str, Any]]
    gates: FeatureGates
    plugins: tuple[str, ...]
    empty_workload_propagation: bool

    @classmethod
    def load(cls, path: Path, decisions_of: str = "") -> Recording:
        """Read a recording, to be decided by the rules of a version; "" for the one that was recorded."""
        document = json.loads(gzip.decompress(path.read_bytes()))
        decisions_of = decisions_of or ".".join(document["karmada"].removeprefix("v").split(".")[:2])
        if decisions_of not in RULES:
            raise ValueError(f"{path.name} is of {document['karmada']}, known are {', '.join(RULES)}")
        gates, plugins, empty = [], ["*"], False
        for flag in document["schedulerFlags"]:
            name, _, value = flag.partition("=")
            match name:
                case "--feature-gates":
                    gates.append(value)
                case "--plugins":
                    plugins = value.split(",")
                case "--enable-empty-workload-propagation":
                    empty = value == "true"
                case _:
                    raise ValueError(
                        f"{path.name} was recorded with {flag}, which the replay does not support"
                    )
        return cls(
            name=path.name.removesuffix(".json.gz"),
            clusters=tuple(map(Cluster.from_manifest, document["clusters"])),
            cases=document["cases"],
            gates=features.parse(gates, decisions_of),
            plugins=tuple(plugins),
            empty_workload_propagation=empty,
        )

    def differences(self) -> Iterator[Difference]:
        """Replay every case; yield those that differ."""
        snapshot = Snapshot.of(self.clusters)
        plugins = framework(gates=self.gates, select=self.plugins)
        algorithm = SchedulingAlgorithm(
            self.gates,
            [GeneralEstimator(self.gates)],
            empty_workload_propagation=self.empty_workload_propagation,
        )
        for case in self.cases:
            binding = Binding.from_manifest(case["binding"])
            responsible = requeue_rules.is_claimed_and_assigned(binding, SCHEDULER_NAMES)
            read = as_upstream_reads(binding)
            decision = None
            if responsible and classify(read, is_gone=snapshot.is_gone, gates=self.gates).type is not AVOID:
                decision = run_sync(algorithm.decide(binding, snapshot, plugins))
            ordered = not _is_aggregated(binding)
            ours = _comparable(final_state(binding, decision, responsible=responsible), ordered=ordered)
            recorded = tuple(_comparable(outcome, ordered=ordered) for outcome in case["outcomes"])
            if ours not in recorded:
                yield Difference(case["name"], ours, recorded, _is_intended(case["binding"], read, decision))
            elif decision is not None and (missing := _missing_events(binding, decision, case["events"])):
                yield Difference(case["name"], {"events": missing}, ({"events": case["events"]},))


def _is_intended(manifest: Mapping[str, Any], binding: Binding, decision: Decision | None) -> bool:
    if decision is None or decision.targets is not None:
        return False
    if isinstance(decision.error, KeptError):
        return is_removed_by_reschedule(binding, decision.failed_terms)
    return isinstance(decision.error, InvalidExpressionError) and has_invalid_expression(
        manifest["spec"]["placement"]
    )


def as_upstream_reads(binding: Binding) -> Binding:
    """Return the binding as upstream classifies it.

    An unreadable annotation counts as unchanged there and as changed here, on purpose.
    """
    try:
        binding.applied_placement  # noqa: B018 (whether it can be read is the question)
    except ManifestError:
        text = (binding.spec.placement or Placement()).to_json()
        return replace(binding, annotations={**binding.annotations, APPLIED_PLACEMENT_ANNOTATION: text})
    return binding


def final_state(binding: Binding, decision: Decision | None, *, responsible: bool = True) -> State:
    """Return the state of the binding once a decision is written.

    Args:
        binding: Before the decision.
        decision: None if there was nothing to do.
        responsible: Whether the scheduler is responsible for the binding; if not, it does not change it.
    """
    spec, applied = binding.spec, binding.applied_placement_json
    status = binding.status
    conditions = [dict(each) for each in status.conditions]
    name = status.scheduler_observing_affinity_name
    if decision is not None:
        if decision.targets is not None:
            spec, applied = with_targets(spec, decision), decision.applied_placement or ""
        found = condition_for(decision.error)
        written = {
            "type": "Scheduled",
            "status": found.status,
            "reason": found.reason,
            "message": found.message,
        }
        conditions = [each for each in conditions if each.get("type") != "Scheduled"] + [written]
        name = name if decision.affinity_name is None else decision.affinity_name
    observed = status.scheduler_observed_generation
    scheduled = responsible and (decision is None or decision.is_success)
    clusters, before = _targets(spec), _targets(binding.spec)
    generation = binding.generation + (clusters != before)
    if scheduled:
        observed = generation
    return {
        "clusters": clusters,
        "appliedPlacement": _parsed(applied),
        "conditions": conditions,
        "observedGeneration": _compared(observed, generation),
        "schedulerObservingAffinityName": name or None,
        "lastScheduledTimeChanged": decision is not None and decision.is_success,
    }


def _targets(spec: BindingSpec) -> list[dict[str, Any]]:
    """Return the targets of a binding as a recording has them."""
    found = []
    for target in spec.clusters:
        components = [
            {"name": name, "replicas": replicas} for name, replicas in spec.stored_components(target)
        ]
        found.append({**target._asdict(), **({"components": components} if components else {})})
    return found


def _parsed(annotation: str) -> Any:
    """Return an applied placement, parsed if it is JSON."""
    if not annotation:
        return None
    try:
        return json.loads(annotation)
    except ValueError:
        return annotation


def _compared(observed: int, generation: int) -> str:
    """Return how the generation that the scheduler agreed with compares to the present one."""
    return "none" if not observed else "current" if observed == generation else "older"


def _is_aggregated(binding: Binding) -> bool:
    placement = binding.spec.placement
    strategy = placement.replica_scheduling if placement is not None else None
    return strategy is not None and strategy.replica_division_preference == AGGREGATED


def _comparable(outcome: State, *, ordered: bool) -> State:
    """Remove what is random upstream."""
    clusters = outcome["clusters"]
    conditions = [
        {
            key: condition[key]
            for key in ("type", "status", "reason", "message")
            if key != "message" or condition["reason"] != NO_CLUSTER_FIT
        }
        for condition in outcome["conditions"]
    ]
    return {
        **outcome,
        "clusters": clusters if ordered else sorted(clusters, key=lambda target: str(target["name"])),
        "conditions": sorted(conditions, key=lambda condition: str(condition["type"])),
    }


def _missing_events(binding: Binding, decision: Decision, recorded: list[list[str]]) -> list[list[str]]:
    """Return those of our events that upstream did not emit in any of the runs."""
    events = [
        ["Warning", "ScheduleBindingFailed", _term_failure(binding, each.index, each.error)]
        for each in decision.failed_terms
    ]
    if decision.error is None:
        targets = binding.spec.clusters if decision.targets is None else decision.targets
        events.append(["Normal", "ScheduleBindingSucceed", _success(binding, targets)])
    elif not decision.failed_terms or condition_for(decision.error).reason == NO_CLUSTER_FIT:
        events.append(["Warning", "ScheduleBindingFailed", str(decision.error)])
    known = {_comparable_event(event) for event in recorded}
    return [event for event in events if _comparable_event(event) not in known]


def _term_failure(binding: Binding, index: int, error: Exception) -> str:
    return f"failed to schedule {binding.key.display} with clusterAffiliates index({index}): {error}"


def _success(binding: Binding, targets: tuple[TargetCluster, ...]) -> str:
    result = ", ".join(f"{target.name}:{target.replicas}" for target in targets)
    colon = "" if binding.key.kind == CLUSTER_RESOURCE_BINDING else ":"
    return f"Binding has been scheduled successfully. Result{colon} {{{result}}}"


def _comparable_event(event: list[str]) -> tuple[str, ...]:
    type_, reason, message = event
    if " clusters are available: " in message:
        return type_, reason, message.partition(" clusters are available: ")[0]
    before, brace, result = message.partition("{")
    return type_, reason, before + brace + ", ".join(sorted(result.rstrip("}").split(", ")))
