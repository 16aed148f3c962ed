"""Which of five rules schedules a binding, with both sides; the refusals of clusters, with what filters compared; scores of the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

from karmada_advisor.explain.amounts import at
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.trace_model import FilterCell, Refusal, Rule, ScoreCell, TriggerTrace
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.object_fields import camel
from karmada_scheduler.api.placement import DIVIDED, Placement
from karmada_scheduler.core.classify import placement_changed, placement_of, replicas_changed
from karmada_scheduler.core.decision import TermAttempt
from karmada_scheduler.framework.cycle import Cycle, KeptSteps
from karmada_scheduler.framework.evidence import Evidence, EvidenceContext, EvidencePlugin
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.scheduling_points import FilterContext, FilterPlugin, PreFilterPlugin
from karmada_scheduler.structs import Struct, replace

_RULES: Final = (
    "placement differs from the applied one",
    "replicas of the clusters differ from the workload's",
    "a reschedule was requested after the last scheduling",
    "Duplicated, or without replicas: decided at every event",
    "a cluster of the binding is being deleted or does not exist",
)

_DELETED: Final = "ClusterBeingDeleted"
PLUGIN_REFUSED: Final = "PluginRefused"
"""The code of a refusal for which the plugin has none."""


def trace_trigger(inputs: ExplainInputs) -> TriggerTrace:
    """Check the five rules.

    Raises:
        SchedulingError: The binding has no placement.
    """
    binding, spec = inputs.binding, inputs.binding.spec
    placement = placement_of(binding)
    found, is_duplicated = inputs.classify(), placement.is_duplicated
    strategy, replicas = placement.replica_scheduling, [target.replicas for target in spec.clusters]
    held = f"{', '.join(map(str, replicas)) or 'none'} per cluster"
    if strategy is not None and strategy.replica_scheduling_type == DIVIDED:
        held = f"{sum(replicas)} in all"
    requested = f"requested {at(spec.reschedule_triggered_at)}"
    workload = "has replicas" if spec.is_workload else "has no replicas"
    leaving = ", ".join(target.name for target in spec.clusters if inputs.snapshot.is_gone(target.name))
    sides = (
        (placement_changed(binding, placement), _applied(binding, placement), "spec.placement"),
        (replicas_changed(binding, placement, inputs.algorithm.gates), held, str(spec.replicas)),
        (binding.reschedule_triggered, requested, f"scheduled {at(binding.status.last_scheduled_time)}"),
        (is_duplicated or not spec.is_workload, "Duplicated" if is_duplicated else "Divided", workload),
        (bool(leaving), leaving or "none", ""),
    )
    compared = enumerate(zip(_RULES, sides, strict=True), 1)
    rules = tuple(Rule(f"R{number}", name, *rule) for number, (name, rule) in compared)
    return TriggerTrace(found.type.value, found.reason, rules)


def _applied(binding: Binding, placement: Placement) -> str:
    """Return how the applied placement differs from the binding's."""
    if not binding.applied_placement_json:
        return "none: it was never scheduled"
    try:
        before = binding.applied_placement
    except ManifestError as problem:
        return f"unreadable ({problem})"
    fields = Placement.__struct_fields__
    names = [camel(name) for name in fields if getattr(before, name, None) != getattr(placement, name)]
    return "equal" if before == placement else f"differs in {', '.join(names)}"


class FilterRefusal(Struct, frozen=True):
    """The refusal of one cluster by one plugin, "" for a cluster that is being deleted; no text of the evidence is empty."""

    plugin: str
    reason: str
    evidence: Evidence

    @property
    def clause(self) -> str:
        """What equal refusals of several clusters have in common."""
        return str(self.evidence.fields.get("clause", self.evidence.short))

    @property
    def cell(self) -> FilterCell:
        """The refusal as an explanation shows it."""
        return FilterCell(self.plugin, self.reason, self.evidence.short, self.evidence.fields)


