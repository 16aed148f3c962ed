"""Random sets of templates and policies, and changes of them. A case lives in a namespace of its own."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

Manifest = dict[str, Any]

LABEL_VALUES = ("a", "b")
PRIORITY_CLASSES = {"claims-check-low": 10, "claims-check-high": 1000}
OVERRIDE = "existing"
"""The override policy that exists in every namespace, and cluster-wide as ``claims-check-existing``."""


class Move(NamedTuple):
    """One request, or several for templates that do not depend on each other.

    Attributes:
        verb: ``create``, ``edit`` or ``delete``.
        objects: What is written; of a deletion, the objects as they are.
    """

    verb: str
    objects: tuple[Manifest, ...]


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        number: With the seed it determines the case.
        setup: Moves of the first step, one after the other.
        change: Moves of the second step.
        at_once: Whether the moves of the second step follow each other without waiting for the detector.
    """

    number: int
    setup: tuple[Move, ...]
    change: tuple[Move, ...]
    at_once: bool

    @property
    def namespace(self) -> str:
        """The namespace of its templates and PropagationPolicies, and the prefix of cluster-scoped names."""
        return f"case-{self.number}"


@dataclass
class _Objects:
    """The objects of a case at one moment of it."""

    templates: dict[str, Manifest]
    policies: dict[str, Manifest]


