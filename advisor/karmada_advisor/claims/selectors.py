"""Resource selectors of policies, and how well they match a template.

Source: karmada v1.18.2 pkg/util/selector.go.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, NamedTuple

from karmada_advisor.claims.template import Template
from karmada_scheduler.api.matching import LabelSelector
from karmada_scheduler.api.object_fields import ALWAYS, ApiField


class Match(IntEnum):
    """How a selector matches; Karmada calls it the implicit priority, and the larger one counts."""

    NONE = 0
    ALL = 1
    LABELS = 2
    NAME = 3


class Selector(NamedTuple):
    """One entry of ``spec.resourceSelectors``.

    Attributes:
        api_version: Group and version of the templates: ``apps/v1``.
        kind: For example ``Deployment``.
        namespace: Empty for any.
        name: Empty for any; with a name, the label selector has no effect.
        labels: None for any labels.
    """

    api_version: Annotated[str, ALWAYS]
    kind: Annotated[str, ALWAYS]
    namespace: str
    name: str
    labels: Annotated[LabelSelector | None, ApiField(key="labelSelector")]

    @property
    def invalid(self) -> str:
        """The expression for which its labels match nothing; "" if they are valid, or have no effect."""
        found = None if self.name or self.labels is None else self.labels.invalid
        return "" if found is None else found.text

    def match(self, template: Template, *, assumed: bool = False) -> Match:
        """Return how it matches a template.

        Args:
            template: The template.
            assumed: Whether a label selector matches a template whose labels are not known.
        """
        key = template.key
        if (
            key.kind != self.kind
            or key.api_version != self.api_version
            or (self.namespace and key.namespace != self.namespace)
        ):
            return Match.NONE
        if self.name:
            return Match.NAME if key.name == self.name else Match.NONE
        if self.labels is None:
            return Match.ALL
        if template.labels is None:
            return Match.LABELS if assumed and not self.invalid else Match.NONE
        return Match.LABELS if self.labels.matches(template.labels) else Match.NONE
