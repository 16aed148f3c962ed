"""The audit log of the API server, read while it grows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson


def requests(path: Path, *, user: str = "") -> list[dict[str, Any]]:
    """Return the audit events in a log, those of one user if named.

    The API server may be in the middle of a line: what follows the last newline is left out.
    """
    written = path.read_bytes()
    lines = written[: written.rfind(b"\n") + 1].splitlines()
    named = f'"{user}"'.encode() if user else b""
    entries = [orjson.loads(line) for line in lines if named in line]
    return [entry for entry in entries if not user or entry["user"]["username"] == user]
