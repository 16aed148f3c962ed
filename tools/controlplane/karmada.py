"""The objects that Karmada needs in its API server, and the command lines of its programs.

Everything here is data: manifests and command lines. When to apply or start what is the
business of controlplane.py.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from .api import Object
from .binaries import CA_BUNDLE, WEBHOOK_HOST, Manifest
from .pki import Credentials

SYSTEM = "karmada-system"
CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
WORKS = "/apis/work.karmada.io/v1alpha1/works"
AGGREGATED = "karmada-aggregated-apiserver"
CHART_RULES = Path(__file__).parents[2] / "charts" / "karmada-pyscheduler" / "files" / "cluster-rules.yaml"
FRONT_CONTROLLERS = ("namespace", "garbagecollector", "ttl-after-finished", "clusterrole-aggregation")
ESTIMATOR_PORT = 10352  # the default port of schedulers; each Service maps it to the real one

DEFAULT_FEATURE_GATES: Mapping[str, bool] = {
    "Failover": True,
    # Off, so that a real member offers what its nodes hold. With the default grades a node of 8 CPUs
    # counts as one "of at least 2".
    "CustomizedClusterResourceModeling": False,
}


def gates_flag(gates: Mapping[str, bool]) -> list[str]:
    """Return --feature-gates, or nothing if there are none."""
    text = ",".join(f"{name}={str(value).lower()}" for name, value in gates.items())
    return [f"--feature-gates={text}"] if text else []


def filled_in(manifest: Manifest, *, webhook: str, ca_bundle: str) -> Manifest:
    """Return a manifest of Karmada's with this run's webhook address and certificate authority."""

    def fill(value: object) -> object:
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [fill(item) for item in value]
        if isinstance(value, str):
            return ca_bundle if value == CA_BUNDLE else value.replace(f"https://{WEBHOOK_HOST}", webhook)
        return value

    filled = fill(copy.deepcopy(manifest))
    assert isinstance(filled, dict)
    return filled


def namespaces() -> list[Object]:
    """Return the two namespaces that every installation of Karmada has."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}},
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "karmada-cluster", "labels": {"karmada.io/system": "true"}},
        },
    ]


def aggregation(*, port: int, ca_bundle: str) -> list[Object]:
    """Return what routes cluster.karmada.io to the aggregated API server, without DNS.

    An IP address passes as externalName, and the port is taken from the APIService, not from the Service.
    """
    return [
        external_service(AGGREGATED),
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {
                "name": "v1alpha1.cluster.karmada.io",
                "labels": {"app": AGGREGATED, "apiserver": "true"},
            },
            "spec": {
                "group": "cluster.karmada.io",
                "version": "v1alpha1",
                "groupPriorityMinimum": 2000,
                "versionPriority": 10,
                "caBundle": ca_bundle,
                "service": {"name": AGGREGATED, "namespace": SYSTEM, "port": port},
            },
        },
    ]


def external_service(name: str, ports: Sequence[Mapping[str, int]] = ()) -> Object:
    """Return a Service in karmada-system that stands for 127.0.0.1."""
    spec: Object = {"type": "ExternalName", "externalName": "127.0.0.1"}
    if ports:
        spec["ports"] = [dict(port) for port in ports]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": SYSTEM},
        "spec": spec,
    }


def scheduler_roles(user: str, *, lease: str) -> list[Object]:
    """Return the least that our scheduler may do, bound to a user: the rules of the chart, and no others."""
    cluster_rules: list[Object] = yaml.safe_load(CHART_RULES.read_text())
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    system_rules: list[Object] = [
        {**leases, "verbs": ["create"]},
        {**leases, "resourceNames": [lease], "verbs": ["get", "update"]},
        {"apiGroups": [""], "resources": ["services"], "verbs": ["get"]},
    ]
    roles: list[Object] = []
    for kind, rules, metadata in (
        ("ClusterRole", cluster_rules, {"name": user}),
        ("Role", system_rules, {"name": user, "namespace": SYSTEM}),
    ):
        api = "rbac.authorization.k8s.io"
        roles += [
            {"apiVersion": f"{api}/v1", "kind": kind, "metadata": metadata, "rules": rules},
            {
                "apiVersion": f"{api}/v1",
                "kind": f"{kind}Binding",
                "metadata": metadata,
                "roleRef": {"apiGroup": api, "kind": kind, "name": user},
                "subjects": [{"apiGroup": api, "kind": "User", "name": user}],
            },
        ]
    return roles


