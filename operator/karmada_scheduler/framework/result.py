"""The outcome of one plugin at one extension point.

A plugin returns a Result for what it decided and raises for what it did not expect. Karmada calls this
type Result too, which keeps the word "status" free for the status of a Kubernetes object. The codes are
kube-scheduler's; what each means depends on the point and is said there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Code(Enum):
    """The verdict; the value is what upstream prints and uses as a metric label."""

    SUCCESS = "Success"
    UNSCHEDULABLE = "Unschedulable"
    """No, for a reason that lies in the binding or the cluster."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """No, and nothing that others do to the clusters changes that: no further plugin is asked."""
    ERROR = "Error"
    """The plugin could not find out: the attempt fails, the placement stays, and it is tried again."""
    WAIT = "Wait"
    """Not yet: Permit only."""
    SKIP = "Skip"
    """Not my business: the next plugin is asked, or this one is left out for the rest of the cycle."""
    PENDING = "Pending"
    """No, until something that the plugin waits for has happened; counts as a refusal."""

    __hash__ = object.__hash__  # a member is one object; Enum's own hash is a Python call per observation


_REFUSALS: Final = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


@dataclass(frozen=True, slots=True)
class Result:
    """What a plugin decided, and why.

    Attributes:
        code: The verdict.
        reasons: Sentences for the user, without the cluster's name: equal reasons of many clusters are
            counted together.
        plugin: Set by the runtime, never by the plugin itself.
        timeout: Of a WAIT: how long, in seconds.
        retry_after: Of a refusal: after how many seconds it is worth asking again; 0 leaves that to the
            queue, whose pauses grow with every failure.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    timeout: float = 0.0
    retry_after: float = 0.0

    @classmethod
    def unschedulable(cls, *reasons: str, retry_after: float = 0.0) -> Result:
        """Say no."""
        return cls(Code.UNSCHEDULABLE, reasons, retry_after=retry_after)

    @classmethod
    def unresolvable(cls, *reasons: str) -> Result:
        """Say no, whatever others may do."""
        return cls(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)

    @classmethod
    def error(cls, *reasons: str) -> Result:
        """Say that it could not be found out."""
        return cls(Code.ERROR, reasons)

    @classmethod
    def wait(cls, timeout: float, *reasons: str) -> Result:
        """Let the binding wait for at most ``timeout`` seconds until it is allowed."""
        return cls(Code.WAIT, reasons, timeout=timeout)

    @property
    def is_success(self) -> bool:
        """Whether it says yes."""
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        """Whether it leaves the answer to others."""
        return self.code is Code.SKIP

    @property
    def is_refusal(self) -> bool:
        """Whether it says no for a reason that lies in the binding or the clusters."""
        return self.code in _REFUSALS

    @property
    def message(self) -> str:
        """The reasons in one line, joined as upstream joins them."""
        return ("," if self.code is Code.ERROR else ", ").join(self.reasons)


SUCCESS: Final = Result(Code.SUCCESS)
"""Yes."""
SKIP: Final = Result(Code.SKIP)
"""Not my business; what that means is said at each point that allows it."""
