"""kube-apiserver, as the front of the control plane and as a member cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .api import Client
from .binaries import Binaries
from .pki import ADMIN_GROUP, Authority, Credentials
from .processes import Process, Supervisor, free_port
from .waiting import wait_for


@dataclass(frozen=True, slots=True)
class Site:
    """Settings that all API servers of one control plane share."""

    folder: Path
    supervisor: Supervisor
    binaries: Binaries
    authority: Authority
    server: Credentials
    admin: Credentials
    service_account_keys: tuple[Path, Path]  # private, public
    etcd: str  # URL

    def kubeconfig(self, name: str, *, server: str, user: Credentials | str) -> Path:
        """Write kubeconfigs/<name>.kubeconfig."""
        path = self.folder / "kubeconfigs" / f"{name}.kubeconfig"
        return self.authority.kubeconfig(path, server=server, user=user)

    def common_flags(self) -> list[str]:
        """Return the flags of all kube-apiservers.

        The advertise address and the reconciler are for machines without a default route: Endpoints
        may not be in the loopback range. ServiceAccount admission is off so that workloads can be
        created as mere templates.
        """
        private, public = self.service_account_keys
        return [
            f"--etcd-servers={self.etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={private}",
            f"--tls-cert-file={self.server.certificate}",
            f"--tls-private-key-file={self.server.key}",
            f"--client-ca-file={self.authority.certificate}",
            "--tls-min-version=VersionTLS13",
        ]


class ApiServer:
    """One kube-apiserver: start and restart it, and send requests.

    It is always ended by SIGKILL, because on SIGTERM it waits a minute for its watches to end. Nothing is
    lost by that: all its state is in etcd.
    """

    def __init__(self, name: str, site: Site, flags: Sequence[str]) -> None:
        self.name = name
        self._site = site
        self._port = free_port()
        self._flags = [*site.common_flags(), f"--secure-port={self._port}", *flags]
        self._process: Process | None = None
        self.url = f"https://127.0.0.1:{self._port}"
        self.client = Client(self.url, ca=site.authority.certificate, user=site.admin)
        self.kubeconfig = site.kubeconfig(name, server=self.url, user=site.admin)

    def start(self) -> None:
        """Start it; returns before it is ready."""
        argv = [str(self._site.binaries.path("kube-apiserver")), *self._flags]
        self._process = self._site.supervisor.spawn(self.name, argv)

    def wait_ready(self, check: Callable[[], None], timeout: float = 60) -> None:
        """Wait until it serves."""
        wait_for(
            lambda: self.client.request("GET", "/readyz", timeout=2).text == "ok",
            f"{self.name} to be ready at {self.url}/readyz",
            timeout=timeout,
            check=check,
        )

    def kill(self) -> None:
        """End it, so that it can be started again."""
        if self._process is not None:
            self._process.kill()
            self._site.supervisor.forget(self._process)
            self._process = None


def front_flags(site: Site, *, front_proxy: Credentials, audit_log: Path | None) -> list[str]:
    """Return the flags of Karmada's own API server, as upstream's manifests have them."""
    flags = [
        "--authorization-mode=Node,RBAC",
        "--enable-bootstrap-token-auth=true",
        "--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount",
        "--runtime-config=",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--service-cluster-ip-range=10.96.0.0/12",
        f"--proxy-client-cert-file={front_proxy.certificate}",
        f"--proxy-client-key-file={front_proxy.key}",
        f"--requestheader-client-ca-file={site.authority.certificate}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
    ]
    if audit_log is not None:
        policy = site.folder / "audit-policy.json"
        policy.write_text(json.dumps(AUDIT_POLICY))
        flags += [f"--audit-policy-file={policy}", f"--audit-log-path={audit_log}"]
    return flags


def member_flags(site: Site, name: str, *, token: str) -> list[str]:
    """Return the flags of a member: its own corner of etcd, and a bearer token, for Karmada takes nothing else.

    TaintNodesByCondition is off, else every Node made by hand is tainted not-ready.
    """
    tokens = site.folder / "pki" / f"{name}-tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text(f'{token},karmada,1,"{ADMIN_GROUP}"\n')
    return [
        f"--etcd-prefix=/{name}",
        "--authorization-mode=RBAC",
        f"--token-auth-file={tokens}",
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection",
        "--service-cluster-ip-range=10.97.0.0/16",
        f"--service-account-issuer=https://{name}",
    ]


AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["get", "list", "watch"]},
        {"level": "None", "resources": [{"group": "coordination.k8s.io"}]},
        {"level": "Request"},
    ],
}