def etcd_flags(*, folder: Path, client_port: int, peer_port: int) -> list[str]:
    """Return etcd's command line. It does not wait for the disk, which tests do not need and benchmarks must mention."""
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    return [
        f"--data-dir={folder}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--quota-backend-bytes=8589934592",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def aggregated_apiserver_flags(*, kubeconfig: Path, etcd: str, server: Credentials, port: int) -> list[str]:
    """Return the aggregated API server's command line."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--etcd-servers={etcd}",
        f"--tls-cert-file={server.certificate}",
        f"--tls-private-key-file={server.key}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--audit-log-path=/dev/null",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]


def webhook_flags(*, kubeconfig: Path, certificates: Path, port: int, health_port: int) -> list[str]:
    """Return karmada-webhook's command line; certificates is a folder with tls.crt and tls.key."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={certificates}",
        "--metrics-bind-address=0",
        f"--health-probe-bind-address=127.0.0.1:{health_port}",
        "--allow-no-execute-taint-policy=true",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]


def controller_manager_flags(*, kubeconfig: Path, health_port: int) -> list[str]:
    """Return karmada-controller-manager's command line, with no controller disabled.

    The grace periods keep Pull members Ready though nothing renews their leases; Push members do not
    care. The rates are raised so that tests do not wait for rate limits.
    """
    return [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--controllers=*",
        "--cluster-monitor-grace-period=87600h",
        "--cluster-startup-grace-period=87600h",
        "--enable-no-execute-taint-eviction=true",
        "--resource-eviction-rate=1000",
        "--metrics-bind-address=0",
        f"--health-probe-bind-address=127.0.0.1:{health_port}",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]


def kube_controller_manager_flags(
    *, kubeconfig: Path, server: Credentials, port: int, controllers: Sequence[str] = FRONT_CONTROLLERS
) -> list[str]:
    """Return kube-controller-manager's command line, by default with the controllers that Karmada's API server needs here."""
    return [
        *kube_scheduler_flags(kubeconfig=kubeconfig, server=server, port=port),
        f"--controllers={','.join(controllers)}",
    ]


def kube_scheduler_flags(*, kubeconfig: Path, server: Credentials, port: int) -> list[str]:
    """Return kube-scheduler's command line; kube-controller-manager has the same flags."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={server.certificate}",
        f"--tls-private-key-file={server.key}",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def scheduler_flags(*, kubeconfig: Path, name: str, metrics_port: int, health_port: int) -> list[str]:
    """Return the flags of every scheduler, upstream's or ours."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--scheduler-name={name}",
        f"--metrics-bind-address=127.0.0.1:{metrics_port}",
        f"--health-probe-bind-address=127.0.0.1:{health_port}",
    ]


def estimator_flags(*, kubeconfig: Path, member: str, server: Credentials, ca: Path, port: int) -> list[str]:
    """Return karmada-scheduler-estimator's command line for one member."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--cluster-name={member}",
        f"--server-port={port}",
        f"--grpc-auth-cert-file={server.certificate}",
        f"--grpc-auth-key-file={server.key}",
        f"--grpc-client-ca-file={ca}",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    ]


def estimator_client_flags(*, credentials: Credentials, ca: Path) -> list[str]:
    """Return the flags with which a scheduler uses estimators.

    Pull members are left out: dialling a cluster that has no estimator costs ten seconds at start.
    """
    return [
        "--enable-scheduler-estimator=true",
        "--disable-scheduler-estimator-in-pull-mode=true",
        f"--scheduler-estimator-ca-file={ca}",
        f"--scheduler-estimator-cert-file={credentials.certificate}",
        f"--scheduler-estimator-key-file={credentials.key}",
    ]


def descheduler_flags(*, kubeconfig: Path, credentials: Credentials, ca: Path, seconds: int) -> list[str]:
    """Return the flags with which karmada-descheduler asks estimators, and takes what has waited for so many seconds."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        f"--scheduler-estimator-ca-file={ca}",
        f"--scheduler-estimator-cert-file={credentials.certificate}",
        f"--scheduler-estimator-key-file={credentials.key}",
        f"--descheduling-interval={seconds}s",
        f"--unschedulable-threshold={seconds}s",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    ]
