"""Which bindings are sent to the extenders of a configuration, and which objects have to be kept for that."""

from __future__ import annotations

from collections.abc import Iterable

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.config.extenders import ExtenderConfig


def is_interested(extender: ExtenderConfig, binding: Binding) -> bool:
    """Return whether a binding requests a resource of ``managedResources``, or there is no such list."""
    if not extender.managed_resources:
        return True
    spec = binding.spec
    requirements = (spec.replica_requirements, *(each.replica_requirements for each in spec.components))
    return any(
        resource.name in each.resource_request
        for each in requirements
        if each is not None
        for resource in extender.managed_resources
    )


def needs_binding(extenders: Iterable[ExtenderConfig], binding: Binding) -> bool:
    """Return whether a request has the whole object of a binding."""
    return any(_filters_or_prioritizes(each) and is_interested(each, binding) for each in extenders)


def needs_clusters(extenders: Iterable[ExtenderConfig]) -> bool:
    """Return whether a request has whole Cluster objects."""
    return any(_filters_or_prioritizes(each) and not each.node_cache_capable for each in extenders)


def _filters_or_prioritizes(extender: ExtenderConfig) -> bool:
    return bool(extender.filter_verb or extender.prioritize_verb)
