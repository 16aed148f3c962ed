"""What a binding receives from its policies after an edit of them, what the scheduler does with it, and changes of its rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from karmada_advisor.claims.claim import claim
from karmada_advisor.claims.model import DetectorOptions, PolicyWritten
from karmada_advisor.claims.template import template_of
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.state.quota import Excess
from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.manifest import Manifest, ManifestError
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.condition import condition_for
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.dryrun.result import Outcome, SimulationResult
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.structs import Struct, replace

_WITH_PREEMPTION: Final = DetectorOptions(FeatureGates({"PropagationPolicyPreemption": True}))
"""An edit that needs the gate PropagationPolicyPreemption says so: nothing that is stored tells whether it is on."""


class Scheduled(Struct, frozen=True):
    """What the scheduler would do with a binding.

    Attributes:
        type: The kind of scheduling; AVOID if nothing asks for it.
        targets: The clusters of the binding afterwards.
        decision: None if it was not scheduled.
        problem: Why it was not scheduled although something asks for it, or did not take effect: the error of the
            decision, or the plugins that hold it; "" otherwise.
        code: The reason of the condition ``Scheduled``, ``OtherScheduler``, ``Gated``, ``Waiting`` or ``NobodyDecides``; ""
            without one.
        refused: The limit of a quota that refuses the placement, None if none does.
    """

    type: ScheduleType
    targets: tuple[TargetCluster, ...]
    decision: Decision | None
    problem: str = ""
    code: str = ""
    refused: Excess | None = None


def scheduled_of(result: SimulationResult) -> Scheduled:
    """Return what a simulation has made of a binding."""
    code, problem = "", ""
    if result.outcome is Outcome.OTHER_SCHEDULER:
        code, problem = "OtherScheduler", result.binding.spec.responsible_scheduler
    elif result.held is not None:
        code = "Gated" if result.held.point is Point.PRE_ENQUEUE else "Waiting"
        problem = str(result.held)
    elif result.decision is not None:
        condition = condition_for(result.decision.error)
        code = condition.reason
        problem = "" if result.decision.error is None else condition.message
    return Scheduled(result.type, result.targets, result.decision, problem, code)


_GATES: Final = (
    "CustomizedClusterResourceModeling",
    "MultiplePodTemplatesScheduling",
    "SchedulingOvercommitProtection",
    "WorkloadAffinity",
)


class RuleChange(Struct, frozen=True):
    """A change of one gate or plugin.

    Attributes:
        op: ``setGate`` or ``disablePlugin``.
        text: For people.
        flag: What to append to the command line of the scheduler, and of ``simulate``.
    """

    op: str
    text: str
    flag: str

    def applied(self, rules: Rules) -> Rules:
        """Return rules with the change."""
        _, _, value = self.flag.partition("=")
        if self.op == "setGate":
            return replace(rules, feature_gates=[*rules.feature_gates, value])
        return replace(rules, plugins=[*(rules.plugins or ()), value])


def alternatives(rules: Rules, gates: FeatureGates, refusing: str) -> Iterator[RuleChange]:
    """Yield changes of one gate or plugin.

    Args:
        rules: As they are.
        gates: Their feature gates.
        refusing: The plugin that refuses the cluster, "" if none does.
    """
    if refusing:
        enabled = "" if rules.plugins else "*,"
        flag = f"--plugins={enabled}-{refusing}"
        yield RuleChange("disablePlugin", f"without the plugin {refusing} ({flag})", flag)
    for name in _GATES:
        value = not gates.enabled(name)
        flag = f"--feature-gates={name}={str(value).lower()}"
        yield RuleChange("setGate", f"feature gate {name}={str(value).lower()}", flag)


def received(
    binding: Manifest,
    policies: Iterable[Manifest],
    written: Sequence[Manifest],
    labels: Mapping[str, str] | None,
) -> Manifest | None:
    """Return the binding after policies were written; None if it stays as it is, or that cannot be known.

    Args:
        binding: As it was read.
        policies: All policies before the edit.
        written: Those that are edited, afterwards.
        labels: The labels of the template; None if they are not known, so that no label selector matches it.
    """
    try:
        template = template_of(binding)
        if labels is not None:
            template = replace(template, labels={**labels, **template.claim.labels()})
        events, options = [PolicyWritten(each) for each in written], _WITH_PREEMPTION
        found = claim([template], policies, [binding], events=events, options=options, other_orders=False)
    except ManifestError:
        return None
    of_template = found.templates.get(template.key)
    if found.refusals or of_template is None or of_template.binding_after is binding:
        return None
    return of_template.binding_after
