"""What lists of bindings hold of one, and which of them are shown."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.overview import GroupKey, group_key
from karmada_advisor.state.model import WORST_FIRST, ReplicaCounts, StateName
from karmada_advisor.state.reading import Facts, state_of
from karmada_advisor.state.stored import condition_of, others_on
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.content_cache import interned
from karmada_scheduler.api.manifest import format_time
from karmada_scheduler.structs import Struct

_STAMP_BYTES: Final = 8


class RowCursor(NamedTuple):
    """Where a page of a list of bindings begins or ends; lists are in this order."""

    rank: int
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.rank}.{self.namespace}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> RowCursor:
        """Return the cursor of a text. Raises ValueError."""
        rank, dot, name = text.partition(".")
        namespace, slash, name = name.partition("/")
        if not (dot and slash and rank.isascii() and rank.isdigit() and len(rank) < 4):
            raise ValueError(f"{text!r} is not the place of a binding in a list")
        return cls(int(rank), namespace, name)


class IndexedBinding(NamedTuple):
    """What lists, filters and counters need of a binding. Compared by its first fields, which are the order of lists.

    Attributes:
        rank: Of its state, the worst first; what is placed in part comes before the others of the state.
        state: What is stored.
        reason: Of the state.
        condition: The reason of the condition Scheduled; "" without one.
        policy: ``namespace/name``, or the name of a cluster-wide one; "" without one.
        last_scheduled: In the format of the API; "" if it never was.
        group: Of the overview; None in a good state.
        stamp: A hash of the binding as it was read, and of its state.
        binding: The object.
        others_on: The clusters on which other bindings require it, or its old copies run.
        text: What a search looks at, in lower case.
        replicas: What it wants, has and runs.
    """

    rank: int
    namespace: str
    name: str
    kind: str
    state: StateName
    reason: str
    condition: str
    policy: str
    last_scheduled: str
    group: GroupKey | None
    stamp: int
    binding: Binding
    others_on: tuple[str, ...] = ()
    text: str = ""
    replicas: ReplicaCounts = ReplicaCounts()

    @property
    def key(self) -> BindingKey:
        """The key of the binding."""
        return self.binding.key

    @property
    def clusters(self) -> dict[str, None]:
        """The clusters that have a copy, each once."""
        return dict.fromkeys((*(target.name for target in self.binding.spec.clusters), *self.others_on))

    @property
    def cursor(self) -> RowCursor:
        """Its place in lists."""
        return RowCursor(self.rank, self.namespace, self.name)


def indexed(binding: Binding, manifest: Mapping[str, Any] | None, facts: Facts) -> IndexedBinding:
    """Return what an index holds of a binding.

    Args:
        binding: The binding.
        manifest: The same as it was read.
        facts: What is stored besides it.
    """
    state = state_of(binding, manifest or {}, facts)
    policy, resource = policy_of(binding.annotations), binding.spec.resource
    last = binding.status.last_scheduled_time
    # Files that people edit keep their resourceVersions, so the content counts.
    read = (*binding.key, state.name.value, state.reason, manifest)
    try:
        content = orjson.dumps(read)
    except TypeError:  # YAML has more than JSON, such as numbers beyond 64 bits
        content = repr(read).encode(errors="surrogatepass")
    return IndexedBinding(
        2 * WORST_FIRST[state.name] + state.is_good,
        binding.key.namespace,
        binding.key.name,
        binding.key.kind,
        state.name,
        interned(state.reason),
        interned(condition_of(binding).reason),
        "" if policy is None else interned("/".join(filter(None, (policy.namespace, policy.name)))),
        "" if last is None else format_time(last),
        group_key(state),
        int.from_bytes(hashlib.blake2b(content, digest_size=_STAMP_BYTES).digest(), "big"),
        binding,
        tuple(map(interned, others_on(manifest or {}))),
        f"{binding.key} {resource.kind} {resource.name}".lower(),
        state.replicas,
    )


class Filter(Struct, frozen=True):
    """Which bindings to show; "" is any.

    Attributes:
        text: A part of the name, the namespace or the workload.
        policy: The name of a policy, with or without its namespace.
        reason: The reason of the state, or of the condition.
        cluster: A cluster that it is on.
    """

    text: str = ""
    namespace: str = ""
    policy: str = ""
    state: str = ""
    reason: str = ""
    cluster: str = ""

    def holds(self, row: IndexedBinding) -> bool:
        """Return whether a binding is shown."""
        return (
            (not self.state or row.state.value == self.state)
            and (not self.namespace or row.namespace == self.namespace)
            and (not self.reason or self.reason in (row.reason, row.condition))
            and (not self.policy or row.policy == self.policy or row.policy.endswith(f"/{self.policy}"))
            and (not self.cluster or self.cluster in row.clusters)
            and (not self.text or self.text.lower() in row.text)
        )
