"""Reads the audit log of the control plane."""

from __future__ import annotations

from tools.controlplane import ControlPlane


def order_of_results(plane: ControlPlane, user: str, namespace: str) -> list[int]:
    """Return the numbers of the bindings ``work-N`` in the order in which a scheduler wrote their specs."""
    return [int(name.removeprefix("work-")) for name in names_of_results(plane, user, namespace)]


def names_of_results(plane: ControlPlane, user: str, namespace: str) -> list[str]:
    """Return the names of bindings in the order in which a scheduler wrote their specs."""
    return [
        entry["objectRef"]["name"]
        for entry in plane.requests(user)
        if entry.get("stage") == "ResponseComplete"
        and entry["verb"] == "patch"
        and entry["objectRef"].get("namespace") == namespace
        and entry["objectRef"]["resource"] == "resourcebindings"
        and "subresource" not in entry["objectRef"]
    ]
