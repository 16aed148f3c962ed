"""Resource templates, and the metadata by which a policy claims them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from karmada_scheduler.api.binding_spec import CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, BindingKey
from karmada_scheduler.api.manifest import (
    Manifest,
    read_mapping,
    read_required_text,
    read_text,
    read_text_map,
)
from karmada_scheduler.api.policy import CLUSTER_PROPAGATION_POLICY, PROPAGATION_POLICY, PolicyKey
from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL, MANAGED_BY_LABEL, POLICY_ID_LABEL
from karmada_scheduler.structs import Struct, replace

POLICY_NAMESPACE_ANNOTATION: Final = "propagationpolicy.karmada.io/namespace"
POLICY_NAME_ANNOTATION: Final = "propagationpolicy.karmada.io/name"
CLUSTER_POLICY_ANNOTATION: Final = "clusterpropagationpolicy.karmada.io/name"
CLAIMED_BY_LABEL: Final = "resourcetemplate.karmada.io/claimed-by"
"""Set by another controller of Karmada (MultiClusterService); no policy claims such a template."""

_MAX_NAME: Final = 253
"""Characters of the name of an object, by Kubernetes' rule for DNS subdomains."""

CLAIM_LABELS: Final = (POLICY_ID_LABEL, CLUSTER_POLICY_ID_LABEL)
CLAIM_ANNOTATIONS: Final = (POLICY_NAMESPACE_ANNOTATION, POLICY_NAME_ANNOTATION, CLUSTER_POLICY_ANNOTATION)

_SKIPPED_NAMESPACE: Final = re.compile(r"karmada-system|karmada-cluster|karmada-es-.*|kube-.*", re.DOTALL)
"""Karmada's own, and the default of ``--skipped-propagating-namespaces``."""

_SKIPPED: Final = ("cluster", "policy", "work", "config", "networking", "autoscaling", "remedy", "apps")
_SKIPPED_GROUPS: Final = frozenset({"events.k8s.io", *map("{}.karmada.io".format, _SKIPPED)})
_SKIPPED_KINDS: Final = frozenset({("v1", "Event")})
_SKIPPED_VERSIONS: Final = frozenset({"coordination.k8s.io/v1"})


class Claim(NamedTuple):
    """The labels and annotations by which a policy claims a template or a binding.

    All empty if nothing claims it. Both kinds of policies may be there: then the PropagationPolicy counts.

    Attributes:
        id: Permanent id of a PropagationPolicy.
        namespace: Its namespace.
        name: Its name.
        cluster_id: Permanent id of a ClusterPropagationPolicy.
        cluster_name: Its name.
    """

    id: str = ""
    namespace: str = ""
    name: str = ""
    cluster_id: str = ""
    cluster_name: str = ""

    @property
    def policy(self) -> PolicyKey | None:
        """The policy that claims it, None if there is none or the metadata are not complete.

        Source: karmada v1.18.2 pkg/detector/policy.go propagateResource.
        """
        if self.namespace and self.name and self.id:
            return PolicyKey(PROPAGATION_POLICY, self.namespace, self.name)
        if self.cluster_name and self.cluster_id:
            return PolicyKey(CLUSTER_PROPAGATION_POLICY, "", self.cluster_name)
        return None

    def id_of(self, kind: str) -> str:
        """Return the id of a policy of this kind."""
        return self.id if kind == PROPAGATION_POLICY else self.cluster_id

    def without(self, kind: str) -> Claim:
        """Return it without the metadata of policies of this kind."""
        if kind == PROPAGATION_POLICY:
            return self._replace(id="", namespace="", name="")
        return self._replace(cluster_id="", cluster_name="")

    def by(self, policy: PolicyKey, permanent_id: str) -> Claim:
        """Return it with the metadata of a policy; those of a ClusterPropagationPolicy with an id go."""
        if policy.kind == PROPAGATION_POLICY:
            rest = self.without(CLUSTER_PROPAGATION_POLICY) if self.cluster_id else self
            return rest._replace(id=permanent_id, namespace=policy.namespace, name=policy.name)
        return self._replace(cluster_id=permanent_id, cluster_name=policy.name)

    def labels(self) -> dict[str, str]:
        """Return the labels that are not empty."""
        found = zip(CLAIM_LABELS, (self.id, self.cluster_id), strict=True)
        return {name: value for name, value in found if value}

    def annotations(self) -> dict[str, str]:
        """Return the annotations that are not empty."""
        found = zip(CLAIM_ANNOTATIONS, (self.namespace, self.name, self.cluster_name), strict=True)
        return {name: value for name, value in found if value}


UNCLAIMED: Final = Claim()


def read_claim(metadata: Manifest) -> Claim:
    """Read the claim from the metadata of a template or a binding.

    Raises:
        ManifestError: A label or annotation is no text.
    """
    labels = read_text_map(metadata, "labels", "metadata")
    annotations = read_text_map(metadata, "annotations", "metadata")
    own, of_cluster = (labels.get(name, "") for name in CLAIM_LABELS)
    namespace, name, cluster_name = (annotations.get(annotation, "") for annotation in CLAIM_ANNOTATIONS)
    return Claim(own, namespace, name, of_cluster, cluster_name)


