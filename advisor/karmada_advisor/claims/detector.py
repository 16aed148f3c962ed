"""Karmada's resource detector over objects in memory: its reactions to changes, until it has nothing more to do.

The detector is a set of reconcilers, and its answer depends on what is claimed already. So its steps are repeated here, each
with the conditions that upstream's has: a key of a template has a flag that says whether Karmada itself caused the change,
because policies with ``activationPreference: Lazy`` apply only changes of users.

Source: karmada v1.18.2 pkg/detector detector.go, policy.go, compare.go, claim.go; pkg/util/eventfilter/eventfilter.go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from karmada_advisor.claims import model
from karmada_advisor.claims.binding_spec import binding_spec
from karmada_advisor.claims.policy import ClaimingPolicy
from karmada_advisor.claims.shapes import Match
from karmada_advisor.claims.state import DetectedBinding, DetectorState, preempt, preempting_between
from karmada_advisor.claims.template import UNCLAIMED, Template, TemplateKey
from karmada_scheduler.api.policy import PolicyKey
from karmada_scheduler.structs import IdentityStruct, Struct, field


class _QueuedTemplate(Struct, frozen=True):
    """A template in the queue, and whether Karmada itself caused the change."""

    key: TemplateKey
    by_karmada: bool


class Detector(IdentityStruct):
    """The detector; a change is made with ``react``, which returns when nothing more would happen.

    It starts with settled objects: templates without a claim wait for a policy.

    Attributes:
        state: The objects as they are now.
        options: How it runs.
        templates_last: Whether several policies that one event concerns are all handled before any template. The
            detector has a worker for policies and five for templates, so both happens; mostly, a template is done
            before the next policy has written anything.
        concerned: The templates that it has looked at.
    """

    state: DetectorState
    options: model.DetectorOptions
    templates_last: bool
    concerned: dict[TemplateKey, None] = field(default_factory=dict)
    _queue: dict[_QueuedTemplate, None] = field(default_factory=dict)
    _failed: dict[_QueuedTemplate, None] = field(default_factory=dict)
    _failed_policies: dict[PolicyKey, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._waiting: dict[TemplateKey, None] = {
            key: None
            for key, template in self.state.templates.items()
            if template.claim.policy is None and not template.is_ignored
        }

    def react(self, *events: model.Event) -> None:
        """Make a change, and let the detector settle. Of several, it sees the last state with its first step.

        Raises:
            ManifestError: A policy or a template has a field of the wrong type.
        """
        for handle in [self._stored(event) for event in events]:
            handle()
        self._settle()

    # -- events ---------------------------------------------------------------------------------

    def _stored(self, event: model.Event) -> Callable[[], None]:
        """Make the change of an event, except that a deleted policy is only marked; return what the handlers do."""
        match event:
            case model.PolicyWritten():
                return partial(self._policy_written, event.key, self.state.store_policy(event.policy))
            case model.PolicyDeleted(key):
                self.state.mark_deleted(key)
                return partial(self._policy_deleted, key)
            case model.TemplateWritten(template):
                return partial(self._template_written, template.key, self.state.write_template(template))

    def _policy_deleted(self, key: PolicyKey) -> None:
        policy = self.state.policies.get(key)
        if policy is not None and policy.deleting:
            self._release_all(policy)
            self.state.delete_policy(key)

    def _policy_written(self, key: PolicyKey, before: ClaimingPolicy | None) -> None:
        policy = self.state.policies.get(key)
        if policy is None or policy.deleting or (before is not None and before.spec == policy.spec):
            return  # an edit without effect on the spec has the same generation
        self._handle_policy(policy)
        if before is not None and self.options.preemption and policy.priority < before.priority:
            for other in preempting_between(self.state, policy, before.priority):
                if not self.templates_last:
                    self._drain()
                self._handle_policy(other)

    def _template_written(self, key: TemplateKey, before: Template | None) -> None:
        template = self.state.templates[key]
        if template.is_skipped:
            return
        by_karmada = False
        if before is not None:
            if not _specification_changed(before, template):
                return
            by_karmada = self._is_claimed_by_lazy(template) and _changed_by_karmada(before, template)
        self._enqueue(key, by_karmada=by_karmada)

    def _template_changed(self, template: Template) -> None:
        """Do what follows when the detector has written a template."""
        if not template.is_skipped:
            self._enqueue(template.key, by_karmada=self._is_claimed_by_lazy(template))

    def _is_claimed_by_lazy(self, template: Template) -> bool:
        policy = self.state.policy_of(template.claim.policy)
        return policy is not None and policy.is_lazy

    # -- the queue ------------------------------------------------------------------------------

    def _enqueue(self, key: TemplateKey, *, by_karmada: bool) -> None:
        self._queue[_QueuedTemplate(key, by_karmada)] = None

    def _settle(self) -> None:
        """Reconcile until nothing is queued, and what failed would fail again."""
        while True:
            self._drain()
            version, failed, policies = self.state.version, self._failed, self._failed_policies
            if not failed and not policies:
                return
            self._failed, self._failed_policies = {}, {}
            for key in policies:
                if (policy := self.state.policies.get(key)) is not None and not policy.deleting:
                    self._handle_policy(policy)
            self._queue.update(failed)
            self._drain()
            if self.state.version == version:
                return

    def _drain(self) -> None:
        while self._queue:
            item = next(iter(self._queue))
            del self._queue[item]
            self.concerned[item.key] = None
            self._reconcile(item)

    # -- templates ------------------------------------------------------------------------------

    def _reconcile(self, item: _QueuedTemplate) -> None:
        template = self.state.templates.get(item.key)
        if template is None or template.managed_by:
            self._waiting.pop(item.key, None)
            return
        claimed_by = template.claim.policy
        if claimed_by is not None:
            self._apply_claimed(template, claimed_by, item)
            return
        policy = self.state.best_policy(template)
        if policy is None:
            self._waiting[item.key] = None
        else:
            self._waiting.pop(item.key, None)
            self._apply(template, policy, item)

    def _apply_claimed(self, template: Template, claimed_by: PolicyKey, item: _QueuedTemplate) -> None:
        policy = self.state.policies.get(claimed_by)
        if policy is None:
            self._release(template, claimed_by.kind, template.claim.id_of(claimed_by.kind))
        elif policy.deleting:
            self._failed[item] = None
        elif policy.match(template) is not Match.NONE:
            self._apply(template, policy, item)

    def _apply(self, template: Template, policy: ClaimingPolicy, item: _QueuedTemplate) -> None:
        template = self._claim(template, policy)
        if item.by_karmada and policy.is_lazy:
            return
        before = self.state.bindings.get(template.key.binding)
        if template.has_long_name or (before is not None and not before.is_of(template)):
            self._failed[item] = None
            return
        spec = binding_spec(policy, template, None if before is None else before.spec, self.options)
        if spec is None:
            self._failed[item] = None
            return
        claim = (UNCLAIMED if before is None else before.claim).by(policy.key, policy.permanent_id)
        key = template.key
        self.state.write_binding(DetectedBinding(key.binding, claim, spec, key, template.uid))

    def _claim(self, template: Template, policy: ClaimingPolicy) -> Template:
        claim = template.claim
        if claim.id_of(policy.key.kind) == policy.permanent_id and not (
            policy.is_namespaced and claim.cluster_id
        ):
            return template
        claimed = self.state.claim_template(template, claim.by(policy.key, policy.permanent_id))
        if claimed is not template:
            self._template_changed(claimed)
        return claimed

    def _release(self, template: Template, kind: str, permanent_id: str) -> None:
        """Remove a claim from the binding, then from the template, if it is that of the given id."""
        key = template.key.binding
        binding = self.state.bindings.get(key)
        if binding is not None and binding.claim.id_of(kind) == permanent_id:
            self.state.release_binding(key, kind)
        if template.claim.id_of(kind) == permanent_id:
            self._release_template(template, kind)

    def _release_template(self, template: Template, kind: str) -> None:
        released = self.state.claim_template(template, template.claim.without(kind))
        if released is not template:
            self._template_changed(released)

    # -- policies -------------------------------------------------------------------------------

    def _handle_policy(self, policy: ClaimingPolicy) -> None:
        """Do what the detector does for a created or edited policy."""
        for binding in self.state.bindings_of(policy):
            template = self.state.templates.get(binding.template)
            if template is not None and policy.match(template) is Match.NONE:
                self._release_template(template, policy.key.kind)
                self.state.release_binding(binding.key, policy.key.kind)
        for binding in self.state.bindings_of(policy):
            self._enqueue(binding.template, by_karmada=policy.is_lazy)
        matched = [key for key in self._waiting if policy.match(self.state.templates[key]) is not Match.NONE]
        for key in matched:
            del self._waiting[key]
            self._enqueue(key, by_karmada=policy.is_lazy)
        if policy.preempts and self.options.preemption and not preempt(policy, self.state, self._claim):
            self._failed_policies[policy.key] = None

    def _release_all(self, policy: ClaimingPolicy) -> None:
        """Do what the detector does for a deleted policy: bindings stay, claims go."""
        for template in self.state.templates_of(policy):
            if any(
                (selector.api_version, selector.kind) == (template.key.api_version, template.key.kind)
                and (not selector.namespace or selector.namespace == template.key.namespace)
                for selector in policy.selectors
            ):
                self._release(template, policy.key.kind, policy.permanent_id)


_METADATA_IGNORED: Final = frozenset({"managedFields", "resourceVersion"})
_KARMADA: Final = ".karmada.io"
_SKIP_PROPAGATION_LABEL: Final = "namespace.karmada.io/skip-auto-propagation"


def _specification_changed(before: Template, now: Template) -> bool:
    """Return whether a change is one that the detector looks at; it is taken to be one if the template is not known."""
    content = _watched(now)
    return content is None or content != _watched(before)


def _changed_by_karmada(before: Template, now: Template) -> bool:
    """Return whether only what Karmada itself writes has changed."""
    content = _watched(now)
    return content is not None and _of_users(content) == _of_users(_watched(before))


def _watched(template: Template) -> dict[str, Any] | None:
    """Return what the detector compares of a template before and after a change; None if it is not known."""
    if template.manifest is None:
        return None
    metadata = {
        name: value
        for name, value in (template.manifest.get("metadata") or {}).items()
        if name not in _METADATA_IGNORED
    }
    return {
        **{name: value for name, value in template.manifest.items() if name != "status"},
        "metadata": metadata,
    }


def _of_users(content: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the part of it that Karmada itself does not write."""
    if content is None:
        return None
    metadata = {name: value for name, value in content["metadata"].items() if name != "generation"}
    for part in ("labels", "annotations"):
        kept = {
            name: value
            for name, value in (metadata.pop(part, None) or {}).items()
            if _KARMADA not in name or (part == "labels" and name == _SKIP_PROPAGATION_LABEL)
        }
        if kept:
            metadata[part] = kept
    return {**content, "metadata": metadata}
