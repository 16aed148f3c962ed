"""Changes of workloads: their replicas, and requests to schedule them again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.state.stored import mappings, part, text_of, value_at
from karmada_advisor.whatif.plan.objects import (
    ChangedObjects,
    ChangeError,
    ChangeShown,
    Manifest,
    UnversionedTemplateKey,
    next_generation,
    referenced,
    resource_key,
)
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.manifest import ManifestError, format_time, read_time, second_after
from karmada_scheduler.api.names import nearest_hint, unknown
from karmada_scheduler.core.requeue_rules import is_claimed

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_SHOWN: Final = 3
_SCALED: Final = frozenset({"Deployment", "Job", "ReplicaSet", "StatefulSet"})


class WorkloadEdits(ChangedObjects):
    """Edits of workloads and their bindings."""

    def scale(self, written: str, replicas: int) -> None:
        """Set the replicas of a workload: of a Job its parallelism, of which no more than its completions count.

        Args:
            written: ``NS/NAME`` of the workload or its binding, or ``NS/KIND/NAME``.
            replicas: The new number.

        Raises:
            ChangeError: There is no such workload, or several, or it has no replicas.
        """
        template, key = self._found(written, "--scale")
        stored, read = self.after.bindings.get(key) if key else None, self.after.templates.get(template)
        spec, of_template = part(stored or {}, "spec"), part(read or {}, "spec")
        if not _has_replicas(template, spec, of_template, is_new=stored is None):
            raise ChangeError(f"--scale: {template} has no replicas")
        fields, most = {"replicas": replicas}, replicas
        if template.kind == "Job":
            fields = {"parallelism": replicas}
            if read is None:
                self.notes.append(f"{template} was not read: if it has fewer completions, fewer replicas run")
            elif "completions" in of_template or "parallelism" not in of_template:
                most = fields["completions"] = of_template.get("completions") or 1
        before = of_template.get(next(iter(fields)), 1) if stored is None else spec.get("replicas") or 0
        after = min(replicas, most)
        may_follow = key is None or self._may_be_claimed(key)
        if key is not None and stored is not None and may_follow:
            self.after.bindings[key] = next_generation({**stored, "spec": {**spec, "replicas": after}})
        if read is not None:
            self.after.templates[template] = {**read, "spec": {**of_template, **fields}}
        elif may_follow and template.kind != "Job":
            self.notes.append(f"{template} was not read: its binding is taken to follow it (--workloads)")
        if not may_follow:
            is_read = read is not None and self.after.policies is not None
            unread = "" if is_read else ", which was not read (--policies, --workloads)"
            self.notes.append(
                f"no policy claims {template}: it stays as it is unless one claims it then{unread}"
            )
        limit = "" if after == replicas else f" (parallelism {replicas}, completions {most})"
        self.shown.append(ChangeShown("~", str(template), f"replicas {before} -> {after}{limit}"))

    def _may_be_claimed(self, key: BindingKey) -> bool:
        """Return whether a policy or a controller claims a binding, or a policy of the change may."""
        return bool(self.written) or is_claimed(Binding.from_manifest(self.after.bindings[key]))

    def _found(self, written: str, flag: str) -> tuple[UnversionedTemplateKey, BindingKey | None]:
        """Return the one workload that a name means, and its binding; None if it has none yet.

        Raises:
            ChangeError: There is no such workload, or several, or its binding cannot be read.
        """
        parts = tuple(written.lower().split("/"))
        for stored, problem in self.after.unreadable.items():
            workload, _, kind = stored.name.rpartition("-")
            spellings = (stored.name,), (workload,), (kind, workload)
            if parts in {(*filter(None, (stored.namespace,)), *spelling) for spelling in spellings}:
                raise ChangeError(f"{flag}: {stored.display} cannot be read: {problem}")
        found = self.workloads(written)
        if not found and not self.after.templates:
            hint = nearest_hint(written, self.workload_names())
            raise ChangeError(
                f"{flag}: workload {written} has no binding, and templates were not read (--workloads){hint}"
            )
        if not found:
            raise ChangeError(unknown(f"{flag}: workload {written}", written, self.workload_names()))
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
            "/".join(filter(None, spelling))
            for template, key in self._all_workloads().items()
            for spelling in _spellings(template, key)
        }

    def _all_workloads(self) -> dict[UnversionedTemplateKey, BindingKey | None]:
        found: dict[UnversionedTemplateKey, BindingKey | None] = dict.fromkeys(self.after.templates)
        found.update({resource_key(manifest): key for key, manifest in self.after.bindings.items()})
        return found

    def rebalance(self, written: str) -> None:
        """Request a reschedule of a workload, as a WorkloadRebalancer does.

        Raises:
            ChangeError: There is no such workload, or several.
        """
        template, key = self._found(written, "--rebalance")
        if key is None:
            self.notes.append(f"{template} has no binding: --rebalance moves nothing")
        else:
            self._reschedule(key)
            if not self._may_be_claimed(key):
                self.notes.append(f"no policy claims {template}: --rebalance moves nothing until one does")
        self.shown.append(ChangeShown("~", str(template), "rescheduled"))

    def _reschedule(self, key: BindingKey) -> None:
        binding = self.after.bindings[key]
        spec = {**part(binding, "spec"), "rescheduleTriggeredAt": _after_last(binding)}
        self.after.bindings[key] = next_generation({**binding, "spec": spec})

    def rebalance_listed(self, manifest: Manifest) -> None:
        """Request a reschedule of the workloads that a WorkloadRebalancer names, as its controller does.

        It acts once for each workload, and its creation is the time of the request: one that exists already changes
        nothing about what was scheduled since.

        Raises:
            ChangeError: The time of its creation is no time.
        """
        wanted = set(map(referenced, mappings(value_at(manifest, "spec", "workloads"))))
        done = {
            referenced(part(observed, "workload"))
            for observed in mappings(value_at(manifest, "status", "observedWorkloads"))
            if observed.get("result") == "Successful"
        }
        try:
            created = read_time(part(manifest, "metadata"), "creationTimestamp", "metadata")
        except ManifestError as problem:
            raise ChangeError(
                f"WorkloadRebalancer {text_of(manifest, 'metadata', 'name')}: {problem}"
            ) from problem
        found = {resource_key(binding): key for key, binding in self.after.bindings.items()}
        asked = [found[name] for name in sorted(wanted - done) if name in found]
        last = {key: _last_scheduled(self.after.bindings[key]) for key in asked}
        older = [key for key in asked if created is not None and (at := last[key]) and at >= created]
        for key in asked:
            if key not in older:
                self._reschedule(key)
        if missing := len(wanted - done - found.keys()):
            self.notes.append(f"without a binding: {missing} of the workloads of WorkloadRebalancer")
        if done & wanted:
            self.notes.append(
                f"done by it already: {counted(len(done & wanted), 'workload')}; a new one is needed"
            )
        if older:
            names = ", ".join(str(key) for key in older[:_SHOWN])
            self.notes.append(
                f"the WorkloadRebalancer is older than the last scheduling of {counted(len(older), 'binding')} and changes "
                f"nothing about them, a new WorkloadRebalancer is needed: {names}"
            )
        self.show("+", manifest, f"reschedules {counted(len(asked) - len(older), 'binding')}")

    def autoscale(self, manifest: Manifest) -> None:
        """Take the replicas of the workload that a FederatedHPA or CronFederatedHPA names as not known."""
        namespace = text_of(manifest, "metadata", "namespace")
        self.autoscaled.add(referenced({**part(manifest, "spec", "scaleTargetRef"), "namespace": namespace}))
        self.show("+", manifest)


def _has_replicas(
    template: UnversionedTemplateKey, binding: Manifest, spec: Manifest, *, is_new: bool
) -> bool:
    """Return whether a workload has replicas, as the specs of its binding and template say; those of a new custom kind are not known."""
    if template.kind in _SCALED or "replicas" in spec or {"replicas", "replicaRequirements"} & binding.keys():
        return True
    return is_new and "." in template.group and not template.group.endswith(".k8s.io")


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


def _after_last(binding: Manifest) -> str:
    """Return a time after the last scheduling of a binding."""
    return format_time(second_after(_last_scheduled(binding) or _EPOCH))


def _last_scheduled(binding: Manifest) -> datetime | None:
    try:
        return read_time(part(binding, "status"), "lastScheduledTime", "status")
    except ManifestError:
        return None
