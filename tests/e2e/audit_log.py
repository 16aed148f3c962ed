"""Reads the audit log of the control plane."""

from __future__ import annotations

import json
from typing import Any

from tools.controlplane import ControlPlane


def requests_of(plane: ControlPlane, user: str) -> list[dict[str, Any]]:
    """Return the requests of a user, refused ones included, without those for Leases."""
    assert plane.audit_log is not None
    return [
        entry
        for line in plane.audit_log.read_text().splitlines()
        if f'"{user}"' in line and (entry := json.loads(line))["user"]["username"] == user
    ]


def order_of_results(plane: ControlPlane, user: str, namespace: str) -> list[int]:
    """Return the numbers of the bindings ``work-N`` in the order in which a scheduler wrote their specs."""
    return [
        int(entry["objectRef"]["name"].removeprefix("work-"))
        for entry in requests_of(plane, user)
        if entry.get("stage") == "ResponseComplete"
        and entry["verb"] == "patch"
        and entry["objectRef"].get("namespace") == namespace
        and entry["objectRef"]["resource"] == "resourcebindings"
        and "subresource" not in entry["objectRef"]
    ]
