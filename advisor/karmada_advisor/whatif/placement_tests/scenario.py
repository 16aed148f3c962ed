"""What all cases of a file share: the objects of the file, the rules, the clock, and uids.

A template in Git has no uid, and ties between clusters go by its parity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from karmada_advisor.claims.model import DetectorOptions, Replicas
from karmada_advisor.claims.policy import read_policy
from karmada_advisor.claims.template import CLAIM_ANNOTATIONS, CLAIM_LABELS, TemplateKey, template_of
from karmada_advisor.fleet.rules import dry_running
from karmada_advisor.state.model import SchedulerShown, SchedulerStatus
from karmada_advisor.state.schedulers import Schedulers
from karmada_advisor.state.stored import part, policy_key, text_of
from karmada_advisor.whatif.placement_tests.model import PlacementTestFile, ScenarioChange
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.lint import lint_clusters, lint_written
from karmada_advisor.whatif.plan.lint_upgrade import lint_for_1_19
from karmada_advisor.whatif.plan.objects import (
    ChangeError,
    Manifest,
    PlanObjects,
    UnversionedTemplateKey,
    object_name,
    resource_key,
    template_key,
    unversioned,
    with_defaults,
    with_id,
)
from karmada_advisor.whatif.plan.question import Known, PlanInputs, known_after, known_of
from karmada_advisor.whatif.plan.what_if import WhatIf, WrittenChange
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME, Binding, BindingKey
from karmada_scheduler.api.names import FleetValues
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.config.features import DEFAULT_RULES, RULES, DecisionRules, FeatureGates
from karmada_scheduler.core.algorithms.webster import prefers_descending_names
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.objects import ShownObjects, Workloads
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.structs import Struct, field, replace

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""When a case begins, unless ``at`` sets the clock; each step is a minute later."""

_BETWEEN: Final = timedelta(minutes=1)


class CaseClock:
    """The clock that plugins see; it stands still during a step."""

    def __init__(self) -> None:
        """Start at ``START``."""
        self.at = START

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return self.at.timestamp()

    def step(self, changes: Iterable[ScenarioChange]) -> None:
        """Go on to the next step, or to the time that its changes set."""
        self.at = next((change.value for change in changes if change.word == "at"), self.at + _BETWEEN)


class Scenario(Struct, frozen=True):
    """What all cases of a file share: objects that were read once, and the rules.

    Attributes:
        objects: The fleet, the policies, the templates, and the bindings with a history.
        known: The same as values.
        rules: The scheduler; its plugins see ``clock``.
        clock: The clock.
        schedulers: Which schedulers exist.
        detector: Flags and gates of karmada-controller-manager.
        evicts: Whether it evicts from clusters with NoExecute taints.
        lints: What is suspicious about the policies of the file, by their names: ``KIND/[NS/]NAME``.
    """

    objects: PlanObjects
    known: Known
    rules: DryRun
    clock: CaseClock
    schedulers: Schedulers
    detector: DetectorOptions
    evicts: bool = False
    lints: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _with_uids: dict[OddTemplates, PlanObjects] = field(default_factory=dict)

    def with_uids(self, odd: OddTemplates) -> PlanObjects:
        """Return the objects with a uid in each template; the same ones each time, so that they are compared fast."""
        if odd not in self._with_uids:
            self._with_uids[odd] = with_uids(self.objects, odd)
        return self._with_uids[odd]

    def show_workloads(self, templates: Iterable[Manifest]) -> None:
        """Show templates to the plugins that need the metadata of workloads."""
        if any(self.rules.frameworks.declaring.values()):
            self.rules.objects.workloads = Workloads(
                Workload.from_manifest(
                    manifest, api_version=text_of(manifest, "apiVersion"), kind=text_of(manifest, "kind")
                )
                for manifest in templates
            )


@contextmanager
def scenario_of(file: PlacementTestFile, own: Sequence[Registration] = ()) -> Iterator[Scenario]:
    """Provide the scenario of a file; its plugins are usable within the block.

    Args:
        file: The file.
        own: The plugins of a main program of the user's own.

    Raises:
        ChangeError: An object cannot be read.
        ConfigError: The configuration of the scheduler, or a plugin, cannot be used.
    """
    clock = CaseClock()
    objects = objects_of(file)
    known = known_of(objects)
    shown = ShownObjects(Workloads(None), clock=clock.now)
    gates = FeatureGates(file.gates, _rules(file))
    detector = _detector(file)
    lints = _lints(file, known, detector)
    with dry_running(replace(file.rules, own=own), gates, shown) as dry_run:
        names = file.scheduler_names or sorted(dry_run.frameworks.names or (DEFAULT_SCHEDULER_NAME,))
        schedulers = schedulers_named(names)
        yield Scenario(objects, known, dry_run, clock, schedulers, detector, file.evicts, lints)


