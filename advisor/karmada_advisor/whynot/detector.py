"""What a binding receives from its policies after an edit of them, by the rules of Karmada's detector (``claims``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from karmada_advisor.claims.claim import claim
from karmada_advisor.claims.model import DetectorOptions, PolicyWritten
from karmada_advisor.claims.template import template_of
from karmada_scheduler.api.manifest import Manifest, ManifestError
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.structs import replace

_WITH_PREEMPTION: Final = DetectorOptions(FeatureGates({"PropagationPolicyPreemption": True}))
"""An edit that needs the gate PropagationPolicyPreemption says so: nothing that is stored tells whether it is on."""


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