class Refusals(Mapping[str, Sequence[FilterRefusal]]):
    """The refusals of every cluster by its name, the one that counts first; found when they are first read.

    The Filter plugins are called again for clusters that one of them has refused. A plugin that may not be called again, or
    whose PreFilter may have skipped it, is known by its first refusals only, like extenders.

    Attributes:
        not_called: The plugins that are not called again.
    """

    def __init__(self, attempt: TermAttempt, inputs: ExplainInputs, clusters: Iterable[Cluster]) -> None:
        """Read what one attempt has refused of some clusters."""
        plugins = inputs.framework.plugins
        self._attempt, self._inputs = attempt, inputs
        self._clusters = {cluster.name: cluster for cluster in clusters}
        self._found: dict[str, Sequence[FilterRefusal]] = {}
        self._called = [plugin for plugin in plugins.filter if _is_called(plugin)]
        self.not_called = tuple(plugin.name for plugin in plugins.filter if plugin not in self._called)
        known = (*plugins.pre_filter, *plugins.filter)
        self._evidence = {plugin.name: plugin for plugin in known if isinstance(plugin, EvidencePlugin)}

    def __getitem__(self, name: str) -> Sequence[FilterRefusal]:
        if name not in self._found:
            self._found[name] = self._of(self._clusters[name])
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._clusters)

    def __len__(self) -> int:
        return len(self._clusters)

    def counted(self) -> list[Refusal]:
        """Return the first refusals, counted; the most frequent first, then in the order of plugins."""
        groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, refusals in self.items():
            if refusals:
                groups[refusals[0].plugin, refusals[0].clause].append(name)
        found = [
            Refusal(plugin, self[names[0]][0].reason, clause, len(names), tuple(names))
            for (plugin, clause), names in groups.items()
        ]
        return sorted(found, key=lambda refusal: (-refusal.count, refusal.plugin, refusal.short))

    def _of(self, cluster: Cluster) -> Sequence[FilterRefusal]:
        if cluster.deleting:
            return (DELETED,)
        first, cycle = self._attempt.diagnosis.result_by_cluster.get(cluster.name), self._attempt.cycle
        if first is None or cycle is None:
            return ()
        refusals = [self._refusal(first.plugin, first, cycle, cluster)]
        for plugin in self._called:
            if plugin.name == first.plugin:
                continue
            try:
                result = plugin.filter(FilterContext(cycle, cluster))
            except Exception as problem:  # noqa: BLE001 (a plugin can raise anything)
                refusals.append(_refusal(plugin.name, f"failed: {problem}", Evidence(short="failed")))
                continue
            if isinstance(result, Result) and result.is_refusal:
                refusals.append(self._refusal(plugin.name, result, cycle, cluster))
        return refusals

    def _refusal(self, name: str, result: Result, cycle: Cycle, cluster: Cluster) -> FilterRefusal:
        """Return a refusal with what the plugin compared; without that if the plugin does not say it, or fails."""
        plugin, inputs = self._evidence.get(name), self._inputs
        if plugin is None:
            return _refusal(name, result.message, Evidence())
        manifests = inputs.binding_manifest or {}, inputs.cluster_manifest(cluster.name)
        try:
            evidence = plugin.evidence(EvidenceContext(cycle, cluster, result, *manifests))
            return _refusal(name, result.message, evidence, plugin.codes)
        except Exception:  # noqa: BLE001 (a plugin can raise anything)
            return _refusal(name, result.message, Evidence())


def _refusal(name: str, reason: str, found: Evidence, codes: Container[str] = ()) -> FilterRefusal:
    short, code = found.short or reason, found.code if found.code in codes else PLUGIN_REFUSED
    kind = found.kind or str(found.fields.get("clause", short))
    evidence = replace(found, code=code, short=short, text=found.text or short, kind=kind)
    return FilterRefusal(name, reason, evidence)


DELETED: Final = _refusal(
    "", "the cluster is being deleted", Evidence(_DELETED, "being deleted"), codes={_DELETED}
)


def _is_called(plugin: FilterPlugin) -> bool:
    """Return whether an explanation may call a plugin."""
    may_be_called = getattr(plugin, "free_of_side_effects", False) is True
    return may_be_called and not isinstance(plugin, PreFilterPlugin)


def trace_score(
    attempt: TermAttempt, kept: KeptSteps, inputs: ExplainInputs
) -> Mapping[str, tuple[ScoreCell, ...]]:
    """Return the scores of the candidates by name."""
    weights = inputs.framework.plugins.weights
    totals = {plugin: list(scores) for plugin, scores in attempt.scores.items()}
    found = {}
    for index, name in enumerate(sorted(candidate.name for candidate in attempt.candidates)):
        cells = []
        for plugin, scores in totals.items():
            raw, weight, total = kept.raw_scores.get(plugin), weights.get(plugin, 1), scores[index]
            cells.append(
                ScoreCell(plugin, None if raw is None else raw[index], total // weight, weight, total)
            )
        found[name] = tuple(cells)
    return found
