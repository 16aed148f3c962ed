"""What the extenders of a configuration want to hear about, and what has to be kept for them."""

from __future__ import annotations

from collections.abc import Iterable

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.config.extenders import ExtenderConfig


def is_interested(extender: ExtenderConfig, binding: Binding) -> bool:
    """Tell whether a binding requests a resource that the extender manages, if it manages any."""
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
    """Tell whether the whole object of a binding goes into some request."""
    return any(_asks_about_clusters(each) and is_interested(each, binding) for each in extenders)


def needs_clusters(extenders: Iterable[ExtenderConfig]) -> bool:
    """Tell whether whole Clusters go into some request."""
    return any(_asks_about_clusters(each) and not each.node_cache_capable for each in extenders)


def _asks_about_clusters(extender: ExtenderConfig) -> bool:
    return bool(extender.filter_verb or extender.prioritize_verb)
