"""Everything that a plan reads, and its parsed objects before and after the change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from karmada_advisor.claims.model import DEFAULTS, DetectorOptions
from karmada_advisor.state.quota import Quota
from karmada_advisor.state.schedulers import Schedulers
from karmada_advisor.state.stored import part
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.lint_selectors import TemplatesKnown
from karmada_advisor.whatif.plan.objects import ChangeError, ChangeShown, Manifest, PlanObjects
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.structs import Struct, field

Key = TypeVar("Key")
Value = TypeVar("Value")

ClusterChange = tuple[Cluster | None, Cluster | None]
"""A cluster before and after."""


class Known(Struct, frozen=True):
    """Clusters and bindings as values."""

    clusters: Mapping[str, Cluster]
    bindings: Mapping[BindingKey, Binding]


def known_of(objects: PlanObjects) -> Known:
    """Return objects as values.

    Raises:
        ChangeError: One cannot be read.
    """
    return known_after(Known({}, {}), PlanObjects(), objects)


def known_after(known: Known, before: PlanObjects, after: PlanObjects) -> Known:
    """Return other objects as values; those that are equal to objects that were read are not read again.

    Raises:
        ChangeError: One cannot be read.
    """
    return Known(
        _changed(known.clusters, before.clusters, after.clusters, Cluster.from_manifest),
        _changed(known.bindings, before.bindings, after.bindings, Binding.from_manifest),
    )


def changed_clusters(before: Known, after: Known) -> dict[str, ClusterChange]:
    """Return the clusters that differ, by name."""
    return {
        name: (before.clusters.get(name), after.clusters.get(name))
        for name in sorted({*before.clusters, *after.clusters})
        if before.clusters.get(name) is not after.clusters.get(name)
    }


def _changed(
    known: Mapping[Key, Value],
    before: Mapping[Key, Manifest],
    after: Mapping[Key, Manifest],
    parse_one: Callable[[Manifest], Value],
) -> dict[Key, Value]:
    return {
        key: known[key] if before.get(key) is each else _read(parse_one, each) for key, each in after.items()
    }


def _read(parse_one: Callable[[Manifest], Value], manifest: Manifest) -> Value:
    try:
        return parse_one(manifest)
    except ManifestError as problem:
        name = part(manifest, "metadata").get("name")
        raise ChangeError(f"{manifest.get('kind')} {name}: {problem}") from problem


class PlanInputs(Struct, frozen=True):
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
        more_notes: What the reader of the plan should know besides.
        detector: Flags and gates of karmada-controller-manager, and the other objects that its detector reads.
        known: The objects before the change as values, if they were read already.
        progress: Called with a phase, the number of decisions made, and their total.
        time_left: As ``PlanQuestion.time_left``.
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
    more_notes: Sequence[str] = ()
    detector: DetectorOptions = DEFAULTS
    known: Known | None = None
    progress: Callable[[str, int, int], None] = lambda _phase, _done, _total: None
    time_left: Callable[[], float] = lambda: 1.0
