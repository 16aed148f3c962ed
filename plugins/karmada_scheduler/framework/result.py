"""The result of a plugin at an extension point.

A plugin returns a Result for expected outcomes, and raises otherwise. Karmada calls this type Result as well; a status is
that of a Kubernetes object. The codes are kube-scheduler's. Their meaning depends on the extension point, whose contract
has it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from karmada_scheduler.structs import Struct


class Code(Enum):
    """The code of a result; the value is upstream's text and metric label."""

    SUCCESS = "Success"
    UNSCHEDULABLE = "Unschedulable"
    """A refusal for a reason in the binding or the cluster."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """A refusal that no change of the cluster's other bindings can resolve; no further plugin is called."""
    ERROR = "Error"
    """The result could not be determined: the attempt fails, the placement stays, and the binding is tried again."""
    WAIT = "Wait"
    """The binding has to wait; at Permit only."""
    SKIP = "Skip"
    """The plugin does not apply: the next plugin is called, or this one is omitted for the rest of the cycle."""
    PENDING = "Pending"
    """A refusal until an event for which the plugin waits."""

    __hash__ = object.__hash__  # a member is one object; Enum's own hash is a Python call per observation


MAX_RETRY_SECONDS: Final = 30 * 86_400.0
"""The longest delay of an attempt that a plugin can request; timers of an event loop do not take any number."""

_REFUSALS: Final = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


class Result(Struct, frozen=True):
    """The result of a plugin.

    Attributes:
        code: The code.
        reasons: Texts for users, without the name of the cluster: equal reasons of many clusters are counted together.
        plugin: The name of the plugin, set by the framework.
        timeout: Of WAIT: the longest wait in seconds.
        retry_after: Of a refusal: the delay of the next attempt in seconds, 30 days at most; 0 for the backoff of the queue.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    timeout: float = 0.0
    retry_after: float = 0.0

    @classmethod
    def unschedulable(cls, *reasons: str, retry_after: float = 0.0) -> Result:
        """Return a refusal."""
        return cls(Code.UNSCHEDULABLE, reasons, retry_after=retry_after)

    @classmethod
    def unresolvable(cls, *reasons: str) -> Result:
        """Return a refusal that no change of other bindings can resolve."""
        return cls(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)

    @classmethod
    def error(cls, *reasons: str) -> Result:
        """Return the result of a plugin that could not determine one."""
        return cls(Code.ERROR, reasons)

    @classmethod
    def wait(cls, timeout: float, *reasons: str) -> Result:
        """Return WAIT: the binding waits until it is allowed, ``timeout`` seconds at most."""
        return cls(Code.WAIT, reasons, timeout=timeout)

    @property
    def is_success(self) -> bool:
        """Whether the code is SUCCESS."""
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        """Whether the code is SKIP."""
        return self.code is Code.SKIP

    @property
    def is_refusal(self) -> bool:
        """Whether the code is a refusal: UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE or PENDING."""
        return self.code in _REFUSALS

    @property
    def message(self) -> str:
        """The reasons in one line, joined as upstream joins them."""
        return ("," if self.code is Code.ERROR else ", ").join(self.reasons)


def bounded_delay(seconds: float) -> float:
    """Return a requested delay within 0 and ``MAX_RETRY_SECONDS``; 0 if it is not a number."""
    return min(seconds, MAX_RETRY_SECONDS) if seconds > 0 else 0.0


SUCCESS: Final = Result(Code.SUCCESS)
"""A success."""
SKIP: Final = Result(Code.SKIP)
"""The plugin does not apply; the contracts of the extension points have the consequence."""
