"""Changes of workloads: their replicas, and requests to schedule them again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.names import unknown
from karmada_advisor.plan.change_model import ChangeShown
from karmada_advisor.plan.changed_objects import ChangedObjects
from karmada_advisor.plan.objects import (
    Manifest,
    UnversionedTemplateKey,
    group_of,
    part,
    resource_key,
    text_of,
)
from karmada_advisor.plan.stored import ChangeError, next_generation
from karmada_advisor.state.stored import mappings, value_at
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.api.manifest import ManifestError, format_time, read_time, second_after

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_NAMED: Final = ("kind", "namespace", "name")


class WorkloadEdits(ChangedObjects):
    """Edits of workloads and their bindings."""

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
            self.after.bindings[key] = next_generation({**manifest, "spec": spec})
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
        self.after.bindings[key] = next_generation({**binding, "spec": spec})

    def rebalance_listed(self, manifest: Manifest) -> None:
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
        self.show("+", manifest, f"reschedules {counted(count, 'binding')}")


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
    try:
        last = read_time(part(binding, "status"), "lastScheduledTime", "status")
    except ManifestError:
        last = None
    return format_time(second_after(last or _EPOCH))
