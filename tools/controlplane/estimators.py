"""karmada-scheduler-estimators of members, and how schedulers find and trust them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from . import karmada
from .installation import Installation
from .pki import ADMIN_GROUP, Credentials
from .processes import Process, free_port
from .waiting import wait_for


def start(
    installation: Installation,
    member: str,
    flags: Sequence[str],
    *,
    kubeconfig: Path,
    check: Callable[[], None],
) -> Process:
    """Start the estimator of a member and its Service, and wait until it listens.

    Args:
        installation: The control plane.
        member: The cluster's name.
        flags: Further flags; they win.
        kubeconfig: Of the API server whose nodes it counts.
        check: Raises if any program has ended.
    """
    port = free_port()
    installation.client.apply(
        karmada.external_service(
            f"karmada-scheduler-estimator-{member}",
            [{"port": karmada.ESTIMATOR_PORT, "targetPort": port}],
        )
    )
    process = installation.run(
        f"karmada-scheduler-estimator-{member}",
        "scheduler-estimator",
        [
            *karmada.estimator_flags(
                kubeconfig=kubeconfig,
                member=member,
                server=installation.site.server,
                ca=installation.authority.certificate,
                port=port,
            ),
            *flags,
        ],
    )
    wait_for(
        lambda: "Listening port" in process.log.read_text(),
        f"{process.name} to listen",
        timeout=60.0,
        check=check,
    )
    return process


def client_flags(installation: Installation) -> list[str]:
    """Return the flags with which a scheduler finds and trusts the estimators."""
    return karmada.estimator_client_flags(
        credentials=_credentials(installation), ca=installation.authority.certificate
    )


def start_descheduler(installation: Installation, seconds: int) -> Process:
    """Start karmada-descheduler, which takes replicas that have waited for so many seconds, as often."""
    flags = karmada.descheduler_flags(
        kubeconfig=installation.system_kubeconfig("karmada-descheduler"),
        credentials=_credentials(installation),
        ca=installation.authority.certificate,
        seconds=seconds,
    )
    return installation.run("karmada-descheduler", "descheduler", flags)


def _credentials(installation: Installation) -> Credentials:
    return installation.authority.issue("system:karmada:karmada-scheduler-grpc", groups=[ADMIN_GROUP])
