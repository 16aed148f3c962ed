"""Connects to an API server with the credentials that karmada-scheduler would use."""

from __future__ import annotations

import time
from collections.abc import Callable

from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.identity import Identity
from karmada_pyscheduler.client.kubeconfig import load
from karmada_pyscheduler.client.kubeconfig_file import NO_OVERRIDES, ConfigOverrides
from karmada_pyscheduler.client.login import Login
from karmada_scheduler.process.daemon_thread import in_daemon_thread


async def connect(
    *,
    kubeconfig: str,
    master: str,
    overrides: ConfigOverrides = NO_OVERRIDES,
    has_default: bool = True,
    on_response: Callable[[str, str, int], None] = lambda *_: None,
    clock: Callable[[], float] = time.monotonic,
) -> Connection:
    """Load credentials as karmada-scheduler does: the kubeconfig, else in-cluster, else ~/.kube.

    Args:
        kubeconfig: A path, or "".
        master: The server's address, which overrides the kubeconfig's, or "".
        overrides: What replaces parts of the kubeconfig.
        has_default: Whether ~/.kube is read.
        on_response: See ``Connection``.
        clock: In seconds, never running backwards.

    Raises:
        ConnectionConfigError: There are no usable credentials; the text lists what was tried.
    """

    def read(known: Identity | None) -> Identity:
        return load(
            kubeconfig, master, now=time.time(), known=known, overrides=overrides, has_default=has_default
        )

    first = await in_daemon_thread(lambda: read(None), name="credentials")
    return Connection(Login(read, first, clock=clock), on_response)
