"""What is probably wrong in the policies of a change: names that nothing has, fields that get lost, selectors without a match.

Only policies that the change creates or edits are looked at, and those that name a cluster which it deletes: what was wrong
before is not the change's fault.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from karmada_advisor.claims.policy import ClaimingPolicy, read_policy
from karmada_advisor.plan.derive import Derived
from karmada_advisor.plan.lint_fields import lint_fields
from karmada_advisor.plan.lint_placement import KnownValues, lint_placement, named_clusters
from karmada_advisor.plan.lint_selectors import Templates, TemplatesKnown
from karmada_advisor.plan.model import PlanWarning
from karmada_advisor.plan.objects import Manifest, PlanObjects, part
from karmada_advisor.state.model import SchedulerStatus
from karmada_advisor.state.schedulers import Schedulers
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.policy import PolicyKey


def lint(
    before: PlanObjects,
    after: PlanObjects,
    written: Sequence[Manifest],
    derived: Derived,
    *,
    clusters: Mapping[str, Cluster],
    deleted: Collection[str],
    schedulers: Schedulers,
    known: TemplatesKnown,
) -> Iterator[PlanWarning]:
    """Yield the warnings of a change.

    Args:
        before: The objects as they are.
        after: The objects after the change.
        written: The policies of the change as they were given, before defaults.
        derived: What follows from the policies.
        clusters: By name, those that exist after the change.
        deleted: The clusters that the change deletes.
        schedulers: Which schedulers exist.
        known: Of which kinds all templates were read.
    """
    for manifest in written:
        yield from lint_fields(manifest)
    old, new = before.policies or {}, after.policies or {}
    changed = [key for key in new if old.get(key) is not new[key]]
    if changed:
        values, templates = KnownValues(clusters.values()), Templates(after, known)
    for key in changed:
        policy, name = read_policy(new[key]), f"{key.kind}/{key}"
        yield from lint_placement(name, policy.placement, values)
        yield from _scheduler(name, policy, schedulers)
        yield from templates.lint(name, policy, derived, old.get(key))
    yield from _naming_deleted(new, changed, deleted)


def _naming_deleted(
    policies: Mapping[PolicyKey, Manifest], changed: Collection[PolicyKey], deleted: Collection[str]
) -> Iterator[PlanWarning]:
    """Yield the policies that name a cluster which the change deletes."""
    if not deleted:
        return
    for key, manifest in policies.items():
        if key in changed:
            continue
        for path, names in named_clusters(part(manifest, "spec", "placement")):
            for gone in sorted({*deleted} & {*names}):
                text = f"it names {gone}, which this change deletes"
                yield PlanWarning("ClusterDeleted", f"{key.kind}/{key}", path, text)


def _scheduler(name: str, policy: ClaimingPolicy, schedulers: Schedulers) -> Iterator[PlanWarning]:
    found = schedulers.of(policy.scheduler_name)
    if not found.decides:
        code = "SchedulerUnknown" if found.status is SchedulerStatus.MISSING else "SchedulerDown"
        text = f"nobody decides about its workloads: {found}"
        yield PlanWarning(code, name, "spec.schedulerName", text, found.nearest)
