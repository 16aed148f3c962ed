"""Builders of templates and policies for the tests of claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karmada_advisor.claims.claim import claim
from karmada_advisor.claims.model import (
    Claims,
    DetectorOptions,
    Event,
    PolicyWritten,
    TemplateClaim,
    TemplateWritten,
)
from karmada_advisor.claims.template import Template, read_template
from karmada_scheduler.api.policy import CLUSTER_PROPAGATION_POLICY, ID_LABELS, PROPAGATION_POLICY, PolicyKey
from karmada_scheduler.config.features import FeatureGates

NAMESPACE = "shop"
PREEMPTION = DetectorOptions(FeatureGates({"PropagationPolicyPreemption": True}))

Manifest = dict[str, Any]


def deployment(name: str = "web", labels: Mapping[str, str] | None = None, **spec: object) -> Manifest:
    """Return a Deployment of three replicas."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "uid": f"uid-{name}",
            "labels": dict(labels or {}),
        },
        "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "c"}]}}, **spec},
    }


def by_name(name: str = "web", **fields: object) -> Manifest:
    """Return a selector of the Deployment with this name."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE, "name": name, **fields}


def by_labels(**labels: str) -> Manifest:
    """Return a selector of Deployments with these labels."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": NAMESPACE,
        "labelSelector": {"matchLabels": labels},
    }


def all_deployments() -> Manifest:
    """Return a selector of all Deployments of the namespace."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE}


def policy(name: str, *selectors: Manifest, to: str = "", **spec: object) -> Manifest:
    """Return a PropagationPolicy; its placement names one cluster, by default that with the name of the policy."""
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": PROPAGATION_POLICY,
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "labels": {ID_LABELS[PROPAGATION_POLICY]: f"id-{name}"},
        },
        "spec": {
            "resourceSelectors": list(selectors) or [by_name()],
            "placement": {"clusterAffinity": {"clusterNames": [to or name]}},
            **spec,
        },
    }


def cluster_policy(name: str, *selectors: Manifest, to: str = "", **spec: object) -> Manifest:
    """Return a ClusterPropagationPolicy."""
    made = policy(name, *selectors, to=to, **spec)
    metadata = {"name": name, "labels": {ID_LABELS[CLUSTER_PROPAGATION_POLICY]: f"id-{name}"}}
    return {**made, "kind": CLUSTER_PROPAGATION_POLICY, "metadata": metadata}


def key_of(manifest: Manifest) -> PolicyKey:
    """Return the name of a policy."""
    return PolicyKey(
        manifest["kind"], manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]
    )


class Cluster:
    """Templates, policies and bindings between two changes, as the API server has them."""

    def __init__(self, options: DetectorOptions | None = None) -> None:
        self.options = options or DetectorOptions()
        self._templates: dict[Any, Template] = {}
        self._policies: dict[PolicyKey, Manifest] = {}
        self.bindings: dict[Any, Any] = {}

    def apply(self, *manifests: Manifest) -> Claims:
        """Create or edit policies and templates, one after the other."""
        return self.change(
            *(
                PolicyWritten(each) if each["kind"] in ID_LABELS else TemplateWritten(read_template(each))
                for each in manifests
            )
        )

    def change(self, *events: Event, other_orders: bool = True) -> Claims:
        """Make a change; return what it does."""
        result = claim(
            self._templates.values(),
            list(self._policies.values()),
            list(self.bindings.values()),
            events=events,
            options=self.options,
            other_orders=other_orders,
        )
        self._keep(events, result)
        return result

    def _keep(self, events: Sequence[Event], result: Claims) -> None:
        refused = {each.policy for each in result.refusals}
        for event in events:
            if isinstance(event, PolicyWritten):
                name = key_of(dict(event.manifest))
                if name not in refused:
                    self._policies[name] = dict(event.manifest)
            elif isinstance(event, TemplateWritten):
                self._templates[event.template.key] = event.template
            else:
                self._policies.pop(event.key, None)
        for key, found in result.templates.items():
            self.bindings.pop(found.binding, None)
            if key in self._templates:
                self._templates[key] = self._templates[key].with_claim(found.claim_after)
                if found.binding_after is not None:
                    self.bindings[found.binding] = found.binding_after


def cluster_with(*manifests: Manifest, options: DetectorOptions | None = None) -> Cluster:
    """Return a cluster in which policies and templates were created, one after the other."""
    cluster = Cluster(options)
    cluster.apply(*manifests)
    return cluster


def only(claims: Claims) -> TemplateClaim:
    """Return the result of the only template."""
    (found,) = claims.templates.values()
    return found


def claimed_by(claims: Claims) -> str | None:
    """Return the name of the policy that claims the only template."""
    found = only(claims).policy_after
    return None if found is None else found.name


def goes_to(claims: Claims) -> str | None:
    """Return the cluster that the placement of the only binding names; None without a binding."""
    binding = only(claims).binding_after
    return None if binding is None else binding["spec"]["placement"]["clusterAffinity"]["clusterNames"][0]
