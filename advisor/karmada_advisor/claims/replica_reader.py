"""Replicas of templates, each read once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karmada_advisor.claims.options import DetectorOptions
from karmada_advisor.claims.replicas import Replicas, replicas_of
from karmada_advisor.claims.template import Template, TemplateKey


class ReplicaReader:
    """Reads the replicas of templates as the options say; the same manifest is read once."""

    def __init__(self, options: DetectorOptions) -> None:
        self._options = options
        self._found: dict[TemplateKey, tuple[Mapping[str, Any] | None, Replicas]] = {}

    def of(self, template: Template) -> Replicas:
        """Return the replicas of a template.

        Raises:
            ManifestError: A field of the template has the wrong type.
        """
        found = self._found.get(template.key)
        if found is not None and found[0] is template.manifest:
            return found[1]
        replicas = replicas_of(
            template,
            customized=self._options.customized,
            with_quota=self._options.resource_quota_estimate,
        )
        self._found[template.key] = template.manifest, replicas
        return replicas
