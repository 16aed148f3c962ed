"""What was read of a live control plane."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from karmada_advisor.sources.bindings import NamedBinding
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.state.model import SchedulerShown
from karmada_scheduler.structs import Struct, field

Manifest = dict[str, Any]


class LiveError(NoAnswerError):
    """The control plane gives no answer; the text says why, and what to do."""


class LiveContents(Struct):
    """What was read.

    Attributes:
        server: The URL of the API server.
        asked: What names the wanted binding without doubt; None if none is wanted.
        templates: The metadata of the wanted workload, if it has no binding.
        quotas: The FederatedResourceQuotas of the wanted binding's namespace if a quota has refused it; None if they were
            not read.
        priority_classes: The names of the PriorityClasses if the wanted workload has no binding, and the policy that claims
            it names one; None if they were not read.
        problems: What could not be read without ending the command: single objects, and policies.
        unlisted: Why bindings other than the wanted one could not be listed, one line per kind.
        leases: Of Karmada's system namespace; None if they could not be read.
        no_leases: Why not; "" if they were read.
        at: When they were read; None if they were not.
        seen: The schedulers without a Lease that have left something.
        events: Of the wanted binding and its template.
        no_events: Why there are none; "" if they were read.
    """

    server: str
    asked: NamedBinding | None = None
    clusters: list[Manifest] = field(default_factory=list)
    bindings: list[Manifest] = field(default_factory=list)
    templates: list[Manifest] = field(default_factory=list)
    policies: list[Manifest] = field(default_factory=list)
    quotas: list[Manifest] | None = None
    priority_classes: list[str] | None = None
    problems: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    leases: list[Manifest] | None = None
    no_leases: str = ""
    at: datetime | None = None
    seen: list[SchedulerShown] = field(default_factory=list)
    events: list[Manifest] = field(default_factory=list)
    no_events: str = ""
