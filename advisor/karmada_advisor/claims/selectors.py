"""Resource selectors of policies, and how well they match a template.

Source: karmada v1.18.2 pkg/util/selector.go.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from karmada_advisor.claims.template import Template
from karmada_scheduler.api.manifest import Manifest, read_optional_mapping, read_text
from karmada_scheduler.api.matching import LabelSelector
from karmada_scheduler.api.object_fields import read_object
from karmada_scheduler.api.placement import ClusterAffinity


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

    api_version: str
    kind: str
    namespace: str
    name: str
    labels: LabelSelector | None

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
            return Match.LABELS if assumed else Match.NONE
        return Match.LABELS if self.labels.matches(template.labels) else Match.NONE


def read_selector(selector: Manifest, path: str) -> Selector:
    """Read a selector.

    Raises:
        ManifestError: A field has the wrong type.
    """
    given = read_optional_mapping(selector, "labelSelector", path)
    labels = (
        None if given is None else read_object(ClusterAffinity, {"labelSelector": given}, path).label_selector
    )
    return Selector(
        read_text(selector, "apiVersion", path),
        read_text(selector, "kind", path),
        read_text(selector, "namespace", path),
        read_text(selector, "name", path),
        labels,
    )
