"""The objects that a plan reads and changes, as manifests, as the API server stores them, and their change as data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, NamedTuple

from karmada_advisor.claims.shapes import stored_spec
from karmada_advisor.claims.template import TemplateKey
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import check_types
from karmada_advisor.state.stored import binding_key, part, policy_key, text_of
from karmada_scheduler.api.binding import KINDS, BindingKey
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.policy import ID_LABELS, PROPAGATION_POLICY, PolicyKey
from karmada_scheduler.structs import Struct, field

Manifest = Mapping[str, Any]


class UnversionedTemplateKey(NamedTuple):
    """A resource template; the versions of an API group are one."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


def unversioned(key: TemplateKey) -> UnversionedTemplateKey:
    """Return the key of a template without the version of its API."""
    return UnversionedTemplateKey(group_of(key.api_version), key.kind, key.namespace, key.name)


def template_key(manifest: Manifest) -> UnversionedTemplateKey:
    """Return the key of a resource template."""
    metadata = part(manifest, "metadata")
    version, kind = text_of(manifest, "apiVersion"), text_of(manifest, "kind")
    namespace = str(metadata.get("namespace") or "")
    return UnversionedTemplateKey(group_of(version), kind, namespace, str(metadata.get("name") or ""))


def resource_key(binding: Manifest) -> UnversionedTemplateKey:
    """Return the key of the template that a binding propagates."""
    return referenced(part(binding, "spec", "resource"))


def referenced(reference: Manifest) -> UnversionedTemplateKey:
    """Return the key of the template that an ObjectReference names."""
    version, *names = (str(reference.get(key) or "") for key in ("apiVersion", "kind", "namespace", "name"))
    return UnversionedTemplateKey(group_of(version), *names)


def named(manifest: Manifest) -> tuple[str, str]:
    """Return the kind of an object, and its name with its namespace, if it has one."""
    metadata = part(manifest, "metadata")
    names = metadata.get("namespace"), metadata.get("name")
    return text_of(manifest, "kind"), "/".join(str(name) for name in names if name)


def group_of(api_version: str) -> str:
    """Return the group of an apiVersion, "" for the core group."""
    return api_version.partition("/")[0] if "/" in api_version else ""


class PlanObjects(Struct):
    """The objects of a control plane.

    Attributes:
        clusters: By name.
        bindings: By key.
        policies: By key; None if they were not read.
        templates: By key; as far as they were read.
        metadata_only: The templates of which only the metadata were read.
        unreadable: Why bindings cannot be read.
    """

    clusters: dict[str, Manifest] = field(default_factory=dict)
    bindings: dict[BindingKey, Manifest] = field(default_factory=dict)
    policies: dict[PolicyKey, Manifest] | None = None
    templates: dict[UnversionedTemplateKey, Manifest] = field(default_factory=dict)
    metadata_only: set[UnversionedTemplateKey] = field(default_factory=set)
    unreadable: Mapping[BindingKey, str] = field(default_factory=dict)

    def copy(self) -> PlanObjects:
        """Return a copy whose objects can be replaced; the manifests are shared."""
        return PlanObjects(*(copy(getattr(self, name)) for name in self.__struct_fields__))

    def add(self, manifest: Manifest) -> None:
        """Add an object; of two with one name, the first counts."""
        objects, key = self.place_of(manifest)
        objects.setdefault(key, manifest)

    def place_of(self, manifest: Manifest) -> tuple[dict[Any, Manifest], Any]:
        """Return the objects to which one belongs by its kind, and its key among them."""
        kind = text_of(manifest, "kind")
        if kind == CLUSTER:
            return self.clusters, text_of(manifest, "metadata", "name")
        if kind in KINDS:
            return self.bindings, binding_key(manifest)
        if kind in ID_LABELS:
            if self.policies is None:
                self.policies = {}
            return self.policies, policy_key(manifest)
        return self.templates, template_key(manifest)


class ChangeError(NoAnswerError):
    """A change cannot be applied; the text says why, and what to do."""


def object_name(written: str, flag: str) -> tuple[str, str, str]:
    """Return kind, namespace and name from ``KIND/NAME`` or ``KIND/NAMESPACE/NAME``.

    Raises:
        ChangeError: It is neither.
    """
    parts = written.split("/")
    if not all(parts) or len(parts) not in {2, 3}:
        raise ChangeError(f"{flag}: expected KIND/NAME or KIND/NAMESPACE/NAME, got {written}")
    return parts[0], parts[1] if len(parts) == 3 else "", parts[-1]


def with_defaults(policy: Manifest) -> Manifest:
    """Return a policy as the API server stores it.

    Raises:
        ChangeError: A field has the wrong type.
    """
    is_namespaced = text_of(policy, "kind") == PROPAGATION_POLICY
    namespace = text_of(policy, "metadata", "namespace") if is_namespaced else ""
    try:
        check_types(policy)
        return {**policy, "spec": stored_spec(part(policy, "spec"), namespace=namespace)}
    except ManifestError as problem:
        name = text_of(policy, "metadata", "name")
        raise ChangeError(f"{text_of(policy, 'kind')} {name}: {problem}") from problem


