"""Where objects are: files, a capture, or a control plane, with the namespace of its context."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_scheduler.structs import Struct

if TYPE_CHECKING:
    from karmada_pyscheduler.client.kubeconfig_file import ConfigOverrides

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
        from karmada_pyscheduler.client.kubeconfig_file import ConfigOverrides  # files do not need the client

        return ConfigOverrides(context=self.context, cluster=self.cluster, user=self.user)

    def default_namespace(self) -> str:
        """Return the namespace of the context, ``default`` without one.

        Raises:
            NoAnswerError: The kubeconfig cannot be read.
        """
        from karmada_pyscheduler.client import kubeconfig_file
        from karmada_pyscheduler.client.identity import ConnectionConfigError

        try:
            return kubeconfig_file.context_namespace(self.kubeconfig, self.overrides) or DEFAULT_NAMESPACE
        except ConnectionConfigError as error:
            raise NoAnswerError(str(error)) from error


class RunningScheduler(Struct, frozen=True):
    """A running scheduler that is asked for its rules and records, as ``--from`` and its flags name it.

    Attributes:
        url: For example ``http://localhost:10353``.
        token_file: For https; None without one.
        ca_file: For https; None for the authorities of the system.
        server_name: For https: the name in its certificate if it is not the host of the URL; "" if it is.
    """

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None
    server_name: str = ""


class FleetSource(Struct, frozen=True, kw_only=True):
    """Where the objects of a question are: in files, in a capture, or on a control plane.

    Attributes:
        plane: The control plane; read if no other attribute names files.
        namespace: Of the objects that a question names without one; "" for that of the context.
        clusters: Files.
        bindings: Files.
        policies: Files, with ``clusters`` and ``bindings``.
        workloads: Files with objects of any kind; also with a control plane.
        quotas: Files, with ``clusters`` and ``bindings``.
        replay: A capture; "" without one.
    """

    plane: ControlPlane = ControlPlane()
    namespace: str = ""
    clusters: Sequence[str] = ()
    bindings: Sequence[str] = ()
    policies: Sequence[str] = ()
    workloads: Sequence[str] = ()
    quotas: Sequence[str] = ()
    replay: str = ""

    @property
    def is_control_plane(self) -> bool:
        """Whether neither files nor a capture are named."""
        return not (self.clusters or self.bindings or self.replay)

    def default_namespace(self) -> str:
        """Return the namespace of objects that name none.

        Raises:
            NoAnswerError: The kubeconfig cannot be read.
        """
        if self.namespace:
            return self.namespace
        return self.plane.default_namespace() if self.is_control_plane else DEFAULT_NAMESPACE
