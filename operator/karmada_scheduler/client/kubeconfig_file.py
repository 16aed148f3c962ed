"""Finds kubeconfigs, merges them, and selects the context with its cluster and user.

Source: k8s.io/client-go v0.35.3 tools/clientcmd (client_config.go, loader.go, overrides.go).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

from karmada_scheduler.client import kubeconfig_fields
from karmada_scheduler.client.identity import ConnectionConfigError
from karmada_scheduler.config import yaml_file
from karmada_scheduler.config.problems import ConfigError

_PATHS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigOverrides:
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
            names = {each["name"] for each in found[kind]}
            found[kind] += [each for each in document.get(kind) or () if each["name"] not in names]
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
        parsed = yaml_file.parse(read(path), unique_keys=False)
    except ConfigError as error:
        raise ConnectionConfigError(f"{path} {error}") from error
    document = kubeconfig_fields.checked(parsed, path)
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
    near = get_close_matches(name, [each["name"] for each in document[kind]], n=1)
    raise ConnectionConfigError(
        f"{kind}: there is no entry of the name {name}" + (f". Nearest: {near[0]}" if near else "")
    )