def with_id(policy: Manifest, known: str = "") -> Manifest:
    """Return a policy with a permanent id, as the webhook gives one to a new policy; without one it claims nothing.

    Args:
        policy: If it has an id, that stays.
        known: The id that its bindings have; "" without bindings.
    """
    label, metadata = ID_LABELS[text_of(policy, "kind")], part(policy, "metadata")
    labels = part(metadata, "labels")
    if labels.get(label):
        return policy
    return {**policy, "metadata": {**metadata, "labels": {**labels, label: known or str(policy_key(policy))}}}


def patched(value: Any, patch: Any) -> Any:
    """Return a value after a merge patch (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return patch
    found = dict(value) if isinstance(value, Mapping) else {}
    for name, each in patch.items():
        if each is None:
            found.pop(name, None)
        else:
            found[name] = patched(found.get(name), each)
    return found


def next_generation(manifest: Manifest) -> Manifest:
    """Return an object with the generation after its own, as after a change of its spec."""
    metadata = part(manifest, "metadata")
    generation = metadata.get("generation")
    following = (generation if isinstance(generation, int) else 0) + 1
    return {**manifest, "metadata": {**metadata, "generation": following}}


def check_completions(old: Manifest, new: Manifest) -> None:
    """Check that a change does not set other completions of a Job.

    Source: k8s.io/kubernetes v1.35.3 pkg/apis/batch/validation/validation.go validateCompletions.

    Raises:
        ChangeError: It does, and the API server refuses that: only those of an Indexed Job that equal its parallelism change.
    """
    had, spec = part(old, "spec").get("completions"), part(new, "spec")
    wants = spec.get("completions")
    is_elastic = spec.get("completionMode") == "Indexed" and wants == spec.get("parallelism")
    if text_of(new, "apiVersion").startswith("batch/") and wants not in (None, had) and not is_elastic:
        name = f"{text_of(new, 'kind')} {text_of(new, 'metadata', 'name')}"
        raise ChangeError(
            f"{name}: spec.completions cannot change from {had} to {wants}: the API server refuses it"
        )


class FieldChange(Struct, frozen=True):
    """A field that differs between two versions of an object.

    Attributes:
        path: ``spec.resourceSelectors[0].name``; an item of a list stands by its name, ``spreadConstraints[region]``, or by
            its index in the list where it is: the new one, or the old one if it was removed.
        before: The value before; None if there was none.
        after: The value after; None if there is none.
    """

    path: str
    before: Any = None
    after: Any = None

    def __str__(self) -> str:
        if self.before is None:
            return f"+ {self.path}: {value_text(self.after)}"
        if self.after is None:
            return f"- {self.path}: {value_text(self.before)}"
        return f"{self.path}: {value_text(self.before)} -> {value_text(self.after)}"


def value_text(value: Any) -> str:
    """Return a value of a field as people write it: a requirement as ``region NotIn [a]``, a taint, else JSON."""
    if isinstance(value, str):
        return value or '""'
    if isinstance(value, Mapping) and {"key", "operator"} == value.keys() - {"values"}:
        listed = value.get("values")
        values = f" [{', '.join(map(str, listed))}]" if isinstance(listed, list) and listed else ""
        return f"{value['key']} {value['operator']}{values}"
    if isinstance(value, Mapping) and {"key", "effect"} == value.keys() - {"value"}:
        worth = f"={value['value']}" if value.get("value") else ""
        return f"{value['key']}{worth}:{value['effect']}"
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    except ValueError:
        return "..."


class ChangeShown(Struct, frozen=True):
    """One part of the change.

    Attributes:
        sign: ``+`` for an object that is new, ``-`` for one that is gone, ``~`` for a changed one, ``=`` for one that is
            equal to what there is.
        object: Kind and name: ``PropagationPolicy/shop/checkout``.
        text: What changes in it, in one line; "" if that is the sign alone.
        fields: The fields that change, for an object of a file.
    """

    sign: str
    object: str
    text: str = ""
    fields: tuple[FieldChange, ...] = ()


class ChangedObjects:
    """The objects after a change, built from those before it.

    Attributes:
        before: The objects as they are.
        after: The objects so far.
        shown: The parts of the change, in their order.
        written: The policies of the change, and its override policies, as they were given.
        notes: What was left out, and why.
        autoscaled: The workloads whose replicas an autoscaler of the change sets.
    """

    def __init__(self, before: PlanObjects) -> None:
        """Start with the objects as they are."""
        self.before = before
        self.after = before.copy()
        self.shown: list[ChangeShown] = []
        self.written: list[Manifest] = []
        self.notes: list[str] = []
        self.autoscaled: set[UnversionedTemplateKey] = set()

    def show(self, sign: str, manifest: Manifest, text: str = "", fields: Iterable[FieldChange] = ()) -> None:
        """Add a part of the change: ``+``, ``~``, ``-``, or ``=`` for an object that stays as it is."""
        self.shown.append(ChangeShown(sign, "/".join(named(manifest)), text, tuple(fields)))
