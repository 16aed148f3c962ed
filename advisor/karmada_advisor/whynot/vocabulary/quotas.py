"""Edits for a placement that a FederatedResourceQuota refuses."""

from __future__ import annotations

from collections.abc import Iterator

from karmada_advisor.claims.quota import KIND, quantity_text
from karmada_advisor.whynot.edits import Edit, ObjectRef, PatchAction, Side
from karmada_advisor.whynot.quantities import amounts_of
from karmada_advisor.whynot.vocabulary import capacity
from karmada_advisor.whynot.vocabulary.context import Context


def proposals(context: Context) -> Iterator[Edit]:
    """Yield as many replicas as the quotas allow, a higher limit, and smaller requests."""
    yield from _fewer_replicas(context)
    refused = context.outcome.scheduled.refused
    if refused is not None:
        limit, wanted = (quantity_text(refused.resource, each) for each in (refused.limit, refused.wanted))
        ref = ObjectRef(KIND, refused.quota.namespace, refused.quota.name)
        yield context.make(
            Side.QUOTA, "raiseQuota", ref, PatchAction.SET, ("spec", "overall", refused.resource), value=wanted,
            text=f"raise {refused.resource} of the quota {refused.quota.name} to {wanted} ({limit} now)", extra=-0.5,
        )  # fmt: skip
    yield from capacity.requests(context)


def _fewer_replicas(context: Context) -> Iterator[Edit]:
    binding, objects = context.binding, context.objects
    base = binding.spec.replicas
    if base < 2:
        return
    ledger = objects.ledger(context.outcome.patched.manifests)
    most = ledger.most_replicas(objects.key.namespace, binding.spec, objects.usage)

    def build(amount: int) -> Edit:
        text = f"{amount} replicas ({base} now)"
        return context.workload(
            "setReplicas", PatchAction.SET, ("spec", "replicas"), text, value=amount, extra=-0.5
        )

    present = sum(each.replicas for each in binding.spec.clusters)
    amounts = [most] if most is not None and present < most < base else []  # no replica that runs is stopped
    yield from amounts_of(build, base=base, amounts=amounts)
