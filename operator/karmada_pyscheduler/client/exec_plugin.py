"""Exec plugins of kubeconfigs: programs that print credentials.

``kubernetes.aio`` runs them, too, but without a timeout, and continues without credentials when one fails.

Source: k8s.io/client-go v0.35.3 plugin/pkg/client/auth/exec/exec.go, tools/clientcmd/client_config.go.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from typing import Any, Final

import orjson

from karmada_scheduler.api.manifest import parse_time
from karmada_scheduler.structs import Struct

TIMEOUT: Final = 30.0
"""Timeout of a plugin in seconds; client-go has none, and a leader would lose its Lease."""

_GROUP: Final = "client.authentication.k8s.io/"


class ExecPluginError(Exception):
    """The plugin returned no credentials; the text has its command."""


class ExecCredential(Struct, frozen=True, kw_only=True):
    """The output of a plugin: a token, a client certificate with its key (PEM), or both.

    Attributes:
        token: A bearer token, or "".
        certificate: A client certificate, or "".
        key: Its key, or "".
        expires_at: In seconds since 1970, None without an expiry.
    """

    token: str
    certificate: str
    key: str
    expires_at: float | None


def run(config: Mapping[str, Any], *, timeout: float = TIMEOUT) -> ExecCredential:
    """Run a plugin and return its credentials; blocks.

    Args:
        config: ``users[].user.exec`` of the kubeconfig.
        timeout: In seconds; after it the plugin and its children are killed.

    Raises:
        ExecPluginError: It could not be run, failed, timed out, or printed no credentials.
    """
    command, version = config.get("command"), config.get("apiVersion")
    if not isinstance(command, str) or not command:
        raise ExecPluginError("exec: command: is missing")
    if not isinstance(version, str) or not version.startswith(_GROUP):
        raise ExecPluginError(f"exec plugin {command}: apiVersion: expected {_GROUP}v1, got {version!r}")
    arguments = [str(argument) for argument in config.get("args") or ()]
    environment = dict(os.environ)
    for variable in config.get("env") or ():
        environment[variable.get("name", "")] = variable.get("value", "")
    request = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    environment["KUBERNETES_EXEC_INFO"] = orjson.dumps(request).decode()
    try:
        process = subprocess.Popen(  # noqa: S603 (an exec plugin is a command of the kubeconfig)
            [command, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as problem:  # ValueError: a NUL in an argument, or a variable without a name
        hint = config.get("installHint")
        text = f"exec plugin {command}: cannot be run: {getattr(problem, 'strerror', None) or problem}"
        raise ExecPluginError(f"{text}; {hint}" if hint else text) from problem
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as late:
        raise ExecPluginError(f"exec plugin {command}: took longer than {timeout:g}s") from late
    finally:
        _end(process)
    if process.returncode != 0:
        text = " ".join(errors[-500:].decode(errors="replace").split())
        raise ExecPluginError(f"exec plugin {command}: ended with status {process.returncode}: {text}")
    return _credential(command, version, output)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a plugin that takes too long with its children, and close its pipes."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _credential(command: str, version: str, output: bytes) -> ExecCredential:
    try:
        document = orjson.loads(output)
        kind = (document["kind"], document["apiVersion"])
        status = document["status"]
        expires = status.get("expirationTimestamp")
        found = ExecCredential(
            token=status.get("token") or "",
            certificate=status.get("clientCertificateData") or "",
            key=status.get("clientKeyData") or "",
            expires_at=parse_time(expires).timestamp() if expires else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as problem:
        text = str(problem) if isinstance(problem, ValueError) else f"unexpected shape: {problem!r}"
        raise ExecPluginError(f"exec plugin {command}: its output cannot be used: {text}") from problem
    if kind != ("ExecCredential", version):
        raise ExecPluginError(
            f"exec plugin {command}: expected an ExecCredential of {version}, got {kind[0]!r:.60} of {kind[1]!r:.60}"
        )
    texts = (found.token, found.certificate, found.key)
    if not all(isinstance(text, str) for text in texts):
        raise ExecPluginError(f"exec plugin {command}: its output cannot be used: expected strings")
    if bool(found.certificate) != bool(found.key) or not any(texts):
        raise ExecPluginError(
            f"exec plugin {command}: returned neither token nor clientCertificateData with clientKeyData"
        )
    return found
