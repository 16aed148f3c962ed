"""Karmada as its installers would set it up: etcd, API servers, webhooks, controllers.

No members and no scheduler; those are added by controlplane.py.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from . import karmada
from .api import Client, Object, local_session
from .apiserver import ApiServer, Site, front_flags
from .binaries import Binaries
from .parallel import in_parallel
from .pki import ADMIN_GROUP, Authority
from .processes import Process, Supervisor, free_port
from .waiting import wait_for

T = TypeVar("T")


class Installation:
    """Everything up to and including the controller managers.

    Attributes:
        site: What further API servers of this control plane share with the first.
        front: The kube-apiserver that all clients connect to.
        client: The harness' client of it, as an administrator.
    """

    def __init__(
        self,
        folder: Path,
        *,
        programs: Binaries,
        supervisor: Supervisor,
        feature_gates: Mapping[str, bool],
        extra_flags: Mapping[str, Sequence[str]],
        garbage_collection: bool,
        audit_log: Path | None,
    ) -> None:
        """Make certificates and choose ports; nothing runs yet. For the arguments see ControlPlane."""
        self._programs = programs
        self._supervisor = supervisor
        self._gates = karmada.gates_flag(feature_gates)
        self._extra_flags = extra_flags
        self._garbage_collection = garbage_collection
        self._etcd_port, self._webhook_port, self._aggregated_port = free_port(), free_port(), free_port()
        self._peer_port = free_port()
        self.authority = Authority(folder / "pki")
        self.site = Site(
            folder=folder,
            supervisor=supervisor,
            binaries=programs,
            authority=self.authority,
            server=self.authority.issue("system:karmada:server", server=True),
            admin=self.authority.issue("system:admin", groups=[ADMIN_GROUP]),
            service_account_keys=self.authority.key_pair("service-account"),
            etcd=f"http://127.0.0.1:{self._etcd_port}",
        )
        front_proxy = self.authority.issue("front-proxy-client")
        flags = front_flags(self.site, front_proxy=front_proxy, audit_log=audit_log)
        self.front = ApiServer("karmada", self.site, [*flags, *extra_flags.get("kube-apiserver", ())])
        self.client: Client = self.front.client

    def start(self, say: Callable[[str], None]) -> None:
        """Start everything, in the order that works, and wait until it serves."""
        self.start_api_servers(say)
        self._start_webhook()
        if self._garbage_collection:
            self._start_kube_controller_manager()
        self.wait_aggregated()
        health = self._start_controller_manager()
        self._configure_webhooks()
        self.wait_http(health, "karmada-controller-manager")
        say("Karmada's API server, webhooks and controllers are up")

    def start_api_servers(self, say: Callable[[str], None]) -> None:
        """Start what stores and serves objects; nothing changes them, and Clusters are served a moment later."""
        self._start_etcd()
        self.front.start()
        self.front.wait_ready(self._supervisor.check)
        say("etcd and kube-apiserver are up")
        self._create_types()
        self._start_aggregated_apiserver()
        self._wait_established()

    def _start_etcd(self) -> None:
        flags = karmada.etcd_flags(
            folder=self.site.folder / "etcd", client_port=self._etcd_port, peer_port=self._peer_port
        )
        self._etcd = self.run("etcd", "server", flags)
        self.wait_http(f"{self.site.etcd}/health", "etcd")

    def compact_etcd(self) -> None:
        """Compact the history: a watch from an older resourceVersion gets 410 Gone."""
        with local_session() as session:
            etcd = f"{self.site.etcd}/v3/kv"
            now = session.post(f"{etcd}/range", json={"key": "AA=="}, timeout=10).json()["header"]["revision"]
            answer = session.post(f"{etcd}/compaction", json={"revision": now, "physical": True}, timeout=30)
            answer.raise_for_status()

    def backup_etcd(self) -> Path:
        """Copy etcd's files, for which it is away for a moment; return where they are."""
        backup = self.site.folder / "etcd-backup"
        self._end_etcd()
        shutil.copytree(self.site.folder / "etcd", backup)
        self._start_etcd()
        return backup

    def restore_etcd(self, backup: Path) -> None:
        """Restore a backup, resourceVersions included; restarts kube-apiserver and nothing else."""
        self.front.kill()
        self._end_etcd()
        shutil.rmtree(self.site.folder / "etcd")
        shutil.copytree(backup, self.site.folder / "etcd")
        self._start_etcd()
        self.restart_apiserver()

    def _end_etcd(self) -> None:
        self._etcd.kill()
        self._supervisor.forget(self._etcd)

    def restart_apiserver(self) -> None:
        """End kube-apiserver if it runs, start it again at the same address, and wait until it serves clusters."""
        self.front.kill()
        self.front.start()
        self.front.wait_ready(self._supervisor.check)
        self.wait_aggregated()

    def run(self, name: str, program: str, flags: Sequence[str]) -> Process:
        """Start one of the programs of binaries.NAMES."""
        argv = [str(self._programs.path(program)), *flags, *self._extra_flags.get(program, ())]
        return self._supervisor.spawn(name, argv)

    def kubeconfig_for(self, common_name: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig with a client certificate."""
        credentials = self.authority.issue(common_name, groups=groups)
        return self.site.kubeconfig(credentials.certificate.stem, server=self.front.url, user=credentials)

    def system_kubeconfig(self, component: str) -> Path:
        """Write the kubeconfig that Karmada's installers give a component; its user is a cluster administrator."""
        return self.kubeconfig_for(f"system:karmada:{component}", [ADMIN_GROUP])

    def wait_http(self, url: str, name: str) -> None:
        """Wait until a URL answers with 200."""

        def probe() -> int:
            with local_session() as session:
                return session.get(url, verify=str(self.authority.certificate), timeout=2).status_code

        self._wait(probe, f"{name} to answer at {url}", lambda status: status == 200)

    # -- steps ----------------------------------------------------------------------------------

    def _create_types(self) -> None:
        for manifest in karmada.namespaces():
            self.client.apply(manifest)
        in_parallel(self.client.create, self._manifests("CustomResourceDefinition"))

    def _start_aggregated_apiserver(self) -> None:
        for manifest in karmada.aggregation(port=self._aggregated_port, ca_bundle=self.authority.bundle):
            self.client.apply(manifest)
        flags = karmada.aggregated_apiserver_flags(
            kubeconfig=self.system_kubeconfig(karmada.AGGREGATED),
            etcd=self.site.etcd,
            server=self.site.server,
            port=self._aggregated_port,
        )
        self.run(karmada.AGGREGATED, "aggregated-apiserver", flags)

    def _start_webhook(self) -> None:
        certificates = self.site.folder / "pki" / "webhook"
        certificates.mkdir()
        shutil.copy(self.site.server.certificate, certificates / "tls.crt")
        shutil.copy(self.site.server.key, certificates / "tls.key")
        flags = karmada.webhook_flags(
            kubeconfig=self.system_kubeconfig("karmada-webhook"),
            certificates=certificates,
            port=self._webhook_port,
            health_port=free_port(),
        )
        self.run("karmada-webhook", "webhook", [*flags, *self._gates])

    def _start_kube_controller_manager(self) -> None:
        flags = karmada.kube_controller_manager_flags(
            kubeconfig=self.system_kubeconfig("kube-controller-manager"),
            server=self.site.server,
            port=free_port(),
        )
        self.run("kube-controller-manager", "kube-controller-manager", flags)

    def _start_controller_manager(self) -> str:
        """Return the URL of its health check."""
        port = free_port()
        flags = karmada.controller_manager_flags(
            kubeconfig=self.system_kubeconfig("karmada-controller-manager"), health_port=port
        )
        self.run("karmada-controller-manager", "controller-manager", [*flags, *self._gates])
        return f"http://127.0.0.1:{port}/healthz"

    def _configure_webhooks(self) -> None:
        """Configure the API server to call the webhook, once that answers; later a missing answer refuses the request."""
        self.wait_http(f"{self._webhook}/readyz", "karmada-webhook")
        kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        in_parallel(self.client.create, [manifest for kind in kinds for manifest in self._manifests(kind)])

    # -- helpers --------------------------------------------------------------------------------

    @property
    def _webhook(self) -> str:
        return f"https://127.0.0.1:{self._webhook_port}"

    def _manifests(self, kind: str) -> list[Object]:
        return [
            karmada.filled_in(manifest, webhook=self._webhook, ca_bundle=self.authority.bundle)
            for manifest in self._programs.manifests(kind)
        ]

    def _wait_established(self) -> None:
        def missing() -> list[str]:
            return [
                crd["metadata"]["name"]
                for crd in self.client.list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
                if not any(
                    item["type"] == "Established" and item["status"] == "True"
                    for item in crd.get("status", {}).get("conditions") or []
                )
            ]

        self._wait(missing, "all resource types to be served (missing below)", lambda names: not names)

    def wait_aggregated(self) -> None:
        """Wait until Clusters are served."""
        self._wait(
            lambda: self.client.list(karmada.CLUSTERS),
            "the aggregated API server to serve clusters",
            lambda clusters: clusters is not None,
        )

    def _wait(self, probe: Callable[[], T], what: str, until: Callable[[T], object]) -> None:
        wait_for(probe, what, until=until, timeout=60, check=self._supervisor.check)
