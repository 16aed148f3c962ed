"""The inputs of explanations: bindings, the fleet, the rules, and what a running scheduler says about a binding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from karmada_advisor.explain.model import RecordedDecision
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.process_answers import ProcessView
from karmada_advisor.fleet.read import workload_reader
from karmada_advisor.fleet.rules import Rules, not_known, print_warning
from karmada_advisor.fleet.source import ControlPlane
from karmada_advisor.state.model import Target
from karmada_advisor.state.quota import Quota
from karmada_advisor.state.reading import Facts
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.manifest import parse_time, second_after
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.core.available_replicas import Assumed
from karmada_scheduler.core.classify import Classification, classify
from karmada_scheduler.core.condition import UNSCHEDULABLE, condition_for
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.dryrun.dry_run import DryRun, run
from karmada_scheduler.dryrun.forecast import admitted, as_new
from karmada_scheduler.dryrun.objects import ShownObjects, Workloads
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import Struct, field, replace

Manifest = Mapping[str, Any]

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)


class ExplainInputs(Struct, frozen=True):
    """Everything that a decision about one binding reads.

    Attributes:
        binding: As it is now.
        snapshot: All clusters.
        framework: The plugins of the binding's profile.
        algorithm: The core, with gates and estimators; those in the member clusters are not asked. It has caches, so
            inputs that differ only in the binding should share it.
        assumed: Placements that count as taken.
        workload: Metadata of the workload, for plugins that need it.
        scheduler_names: Names of the profiles; None if every binding is scheduled here.
        binding_manifest: The binding as it was read, for fields that decisions do not use; None if unknown.
        facts: What is stored besides the binding.
        template_labels: Labels of the resource template, for selectors of policies; None if they are not known.
        process: What a running scheduler says about the binding; None if none was asked.
        events: Warning Events of the binding and its template, the newest first.
        missing: Plugins of the process that decides whose code is not here, so that decisions here differ from its own.
        not_known: That nobody here knows by which rules its scheduler decides; "" if somebody does.
        plugin_dirs: Where that process has loaded plugins from.
        rules: What ``framework`` and the gates are, for people.
        quotas: The quotas of its namespace that count, and whether that is sure; None if they were not read.
        others: The other bindings, as far as they were read; to find decisions that counted on the same capacity.
    """

    binding: Binding
    snapshot: Snapshot
    framework: Framework
    algorithm: SchedulingAlgorithm
    assumed: Assumed = field(default_factory=dict)
    workload: WorkloadAnswer | None = None
    scheduler_names: frozenset[str] | None = None
    binding_manifest: Manifest | None = None
    facts: Facts = field(default_factory=Facts)
    template_labels: Mapping[str, str] | None = None
    process: ProcessView | None = None
    events: Sequence[Manifest] = ()
    missing: Sequence[str] = ()
    not_known: str = ""
    plugin_dirs: Sequence[str] = ()
    rules: str = ""
    quotas: Mapping[Quota, bool] | None = None
    others: Sequence[Binding] = ()

    @classmethod
    def of(cls, rules: DryRun, binding: Binding, snapshot: Snapshot) -> ExplainInputs:
        """Return what a decision by the rules of a binding's scheduler reads; of any profile if these are not known."""
        rules = rules.of(binding) or rules
        framework = rules.frameworks.of(binding) or rules.frameworks.any
        return cls(
            binding,
            snapshot,
            framework,
            rules.algorithm,
            workload=rules.workload_for(binding, framework),
            scheduler_names=rules.frameworks.names,
            facts=Facts(cluster_of=lambda name: None if snapshot.get(name) is None else {}),
        )

    @property
    def is_judged(self) -> bool:
        """Whether the rules are known by which its scheduler decides, with the code of its plugins."""
        return not self.missing and not self.not_known

    @property
    def policies(self) -> Sequence[Manifest]:
        """All policies as they were read; none if they were not."""
        return self.facts.policies or ()

    def cluster_manifest(self, name: str) -> Manifest:
        """Return a cluster as it was read; empty if it is not known."""
        return (self.facts.cluster_of and self.facts.cluster_of(name)) or {}

    def classify(self) -> Classification:
        """Return whether anything asks for a decision.

        Raises:
            SchedulingError: The binding has no placement.
        """
        return classify(self.binding, is_gone=self.snapshot.is_gone, gates=self.algorithm.gates)

    def decide(self, *, admits: bool = True) -> Decision:
        """Return the stable decision with what its steps worked with, whether or not anything asks for it.

        Args:
            admits: Whether Reserve and Permit are run, and undone.
        """
        framework = self.framework
        plugins = framework.plugins
        is_admitted = admits and bool(plugins.reserve or plugins.permit)

        workload = self.workload if framework.needs_workload else None

        async def deciding() -> Decision:
            decide, assumed = self.algorithm.decide, self.assumed
            decision = await decide(
                self.binding, self.snapshot, framework, assumed=assumed, workload=workload, keep_steps=True
            )
            return await admitted(self.binding, decision, framework) if is_admitted else decision

        return run(deciding(), waits=framework.is_async or (is_admitted and bool(plugins.permit)))


