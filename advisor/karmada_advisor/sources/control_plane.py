"""Which control plane the flags of a command name, and the namespace of its context."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from karmada_advisor.sources.errors import NoAnswerError
from karmada_scheduler.structs import Struct

if TYPE_CHECKING:
    from karmada_scheduler.client.kubeconfig_file import ConfigOverrides

DEFAULT_NAMESPACE: Final = "default"


class ControlPlane(Struct, frozen=True, kw_only=True):
    """Which control plane to read; "" for what kubectl would use.

    Attributes:
        kubeconfig: A path.
        context: Of the kubeconfig.
        cluster: Instead of the context's cluster.
        user: Instead of the context's user.
        timeout: Seconds for reading everything that one question needs.
    """

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    timeout: float = 60.0

    @property
    def overrides(self) -> ConfigOverrides:
        """What replaces parts of the kubeconfig."""
        from karmada_scheduler.client.kubeconfig_file import ConfigOverrides  # files do not need the client

        return ConfigOverrides(context=self.context, cluster=self.cluster, user=self.user)


def control_plane(arguments: argparse.Namespace) -> ControlPlane:
    """Return the control plane of the flags of ``cli.flags.shared.add_control_plane``, with ``--request-timeout``."""
    return ControlPlane(
        kubeconfig=arguments.kubeconfig,
        context=arguments.context,
        cluster=arguments.kubeconfig_cluster,
        user=arguments.user,
        timeout=arguments.request_timeout,
    )


def reads_files(arguments: argparse.Namespace) -> bool:
    """Return whether the flags of ``cli.flags.shared.add_objects`` name files or a capture, and no control plane."""
    return bool(arguments.clusters or arguments.bindings or arguments.replay)


def context_namespace(arguments: argparse.Namespace) -> str:
    """Return the namespace of the context, ``default`` without one.

    Raises:
        NoAnswerError: The kubeconfig cannot be read.
    """
    from karmada_scheduler.client import kubeconfig_file
    from karmada_scheduler.client.identity import ConnectionConfigError

    plane = control_plane(arguments)
    try:
        return kubeconfig_file.context_namespace(plane.kubeconfig, plane.overrides) or DEFAULT_NAMESPACE
    except ConnectionConfigError as error:
        raise NoAnswerError(str(error)) from error
