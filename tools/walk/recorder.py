"""Records the calls of the scheduler's functions, phase by phase."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
_OURS: Final = (str(ROOT / "operator"), str(ROOT / "plugins"))


class Phase(NamedTuple):
    """A part of the way of a binding.

    Attributes:
        name: Its name.
        limit: The most frames of ours that may be on the stack when it ends.
        ends: Returns whether the call that made this frame ends it.
    """

    name: str
    limit: int
    ends: Callable[[FrameType], bool]


@dataclass
class Step:
    """What was called in a phase.

    Attributes:
        functions: The functions, in the order of their first call.
        stack: The stack when the phase ended, from the outermost frame on.
    """

    functions: dict[CodeType, None] = field(default_factory=dict)
    stack: list[CodeType] = field(default_factory=list)


def _calls(name: str) -> Callable[[FrameType], bool]:
    return lambda frame: frame.f_code.co_qualname == name


def _sends_patch(*, status: bool) -> Callable[[FrameType], bool]:
    def ends(frame: FrameType) -> bool:
        if frame.f_code.co_qualname != "PersistentConnection.send":
            return False
        line = bytes(frame.f_locals["data"]).partition(b"\r\n")[0]
        return line.startswith(b"PATCH") and (b"/status" in line) is status

    return ends


PHASES: Final = (
    Phase("event read", 10, _calls("Lines.feed")),
    Phase("event to queue", 10, _calls("WorkQueue.add")),
    Phase("decision", 12, _calls("DefaultAssigner.assign")),
    Phase("spec patch", 16, _sends_patch(status=False)),
    Phase("status patch", 15, _sends_patch(status=True)),
)
"""The bytes of a watch event arrive; the key is in the queue; the last plugin of the decision is called; both requests."""


class Recorder:
    """Records the phases of one binding.

    Attributes:
        steps: What was called, by the name of the phase.
    """

    def __init__(self) -> None:
        """Start with the first phase."""
        self.steps = {phase.name: Step() for phase in PHASES}
        self._left = list(PHASES)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the calls in this thread during the block."""
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self._left or not _is_ours(frame.f_code):
            return
        phase = self._left[0]
        step = self.steps[phase.name]
        step.functions.setdefault(frame.f_code)
        if phase.ends(frame):
            step.stack = _stack(frame)
            self._left.pop(0)


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(_OURS)


def _stack(frame: FrameType | None) -> list[CodeType]:
    """Return the functions of ours on the stack, from the outermost one on."""
    found: list[CodeType] = []
    while frame is not None:
        if _is_ours(frame.f_code):
            found.append(frame.f_code)
        frame = frame.f_back
    return found[::-1]
