"""Everything that a plan reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from karmada_advisor.claims.model import DetectorOptions
from karmada_advisor.claims.quota import Quota
from karmada_advisor.plan.change import Draft
from karmada_advisor.plan.derive import DETECTOR
from karmada_advisor.plan.lint_selectors import TemplatesKnown
from karmada_advisor.plan.model import ChangeShown
from karmada_advisor.plan.objects import PlanObjects
from karmada_advisor.plan.parsed import Known
from karmada_advisor.state.schedulers import Schedulers
from karmada_scheduler.dryrun.dry_run import DryRun

Progress = Callable[[str, int, int], None]


def _no_progress(_phase: str, _done: int, _total: int) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class PlanInputs:
    """Everything that a plan reads.

    Attributes:
        before: The objects as they are.
        draft: The objects after the change, before Karmada's detector and the scheduler act.
        rules: The configuration of the scheduler.
        rules_after: Its configuration after the change; the same object if it does not change.
        other_mode: Returns ``rules_after`` with the other value of SchedulingOvercommitProtection; None if the other
            capacity mode is not wanted.
        rules_text: The configuration before the change, for the fingerprint.
        rule_changes: How the change of the configuration is shown.
        evicts: Whether Karmada evicts from clusters with NoExecute taints.
        with_drift: Whether to compute what would change without the change.
        source: Where the objects come from, for people.
        at: The time of the plan, as the API writes times.
        schedulers: Which schedulers exist.
        quotas: FederatedResourceQuotas; None if they are not known.
        no_quotas: Why they are not; "" if they are.
        is_live: Whether the objects come from a control plane.
        templates_known: Of which kinds all templates were read.
        detector: Flags and gates of karmada-controller-manager, and the other objects that its detector reads.
        known: The objects before the change as values, if they were read already.
        progress: Called with a phase, the number of decisions made, and their total.
    """

    before: PlanObjects
    draft: Draft
    rules: DryRun
    rules_after: DryRun
    other_mode: Callable[[], DryRun] | None = None
    rules_text: str = ""
    rule_changes: tuple[ChangeShown, ...] = ()
    evicts: bool = False
    with_drift: bool = True
    source: str = ""
    at: str = ""
    schedulers: Schedulers = field(default_factory=Schedulers)
    quotas: Sequence[Quota] | None = None
    no_quotas: str = ""
    is_live: bool = False
    templates_known: TemplatesKnown = field(default_factory=TemplatesKnown)
    detector: DetectorOptions = DETECTOR
    known: Known | None = None
    progress: Progress = field(default=_no_progress)
