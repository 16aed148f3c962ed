"""Whether the FederatedResourceQuotas of a namespace, some of them edited, admit a placement (``claims.quota``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from karmada_advisor.claims import quota
from karmada_advisor.claims.quota import Excess, Quota, Usage
from karmada_advisor.whynot.edits import ObjectRef
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.estimator.resources import CPU


def sentence(found: Excess) -> str:
    """Return a limit that a placement exceeds as a sentence without a full stop."""
    wanted, limit, used = (shown(found.resource, each) for each in (found.wanted, found.limit, found.used))
    return f"the quota {found.quota} allows {limit} {found.resource}, and {wanted} would be used ({used} now)"


def shown(resource: str, amount: int) -> str:
    """Return an amount as a quantity of a manifest: ``500m``, ``6``, ``512Mi``."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    for suffix, bits in (("Gi", 30), ("Mi", 20), ("Ki", 10)):
        if amount and amount % (1 << bits) == 0:
            return f"{amount >> bits}{suffix}"
    return str(amount)


def exceeded(
    quotas: Iterable[tuple[ObjectRef, Manifest]], namespace: str, before: Usage, after: Usage
) -> Excess | None:
    """Return the first limit that a change of a binding exceeds, None if it is admitted.

    A quota without a change of one of its resources admits it, even if it is exceeded already.

    Args:
        quotas: The quotas, with what they count as used.
        namespace: The namespace of the binding.
        before: What the binding uses now.
        after: What it would use.

    Raises:
        ManifestError: A field of a quota has the wrong type.
    """
    found = (quota.exceeded(each, before, after) for each in _of_namespace(quotas, namespace))
    return next((each for each in found if each is not None), None)


def times_left(
    quotas: Iterable[tuple[ObjectRef, Manifest]], namespace: str, before: Usage, one: Usage
) -> int | None:
    """Return how many times an amount fits into the quotas, in place of what is used now; None without a limit.

    Args:
        quotas: The quotas.
        namespace: The namespace of the binding.
        before: What the binding uses now.
        one: The amount.

    Raises:
        ManifestError: A field of a quota has the wrong type.
    """
    found = [quota.times_left(each, before, one) for each in _of_namespace(quotas, namespace)]
    return min((each for each in found if each is not None), default=None)


def _of_namespace(quotas: Iterable[tuple[ObjectRef, Manifest]], namespace: str) -> Iterator[Quota]:
    for ref, manifest in quotas:
        if ref.namespace == namespace:
            yield quota.quota_of(ref.namespace, ref.name, manifest)