def _lints(file: PlacementTestFile, known: Known, detector: DetectorOptions) -> dict[str, Sequence[str]]:
    values = FleetValues(known.clusters.values())
    return {
        "/".join(filter(None, policy_key(manifest))): [
            f"{warning.code}: {warning.field}: {warning.text}"
            for warning in (
                *lint_written(manifest),
                *lint_clusters(read_policy(with_defaults(manifest)), values),
                *(lint_for_1_19(manifest, detector) if detector.gates.rules.refuses_old_purge_modes else ()),
            )
        ]
        for manifest in file.policies
    }


def _rules(file: PlacementTestFile) -> DecisionRules:
    return RULES[file.rules.decisions_of or DEFAULT_RULES.decisions_of]


def _detector(file: PlacementTestFile) -> DetectorOptions:
    gates = FeatureGates({**file.gates, **file.controller_gates}, _rules(file))
    return DetectorOptions(gates, file.priority_classes, file.sizes)


def objects_of(file: PlacementTestFile) -> PlanObjects:
    """Return the objects of a file: policies as they are stored, templates as users write them.

    Raises:
        ChangeError: A policy has a field of the wrong type.
    """
    found = PlanObjects(policies={})
    for manifest in (*file.clusters, *file.bindings):
        found.add(manifest)
    claims = {claim.policy: claim for claim in (template_of(manifest).claim for manifest in file.bindings)}
    for manifest in file.policies:
        policy = policy_key(manifest)
        known = claims[policy].id_of(policy.kind) if policy in claims else ""
        found.add(with_id(with_defaults(manifest), known))
    has_history = {resource_key(manifest) for manifest in found.bindings.values()}
    for workload in file.workloads:
        key = template_key(workload)
        found.templates[key] = workload if key in has_history else _unclaimed(workload)
    return found


def _unclaimed(template: Manifest) -> Manifest:
    """Return a template without the metadata of a claim, which a file from a control plane has."""
    metadata = dict(part(template, "metadata"))
    for name, keys in (("labels", CLAIM_LABELS), ("annotations", CLAIM_ANNOTATIONS)):
        if any(key in part(metadata, name) for key in keys):
            metadata[name] = {key: text for key, text in part(metadata, name).items() if key not in keys}
    return {**template, "metadata": metadata}


def schedulers_named(names: Iterable[str]) -> Schedulers:
    """Return the schedulers that a file names."""
    return Schedulers(
        {name: SchedulerShown(name, SchedulerStatus.RUNNING, "scheduler.names") for name in names}, problem=""
    )


def names_of_policies(objects: PlanObjects) -> list[str]:
    """Return how expectations name policies: ``KIND/[NS/]NAME``."""
    return ["/".join(filter(None, policy_key(policy))) for policy in (objects.policies or {}).values()]


OddTemplates = frozenset[UnversionedTemplateKey]
"""The templates without a uid that get an odd one; the others get an even one."""

NONE_ODD: Final[OddTemplates] = frozenset()
_CANDIDATES: Final = ("none-0", "none-1")
UIDS: Final = tuple(
    next(candidate for candidate in _CANDIDATES if prefers_descending_names(candidate) is descending)
    for descending in (False, True)
)
"""One uid of each parity: ties go to the earlier name with the first, to the later name with the second."""


def with_uids(objects: PlanObjects, odd: OddTemplates) -> PlanObjects:
    """Return the objects with a uid in each template."""
    found = objects.copy()
    for key, template in found.templates.items():
        if not text_of(template, "metadata", "uid"):
            uid = UIDS[key in odd]
            found.templates[key] = {**template, "metadata": {**part(template, "metadata"), "uid": uid}}
    return found


