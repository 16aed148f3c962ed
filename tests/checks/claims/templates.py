"""Random templates of a case."""

from __future__ import annotations

import random
from collections.abc import Callable

from tools.manifests import Manifest

LABEL_VALUES = ("a", "b")


class TemplateGenerator:
    """Draws templates."""

    def __init__(self, choices: random.Random, number: int) -> None:
        self._random = choices
        self._number = number
        self._namespace = f"case-{number}"
        self._revision = 0

    def _labels(self) -> dict[str, str]:
        labels = {
            name: self._random.choice(LABEL_VALUES)
            for name in ("app", "tier", "group")
            if self._random.random() < 0.7
        }
        return {"case": self._namespace, **labels}

    def template(self, index: int) -> Manifest:
        kinds: list[Callable[[], Manifest]] = [
            lambda: self._workload("Deployment"),
            lambda: self._workload("Deployment"),
            lambda: self._workload("StatefulSet", serviceName="none"),
            self._job,
            lambda: {"apiVersion": "v1", "kind": "Pod", "spec": self._pod_spec()},
            lambda: {"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "value"}},
            lambda: {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []},
        ]
        manifest = self._random.choice(kinds)()
        metadata: Manifest = {
            "name": f"{manifest['kind'].lower()}-{self._number}-{index}",
            "labels": self._labels(),
        }
        if manifest["kind"] == "ClusterRole":
            metadata["name"] = f"{self._namespace}:role:{index}"
        else:
            metadata["namespace"] = self._namespace
        return {**manifest, "metadata": metadata}

    def _pod_spec(self) -> Manifest:
        containers = [
            {"name": f"c{index}", "image": "example.com/image", "resources": self._resources()}
            for index in range(self._random.randint(1, 2))
        ]
        spec: Manifest = {"containers": containers}
        if self._random.random() < 0.2:
            spec["initContainers"] = [
                {"name": "init", "image": "example.com/image", "resources": self._resources()}
            ]
        if self._random.random() < 0.2:
            spec["nodeSelector"] = {"disk": "ssd"}
        if self._random.random() < 0.2:
            spec["tolerations"] = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
        if self._random.random() < 0.15:
            term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1", "z2"]}]}
            required = {"nodeSelectorTerms": [term]}
            spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        return spec

    def _resources(self) -> Manifest:
        amounts = {
            "cpu": ["100m", "0.5", "1", "1500m", "2", "0.1234"],
            "memory": ["64Mi", "1Gi", "1000000", "1500M", "123456789", "0.5Gi"],
            "ephemeral-storage": ["1Gi", "100M"],
            "example.com/gpu": ["1", "2"],
        }
        resources: Manifest = {}
        for name, values in amounts.items():
            if self._random.random() < 0.4:
                value = self._random.choice(values)
                if name == "example.com/gpu":  # has to be the same on both sides
                    resources.setdefault("limits", {})[name] = value
                    resources.setdefault("requests", {})[name] = value
                else:
                    resources.setdefault(self._random.choice(["limits", "requests"]), {})[name] = value
        return resources

    def _workload(self, kind: str, **fields: object) -> Manifest:
        labels = {"pod": "x"}
        spec = {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": self._pod_spec()},
            **fields,
        }
        if self._random.random() < 0.8:
            spec["replicas"] = self._random.randint(0, 9)
        return {"apiVersion": "apps/v1", "kind": kind, "spec": spec}

    def _job(self) -> Manifest:
        spec: Manifest = {"template": {"spec": {**self._pod_spec(), "restartPolicy": "Never"}}}
        for name in ("parallelism", "completions"):
            if self._random.random() < 0.5:
                spec[name] = self._random.randint(1, 5)
        return {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}

    def edited(self, template: Manifest) -> Manifest:
        self._revision += 1
        metadata = {**template["metadata"], "annotations": {"example.com/revision": str(self._revision)}}
        if self._random.random() < 0.5:
            metadata["labels"] = self._labels()
        edited = {**template, "metadata": metadata}
        if template["kind"] in {"Deployment", "StatefulSet"} and self._random.random() < 0.5:
            edited["spec"] = {**template["spec"], "replicas": self._random.randint(0, 9)}
        return edited
