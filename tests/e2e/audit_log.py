"""Reads the audit log of the control plane."""

from __future__ import annotations

from tools.controlplane import ControlPlane


def order_of_results(plane: ControlPlane, user: str, namespace: str) -> list[int]:
    """Return the numbers of the bindings ``work-N`` in the order in which a scheduler wrote their specs."""
    return [
        int(entry["objectRef"]["name"].removeprefix("work-"))
        for entry in plane.requests(user)
        if entry.get("stage") == "ResponseComplete"
        and entry["verb"] == "patch"
        and entry["objectRef"].get("namespace") == namespace
        and entry["objectRef"]["resource"] == "resourcebindings"
        and "subresource" not in entry["objectRef"]
    ]
