"""JSON merge patches."""

from __future__ import annotations

from typing import Any

from tools.apiserver_model.kinds import Object


def merged(target: Any, patch: Object) -> Object:
    """Return what a merge patch (RFC 7386) makes of a value.

    ``target`` is not changed; the result shares with it what the patch does not name.
    """
    found: Object = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict):
            found[name] = merged(found.get(name), value)
        else:
            found[name] = value
    return found
