"""The change: edits of objects, each of which returns how it is shown.

Objects are never changed in place. As in the API server, a changed spec has a higher generation, and status and
identifiers that a file leaves out stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

from karmada_advisor.claims.shapes import stored_spec
from karmada_advisor.explain.amounts import counted
from karmada_advisor.plan import differences
from karmada_advisor.plan.model import ChangeShown, FieldChange
from karmada_advisor.plan.objects import (
    Manifest,
    PlanObjects,
    UnversionedTemplateKey,
    binding_key,
    group_of,
    is_namespaced,
    part,
    policy_key,
    resource_key,
    template_key,
    text_of,
)
from karmada_advisor.state.stored import mappings, value_at
from karmada_scheduler.api import quantity
from karmada_scheduler.api.binding import KINDS, BindingKey
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.manifest import ManifestError, format_time, read_time, second_after
from karmada_scheduler.api.policy import ID_LABELS, PROPAGATION_POLICY

UNSCHEDULABLE: Final = "cluster.karmada.io/unschedulable"
"""The key of the taint that ``karmadactl cordon`` sets."""

NOT_READY: Final = "cluster.karmada.io/not-ready"
"""The key of the taint that Karmada's controller gives to a cluster that is not ready."""

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_DELETED_AT: Final = "2000-01-01T00:00:00Z"
_WITHOUT_INFLUENCE: Final = frozenset(
    {
        "OverridePolicy",
        "ClusterOverridePolicy",
        "FederatedHPA",
        "CronFederatedHPA",
        "Remedy",
        "Kustomization",
        "ResourceInterpreterCustomization",
        "ClusterTaintPolicy",
        "FederatedResourceQuota",
        "Work",
    }
)
"""Kinds that change no placement by themselves, as far as a plan can tell."""

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)


class ChangeError(Exception):
    """A change cannot be applied; the text says why, and what to do."""


