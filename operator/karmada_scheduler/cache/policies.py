"""The policies of both kinds."""

from __future__ import annotations

from karmada_scheduler.api.policy import Policy, PolicyKey
from karmada_scheduler.cache.store import Store


class PolicyCache(Store[PolicyKey, Policy]):
    """PropagationPolicies and ClusterPropagationPolicies by key."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__(lambda policy: policy.key)
