"""From policies to bindings: which policy claims which template, and what the binding receives.

The rules are those of the resource detector of karmada-controller-manager v1.18.2. Nothing here does input or output.

    result = claim(templates, policies, bindings, events=[PolicyWritten(manifest)])
    result.by_binding[key].binding_after
"""

from karmada_advisor.claims.claim import changes, claim
from karmada_advisor.claims.model import (
    ClaimRefusal,
    Claims,
    DetectorOptions,
    DetectorOutcome,
    Event,
    PolicyDeleted,
    PolicyWritten,
    TemplateClaim,
    TemplateDeleted,
    TemplateWritten,
    UnclaimedReason,
    Waits,
)
from karmada_advisor.claims.template import Template, TemplateKey, read_template, template_of

__all__ = [
    "ClaimRefusal",
    "Claims",
    "DetectorOptions",
    "DetectorOutcome",
    "Event",
    "PolicyDeleted",
    "PolicyWritten",
    "Template",
    "TemplateClaim",
    "TemplateDeleted",
    "TemplateKey",
    "TemplateWritten",
    "UnclaimedReason",
    "Waits",
    "changes",
    "claim",
    "read_template",
    "template_of",
]
