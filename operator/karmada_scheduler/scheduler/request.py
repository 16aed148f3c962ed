"""What a decision is about."""

from __future__ import annotations

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.core.classify import Classification
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.reconsidering import Proposed
from karmada_scheduler.structs import Struct


class Request(Struct, frozen=True):
    """A binding to decide about.

    Attributes:
        binding: The binding as it is now.
        framework: The plugins of its profile.
        classification: The kind of scheduling, and the reason.
        event: The event that enqueued the binding, "" if it is not recorded.
        is_activated: Whether a plugin has activated it, so that PreEnqueue plugins are not called.
        workload: The metadata of its workload; None if no plugin of the profile needs it.
        proposed: The proposal of a Reconsider plugin to try; None for a decision that an event requires.
        term: The affinity term to begin with instead of the one in the status; "" for that one.
    """

    binding: Binding
    framework: Framework
    classification: Classification
    event: str = ""
    is_activated: bool = False
    workload: WorkloadAnswer | None = None
    proposed: Proposed | None = None
    term: str = ""
