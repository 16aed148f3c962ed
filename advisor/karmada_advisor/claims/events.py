"""Changes that Karmada's detector reacts to."""

from __future__ import annotations

from dataclasses import dataclass

from karmada_advisor.claims.template import Template, TemplateKey
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.policy import PolicyKey


@dataclass(frozen=True, slots=True)
class PolicyWritten:
    """A policy is created or edited, as by ``kubectl apply``.

    Attributes:
        manifest: The policy as a whole.
    """

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class PolicyDeleted:
    """A policy is deleted."""

    key: PolicyKey


@dataclass(frozen=True, slots=True)
class TemplateWritten:
    """A template is created or edited; the metadata of its claim stay as they are."""

    template: Template


@dataclass(frozen=True, slots=True)
class TemplateDeleted:
    """A template is deleted; its binding is deleted with it."""

    key: TemplateKey


Event = PolicyWritten | PolicyDeleted | TemplateWritten | TemplateDeleted
