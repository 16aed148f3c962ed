"""Objects on a control plane that is read instead of files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from karmada_advisor.fleet.files import as_binding, as_cluster, as_workload
from karmada_advisor.fleet.fleet import Coverage, Fleet, parsed
from karmada_advisor.fleet.named_binding import NamedBinding
from karmada_scheduler.api.binding import KINDS

Manifest = dict[str, Any]


@dataclass
class StoredObjects:
    """Manifests; ``warnings`` and ``unlisted`` are what reading them says. With a warning, policies are not read."""

    server: str
    clusters: list[Manifest] = field(default_factory=list)
    bindings: list[Manifest] = field(default_factory=list)
    policies: list[Manifest] = field(default_factory=list)
    templates: list[Manifest] = field(default_factory=list)
    priority_classes: list[str] | None = None
    events: list[Manifest] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)

    def read(self, asked: NamedBinding | None = None) -> Fleet:
        found = Fleet(
            self.server,
            asked,
            is_live=True,
            policies=None if self.warnings else [*self.policies],
            priority_classes=self.priority_classes,
            warnings=[*self.warnings],
            coverage=Coverage(refused=dict(zip(sorted(KINDS, reverse=True), self.unlisted, strict=False))),
            events=self.events,
        )
        found.add_clusters(parsed(self.clusters, as_cluster, found.problems))
        found.add_bindings(parsed(self.bindings, as_binding, found.problems, found.unreadable))
        if self.templates:
            found.workloads = [each for each, _ in parsed(self.templates, as_workload, found.problems)]
        return found
