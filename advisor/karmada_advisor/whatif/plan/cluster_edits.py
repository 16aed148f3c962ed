"""Changes of clusters, as karmadactl and Karmada's controllers make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.state.stored import mappings, others_on, part, value_at
from karmada_advisor.whatif.plan.objects import (
    ChangedObjects,
    ChangeError,
    ChangeShown,
    Manifest,
    next_generation,
)
from karmada_scheduler.api import quantity
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.manifest import ManifestError, integer_at
from karmada_scheduler.api.names import unknown
from karmada_scheduler.api.well_known import CORDON_TAINT

NOT_READY: Final = "cluster.karmada.io/not-ready"
"""The key of the taint that Karmada's controller gives to a cluster that is not ready."""

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TAINT_FORM: Final = f"key=value:Effect with one of {', '.join(_EFFECTS)}"
_DELETED_AT: Final = "2000-01-01T00:00:00Z"


class ClusterEdits(ChangedObjects):
    """Edits of clusters. Each raises ChangeError if the cluster does not exist, or the edit cannot be read."""

    def without(self, name: str) -> None:
        """Delete a cluster, as ``karmadactl unjoin`` does: its bindings leave it before the object is gone."""
        manifest = self._cluster(name)
        metadata = {**part(manifest, "metadata"), "deletionTimestamp": _DELETED_AT}
        shares = [_replicas_on(binding, name) for binding in self.before.bindings.values()]
        on_it = [share for share in shares if share is not None]
        text = f"is gone ({counted(sum(on_it), 'replica')} of {counted(len(on_it), 'binding')})"
        self._store(name, {**manifest, "metadata": metadata}, text, sign="-")

    def cordon(self, name: str) -> None:
        """Add the taint of ``karmadactl cordon``."""
        self._set_taint(name, {"key": CORDON_TAINT, "effect": "NoSchedule"}, "cordoned")

    def uncordon(self, name: str) -> None:
        """Remove the taint of ``karmadactl cordon``."""
        taints = self._taints(name)
        left = [taint for taint in taints if taint.get("key") != CORDON_TAINT]
        if len(left) == len(taints):
            raise ChangeError(f"--uncordon: cluster {name} is not cordoned")
        self._set_taints(name, left, "uncordoned")

    def taint(self, name: str, written: str) -> None:
        """Add a taint ``key=value:Effect``, or remove those of ``key[:Effect]-``, as ``karmadactl taint`` does."""
        if written.endswith("-"):
            self._remove_taint(name, written.removesuffix("-"))
            return
        taint = taint_of(written)
        if taint is None:
            expected = f"C={TAINT_FORM}, or C=key- to remove one"
            raise ChangeError(f"--taint: expected {expected}, got {name}={written}")
        self._set_taint(name, taint, f"+ taint {written}")

    def _remove_taint(self, name: str, written: str) -> None:
        key, _, effect = written.partition(":")
        key = key.partition("=")[0]
        taints = self._taints(name)
        left = [
            taint for taint in taints if taint.get("key") != key or (effect and taint.get("effect") != effect)
        ]
        if len(left) == len(taints):
            have = ", ".join(sorted(str(taint.get("key")) for taint in taints)) or "none"
            raise ChangeError(f"--taint: cluster {name} has no taint {written}; it has: {have}")
        self._set_taints(name, left, f"- taint {written}")

    def _set_taint(self, name: str, taint: Mapping[str, str], text: str) -> None:
        others = [
            other
            for other in self._taints(name)
            if (other.get("key"), other.get("effect")) != (taint["key"], taint["effect"])
        ]
        self._set_taints(name, [*others, taint], text)

    def _taints(self, name: str) -> list[Mapping[str, Any]]:
        return mappings(value_at(self._cluster(name), "spec", "taints"))

    def ready(self, name: str, *, is_ready: bool) -> None:
        """Let a cluster be ready or not, with the taint that Karmada gives to one that is not.

        Source: karmada v1.18.2 pkg/controllers/cluster/cluster_controller.go taintClusterByCondition.
        """
        manifest = self._cluster(name)
        conditions = mappings(value_at(manifest, "status", "conditions"))
        status, reason = ("True", "ClusterReady") if is_ready else ("False", "ClusterNotReachable")
        after = [condition for condition in conditions if condition.get("type") != "Ready"]
        after.append({"type": "Ready", "status": status, "reason": reason})
        self.after.clusters[name] = {**manifest, "status": {**part(manifest, "status"), "conditions": after}}
        if not is_ready:
            self._set_taint(name, {"key": NOT_READY, "effect": "NoSchedule"}, "not ready")
            return
        left = [taint for taint in self._taints(name) if taint.get("key") != NOT_READY]
        self._set_taints(name, left, "ready")

    def label(self, name: str, written: str) -> None:
        """Set a label ``key=value``, or remove ``key-``."""
        manifest = self._cluster(name)
        labels = dict(part(manifest, "metadata", "labels"))
        key, has_value, value = written.partition("=")
        if not has_value and key.endswith("-"):
            key = key.removesuffix("-")
            if key not in labels:
                raise ChangeError(unknown(f"--label: label of cluster {name} {key}", key, labels))
            text = f"- label {key}={labels.pop(key)}"
        elif has_value and key:
            before = labels.get(key)
            labels[key] = value
            text = f"label {key}: {before} -> {value}" if before is not None else f"+ label {key}={value}"
        else:
            raise ChangeError(f"--label: expected C=key=value or C=key-, got {name}={written}")
        metadata = {**part(manifest, "metadata"), "labels": labels}
        self._store(name, next_generation({**manifest, "metadata": metadata}), text)

    def room(self, name: str, written: str) -> None:
        """Change the allocatable amounts of a cluster: ``cpu=+20,memory=-64Gi,pods=500``.

        An amount with a sign is added to what is allocatable; one without replaces what is free.
        """
        manifest = self._cluster(name)
        summary = dict(part(manifest, "status", "resourceSummary"))
        allocatable = dict(part(summary, "allocatable"))
        texts = []
        for item in filter(None, (text.strip() for text in written.split(","))):
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
        self._store(name, {**manifest, "status": status}, ", ".join(texts))

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
        self._store(name, {**model, "metadata": metadata, "status": status}, f"as {like}, empty", sign="+")

    def _cluster(self, name: str) -> Manifest:
        found = self.after.clusters.get(name)
        if found is None:
            raise ChangeError(unknown(f"cluster {name}", name, self.after.clusters))
        return found

    def _set_taints(self, name: str, taints: Sequence[Mapping[str, Any]], text: str) -> None:
        manifest = self._cluster(name)
        spec = {**part(manifest, "spec"), "taints": taints}
        self._store(name, next_generation({**manifest, "spec": spec}), text)

    def _store(self, name: str, manifest: Manifest, text: str, *, sign: str = "~") -> None:
        self.after.clusters[name] = manifest
        self.shown.append(ChangeShown(sign, f"{CLUSTER}/{name}", text))


def taint_of(written: str) -> dict[str, str] | None:
    """Return a taint that is written as ``key=value:Effect``; None if it is not."""
    left, _, effect = written.rpartition(":")
    key, _, value = left.partition("=")
    fields = {"key": key, "value": value, "effect": effect}
    return {name: text for name, text in fields.items() if text} if key and effect in _EFFECTS else None


def _replicas_on(binding: Manifest, cluster: str) -> int | None:
    """Return the replicas of a binding on a cluster, None if it is not there."""
    for target in mappings(value_at(binding, "spec", "clusters")):
        if target.get("name") == cluster:
            return integer_at(target, "replicas") or 0
    return 0 if cluster in others_on(binding) else None


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
