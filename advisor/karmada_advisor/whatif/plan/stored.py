"""Manifests as the API server stores them: defaults, permanent ids, merges, generations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karmada_advisor.claims.shapes import stored_spec
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.state.stored import part, policy_key, text_of
from karmada_advisor.whatif.plan.objects import Manifest
from karmada_scheduler.api.binding import KINDS
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.policy import ID_LABELS, PROPAGATION_POLICY


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
    namespace = (
        text_of(policy, "metadata", "namespace") if text_of(policy, "kind") == PROPAGATION_POLICY else ""
    )
    try:
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


def merged(old: Manifest, new: Manifest) -> Manifest:
    """Return a new version of an object, with the identifiers and status that the file leaves out."""
    old_metadata, metadata = part(old, "metadata"), dict(part(new, "metadata"))
    for name in ("uid", "resourceVersion", "creationTimestamp", "generation"):
        if name in old_metadata:
            metadata[name] = old_metadata[name]
    for name in ("labels", "annotations"):
        both = {**part(old_metadata, name), **part(metadata, name)}
        if both:
            metadata[name] = both
    merged: dict[str, Any] = {**new, "metadata": metadata}
    if "status" in old and not part(new, "status"):
        merged["status"] = old["status"]
    if (
        text_of(new, "kind") in KINDS
        and "clusters" not in part(new, "spec")
        and "clusters" in part(old, "spec")
    ):
        merged["spec"] = {**part(new, "spec"), "clusters": part(old, "spec")["clusters"]}
    return next_generation(merged) if part(merged, "spec") != part(old, "spec") else merged


def next_generation(manifest: Manifest) -> Manifest:
    """Return an object with the generation after its own, as after a change of its spec."""
    metadata = part(manifest, "metadata")
    generation = metadata.get("generation")
    following = (generation if isinstance(generation, int) else 0) + 1
    return {**manifest, "metadata": {**metadata, "generation": following}}