class TemplateKey(NamedTuple):
    """Type, namespace and name of a template; the namespace of a cluster-scoped one is empty."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return kind, namespace and name."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def group(self) -> str:
        """The API group, "" for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def binding(self) -> BindingKey:
        """The binding of such a template.

        Source: karmada v1.18.2 pkg/util/names/names.go GenerateBindingName.
        """
        name = f"{self.name.replace(':', '.')}-{self.kind}".lower()
        kind = RESOURCE_BINDING if self.namespace else CLUSTER_RESOURCE_BINDING
        return BindingKey(kind, self.namespace, name)


class Template(Struct, frozen=True):
    """A resource template.

    Attributes:
        key: Its type and name.
        labels: All of them; None if they are not known.
        claim: The policy that claims it.
        manifest: The whole object; None if only its metadata are known.
        uid: Empty before it is created.
        managed_by: The kind of the object that propagates it in place of a policy; empty for none.
        resource_version: Empty before it is created.
        deleting: Whether it is being deleted.
    """

    key: TemplateKey
    labels: Mapping[str, str] | None = None
    claim: Claim = UNCLAIMED
    manifest: Mapping[str, Any] | None = None
    uid: str = ""
    resource_version: str = ""
    managed_by: str = ""
    deleting: bool = False

    def with_claim(self, claim: Claim) -> Template:
        """Return the template with another claim, also in its labels, which selectors see."""
        labels = self.labels
        if labels is not None:
            kept = {name: value for name, value in labels.items() if name not in CLAIM_LABELS}
            labels = {**kept, **claim.labels()}
        return replace(self, claim=claim, labels=labels)

    @property
    def is_skipped(self) -> bool:
        """Whether the detector never looks at it, because of its namespace or its type.

        Source: karmada v1.18.2 pkg/detector/detector.go EventFilter, pkg/util/apigroup.go.
        """
        return (
            self.key.group in _SKIPPED_GROUPS
            or self.key.api_version in _SKIPPED_VERSIONS
            or (self.key.api_version, self.key.kind) in _SKIPPED_KINDS
            or is_skipped_namespace(self.key.namespace)
        )

    @property
    def has_long_name(self) -> bool:
        """Whether its binding would have a longer name than Kubernetes allows."""
        return len(self.key.binding.name) > _MAX_NAME

    @property
    def is_ignored(self) -> bool:
        """Whether no policy ever claims it."""
        return bool(self.managed_by) or self.is_skipped


def is_skipped_namespace(namespace: str) -> bool:
    """Return whether the templates of a namespace are never propagated."""
    return _SKIPPED_NAMESPACE.fullmatch(namespace) is not None


def read_template(manifest: Manifest, *, metadata_only: bool = False) -> Template:
    """Read a template.

    Args:
        manifest: An object of any kind.
        metadata_only: Whether the object is a ``PartialObjectMetadata`` with the type of the object.

    Raises:
        ManifestError: A field of the metadata is missing or has the wrong type.
    """
    metadata = read_mapping(manifest, "metadata", "")
    return Template(
        key=_key(manifest, "", metadata, "metadata"),
        labels=read_text_map(metadata, "labels", "metadata"),
        claim=read_claim(metadata),
        manifest=None if metadata_only else manifest,
        uid=read_text(metadata, "uid", "metadata"),
        resource_version=read_text(metadata, "resourceVersion", "metadata"),
        managed_by=read_text_map(metadata, "labels", "metadata").get(CLAIMED_BY_LABEL, ""),
        deleting=metadata.get("deletionTimestamp") is not None,
    )


def _key(typed: Manifest, typed_path: str, named: Manifest, named_path: str) -> TemplateKey:
    """Return the key of a template from the objects that have its type and its name."""
    return TemplateKey(
        read_required_text(typed, "apiVersion", typed_path),
        read_required_text(typed, "kind", typed_path),
        read_text(named, "namespace", named_path),
        read_required_text(named, "name", named_path),
    )


def template_of(binding: Manifest) -> Template:
    """Return the template that a binding names, with what the binding says about it; labels are not known.

    Raises:
        ManifestError: A field of the binding is missing or has the wrong type.
    """
    spec = read_mapping(binding, "spec", "")
    resource = read_mapping(spec, "resource", "spec")
    metadata = read_mapping(binding, "metadata", "")
    return Template(
        key=_key(resource, "spec.resource", resource, "spec.resource"),
        claim=read_claim(metadata),
        uid=read_text(resource, "uid", "spec.resource"),
        resource_version=read_text(resource, "resourceVersion", "spec.resource"),
        managed_by=read_text_map(metadata, "labels", "metadata").get(MANAGED_BY_LABEL, ""),
    )