class Explaining(Struct, frozen=True):
    """Objects, and the rules by which decisions about them are explained.

    Attributes:
        fleet: What was read.
        rules: The rules.
        dry_run: Decides by them.
        snapshot: The clusters.
        facts: What is stored besides bindings.
        as_new: Whether decisions are those about bindings that were never scheduled.
    """

    fleet: Fleet
    rules: Rules
    dry_run: DryRun
    snapshot: Snapshot
    facts: Facts
    as_new: bool = False

    def show(self, snapshot: Snapshot) -> None:
        """Let plugins see clusters, and the bindings that were read."""
        bindings = self.fleet.bindings
        self.dry_run.objects.show(snapshot, map(as_new, bindings) if self.as_new else bindings)

    def inputs_of(self, binding: Binding, snapshot: Snapshot | None = None) -> ExplainInputs:
        """Return what a decision about a binding reads.

        Args:
            binding: The binding.
            snapshot: The clusters; None for those that were read.
        """
        fleet, process, name = self.fleet, self.rules.process, binding.spec.responsible_scheduler
        found = self.dry_run.of(binding)
        is_stock = found is not None and found is not self.dry_run
        is_known = found is not None or name not in self.rules.unknown(self.facts.schedulers)
        of_process = frozenset[str]() if is_stock or not is_known else self.rules.scheduler_names
        asked = as_new(binding) if self.as_new else binding
        inputs = ExplainInputs.of(self.dry_run, asked, snapshot or self.snapshot)
        return replace(
            inputs,
            scheduler_names=of_process or inputs.scheduler_names,
            binding_manifest=fleet.manifests.get(binding.key),
            facts=self.facts,
            template_labels=fleet.template_labels(binding.spec.resource),
            quotas=fleet.quotas_of(binding.key.namespace),
            others=fleet.bindings,
            events=fleet.warning_events(),
            rules=str(self.rules.stock if is_stock else self.rules) if is_known else "",
            missing=self.dry_run.frameworks.missing.get(name, ()),
            not_known="" if is_known else not_known(name),
            plugin_dirs=() if process is None else process.directories,
        )


@contextmanager
def explaining(
    fleet: Fleet,
    rules: Rules,
    plane: ControlPlane,
    *,
    as_new: bool = False,
    say: Callable[[str], None] = print_warning,
) -> Iterator[Explaining]:
    """Provide the scheduler of some rules, with the objects that were read.

    Args:
        fleet: What was read.
        rules: By which decisions are made.
        plane: Where the fleet was read, if it is live; workloads are read there when a plugin needs them.
        as_new: Whether the bindings count as never scheduled.
        say: Takes warnings; prints them by default.

    Raises:
        NoAnswerError: The configuration or a plugin cannot be used.
    """
    shown = ShownObjects(Workloads(fleet.workloads, read=workload_reader(plane, fleet)))
    facts = fleet.facts(rules.running)
    with rules.dry_run(shown, facts.schedulers, say=say) as dry_run:
        using = Explaining(fleet, rules, dry_run, Snapshot.of(fleet.clusters), facts, as_new)
        using.show(using.snapshot)
        yield using


def rebalanced(binding: Binding) -> Binding:
    """Return a binding as a WorkloadRebalancer leaves it: a reschedule is requested after the last scheduling."""
    last = binding.status.last_scheduled_time or _EPOCH
    spec = replace(binding.spec, reschedule_triggered_at=second_after(last))
    return replace(binding, spec=spec, status=replace(binding.status, last_scheduled_time=last))


def recorded_decision(
    view: ProcessView,
    placement: Mapping[str, int] | None,
    failure: BaseException | None,
    now: datetime | None,
) -> RecordedDecision | None:
    """Return the record as an explanation shows it; None without one.

    Args:
        view: The answer of the process.
        placement: The result of deciding again, to compare with; None if nothing was decided again.
        failure: Its error, None for a success.
        now: For the age.
    """
    record = view.record
    if record is None:
        return None
    targets, trigger, error = (record.get(name) or {} for name in ("targets", "trigger", "error"))
    is_kept = record.get("targets") is None
    if record.get("ending") == "refused" and not error:  # at Reserve, Permit or Bind: nothing was written
        error, is_kept = {"reason": UNSCHEDULABLE, "message": record.get("problem")}, True
    at = str(record.get("at") or "")
    attempts = record.get("attempts") or [{}]
    agrees = None
    if placement is not None and (error or failure is not None):
        expected = condition_for(failure)
        same = bool(error) and error.get("reason") == expected.reason
        agrees = same and str(error.get("message") or "") in expected.message  # the recorded one may be cut
    elif placement is not None:
        count = record.get("targetCount")  # of a record that is cut
        same = len(placement) == (len(targets) if count is None else count)
        agrees = not is_kept and same and targets.items() <= placement.items()
    return RecordedDecision(
        at=at,
        age_seconds=_age(at, now),
        process=str(record.get("process") or view.process),
        schedule_class=str(trigger.get("class") or ""),
        event=str(trigger.get("event") or ""),
        generation=int(record.get("generation") or 0),
        stages={str(name): int(count) for name, count in (attempts[-1].get("stages") or {}).items()},
        placement=None if is_kept else tuple(Target(str(name), int(targets[name])) for name in targets),
        error=str(error.get("message") or ""),
        ending=str(record.get("ending") or ""),
        agrees=agrees,
    )


def _age(at: str, now: datetime | None) -> float | None:
    if now is None:
        return None
    try:
        return max(0.0, (now - parse_time(str(at))).total_seconds())
    except ValueError:
        return None
