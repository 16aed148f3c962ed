"""The fields of a kubeconfig that are read, and their types.

Source: k8s.io/client-go v0.35.3 tools/clientcmd/api/v1/types.go.
"""

from __future__ import annotations

from typing import Any, Final

from karmada_scheduler.client.identity import ConnectionConfigError

_TEXTS: Final = "texts by name"
_EXEC: Final = {
    "command": str,
    "apiVersion": str,
    "args": [str],
    "env": [{"name": str, "value": str}],
    "installHint": str,
}
_USER: Final = {
    **dict.fromkeys(("client-certificate", "client-certificate-data", "client-key", "client-key-data"), str),
    **dict.fromkeys(("token", "tokenFile", "username", "password"), str),
    "exec": _EXEC,
    "auth-provider": {"name": str, "config": _TEXTS},
}
_CLUSTER: Final = {
    **dict.fromkeys(("server", "tls-server-name", "proxy-url"), str),
    **dict.fromkeys(("certificate-authority", "certificate-authority-data"), str),
    "insecure-skip-tls-verify": bool,
}
_KUBECONFIG: Final = {
    "current-context": str,
    "clusters": [{"name": str, "cluster": _CLUSTER}],
    "contexts": [{"name": str, "context": {"cluster": str, "user": str, "namespace": str}}],
    "users": [{"name": str, "user": _USER}],
}
_NAMED: Final = ("clusters", "contexts", "users")
_EXPECTED: Final = {str: "a string", bool: "true or false"}


def checked(document: object, path: str) -> dict[str, Any]:
    """Return the known fields of a kubeconfig, without those that are null.

    Args:
        document: The parsed file.
        path: Its path, for the error.

    Raises:
        ConnectionConfigError: A field has the wrong type, or an entry has no name. The text has the field, and no value,
            which may be a secret.
    """
    if document is None:
        raise ConnectionConfigError(f"{path} is empty")
    if not isinstance(document, dict):
        raise ConnectionConfigError(f"{path} is not an object")
    found: dict[str, Any] = _read(document, _KUBECONFIG, "")
    for kind in _NAMED:
        for index, entry in enumerate(found.get(kind, ())):
            if not entry.get("name"):
                raise ConnectionConfigError(f"{kind}[{index}].name: is missing")
    return found


def _read(value: object, shape: Any, path: str) -> Any:
    """Return the part of a value that a shape describes: a type, a list of a shape, or shapes by field."""
    match shape:
        case dict():
            known = _expect(value, dict, "an object", path)
            return {
                name: _read(known[name], inner, f"{path}.{name}".removeprefix("."))
                for name, inner in shape.items()
                if known.get(name) is not None
            }
        case [inner]:
            items = _expect(value, list, "a list", path)
            return [_read(item, inner, f"{path}[{index}]") for index, item in enumerate(items)]
        case type():
            return _expect(value, shape, _EXPECTED[shape], path)
    texts = _expect(value, dict, "an object", path)
    return {
        _expect(name, str, "a string as key", path): _expect(text, str, "a string", f"{path}.{name}")
        for name, text in texts.items()
        if text is not None
    }


def _expect(value: object, type_: type, expected: str, path: str) -> Any:
    if not isinstance(value, type_):
        raise ConnectionConfigError(
            f"{path}: expected {expected}, got {_KINDS.get(type(value), 'another type')}"
        )
    return value


_KINDS: Final = {
    type(None): "nothing",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}
