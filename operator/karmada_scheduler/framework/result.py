"""The outcome of one plugin at one extension point.

A plugin returns a Result for what it decided and raises for what it did not expect. Karmada calls this
type Result too, which keeps the word "status" free for the status of a Kubernetes object.
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
    ERROR = "Error"
    """No, because the plugin could not find out. In Filter it rejects the cluster, as upstream's does."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a plugin decided, and why.

    Attributes:
        code: The verdict.
        reasons: Sentences for the user, without the cluster's name: equal reasons of many clusters are
            counted together.
        plugin: Set by the runtime, never by the plugin itself.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @classmethod
    def unschedulable(cls, *reasons: str) -> Result:
        """Say no."""
        return cls(Code.UNSCHEDULABLE, reasons)

    @classmethod
    def error(cls, *reasons: str) -> Result:
        """Say that it could not be found out."""
        return cls(Code.ERROR, reasons)

    @property
    def is_success(self) -> bool:
        """Whether it says yes."""
        return self.code is Code.SUCCESS

    @property
    def message(self) -> str:
        """The reasons in one line, joined as upstream joins them."""
        return ("," if self.code is Code.ERROR else ", ").join(self.reasons)


SUCCESS: Final = Result(Code.SUCCESS)
