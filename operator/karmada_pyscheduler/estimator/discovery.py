"""The address of a cluster's estimator: by a Service on the Karmada API server, or by DNS of the host cluster.

Source: karmada v1.18.2 pkg/util/names GenerateEstimatorServiceName, pkg/util/grpcconnection and
pkg/util/helper ResolveCluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karmada_scheduler.api.manifest import Manifest, ManifestError, read_mapping, read_mappings, read_text

_MAX_PORT: Final = 65535


class DiscoveryError(Exception):
    """The Service does not give the address of the estimator."""


def service_name(prefix: str, cluster: str) -> str:
    """Return the name of the Service of a cluster's estimator."""
    return f"{prefix}-{cluster}"


def addresses(service: Mapping[str, Any] | None, *, name: str, namespace: str, port: int) -> list[str]:
    """Return ``host:port`` of an estimator, in the order in which to try them.

    Args:
        service: The Service as stored, None if there is none; then names of the host cluster's DNS are used.
        name: The Service's name.
        namespace: Its namespace.
        port: The port of the Service (``--scheduler-estimator-port``).

    Raises:
        DiscoveryError: The Service is not of type ExternalName, does not map the port to a number, or cannot be read.
    """
    if service is None:
        return [f"{name}.{namespace}.svc.cluster.local:{port}", f"{name}.{namespace}.svc:{port}"]
    try:
        return [_external_address(service, name=name, port=port)]
    except ManifestError as error:
        raise DiscoveryError(f'cannot read service "{name}": {error}') from None


def _external_address(service: Manifest, *, name: str, port: int) -> str:
    spec = read_mapping(service, "spec", "")
    type_ = read_text(spec, "type", "spec")
    if type_ != "ExternalName":
        raise DiscoveryError(f'unsupported service type "{type_}"')
    for entry in read_mappings(spec, "ports", "spec"):
        if entry.get("port") == port:
            target = entry.get("targetPort")
            if type(target) is not int or not 0 <= target <= _MAX_PORT:
                raise DiscoveryError(
                    "ExternalName service type should have int target port, "
                    f"current target port: {'' if target is None else target!s:.60}"
                )
            return f"{read_text(spec, 'externalName', 'spec')}:{target}"
    raise DiscoveryError(f'no service port {port} found for service "{name}"')
