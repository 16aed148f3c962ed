"""The bindings of both kinds, found by key or by the policy that claims them."""

from __future__ import annotations

from collections.abc import Collection

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.meta import CLUSTER_POLICY_ID_LABEL, POLICY_ID_LABEL
from karmada_scheduler.cache.store import Store


class BindingCache(Store[BindingKey, Binding]):
    """Bindings by key, with an index by the permanent id of their policy."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__(lambda binding: binding.key)
        self._by_policy: dict[str, set[BindingKey]] = {}

    def claimed_by(self, policy_id: str) -> Collection[BindingKey]:
        """Return the bindings that carry a policy's permanent id."""
        return self._by_policy.get(policy_id, frozenset())

    def _stored(self, key: BindingKey, old: Binding | None, new: Binding | None) -> None:
        before, after = _policy_ids(old), _policy_ids(new)
        for policy_id in before - after:
            keys = self._by_policy[policy_id]
            keys.discard(key)
            if not keys:
                del self._by_policy[policy_id]
        for policy_id in after - before:
            self._by_policy.setdefault(policy_id, set()).add(key)


def _policy_ids(binding: Binding | None) -> frozenset[str]:
    if binding is None:
        return frozenset()
    return frozenset(
        filter(None, (binding.labels.get(label) for label in (POLICY_ID_LABEL, CLUSTER_POLICY_ID_LABEL)))
    )
