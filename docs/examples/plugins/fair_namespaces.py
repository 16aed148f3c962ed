"""FairNamespaces: of the queued bindings, those of the namespace with the fewest placed replicas go first."""

from collections import Counter

from karmada_scheduler.framework import Binding, QueuedBinding


class FairNamespaces:
    """Take turns between namespaces by their placed replicas; inside one, by priority and arrival."""

    name = "FairNamespaces"

    def __init__(self, args: object, handle: object) -> None:
        self.placed = Counter[str]()

    def observe(self, old: object, new: object, /) -> None:
        if old is new is None:
            self.placed.clear()  # everything follows again
        for found, sign in ((old, -1), (new, 1)):
            if isinstance(found, Binding):
                replicas = sum(target.replicas for target in found.spec.clusters)
                self.placed[found.key.namespace] += sign * replicas

    def queue_group(self, queued: QueuedBinding, /) -> str:
        return queued.key.namespace

    def queue_group_key(self, group: str, /) -> tuple[float, ...]:
        return (self.placed[group],)

    def sort_key(self, queued: QueuedBinding, /) -> tuple[float, ...]:
        return queued.default_rank

    def less(self, a: QueuedBinding, b: QueuedBinding, /) -> bool:
        return a.default_rank < b.default_rank
