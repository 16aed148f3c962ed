"""The change: edits of objects, each of which returns how it is shown.

Objects are never changed in place. As in the API server, a changed spec has a higher generation, and status and
identifiers that a file leaves out stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from karmada_advisor.fleet.files import OVERRIDES
from karmada_advisor.state.stored import part, text_of
from karmada_advisor.whatif.plan.cluster_edits import ClusterEdits
from karmada_advisor.whatif.plan.objects import (
    ChangeError,
    ChangeShown,
    FieldChange,
    Manifest,
    PlanObjects,
    UnversionedTemplateKey,
    check_completions,
    named,
    next_generation,
    patched,
    resource_key,
    with_defaults,
    with_id,
)
from karmada_advisor.whatif.plan.versions import applied, changed_fields
from karmada_advisor.whatif.plan.workload_edits import WorkloadEdits
from karmada_scheduler.api.binding import KINDS
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.names import unknown
from karmada_scheduler.api.policy import ID_LABELS

_READ: Final = frozenset({CLUSTER, *KINDS, *ID_LABELS})
_AUTOSCALERS: Final = frozenset({"FederatedHPA", "CronFederatedHPA"})


class Draft(ClusterEdits, WorkloadEdits):
    """The objects after a change: whole objects, as ``kubectl apply``, ``delete`` and ``patch`` write them.

    Attributes:
        side: Which side applies, as in ``versions.applied``.
    """

    side = ""

    def put(self, manifest: Manifest) -> None:
        """Create or replace an object, as ``kubectl apply`` would.

        Raises:
            ChangeError: It has no kind or name.
        """
        kind, name = text_of(manifest, "kind"), text_of(manifest, "metadata", "name")
        if not kind or not name:
            raise ChangeError("an object has no kind or no metadata.name")
        is_of_karmada = ".karmada.io/" in text_of(manifest, "apiVersion")
        if kind == "WorkloadRebalancer":
            self.rebalance_listed(manifest)
        elif kind in _READ or not (is_of_karmada or kind == "Kustomization"):
            self._put(manifest)
        else:
            note = f"{kind} is not read: what it does to replicas and placements is not judged"
            self.notes += [note] if note not in self.notes else []
            if kind in OVERRIDES:
                self.written.append(manifest)
            if kind in _AUTOSCALERS:
                self.autoscale(manifest)

    def _put(self, manifest: Manifest) -> None:
        objects, key = self.after.place_of(manifest)
        old, written, is_policy = objects.get(key), manifest, text_of(manifest, "kind") in ID_LABELS
        if is_policy:
            manifest = with_defaults(written)
            self.written.append(written)
        if old is None:
            objects[key] = with_id(manifest) if is_policy else manifest
            self.show("+", manifest)
            return
        new = self._applied(old, written)
        if is_policy:
            old, new = with_defaults(old), with_defaults(new)
            self._note_kept(changed_fields(manifest, new), new)
        check_completions(old, new)
        new = next_generation(new) if part(new, "spec") != part(old, "spec") else new
        fields = changed_fields(old, new)
        if fields:
            objects[key] = new
        self.show("~" if fields else "=", new, ", ".join(map(str, fields)), fields)

    def _applied(self, old: Manifest, manifest: Manifest) -> Manifest:
        """Return a stored object after an apply, with its identifiers, and its status unless the manifest has one."""
        new, conflicts = applied(old, manifest, self.side)
        metadata = part(old, "metadata")
        texts = {name: value for name, value in new["metadata"].items() if value or name in metadata}
        new["metadata"] = {**metadata, **texts}
        if status := part(manifest, "status") or part(old, "status"):
            new["status"] = status
        had, is_binding = part(old, "spec"), text_of(manifest, "kind") in KINDS
        if is_binding and "clusters" in had and "clusters" not in part(manifest, "spec"):
            new["spec"] = {**new["spec"], "clusters": had["clusters"]}
        if conflicts:
            self.notes.append(
                f"{'/'.join(named(manifest))}: kubectl apply --server-side refuses it without --force-conflicts, as other "
                f"managers have fields of it; planned with --force-conflicts: {', '.join(conflicts)}"
            )
        return new

    def _note_kept(self, fields: Iterable[FieldChange], new: Manifest) -> None:
        if shown := ", ".join(map(str, fields)):
            self.notes.append(
                f"{'/'.join(named(new))}: kubectl apply merges the file with what is stored, and then it differs from the "
                f"file alone: {shown}"
            )

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object.

        Raises:
            ChangeError: It does not exist.
        """
        kind = _canonical(kind, self.after)
        if kind == CLUSTER:
            self.without(name)
            return
        found = self._places_of(kind, namespace, name)
        for objects, key in found:
            self.show("-", objects.pop(key))
            self._delete_binding_of(kind, namespace, name)
        if not found:
            self._delete_template(kind, namespace, name)

    def _places_of(self, kind: str, namespace: str, name: str) -> list[tuple[dict[Any, Manifest], Any]]:
        """Return where the objects with a name are, and their keys: one for each API group."""
        if kind == CLUSTER:
            return [(self.after.clusters, name)] if name in self.after.clusters else []
        groups: list[dict[Any, Manifest]] = [
            self.after.bindings,
            self.after.policies or {},
            self.after.templates,
        ]
        return [
            (objects, key) for objects in groups for key in objects if key[-3:] == (kind, namespace, name)
        ]

    def _delete_template(self, kind: str, namespace: str, name: str) -> None:
        """Delete a template that was not read: its binding goes with it."""
        resource = self._delete_binding_of(kind, namespace, name)
        if resource is not None:
            self.shown.append(ChangeShown("-", str(resource)))
            return
        known = [
            *("/".join(filter(None, key)) for key in self.after.bindings),
            *(str(resource_key(manifest)) for manifest in self.after.bindings.values()),
        ]
        raise self._unknown("", (kind, namespace, name), known)

    def _delete_binding_of(self, kind: str, namespace: str, name: str) -> UnversionedTemplateKey | None:
        """Delete the binding of a template; return the template, None if it has no binding."""
        for key, manifest in self.after.bindings.items():
            resource = resource_key(manifest)
            if (resource.kind, resource.namespace, resource.name) == (kind, namespace, name):
                del self.after.bindings[key]
                return resource
        return None

    def _unknown(self, flag: str, key: tuple[str, ...], known: Iterable[str]) -> ChangeError:
        """Return that there is no object with a key, and the nearest of the known ones, policies and templates."""
        shown = "/".join(filter(None, key))
        policies = ("/".join(filter(None, policy)) for policy in self.after.policies or ())
        return ChangeError(
            unknown(f"{flag}{shown}", shown, [*known, *policies, *map(str, self.after.templates)])
        )

    def edit(self, kind: str, namespace: str, name: str, patch: Manifest) -> None:
        """Change an object by a merge patch, as ``kubectl patch --type merge`` does.

        Raises:
            ChangeError: It does not exist, or is no object afterwards.
        """
        kind = _canonical(kind, self.after)
        places = [] if kind in KINDS else self._places_of(kind, namespace, name)
        if not places:
            known = [f"{CLUSTER}/{cluster}" for cluster in self.after.clusters]
            raise self._unknown("--edit: ", (kind, namespace, name), known)
        objects, key = places[0]
        old = objects[key]
        new = patched(old, patch)
        check_completions(old, new)
        if not part(new, "metadata") or text_of(new, "metadata", "name") != name:
            raise ChangeError(f"--edit: the patch of {kind} {name} changes its name")
        if kind in ID_LABELS:
            new = with_defaults(new)
            self.written.append(new)
        fields = changed_fields(old, new)
        objects[key] = next_generation(new) if part(new, "spec") != part(old, "spec") else new
        self.show("~", new, ", ".join(map(str, fields)), fields)

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


def _canonical(kind: str, objects: PlanObjects) -> str:
    """Return a kind as it is written in objects: ``propagationpolicy`` is PropagationPolicy."""
    kinds = {CLUSTER, *KINDS, *ID_LABELS, *(key.kind for key in objects.templates)}
    kinds |= {resource_key(manifest).kind for manifest in objects.bindings.values()}
    return next((known for known in sorted(kinds) if known.lower() == kind.lower()), kind)