class CaseGenerator:
    """Draws the parts of one case."""

    def __init__(self, seed: int, number: int) -> None:
        self._random = random.Random(f"{seed}:{number}")
        self._number = number
        self._namespace = f"case-{number}"
        self._revision = 0

    def case(self) -> Case:
        """Draw the case."""
        choices = self._random
        templates = [self._template(index) for index in range(choices.randint(3, 7))]
        policies = [self._policy(index, templates) for index in range(choices.randint(1, 5))]
        present = _Objects(
            {_name(each): each for each in templates}, {_name(each): each for each in policies}
        )
        creations = [Move("create", (each,)) for each in policies]
        creations.insert(choices.randint(0, len(creations)), Move("create", tuple(templates)))
        moves: list[Move] = []
        names: set[str] = set()
        for _ in range(choices.randint(1, 4)):
            move = self._move(present, names)
            if move is not None:
                moves.append(move)
                names.update(map(_name, move.objects))
        return Case(self._number, tuple(creations), tuple(moves), at_once=choices.random() < 0.3)

    # -- the change -----------------------------------------------------------------------------

    def _move(self, present: _Objects, moved: set[str]) -> Move | None:
        choices = self._random
        draw = choices.random()
        policies = [each for name, each in present.policies.items() if name not in moved]
        templates = [each for name, each in present.templates.items() if name not in moved]
        if draw < 0.2:
            policy = self._policy(10 + len(moved), list(present.templates.values()))
            present.policies[_name(policy)] = policy
            return Move("create", (policy,))
        if draw < 0.45 and policies:
            policy = choices.choice(policies)
            del present.policies[_name(policy)]
            return Move("delete", (policy,))
        if draw < 0.85 and policies:
            policy = self._edited(choices.choice(policies), present)
            present.policies[_name(policy)] = policy
            return Move("edit", (policy,))
        if templates:
            template = self._edited_template(choices.choice(templates))
            present.templates[_name(template)] = template
            return Move("edit", (template,))
        return None

    def _edited(self, policy: Manifest, present: _Objects) -> Manifest:
        """Return the policy with one to three of its parts replaced by those of another random policy."""
        choices = self._random
        templates = list(present.templates.values())
        spec = {**policy["spec"]}
        parts: dict[str, Callable[[], object]] = {
            "resourceSelectors": lambda: self._selectors(policy["kind"], templates, named=False),
            "placement": self._placement,
            "priority": lambda: self._priority(policy["kind"]),
            "activationPreference": lambda: choices.choice(["Lazy", None]),
            "preemption": lambda: choices.choice(["Always", "Never"]),
            "suspension": self._suspension,
            "conflictResolution": lambda: choices.choice(["Abort", "Overwrite"]),
            "propagateDeps": lambda: choices.random() < 0.5,
        }
        for name in choices.sample(list(parts), choices.randint(1, 3)):
            spec[name] = parts[name]()
        if spec.get("preemption") == "Always" and not all(
            "name" in each for each in spec["resourceSelectors"]
        ):
            spec["resourceSelectors"] = self._selectors(policy["kind"], templates, named=True)
        if "failover" in spec:
            spec["propagateDeps"] = True
        return {**policy, "spec": _without_nothing(spec)}

    def _edited_template(self, template: Manifest) -> Manifest:
        choices = self._random
        self._revision += 1
        metadata = {**template["metadata"], "annotations": {"example.com/revision": str(self._revision)}}
        if choices.random() < 0.5:
            metadata["labels"] = self._labels()
        edited = {**template, "metadata": metadata}
        if template["kind"] in {"Deployment", "StatefulSet"} and choices.random() < 0.5:
            edited["spec"] = {**template["spec"], "replicas": choices.randint(0, 9)}
        return edited

    # -- templates ------------------------------------------------------------------------------

    def _labels(self) -> dict[str, str]:
        choices = self._random
        labels = {
            name: choices.choice(LABEL_VALUES) for name in ("app", "tier", "group") if choices.random() < 0.7
        }
        return {"case": self._namespace, **labels}

    def _template(self, index: int) -> Manifest:
        choices = self._random
        kinds: list[Callable[[], Manifest]] = [
            self._deployment,
            self._deployment,
            self._stateful_set,
            self._job,
            self._pod,
            self._config_map,
            self._cluster_role,
        ]
        manifest = choices.choice(kinds)()
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
        choices = self._random
        containers = [
            {"name": f"c{index}", "image": "example.com/image", "resources": self._resources()}
            for index in range(choices.randint(1, 2))
        ]
        spec: Manifest = {"containers": containers}
        if choices.random() < 0.2:
            spec["initContainers"] = [
                {"name": "init", "image": "example.com/image", "resources": self._resources()}
            ]
        if choices.random() < 0.2:
            spec["nodeSelector"] = {"disk": "ssd"}
        if choices.random() < 0.2:
            spec["tolerations"] = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
        if choices.random() < 0.15:
            term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1", "z2"]}]}
            required = {"nodeSelectorTerms": [term]}
            spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        return spec

    def _resources(self) -> Manifest:
        choices = self._random
        amounts = {
            "cpu": ["100m", "0.5", "1", "1500m", "2", "0.1234"],
            "memory": ["64Mi", "1Gi", "1000000", "1500M", "123456789", "0.5Gi"],
            "ephemeral-storage": ["1Gi", "100M"],
            "example.com/gpu": ["1", "2"],
        }
        resources: Manifest = {}
        for name, values in amounts.items():
            if choices.random() < 0.4:
                value = choices.choice(values)
                if name == "example.com/gpu":  # has to be the same on both sides
                    resources.setdefault("limits", {})[name] = value
                    resources.setdefault("requests", {})[name] = value
                else:
                    resources.setdefault(choices.choice(["limits", "requests"]), {})[name] = value
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

    def _deployment(self) -> Manifest:
        return self._workload("Deployment")

    def _stateful_set(self) -> Manifest:
        return self._workload("StatefulSet", serviceName="none")

    def _job(self) -> Manifest:
        spec: Manifest = {"template": {"spec": {**self._pod_spec(), "restartPolicy": "Never"}}}
        for name in ("parallelism", "completions"):
            if self._random.random() < 0.5:
                spec[name] = self._random.randint(1, 5)
        return {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}

    def _pod(self) -> Manifest:
        return {"apiVersion": "v1", "kind": "Pod", "spec": self._pod_spec()}

    def _config_map(self) -> Manifest:
        return {"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "value"}}

    def _cluster_role(self) -> Manifest:
        return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []}

    # -- policies -------------------------------------------------------------------------------

    def _policy(self, index: int, templates: list[Manifest]) -> Manifest:
        choices = self._random
        kind = choices.choice(["PropagationPolicy", "PropagationPolicy", "ClusterPropagationPolicy"])
        metadata = {"name": f"{choices.choice('pqr')}{index}"}
        if kind == "PropagationPolicy":
            metadata["namespace"] = self._namespace
        else:
            metadata["name"] = f"{self._namespace}-{metadata['name']}"
        preempts = choices.random() < 0.3
        spec: Manifest = {
            "resourceSelectors": self._selectors(kind, templates, named=preempts),
            "placement": self._placement(),
            "preemption": "Always" if preempts else None,
            "priority": self._priority(kind),
            "activationPreference": "Lazy" if choices.random() < 0.25 else None,
        }
        self._add_rare_fields(spec, kind)
        return {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": kind,
            "metadata": metadata,
            "spec": _without_nothing(spec),
        }

    def _add_rare_fields(self, spec: Manifest, kind: str) -> None:
        choices = self._random
        rare: dict[str, Callable[[], object]] = {
            "schedulerName": lambda: choices.choice(["default-scheduler", "mine"]),
            "conflictResolution": lambda: choices.choice(["Abort", "Overwrite"]),
            "propagateDeps": lambda: choices.random() < 0.5,
            "preserveResourcesOnDeletion": lambda: choices.random() < 0.5,
            "suspension": self._suspension,
            "failover": self._failover,
            "schedulePriority": lambda: {
                "priorityClassSource": "KubePriorityClass",
                "priorityClassName": choices.choice([*PRIORITY_CLASSES, "missing"]),
            },
            "dependentOverrides": lambda: [
                choice if kind == "PropagationPolicy" else f"claims-check-{choice}"
                for choice in (choices.choice([OVERRIDE, OVERRIDE, "missing"]),)
            ],
        }
        for name, draw in rare.items():
            if choices.random() < (0.05 if name in {"schedulePriority", "dependentOverrides"} else 0.2):
                spec[name] = draw()
        if "failover" in spec:
            spec["propagateDeps"] = True

    def _priority(self, kind: str) -> int | None:
        # Lowering the priority of a cluster policy concerns all others with one in between, so cases have ranges.
        base = 10 * self._number if kind == "ClusterPropagationPolicy" else 0
        return self._random.choice([None, base, base + 1, base + 2, base + 5])

    def _selectors(self, kind: str, templates: list[Manifest], *, named: bool) -> list[Manifest]:
        choices = self._random
        usable = [
            each
            for each in templates
            if kind == "ClusterPropagationPolicy" or "namespace" in each["metadata"]
        ] or [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "no", "namespace": "no"}}]
        return [
            self._selector(choices.choice(usable), kind, named=named) for _ in range(choices.randint(1, 3))
        ]

    def _selector(self, template: Manifest, kind: str, *, named: bool) -> Manifest:
        choices = self._random
        selector: Manifest = {"apiVersion": template["apiVersion"], "kind": template["kind"]}
        is_cluster_scoped = "namespace" not in template["metadata"]
        how = "name" if named else choices.choice(["name", "labels", "labels", "all"])
        if is_cluster_scoped and how == "all":
            how = "labels"  # other cases have such templates as well
        if not is_cluster_scoped and (
            how == "all" or kind == "PropagationPolicy" or choices.random() < (0.85 if named else 0.5)
        ):
            selector["namespace"] = self._namespace
        if how == "name":
            selector["name"] = template["metadata"]["name"]
            if choices.random() < 0.2:
                selector["labelSelector"] = {"matchLabels": {"app": "nothing"}}
        if how == "labels":
            selector["labelSelector"] = self._label_selector()
        if "namespace" in selector and kind == "PropagationPolicy" and choices.random() < 0.5:
            del selector["namespace"]
        return selector

    def _label_selector(self) -> Manifest:
        choices = self._random
        selector: Manifest = {"matchLabels": {"case": self._namespace}}
        if choices.random() < 0.6:
            selector["matchLabels"][choices.choice(["app", "tier"])] = choices.choice(LABEL_VALUES)
        if choices.random() < 0.3:
            operator = choices.choice(["In", "NotIn", "Exists", "DoesNotExist"])
            expression: Manifest = {"key": choices.choice(["app", "tier"]), "operator": operator}
            if operator in {"In", "NotIn"}:
                expression["values"] = [choices.choice(LABEL_VALUES)]
            selector["matchExpressions"] = [expression]
        return selector

    def _placement(self) -> Manifest:
        choices = self._random
        names = [f"member{index}" for index in range(5)]
        placement: Manifest = {}
        draw = choices.random()
        if draw < 0.4:
            placement["clusterAffinity"] = {"clusterNames": choices.sample(names, choices.randint(0, 3))}
        elif draw < 0.6:
            placement["clusterAffinities"] = [
                {"affinityName": f"term{index}", "clusterNames": choices.sample(names, 2)}
                for index in range(2)
            ]
        elif draw < 0.7:
            placement["clusterAffinity"] = {
                "labelSelector": {"matchLabels": {"env": choices.choice(LABEL_VALUES)}},
                "fieldSelector": {
                    "matchExpressions": [{"key": "region", "operator": "NotIn", "values": ["r1"]}]
                },
                "exclude": ["member9"],
            }
        if choices.random() < 0.3:
            placement["spreadConstraints"] = choices.choice(
                [
                    [{}],
                    [{"maxGroups": 3}],
                    [{"spreadByField": "region", "minGroups": 2}, {"spreadByField": "cluster"}],
                    [{"spreadByLabel": "zone-label", "maxGroups": 2}],
                ]
            )
        if choices.random() < 0.5:
            placement["replicaScheduling"] = choices.choice(
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
        if choices.random() < 0.2:
            placement["clusterTolerations"] = [
                {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
            ]
        if choices.random() < 0.25:
            placement["workloadAffinity"] = choices.choice(
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


def _without_nothing(spec: Manifest) -> Manifest:
    return {name: value for name, value in spec.items() if value is not None}


def _name(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{manifest['kind']}/{metadata.get('namespace', '')}/{metadata['name']}"