class Draft:
    """The objects after a change, built from those before it.

    Attributes:
        after: The objects so far.
        shown: The parts of the change, in their order.
        written: The policies of the change as they were given.
        notes: What was left out, and why.
    """

    def __init__(self, before: PlanObjects) -> None:
        """Start with the objects as they are."""
        self._before = before
        self.after = before.copy()
        self.shown: list[ChangeShown] = []
        self.written: list[Manifest] = []
        self.notes: list[str] = []

    # --- files ---

    def put(self, manifest: Manifest) -> None:
        """Create or replace an object, as ``kubectl apply`` would.

        Raises:
            ChangeError: It has no kind or name.
        """
        kind, name = text_of(manifest, "kind"), text_of(manifest, "metadata", "name")
        if not kind or not name:
            raise ChangeError("an object has no kind or no metadata.name")
        if kind in _WITHOUT_INFLUENCE:
            self.notes.append(f"{kind} {name} is not read: it changes no placement")
        elif kind == "WorkloadRebalancer":
            self._rebalance(manifest)
        elif kind == CLUSTER:
            self._put_into(self.after.clusters, name, manifest, differences.of_cluster)
        elif kind in KINDS:
            self._put_into(self.after.bindings, binding_key(manifest), manifest, differences.of_binding)
        elif kind in ID_LABELS:
            if self.after.policies is None:
                self.after.policies = {}
            filled = with_defaults(manifest)
            if policy_key(filled) not in self.after.policies:
                filled = with_id(filled)
            self.written.append(manifest)
            self._put_into(
                self.after.policies,
                policy_key(filled),
                filled,
                lambda old, new: differences.of_policy(with_defaults(old), new),
            )
        else:
            self._put_into(self.after.templates, template_key(manifest), manifest, differences.of_template)

    def _put_into(
        self,
        objects: dict[Any, Manifest],
        key: Any,
        manifest: Manifest,
        compare: Callable[[Manifest, Manifest], list[FieldChange]],
    ) -> None:
        old = objects.get(key)
        if old is None:
            objects[key] = manifest
            self._show("+", manifest)
            return
        new = _merged(old, manifest)
        fields = compare(old, new)
        if fields:
            objects[key] = new
        self._show("~" if fields else "=", new, ", ".join(map(str, fields)), fields)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object.

        Raises:
            ChangeError: It does not exist.
        """
        kind = _canonical(kind, self.after)
        if kind == CLUSTER:
            self.without(name)
            return
        groups: list[dict[Any, Manifest]] = [
            self.after.bindings,
            self.after.policies or {},
            self.after.templates,
        ]
        for objects in groups:
            found = [key for key in objects if key[-3:] == (kind, namespace, name)]
            for key in found:
                self._show("-", objects.pop(key))
                self._delete_binding_of(kind, namespace, name)
            if found:
                return
        self._delete_template(kind, namespace, name)

    def _delete_template(self, kind: str, namespace: str, name: str) -> None:
        """Delete a template that was not read: its binding goes with it."""
        resource = self._delete_binding_of(kind, namespace, name)
        if resource is not None:
            self.shown.append(ChangeShown("-", str(resource)))
            return
        shown = "/".join(each for each in (kind, namespace, name) if each)
        known = [
            *("/".join(filter(None, key)) for key in self.after.bindings),
            *("/".join(filter(None, key)) for key in self.after.policies or ()),
            *map(str, self.after.templates),
            *(str(resource_key(each)) for each in self.after.bindings.values()),
        ]
        raise ChangeError(_unknown(shown, known, what=""))

    def _delete_binding_of(self, kind: str, namespace: str, name: str) -> UnversionedTemplateKey | None:
        """Delete the binding of a template; return the template, None if it has no binding."""
        for key, manifest in self.after.bindings.items():
            resource = resource_key(manifest)
            if (resource.kind, resource.namespace, resource.name) == (kind, namespace, name):
                del self.after.bindings[key]
                return resource
        return None

    def edit(self, kind: str, namespace: str, name: str, patch: Manifest) -> None:
        """Change an object by a merge patch, as ``kubectl patch --type merge`` does.

        Raises:
            ChangeError: It does not exist, or is no object afterwards.
        """
        kind = _canonical(kind, self.after)
        groups: list[dict[Any, Manifest]] = [self.after.policies or {}, self.after.templates]
        wanted: object = (kind, namespace, name)
        if kind == CLUSTER:
            groups, wanted = [self.after.clusters], name
        for objects in groups:
            for key, old in objects.items():
                if (key if kind == CLUSTER else key[-3:]) != wanted:
                    continue
                new = _patched(old, patch)
                if not part(new, "metadata") or text_of(new, "metadata", "name") != name:
                    raise ChangeError(f"--edit: the patch of {kind} {name} changes its name")
                if kind in ID_LABELS:
                    new = with_defaults(new)
                    self.written.append(new)
                compare = {CLUSTER: differences.of_cluster}.get(
                    kind, differences.of_policy if kind in ID_LABELS else differences.of_template
                )
                fields = compare(old, new)
                objects[key] = _next_generation(new) if part(new, "spec") != part(old, "spec") else new
                self._show("~", new, ", ".join(map(str, fields)), fields)
                return
        shown = "/".join(each for each in (kind, namespace, name) if each)
        known = [
            *(f"{CLUSTER}/{each}" for each in self.after.clusters),
            *("/".join(filter(None, key)) for key in self.after.policies or ()),
            *map(str, self.after.templates),
        ]
        raise ChangeError(_unknown(shown, known, what="--edit:"))

    # --- clusters ---

    def without(self, name: str) -> None:
        """Delete a cluster, as ``karmadactl unjoin`` does: its bindings leave it before the object is gone."""
        manifest = self._cluster(name)
        metadata = {**part(manifest, "metadata"), "deletionTimestamp": _DELETED_AT}
        self.after.clusters[name] = {**manifest, "metadata": metadata}
        on_it = [each for each in self._before.bindings.values() if _replicas_on(each, name) is not None]
        replicas = sum(_replicas_on(each, name) or 0 for each in on_it)
        text = f"is gone ({counted(replicas, 'replica')} of {counted(len(on_it), 'binding')})"
        self.shown.append(ChangeShown("-", f"{CLUSTER}/{name}", text))

    def cordon(self, name: str) -> None:
        """Add the taint of ``karmadactl cordon``."""
        self._set_taint(name, {"key": UNSCHEDULABLE, "effect": "NoSchedule"}, "cordoned")

    def uncordon(self, name: str) -> None:
        """Remove the taint of ``karmadactl cordon``."""
        taints = self._taints(name)
        left = [each for each in taints if each.get("key") != UNSCHEDULABLE]
        if len(left) == len(taints):
            raise ChangeError(f"--uncordon: cluster {name} is not cordoned")
        self._set_spec(name, {"taints": left}, "uncordoned")

    def taint(self, name: str, written: str) -> None:
        """Add a taint ``key=value:Effect``, or remove those of ``key[:Effect]-``, as ``karmadactl taint`` does."""
        if written.endswith("-"):
            self._remove_taint(name, written.removesuffix("-"))
            return
        left, _, effect = written.rpartition(":")
        key, _, value = left.partition("=")
        if not key or effect not in _EFFECTS:
            expected = f"C=key=value:Effect with one of {', '.join(_EFFECTS)}, or C=key- to remove one"
            raise ChangeError(f"--taint: expected {expected}, got {name}={written}")
        fields = {"key": key, "value": value, "effect": effect}
        self._set_taint(name, {field: text for field, text in fields.items() if text}, f"+ taint {written}")

    def _remove_taint(self, name: str, written: str) -> None:
        key, _, effect = written.partition(":")
        key = key.partition("=")[0]
        taints = self._taints(name)
        left = [
            each for each in taints if each.get("key") != key or (effect and each.get("effect") != effect)
        ]
        if len(left) == len(taints):
            have = ", ".join(sorted(str(each.get("key")) for each in taints)) or "none"
            raise ChangeError(f"--taint: cluster {name} has no taint {written}; it has: {have}")
        self._set_spec(name, {"taints": left}, f"- taint {written}")

    def _set_taint(self, name: str, taint: Mapping[str, str], text: str) -> None:
        taints = self._taints(name)
        same = [
            each
            for each in taints
            if (each.get("key"), each.get("effect")) == (taint["key"], taint["effect"])
        ]
        others = [each for each in taints if each not in same]
        self._set_spec(name, {"taints": [*others, dict(taint)]}, text)

    def _taints(self, name: str) -> list[Mapping[str, Any]]:
        return mappings(value_at(self._cluster(name), "spec", "taints"))

    def ready(self, name: str, *, is_ready: bool) -> None:
        """Let a cluster be ready or not, with the taint that Karmada gives to one that is not.

        Source: karmada v1.18.2 pkg/controllers/cluster/cluster_controller.go taintClusterByCondition.
        """
        manifest = self._cluster(name)
        status = "True" if is_ready else "False"
        others = [
            each
            for each in mappings(value_at(manifest, "status", "conditions"))
            if each.get("type") != "Ready"
        ]
        conditions = [
            *others,
            {
                "type": "Ready",
                "status": status,
                "reason": "ClusterReady" if is_ready else "ClusterNotReachable",
            },
        ]
        self.after.clusters[name] = {
            **manifest,
            "status": {**part(manifest, "status"), "conditions": conditions},
        }
        if not is_ready:
            self._set_taint(name, {"key": NOT_READY, "effect": "NoSchedule"}, "not ready")
            return
        left = [each for each in self._taints(name) if each.get("key") != NOT_READY]
        self._set_spec(name, {"taints": left}, "ready")

    def label(self, name: str, written: str) -> None:
        """Set a label ``key=value``, or remove ``key-``."""
        manifest = self._cluster(name)
        labels = dict(part(manifest, "metadata", "labels"))
        key, has_value, value = written.partition("=")
        if not has_value and key.endswith("-"):
            key = key.removesuffix("-")
            if key not in labels:
                raise ChangeError(_unknown(key, labels, what=f"--label: label of cluster {name}"))
            text = f"- label {key}={labels.pop(key)}"
        elif has_value and key:
            before = labels.get(key)
            labels[key] = value
            text = f"label {key}: {before} -> {value}" if before is not None else f"+ label {key}={value}"
        else:
            raise ChangeError(f"--label: expected C=key=value or C=key-, got {name}={written}")
        metadata = {**part(manifest, "metadata"), "labels": labels}
        self.after.clusters[name] = _next_generation({**manifest, "metadata": metadata})
        self.shown.append(ChangeShown("~", f"{CLUSTER}/{name}", text))

    def room(self, name: str, written: str) -> None:
        """Change the allocatable amounts of a cluster: ``cpu=+20,memory=-64Gi,pods=500``.

        An amount with a sign is added to what is allocatable; one without replaces what is free.
        """
        manifest = self._cluster(name)
        summary = dict(part(manifest, "status", "resourceSummary"))
        allocatable = dict(part(summary, "allocatable"))
        texts = []
        for item in filter(None, (each.strip() for each in written.split(","))):
            resource, separator, amount = item.partition("=")
            if not separator:  # +20cpu, as people write it
                resource = item.lstrip("+-.0123456789")
                amount = item[: len(item) - len(resource)]
            if not resource or not amount:
                raise ChangeError(
                    f"--room: expected C=cpu=+20,memory=-64Gi or C=+20cpu, got {name}={written}"
                )
            allocatable[resource] = _changed_amount(name, summary, resource, amount)
            texts.append(f"{resource} {amount}" if amount[0] in "+-" else f"{resource} {amount} free")
        if not texts:
            raise ChangeError(f"--room: expected C=cpu=+20, got {name}={written}")
        status = {**part(manifest, "status"), "resourceSummary": {**summary, "allocatable": allocatable}}
        self.after.clusters[name] = {**manifest, "status": status}
        self.shown.append(ChangeShown("~", f"{CLUSTER}/{name}", ", ".join(texts)))

    def add(self, name: str, like: str) -> None:
        """Add an empty cluster that is like another one: its spec, labels, APIs and allocatable amounts."""
        if name in self.after.clusters:
            raise ChangeError(f"--add: cluster {name} exists already")
        model = self._cluster(like)
        metadata = {
            "name": name,
            "uid": f"plan-{name}",
            "generation": 1,
            "labels": dict(part(model, "metadata", "labels")),
        }
        status = dict(part(model, "status"))
        summary = part(status, "resourceSummary")
        status["resourceSummary"] = {"allocatable": dict(part(summary, "allocatable"))}
        self.after.clusters[name] = {**model, "metadata": metadata, "status": status}
        self.shown.append(ChangeShown("+", f"{CLUSTER}/{name}", f"as {like}, empty"))

    def add_cluster(self, manifest: Manifest) -> None:
        """Add a cluster of a file.

        Raises:
            ChangeError: It is no Cluster, or exists already.
        """
        name = text_of(manifest, "metadata", "name")
        if text_of(manifest, "kind") != CLUSTER or not name:
            raise ChangeError(f"--add: expected a Cluster, got {manifest.get('kind')!r}")
        if name in self.after.clusters:
            raise ChangeError(f"--add: cluster {name} exists already; use -f to change it")
        self.put(manifest)

    def _cluster(self, name: str) -> Manifest:
        found = self.after.clusters.get(name)
        if found is None:
            raise ChangeError(_unknown(name, self.after.clusters, what="cluster"))
        return found

    def _set_spec(self, name: str, fields: Mapping[str, Any], text: str) -> None:
        manifest = self._cluster(name)
        spec = {**part(manifest, "spec"), **fields}
        self.after.clusters[name] = _next_generation({**manifest, "spec": spec})
        self.shown.append(ChangeShown("~", f"{CLUSTER}/{name}", text))

    # --- workloads ---

    def scale(self, written: str, replicas: int) -> None:
        """Set the replicas of a workload.

        Args:
            written: ``NS/NAME`` of the workload or its binding, or ``NS/KIND/NAME``.
            replicas: The new number.

        Raises:
            ChangeError: There is no such workload, or several.
        """
        template, key = self._found(written, "--scale")
        before: object = None
        if key is not None:
            manifest = self.after.bindings[key]
            before = part(manifest, "spec").get("replicas") or 0
            spec = {**part(manifest, "spec"), "replicas": replicas}
            self.after.bindings[key] = _next_generation({**manifest, "spec": spec})
        if template in self.after.templates:
            found = self.after.templates[template]
            fields = ("parallelism", "completions") if template.kind == "Job" else ("replicas",)
            if before is None:
                before = part(found, "spec").get(fields[0], 1)
            scaled = {**part(found, "spec"), **dict.fromkeys(fields, replicas)}
            self.after.templates[template] = {**found, "spec": scaled}
        self.shown.append(ChangeShown("~", str(template), f"replicas {before} -> {replicas}"))

    def _found(self, written: str, flag: str) -> tuple[UnversionedTemplateKey, BindingKey | None]:
        """Return the one workload that a name means, and its binding; None if it has none yet.

        Raises:
            ChangeError: There is no such workload, or several.
        """
        found = self.workloads(written)
        if not found:
            raise ChangeError(_unknown(written, self.workload_names(), what=f"{flag}: workload"))
        if len(found) > 1:
            names = ", ".join(sorted(map(str, found)))
            raise ChangeError(f"{flag}: {written} is ambiguous: {names}; write NS/KIND/NAME")
        return next(iter(found.items()))

    def workloads(self, written: str) -> dict[UnversionedTemplateKey, BindingKey | None]:
        """Return the workloads that a name means, with their bindings.

        Args:
            written: ``NS/NAME`` of the workload or its binding, or ``NS/KIND/NAME``; ``NAME`` if it is cluster-scoped.
        """
        parts = tuple(written.split("/"))
        given = parts if len(parts) < 3 else (parts[0], parts[1].lower(), parts[2])
        return {
            template: key
            for template, key in self._all_workloads().items()
            if given in _spellings(template, key) or (not template.namespace and parts == (template.name,))
        }

    def workload_names(self) -> set[str]:
        """Return how workloads may be named."""
        return {
            "/".join(filter(None, each))
            for template, key in self._all_workloads().items()
            for each in _spellings(template, key)
        }

    def _all_workloads(self) -> dict[UnversionedTemplateKey, BindingKey | None]:
        found: dict[UnversionedTemplateKey, BindingKey | None] = dict.fromkeys(self.after.templates)
        found.update({resource_key(each): key for key, each in self.after.bindings.items()})
        return found

    def rebalance(self, written: str) -> None:
        """Request a reschedule of a workload, as a WorkloadRebalancer does.

        Raises:
            ChangeError: There is no such workload, or several.
        """
        template, key = self._found(written, "--rebalance")
        if key is not None:
            self._reschedule(key)
        self.shown.append(ChangeShown("~", str(template), "rescheduled"))

    def _reschedule(self, key: BindingKey) -> None:
        binding = self.after.bindings[key]
        spec = {**part(binding, "spec"), "rescheduleTriggeredAt": _after_last(binding)}
        self.after.bindings[key] = _next_generation({**binding, "spec": spec})

    def _rebalance(self, manifest: Manifest) -> None:
        """Request a reschedule of the workloads that a WorkloadRebalancer names."""
        wanted = {
            UnversionedTemplateKey(
                group_of(text_of(each, "apiVersion")), *(text_of(each, name) for name in _NAMED)
            )
            for each in mappings(value_at(manifest, "spec", "workloads"))
        }
        count = 0
        for key, binding in list(self.after.bindings.items()):
            if resource_key(binding) in wanted:
                self._reschedule(key)
                count += 1
        missing = len(wanted) - count
        if missing > 0:
            self.notes.append(f"without a binding: {missing} of the workloads of {text_of(manifest, 'kind')}")
        self._show("+", manifest, f"reschedules {counted(count, 'binding')}")

    def _show(
        self, sign: str, manifest: Manifest, text: str = "", fields: Iterable[FieldChange] = ()
    ) -> None:
        metadata = part(manifest, "metadata")
        name = "/".join(str(each) for each in (metadata.get("namespace"), metadata.get("name")) if each)
        self.shown.append(ChangeShown(sign, f"{text_of(manifest, 'kind')}/{name}", text, tuple(fields)))


_NAMED: Final = ("kind", "namespace", "name")


def _canonical(kind: str, objects: PlanObjects) -> str:
    """Return a kind as it is written in objects: ``propagationpolicy`` is PropagationPolicy."""
    kinds = {CLUSTER, *KINDS, *ID_LABELS, *(key.kind for key in objects.templates)}
    kinds |= {resource_key(each).kind for each in objects.bindings.values()}
    return next((each for each in sorted(kinds) if each.lower() == kind.lower()), kind)


def _unknown(name: str, known: Iterable[str], *, what: str) -> str:
    names = sorted(set(known))
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    text = f"{what} {name} does not exist".strip()
    return f"{text}. Nearest: {near[0]}" if near else text


def _spellings(template: UnversionedTemplateKey, key: BindingKey | None) -> set[tuple[str, ...]]:
    """Return how a workload may be named, as the parts of its name."""
    namespace = template.namespace
    found: set[tuple[str, ...]] = {
        (namespace, template.name),
        (namespace, template.kind.lower(), template.name),
    }
    if key is not None:
        found.add((key.namespace, key.name))
    return found


def _patched(value: Any, patch: Any) -> Any:
    """Return a value after a merge patch (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return patch
    found = dict(value) if isinstance(value, Mapping) else {}
    for name, each in patch.items():
        if each is None:
            found.pop(name, None)
        else:
            found[name] = _patched(found.get(name), each)
    return found


def _replicas_on(binding: Manifest, cluster: str) -> int | None:
    """Return the replicas of a binding on a cluster, None if it is not there."""
    for each in mappings(value_at(binding, "spec", "clusters")):
        if each.get("name") == cluster:
            replicas = each.get("replicas")
            return replicas if isinstance(replicas, int) else 0
    return None


def _merged(old: Manifest, new: Manifest) -> Manifest:
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
    return _next_generation(merged) if part(merged, "spec") != part(old, "spec") else merged


def _next_generation(manifest: Manifest) -> Manifest:
    metadata = part(manifest, "metadata")
    generation = metadata.get("generation")
    following = (generation if isinstance(generation, int) else 0) + 1
    return {**manifest, "metadata": {**metadata, "generation": following}}


def _changed_amount(cluster: str, summary: Manifest, resource: str, written: str) -> str:
    """Return the allocatable amount after a change of the free one.

    Raises:
        ChangeError: The amount is no quantity.
    """
    total, used = quantity.ZERO, quantity.ZERO
    try:
        amount = quantity.read(written.lstrip("+-"), resource)
        total = quantity.read(part(summary, "allocatable").get(resource, "0"), "allocatable")
        for name in ("allocated", "allocating"):
            used = used + quantity.read(part(summary, name).get(resource, "0"), name)
    except ManifestError as problem:
        raise ChangeError(f"--room: {cluster}: {problem}") from problem
    if written[0] == "+":
        total = total + amount
    elif written[0] == "-":
        total = total - amount
    else:
        total = used + amount
    return f"{total.milli_value}m" if resource == "cpu" else str(total.value)


def _after_last(binding: Manifest) -> str:
    """Return a time after the last scheduling of a binding."""
    try:
        last = read_time(part(binding, "status"), "lastScheduledTime", "status")
    except ManifestError:
        last = None
    return format_time(second_after(last or _EPOCH))


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


def with_namespace(manifest: Manifest, namespace: str) -> Manifest:
    """Return a manifest of a namespaced kind with a namespace, as kubectl adds it."""
    metadata = part(manifest, "metadata")
    if metadata.get("namespace") or not is_namespaced(text_of(manifest, "kind")):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": namespace}}
