"""Expectations that many situations have in common."""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.e2e.state.model import Expected

REFUSED: Final = r"no cluster|0/\d+ clusters"

not_placed = partial(Expected, "not placed", "none")
nobody_decides = partial(Expected, "nobody decides", "none")
not_running = partial(Expected, "not running", "all")
not_claimed = partial(Expected, "not claimed", "none")
no_answer = partial(Expected, "unknown", "none", status=2)
