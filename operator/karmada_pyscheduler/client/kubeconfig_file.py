"""Finds kubeconfigs, checks the types of their fields, merges them, and selects the context with its cluster and user.

Source: k8s.io/client-go v0.35.3 tools/clientcmd (client_config.go, loader.go, overrides.go).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

from karmada_pyscheduler.client.identity import ConnectionConfigError
from karmada_scheduler.config import file_content
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.structs import Struct

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


_PATHS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


class ConfigOverrides(Struct, frozen=True, kw_only=True):
    """What replaces parts of a kubeconfig; "" for what it says. With any, a Pod's credentials are not used.

    Attributes:
        context: Instead of the current context.
        cluster: Instead of the context's cluster.
        user: Instead of the context's user.
    """

    context: str = ""
    cluster: str = ""
    user: str = ""

    def __bool__(self) -> bool:
        return bool(self.context or self.cluster or self.user)


NO_OVERRIDES: Final = ConfigOverrides()


class SelectedContext(NamedTuple):
    """What a kubeconfig says about the control plane to use.

    Attributes:
        namespace: Of the context; "" for none.
        cluster: The fields of the cluster.
        user: The fields of the user.
        user_name: Its name; "" for requests without credentials.
    """

    namespace: str
    cluster: dict[str, Any]
    user: dict[str, Any]
    user_name: str


def default_paths() -> list[str]:
    """Return the kubeconfigs of KUBECONFIG that exist, else ~/.kube/config if it does."""
    paths = [path for path in (os.environ.get("KUBECONFIG") or "").split(":") if path]
    return [path for path in paths or [str(Path.home() / ".kube/config")] if Path(path).exists()]


def context_namespace(kubeconfig: str, overrides: ConfigOverrides = NO_OVERRIDES) -> str:
    """Return the namespace of the context to use; "" if it has none, or there is no kubeconfig.

    Args:
        kubeconfig: A path; "" for the default ones.
        overrides: What replaces parts of the kubeconfig.

    Raises:
        ConnectionConfigError: A kubeconfig cannot be read, or has no such entry.
    """
    paths = [kubeconfig] if kubeconfig else default_paths()
    if not paths:
        return ""
    try:
        return selected(merged(paths, lambda path: Path(path).read_bytes()), overrides).namespace
    except (ConnectionConfigError, OSError) as error:
        raise ConnectionConfigError(f"kubeconfig {':'.join(paths)}: {error}") from error


def merged(paths: Sequence[str], read: Callable[[str], bytes]) -> dict[str, Any]:
    """Return kubeconfigs as one; the first entry with a name counts.

    Args:
        paths: Of kubeconfigs.
        read: Returns the content of a file.

    Raises:
        ConnectionConfigError: One is no kubeconfig.
    """
    found: dict[str, Any] = {"clusters": [], "contexts": [], "users": []}
    for path in paths:
        document = _document(path, read)
        for kind in ("clusters", "contexts", "users"):
            names = {entry["name"] for entry in found[kind]}
            found[kind] += [entry for entry in document.get(kind) or () if entry["name"] not in names]
        if document.get("current-context"):
            found.setdefault("current-context", document["current-context"])
    return found


def selected(document: Mapping[str, Any], overrides: ConfigOverrides) -> SelectedContext:
    """Return the context of a kubeconfig, or what replaces it.

    Raises:
        ConnectionConfigError: There is no such entry; the text names the nearest.
    """
    current = overrides.context or document.get("current-context")
    if not current and not overrides.cluster:
        raise ConnectionConfigError("current-context: is missing")
    context = _named(document, "contexts", "context", current) if current else {}
    cluster = overrides.cluster or context.get("cluster")
    if not cluster:
        raise ConnectionConfigError(f"contexts: {current}: cluster: is missing")
    user = overrides.user or context.get("user") or ""
    return SelectedContext(
        context.get("namespace") or "",
        _named(document, "clusters", "cluster", cluster),
        _named(document, "users", "user", user) if user else {},
        user,
    )


def _document(path: str, read: Callable[[str], bytes]) -> dict[str, Any]:
    try:
        parsed = file_content.parse(read(path), unique_keys=False)
    except ConfigError as error:
        raise ConnectionConfigError(f"{path} {error}") from error
    document = checked(parsed, path)
    folder = Path(path).absolute().parent
    for kind, name in (("clusters", "cluster"), ("users", "user")):
        for entry in document.get(kind, ()):
            _with_absolute_paths(entry.get(name, {}), folder)
    return document


def _with_absolute_paths(entry: dict[str, Any], folder: Path) -> None:
    """Make paths relative to the kubeconfig absolute; a command without a slash is found in PATH."""
    for field in _PATHS:
        if entry.get(field):
            entry[field] = str(folder / entry[field])
    plugin = entry.get("exec") or {}
    if "/" in (plugin.get("command") or ""):
        plugin["command"] = str(folder / plugin["command"])


def _named(document: Mapping[str, Any], kind: str, field: str, name: str) -> dict[str, Any]:
    """Return a field of the first entry with a name."""
    for entry in document[kind]:
        if entry["name"] == name:
            found: dict[str, Any] = entry.get(field, {})
            return found
    near = get_close_matches(name, [entry["name"] for entry in document[kind]], n=1)
    raise ConnectionConfigError(
        f"{kind}: there is no entry of the name {name}" + (f". Nearest: {near[0]}" if near else "")
    )
