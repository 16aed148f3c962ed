"""The chart, rendered by the real Helm."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from . import programs

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "charts" / "karmada-pyscheduler"
Object = dict[str, Any]
Values = Mapping[str, Any]

EVERYTHING: Final[Values] = {
    "explain": {"enabled": True, "port": 10400, "memory": "64Mi"},
    "image": {"repository": "registry.example/team/karmada-pyscheduler", "digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "registry"}],
    "replicas": 3,
    "workloadMetadata": {
        "resources": [{"apiGroups": ["apps", ""], "resources": ["deployments", "configmaps"]}]
    },
    "plugins": ["*", "-TaintToleration"],
    "featureGates": {"PriorityBasedScheduling": True, "MultiplePodTemplatesScheduling": False},
    "decisionsOf": 1.17,
    "config": {"content": {"profiles": [{"schedulerName": "my-scheduler"}]}},
    "pluginFiles": {"files": {"cheapest_first.py": "# nothing\n"}},
    "estimator": {"enabled": True, "tls": {"secretName": "karmada-cert"}},
    "extraArgs": ["--resync-period=10m"],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "extraVolumes": [{"name": "tools", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "tools", "mountPath": "/tools"}],
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "priorityClassName": "system-cluster-critical",
    "podLabels": {"team": "platform"},
    "podAnnotations": {"example.com/owner": "platform"},
    "podDisruptionBudget": {"maxUnavailable": "50%"},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {
        "enabled": True,
        "metricsFrom": [
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
        ],
        "extraEgress": [{"ports": [{"port": 8443, "protocol": "TCP"}]}],
    },
}
"""Every value that a template of the scheduler uses."""

PAGE: Final[Values] = {
    **EVERYTHING,
    "grafanaDashboard": {"enabled": True, "namespace": "monitoring", "labels": {"team": "platform"}},
    "web": {
        "enabled": True,
        "port": 10401,
        "kubeconfig": {"secretName": "web-kubeconfig", "key": "web.config"},
    },
}
"""With the page and the dashboard."""

TEAM_PAGE: Final[Values] = {
    **PAGE,
    "explain": {**EVERYTHING["explain"], "tls": {"secretName": "records-tls"}},
    "web": {
        **PAGE["web"],
        "records": True,
        "reveal": "fleet",
        "templates": False,
        "replicas": 2,
        "auth": {
            "mode": "token",
            "audiences": ["web", "api"],
            "cache": "5s",
            "namespaceHints": True,
            "sessionKeysSecret": "web-session",
            "session": "4h",
        },
        "host": "placements.example.org",
        "tls": {"secretName": "web-tls", "behindProxy": []},
    },
}
"""With a page for the holders of tokens, which asks the scheduler for its records."""

SECURE_METRICS: Final[Values] = {**PAGE, "metrics": {"secure": True, "tls": {"secretName": "metrics-tls"}}}
"""With metrics for the holders of tokens of the host."""


def profiles(first: Object, *others: Object) -> Values:
    """Return the values of a configuration whose first profile is that of my-scheduler."""
    return {"config": {"content": {"profiles": [{"schedulerName": "my-scheduler", **first}, *others]}}}


class HelmError(RuntimeError):
    """Helm failed; the text is its output."""


def helm(*arguments: str, stdin: str = "", kubeconfig: Path | None = None, major: int = 3) -> str:
    """Run Helm 3 or 4 and return what it prints. It reads no configuration of the user."""
    program = programs.helm(major)
    home = program.parent / "home"
    nowhere = home / "nothing"
    environment = {
        "PATH": "/usr/bin:/bin",
        "KUBECONFIG": str(kubeconfig or nowhere),
        **{f"HELM_{name}_HOME": str(nowhere / name) for name in ("CONFIG", "DATA")},
        "HELM_CACHE_HOME": str(home / "cache"),
        "HOME": str(home),
    }
    answer = subprocess.run(
        [program, *arguments],
        input=stdin,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise HelmError(answer.stderr.strip() or answer.stdout.strip())
    return answer.stdout


def render(
    values: Values | None = None,
    *arguments: str,
    side: str = "host",
    release: str = "my-scheduler",
    major: int = 3,
) -> str:
    """Return the YAML that the chart makes of values, for one side, in karmada-system, without `helm test`."""
    options = ["--namespace=karmada-system", "--values=-", "--skip-tests"]
    given = json.dumps({"side": side, **(values or {})})
    return helm("template", release, str(CHART), *options, *arguments, stdin=given, major=major)


def objects(
    values: Values | None = None, *, side: str = "host", release: str = "my-scheduler", major: int = 3
) -> list[Object]:
    """Return the objects that the chart makes of values."""
    return read(render(values, side=side, release=release, major=major))


def read(text: str) -> list[Object]:
    """Return the objects of YAML."""
    return [document for document in yaml.safe_load_all(text) if document]


def named(found: list[Object], kind: str, end: str = "") -> list[Object]:
    """Return the objects of a kind whose names end so."""
    return [each for each in found if each["kind"] == kind and each["metadata"]["name"].endswith(end)]


def one(found: list[Object], kind: str, end: str = "") -> Object:
    """Return the only object of a kind whose name ends so."""
    [wanted] = named(found, kind, end)
    return wanted


def pod_of(found: list[Object], end: str = "") -> Object:
    """Return the spec of the Pods of the only Deployment whose name ends so."""
    spec: Object = one(found, "Deployment", end)["spec"]["template"]["spec"]
    return spec


def container(found: list[Object]) -> Object:
    """Return the scheduler's container."""
    [only] = pod_of(found)["containers"]
    wanted: Object = only
    return wanted
