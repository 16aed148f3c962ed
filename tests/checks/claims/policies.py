"""Random policies of a case."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.checks.claims.templates import LABEL_VALUES
from tools.manifests import Manifest

PRIORITY_CLASSES = {"claims-check-low": 10, "claims-check-high": 1000}
OVERRIDE = "existing"
"""The override policy that exists in every namespace, and cluster-wide as ``claims-check-existing``."""


class PolicyGenerator:
    """Draws policies."""

    def __init__(self, choices: random.Random, number: int) -> None:
        self._random = choices
        self._number = number
        self._namespace = f"case-{number}"

    def policy(self, index: int, templates: list[Manifest]) -> Manifest:
        kind = self._random.choice(["PropagationPolicy", "PropagationPolicy", "ClusterPropagationPolicy"])
        metadata = {"name": f"{self._random.choice('pqr')}{index}"}
        if kind == "PropagationPolicy":
            metadata["namespace"] = self._namespace
        else:
            metadata["name"] = f"{self._namespace}-{metadata['name']}"
        preempts = self._random.random() < 0.3
        spec: Manifest = {
            "resourceSelectors": self._selectors(kind, templates, named=preempts),
            "placement": self._placement(),
            "preemption": "Always" if preempts else None,
            "priority": self._priority(kind),
            "activationPreference": "Lazy" if self._random.random() < 0.25 else None,
        }
        self._add_rare_fields(spec, kind)
        return {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": kind,
            "metadata": metadata,
            "spec": _without_nothing(spec),
        }

    def _add_rare_fields(self, spec: Manifest, kind: str) -> None:
        rare: dict[str, Callable[[], object]] = {
            "schedulerName": lambda: self._random.choice(["default-scheduler", "mine"]),
            "conflictResolution": lambda: self._random.choice(["Abort", "Overwrite"]),
            "propagateDeps": lambda: self._random.random() < 0.5,
            "preserveResourcesOnDeletion": lambda: self._random.random() < 0.5,
            "suspension": self._suspension,
            "failover": self._failover,
            "schedulePriority": lambda: {
                "priorityClassSource": "KubePriorityClass",
                "priorityClassName": self._random.choice([*PRIORITY_CLASSES, "missing"]),
            },
            "dependentOverrides": lambda: [
                OVERRIDE if kind == "PropagationPolicy" else f"claims-check-{OVERRIDE}"
            ],
        }
        for name, draw in rare.items():
            if self._random.random() < (0.05 if name in {"schedulePriority", "dependentOverrides"} else 0.2):
                spec[name] = draw()
        if "failover" in spec:
            spec["propagateDeps"] = True

    def _priority(self, kind: str) -> int | None:
        # Lowering the priority of a cluster policy concerns all others with one in between, so cases have ranges.
        base = 10 * self._number if kind == "ClusterPropagationPolicy" else 0
        return self._random.choice([None, base, base + 1, base + 2, base + 5])

    def _selectors(self, kind: str, templates: list[Manifest], *, named: bool) -> list[Manifest]:
        usable = [
            each
            for each in templates
            if kind == "ClusterPropagationPolicy" or "namespace" in each["metadata"]
        ] or [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "no", "namespace": "no"}}]
        return [
            self._selector(self._random.choice(usable), kind, named=named)
            for _ in range(self._random.randint(1, 3))
        ]

    def _selector(self, template: Manifest, kind: str, *, named: bool) -> Manifest:
        selector: Manifest = {"apiVersion": template["apiVersion"], "kind": template["kind"]}
        is_cluster_scoped = "namespace" not in template["metadata"]
        how = "name" if named else self._random.choice(["name", "labels", "labels", "all"])
        if is_cluster_scoped and how == "all":
            how = "labels"  # other cases have such templates as well
        if not is_cluster_scoped and (
            how == "all" or kind == "PropagationPolicy" or self._random.random() < (0.85 if named else 0.5)
        ):
            selector["namespace"] = self._namespace
        if how == "name":
            selector["name"] = template["metadata"]["name"]
            if self._random.random() < 0.2:
                selector["labelSelector"] = {"matchLabels": {"app": "nothing"}}
        if how == "labels":
            selector["labelSelector"] = self._label_selector()
        if "namespace" in selector and kind == "PropagationPolicy" and self._random.random() < 0.5:
            del selector["namespace"]
        return selector

    def _label_selector(self) -> Manifest:
        selector: Manifest = {"matchLabels": {"case": self._namespace}}
        if self._random.random() < 0.6:
            selector["matchLabels"][self._random.choice(["app", "tier"])] = self._random.choice(LABEL_VALUES)
        if self._random.random() < 0.3:
            operator = self._random.choice(["In", "NotIn", "Exists", "DoesNotExist"])
            expression: Manifest = {"key": self._random.choice(["app", "tier"]), "operator": operator}
            if operator in {"In", "NotIn"}:
                expression["values"] = [self._random.choice(LABEL_VALUES)]
            selector["matchExpressions"] = [expression]
        return selector

    def _placement(self) -> Manifest:
        names = [f"member{index}" for index in range(5)]
        placement: Manifest = {}
        draw = self._random.random()
        if draw < 0.4:
            placement["clusterAffinity"] = {
                "clusterNames": self._random.sample(names, self._random.randint(0, 3))
            }
        elif draw < 0.6:
            placement["clusterAffinities"] = [
                {"affinityName": f"term{index}", "clusterNames": self._random.sample(names, 2)}
                for index in range(2)
            ]
        elif draw < 0.7:
            placement["clusterAffinity"] = {
                "labelSelector": {"matchLabels": {"env": self._random.choice(LABEL_VALUES)}},
                "fieldSelector": {
                    "matchExpressions": [{"key": "region", "operator": "NotIn", "values": ["r1"]}]
                },
                "exclude": ["member9"],
            }
        if self._random.random() < 0.3:
            placement["spreadConstraints"] = self._random.choice(
                [
                    [{}],
                    [{"maxGroups": 3}],
                    [{"spreadByField": "region", "minGroups": 2}, {"spreadByField": "cluster"}],
                    [{"spreadByLabel": "zone-label", "maxGroups": 2}],
                ]
            )
        if self._random.random() < 0.5:
            placement["replicaScheduling"] = self._random.choice(
                [
                    {},
                    {"replicaSchedulingType": "Duplicated"},
                    {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
                    {"replicaDivisionPreference": "Weighted", "weightPreference": {}},
                    {
                        "replicaDivisionPreference": "Weighted",
                        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
                    },
                    {
                        "weightPreference": {
                            "staticWeightList": [
                                {"targetCluster": {"clusterNames": ["member1"]}, "weight": 2}
                            ]
                        }
                    },
                ]
            )
        if self._random.random() < 0.2:
            placement["clusterTolerations"] = [
                {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
            ]
        if self._random.random() < 0.25:
            placement["workloadAffinity"] = self._random.choice(
                [
                    {"affinity": {"groupByLabelKey": "group"}},
                    {"antiAffinity": {"groupByLabelKey": "app"}, "affinity": {"groupByLabelKey": "group"}},
                ]
            )
        return placement

    def _suspension(self) -> object:
        return self._random.choice(
            [
                None,
                {"dispatching": True},
                {"dispatching": False},
                {"dispatchingOnClusters": {"clusterNames": ["member1"]}},
                {},
            ]
        )

    def _failover(self) -> object:
        return self._random.choice(
            [
                {"application": {"decisionConditions": {}}},
                {"application": {"decisionConditions": {"tolerationSeconds": 0}, "purgeMode": "Directly"}},
                {"cluster": {}},
                {
                    "application": {
                        "decisionConditions": {"tolerationSeconds": 100},
                        "gracePeriodSeconds": 5,
                        "statePreservation": {"rules": [{"aliasLabelName": "a", "jsonPath": "{.status.x}"}]},
                    },
                    "cluster": {"purgeMode": "Directly"},
                },
            ]
        )

    def edited(self, policy: Manifest, templates: list[Manifest]) -> Manifest:
        """Return the policy with one to three of its parts replaced by those of another random policy."""
        spec = {**policy["spec"]}
        parts: dict[str, Callable[[], object]] = {
            "resourceSelectors": lambda: self._selectors(policy["kind"], templates, named=False),
            "placement": self._placement,
            "priority": lambda: self._priority(policy["kind"]),
            "activationPreference": lambda: self._random.choice(["Lazy", None]),
            "preemption": lambda: self._random.choice(["Always", "Never"]),
            "suspension": self._suspension,
            "conflictResolution": lambda: self._random.choice(["Abort", "Overwrite"]),
            "propagateDeps": lambda: self._random.random() < 0.5,
        }
        for name in self._random.sample(list(parts), self._random.randint(1, 3)):
            spec[name] = parts[name]()
        if spec.get("preemption") == "Always" and not all(
            "name" in each for each in spec["resourceSelectors"]
        ):
            spec["resourceSelectors"] = self._selectors(policy["kind"], templates, named=True)
        if "failover" in spec:
            spec["propagateDeps"] = True
        return {**policy, "spec": _without_nothing(spec)}


def _without_nothing(spec: Manifest) -> Manifest:
    return {name: value for name, value in spec.items() if value is not None}