class CaseState(Struct):
    """The objects of one case after each step.

    Attributes:
        scenario: What cases share.
        objects: As they are now.
        known: The same as values.
        sizes: Of workloads that only an interpreter can read; a scaled one has the new number.
        odd: The templates without a uid that have an odd one here.
        last: What the last step has written; None before the first decision.
        what_if: What the last step does.
        before: The bindings before it.
        bindings_before: The same as manifests.
    """

    scenario: Scenario
    objects: PlanObjects
    known: Known
    sizes: dict[TemplateKey, Replicas]
    odd: OddTemplates
    last: WrittenChange | None = None
    what_if: WhatIf | None = None
    before: Mapping[BindingKey, Binding] = field(default_factory=dict)
    bindings_before: Mapping[BindingKey, Manifest] = field(default_factory=dict)

    @classmethod
    def begin(
        cls,
        scenario: Scenario,
        odd: OddTemplates,
        given: Sequence[ScenarioChange],
        names: Collection[str] | None,
    ) -> CaseState:
        """Return a state in which the first decisions are made.

        Args:
            scenario: What cases share.
            odd: The templates without a uid that get an odd one.
            given: Changes before the first decision.
            names: How the case names the workloads that it is about; None for all. Others may be left out.

        Raises:
            ChangeError: A change cannot be made.
        """
        base = scenario.with_uids(odd)
        scenario.clock.at = START
        draft = Draft(base)
        make_changes(draft, given)
        for change in given:
            if change.word == "at":
                scenario.clock.at = change.value
        after = with_uids(draft.after, odd)
        after.clusters = {
            name: cluster
            for name, cluster in after.clusters.items()
            if "deletionTimestamp" not in part(cluster, "metadata") or cluster is base.clusters.get(name)
        }
        after.policies = {key: with_id(policy) for key, policy in (after.policies or {}).items()}
        if names is not None and not scenario.rules.is_coupled:
            wanted = {key for name in names for key in draft.workloads(name)}
            after.templates = {key: template for key, template in after.templates.items() if key in wanted}
        start = PlanObjects(after.clusters, dict(base.bindings), after.policies)
        bound = dict.fromkeys(map(resource_key, base.bindings.values()))
        stored = {key: base.templates[key] for key in bound if key in base.templates}
        start.templates = {key: each for key, each in stored.items() if after.templates.get(key) is each}
        sizes = dict(scenario.detector.sizes)
        known = known_after(scenario.known, scenario.objects, start)
        state = cls(scenario, start, known, sizes, odd)
        state._scaled(given)
        state._take(after)
        return state

    def step(self, changes: Sequence[ScenarioChange]) -> None:
        """Make changes, let Karmada and the scheduler act, and write what they decide.

        Raises:
            ChangeError: A change cannot be made, or Karmada would refuse it.
        """
        draft = Draft(self.objects)
        make_changes(draft, changes)
        self.scenario.clock.step(changes)
        self._scaled(changes)
        after = with_uids(draft.after, self.odd)
        after.policies = {key: with_id(policy) for key, policy in (after.policies or {}).items()}
        self._take(after)

    def _scaled(self, changes: Iterable[ScenarioChange]) -> None:
        """Let scaled workloads have their new size."""
        draft = Draft(PlanObjects(templates={**self.objects.templates, **self.scenario.objects.templates}))
        for change in changes:
            if change.word != "scale":
                continue
            for key in draft.workloads(change.subject):
                for sized, size in self.sizes.items():
                    if unversioned(sized) == key:
                        self.sizes[sized] = size._replace(replicas=change.value)

    def _take(self, after: PlanObjects) -> None:
        scenario = self.scenario
        draft = Draft(self.objects)
        draft.after = after
        scenario.show_workloads(after.templates.values())
        self.before, self.bindings_before = self.known.bindings, self.objects.bindings
        self.what_if = WhatIf(
            PlanInputs(
                self.objects,
                draft,
                scenario.rules,
                scenario.rules,
                evicts=scenario.evicts,
                with_drift=False,
                schedulers=scenario.schedulers,
                detector=replace(scenario.detector, sizes=dict(self.sizes)),
                known=self.known,
            ),
            remembers=True,
        )
        self.last = self.what_if.step(scenario.clock.at)
        self.objects, self.known = self.last.objects, self.last.known


def make_change(draft: Draft, change: ScenarioChange) -> None:
    """Make one change.

    Raises:
        ChangeError: It cannot be made.
    """
    word, subject, value = change.word, change.subject, change.value
    try:
        match word:
            case "at":  # it sets the clock of the state
                return
            case "apply":
                draft.put(value)
            case "edit":
                draft.edit(*object_name(subject, word), value)
            case "delete":
                draft.delete(*object_name(subject, word))
            case "ready":
                draft.ready(subject, is_ready=value)
            case "without" | "cordon" | "uncordon" | "rebalance":
                getattr(draft, word)(subject)
            case _:  # what has a value besides the name of its object
                getattr(draft, word)(subject, value)
    except ChangeError as problem:
        raise ChangeError(str(problem).removeprefix("--").replace(" (--", " (")) from problem


def make_changes(draft: Draft, changes: Iterable[ScenarioChange]) -> None:
    """Make changes in their order.

    Raises:
        ChangeError: One cannot be made.
    """
    for change in changes:
        make_change(draft, change)
