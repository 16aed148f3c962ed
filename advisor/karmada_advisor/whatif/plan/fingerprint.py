"""A hash over all that decisions read, so that a plan can be checked against the objects of a later time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from karmada_advisor.state.quota import Quota
from karmada_advisor.state.stored import mappings, part
from karmada_advisor.whatif.plan.objects import Manifest, PlanObjects
from karmada_scheduler.api.manifest import content_of
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION

SHOWN: Final = 6
"""Characters that are shown; ``--expect`` takes as many or more."""


def fingerprint(
    objects: PlanObjects,
    rules: str,
    quotas: Iterable[Quota] = (),
    *,
    bindings: Iterable[bytes] | None = None,
) -> str:
    """Return the hash of objects and rules: 32 hexadecimal digits.

    Times, managed fields and other parts that no decision reads do not count.

    Args:
        objects: All objects.
        rules: The configuration of the scheduler, in any form.
        quotas: The quotas that count.
        bindings: What ``binding_digest`` returns of each binding, instead of those in ``objects``.
    """
    if bindings is None:
        bindings = map(binding_digest, objects.bindings.values())
    total = hashlib.blake2b(rules.encode(), digest_size=16)
    for group in (
        map(_digest, map(_cluster, objects.clusters.values())),
        bindings,
        map(_digest, map(_object, (objects.policies or {}).values())),
        map(_digest, map(_object, objects.templates.values())),
    ):
        for each in sorted(group):
            total.update(each)
        total.update(b"\x00")
    for quota in sorted(
        repr((str(each), sorted(each.limits.items()), sorted(each.used.items()))) for each in quotas
    ):
        total.update(quota.encode())
    return total.hexdigest()


def binding_digest(manifest: Manifest) -> bytes:
    """Return what counts of a binding."""
    return _digest(_binding(manifest))


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(content_of(value), digest_size=16).digest()


def _object(manifest: Manifest) -> list[Any]:
    metadata = part(manifest, "metadata")
    named = _values(metadata, ("namespace", "name", "labels"))
    return [manifest.get("kind"), *named, metadata.get("deletionTimestamp") is not None, manifest.get("spec")]


def _cluster(manifest: Manifest) -> list[Any]:
    status = part(manifest, "status")
    states = [[each.get("type"), each.get("status")] for each in mappings(status.get("conditions"))]
    summary = part(status, "resourceSummary")
    return [*_object(manifest), status.get("apiEnablements"), states, summary]


def _binding(manifest: Manifest) -> list[Any]:
    status, annotations = part(manifest, "status"), part(manifest, "metadata", "annotations")
    scheduled = [
        [each.get("status"), each.get("reason")]
        for each in mappings(status.get("conditions"))
        if each.get("type") == "Scheduled"
    ]
    read = _values(status, ("schedulerObservingAffinityName", "lastScheduledTime"))
    return [*_object(manifest), annotations.get(APPLIED_PLACEMENT_ANNOTATION), scheduled, *read]


def _values(parent: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    return [parent.get(name) for name in names]
