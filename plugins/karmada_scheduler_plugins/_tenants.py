"""The tenants of FairShare: their args, what they use of the fleet, and who of them waits for a limit.

What a tenant uses is counted when a binding changes; nothing walks over all bindings or clusters.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from types import MappingProxyType
from typing import Final

from karmada_scheduler.api import quantity
from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.placement import DIVIDED
from karmada_scheduler.framework import Cluster, Handle
from karmada_scheduler_plugins._held_capacity import FleetCapacity, Rank, rank_of, request_of, thousandths

log = logging.getLogger(__name__)

MOST_ENQUEUED: Final = 50
"""Bindings that one change of what a tenant uses looks at, in rank order."""
MAX_WEIGHT: Final = 1_000_000
_NONE: Final[Mapping[str, int]] = MappingProxyType({})
_UNITS: Final = {"Ti": 1000 * 2**40, "Gi": 1000 * 2**30, "Mi": 1000 * 2**20}

Amounts = tuple[tuple[str, int], ...]
"""What a binding takes of each resource that counts, in thousandths."""


def _amounts(value: object) -> Mapping[str, int]:
    """Read quantities by resource, in thousandths."""
    if not isinstance(value, Mapping):
        raise ValueError("expected quantities by resource")  # noqa: TRY004 (it is the file's problem)
    problems, found = list[Exception](), {}
    for name, amount in value.items():
        try:
            found[str(name)] = thousandths(quantity.read(amount, str(name)))
        except ValueError as problem:
            problems.append(problem)
        else:
            if amount is None or found[str(name)] < 0:
                problems.append(ValueError(f"{name}: must not be negative, got {amount!r:.100}"))
    _raise_all(problems)
    return found


def _raise_all(problems: Sequence[Exception]) -> None:
    if problems:
        raise ExceptionGroup("invalid args", problems)


def _weight(value: object) -> float:
    if type(value) not in (int, float) or not 0 < value <= MAX_WEIGHT:  # type: ignore[operator]
        raise ValueError(f"must be a number above 0, at most {MAX_WEIGHT}, got {value!r:.100}")
    return float(value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class DefaultTenantArgs:
    """What applies to each namespace that no tenant names.

    Attributes:
        weight: Its share of the fleet, compared with that of others; above 0.
    """

    weight: float = field(default=1.0, metadata={"read": _weight})


@dataclass(frozen=True)
class TenantArgs:
    """A tenant.

    Attributes:
        name: In texts.
        namespaces: Whose bindings are the tenant's.
        weight: Its share of the fleet, compared with that of others; above 0.
        nominal_quota: What it has before others, by resource; it does not count in its share.
        borrowing_limit: What it may use besides ``nominalQuota``, by resource; no limit for others.
    """

    name: str
    namespaces: tuple[str, ...]
    weight: float = field(default=1.0, metadata={"read": _weight})
    nominal_quota: Mapping[str, int] = field(default_factory=lambda: _NONE, metadata={"read": _amounts})
    borrowing_limit: Mapping[str, int] = field(default_factory=lambda: _NONE, metadata={"read": _amounts})

    def __post_init__(self) -> None:
        """Check the name: that of a namespace with a slash stands for the namespace alone."""
        if not self.name or "/" in self.name:
            raise ValueError(f"name must be a text without a slash, got {self.name!r:.100}")


@dataclass(frozen=True)
class FairShareArgs:
    """The args of FairShare; docs/fair-share.md explains them.

    Attributes:
        resources: Those of which a share is computed; the largest one counts.
        global_priority_from: Priorities from here on go before all tenants; None for no such priority.
        default: What applies to each namespace that no tenant names; it is a tenant of its own.
        tenants: The others.
    """

    resources: tuple[str, ...] = ("cpu", "memory")
    global_priority_from: int | None = None
    default: DefaultTenantArgs = field(default_factory=DefaultTenantArgs)
    tenants: tuple[TenantArgs, ...] = ()

    def __post_init__(self) -> None:
        """Check that names and namespaces are distinct."""
        problems, names, owners = list[Exception](), set[str](), dict[str, int]()
        for index, tenant in enumerate(self.tenants):
            if tenant.name in names:
                problems.append(ValueError(f'tenants[{index}].name: there are two tenants "{tenant.name}"'))
            names.add(tenant.name)
            for position, namespace in enumerate(tenant.namespaces):
                if (owner := owners.setdefault(namespace, index)) != index:
                    path = f"tenants[{index}].namespaces[{position}]"
                    problems.append(ValueError(f'{path}: "{namespace}" is in tenants[{owner}] already'))
        _raise_all(problems)


class Tenants:
    """What the tenants of all profiles use, and who waits for a limit.

    Attributes:
        args: Of all profiles.
        profile: The profile that was made first, which follows the changes.
        profiles: The scheduler names whose bindings count.
        fallen: The tenants whose share may have fallen since somebody emptied it; the same set all the time.
        used: What they use, by tenant that uses anything.
        fleet: What there is.
    """

    def __init__(self, args: FairShareArgs, handle: Handle) -> None:
        """Start empty."""
        self.args: Final = args
        self.profile: Final = handle.profile
        self.profiles: Final[set[str]] = set()
        self.fallen: Final[set[str]] = set()
        self._handle = handle
        self._default = TenantArgs("default", (), args.default.weight)
        self._by_name = {tenant.name: tenant for tenant in args.tenants}
        self._owners = {name: tenant.name for tenant in args.tenants for name in tenant.namespaces}
        self._quotas, limits = Counter[str](), Counter[str]()
        for tenant in args.tenants:
            self._quotas.update(tenant.nominal_quota)
            limits.update(tenant.borrowing_limit)
        self._resources = frozenset((*args.resources, *self._quotas, *limits))
        self._gated: dict[str, list[tuple[Rank, Amounts]]] = {}
        self._ranks: dict[BindingKey, Rank] = {}
        self._reported: set[BindingKey] = set()
        self._is_checked = False
        self.used: dict[str, Counter[str]] = {}
        self.clear()

    def clear(self) -> None:
        """Forget what is used and what there is."""
        self.fleet = FleetCapacity()
        self.fallen.update(self.used)
        self.used = {}
        self._counted: dict[BindingKey, Amounts] = {}
        self._decided: dict[BindingKey, object] = {}
        """What identifies bindings as they were before decisions that are not written; None if such a one may be stored."""

    def tenant_of(self, key: BindingKey) -> str:
        """Return the name of a binding's tenant; a namespace that none names is one, with a slash."""
        return self._owners.get(key.namespace) or f"{key.namespace}/"

    def _terms(self, tenant: str) -> TenantArgs:
        return self._by_name.get(tenant, self._default)

    def used_by(self, tenant: str) -> Mapping[str, int]:
        """Return what a tenant uses, in thousandths, by resource."""
        return self.used.get(tenant, _NONE)

    def share(self, tenant: str) -> float:
        """Return the largest share of a resource that a tenant uses besides its nominal quota, by its weight."""
        terms, used, most = self._terms(tenant), self.used_by(tenant), 0.0
        for name in self.args.resources:
            borrowed = used.get(name, 0) - terms.nominal_quota.get(name, 0)
            if borrowed > 0 and (capacity := self.fleet.amounts[name]) > 0:
                most = max(most, borrowed / capacity)
        return most / terms.weight

    def is_nominal(self, tenant: str, binding: Binding) -> bool:
        """Return whether a binding asks for something of its tenant's nominal quota, and stays within it."""
        quota, used = self._terms(tenant).nominal_quota, self.used_by(tenant)
        asked = [(name, amount) for name, amount in self._asks(binding) if name in quota] if quota else []
        return bool(asked) and all(used.get(name, 0) + amount <= quota[name] for name, amount in asked)

    def follow_cluster(self, name: str, new: Cluster | None) -> None:
        """Take a change of a cluster."""
        before = self.fleet.amounts.copy()
        if self.fleet.follow(name, new) and self.fleet.amounts != before:
            self.fallen.update(self.used)
            self._is_checked = False

    def follow(self, key: BindingKey, new: Binding | None) -> None:
        """Take a change of a binding; None if it does not exist."""
        if new is None or new.spec.responsible_scheduler not in self.profiles:
            self._decided.pop(key, None)
            self._reported.discard(key)
            self._ungate(key)
            self._count(key, ())
            return
        if (decided := self._decided.pop(key, None)) == _version(new):
            self._decided[key] = decided  # it is not written yet
            return
        self._count(key, self._takes(new, new.spec.clusters))

    def gate(self, binding: Binding) -> tuple[str, bool]:
        """Return why a binding has to wait for its tenant's limit, "" if it does not, and whether that is new."""
        key, tenant, more = binding.key, self.tenant_of(binding.key), self._asks(binding)
        self._ungate(key)
        text = self._over(tenant, more)
        if not text:
            self._reported.discard(key)
            return "", False
        rank, is_new = rank_of(binding), key not in self._reported
        insort(self._gated.setdefault(tenant, []), (rank, more))
        self._ranks[key] = rank
        self._reported.add(key)
        return text, is_new

    def decide(self, binding: Binding, targets: Iterable[TargetCluster]) -> str:
        """Count a decision from now on, and return ""; return the limit that it would exceed otherwise."""
        key, amounts = binding.key, self._takes(binding, targets)
        if text := self._over(self.tenant_of(key), self._more(binding, amounts)):
            return text
        self._decided[key] = _version(binding)
        self._count(key, amounts)
        return ""

    def undo(self, key: BindingKey, *, may_be_stored: bool) -> None:
        """Take a decision back that was not written; one that may be stored counts until its binding changes."""
        if self._decided.pop(key, None) is None:
            return
        if may_be_stored:
            self._decided[key] = None
        else:
            self.follow(key, self._handle.binding(key))

    def warn_if_overbooked(self) -> None:
        """Log once that the tenants have more nominal quota than there is."""
        if self._is_checked:
            return
        self._is_checked, has = True, self.fleet.amounts
        above = [
            f"{_text(amount)} of {_text(has[name])} {name}"
            for name, amount in sorted(self._quotas.items())
            if amount > has[name]
        ]
        if above:
            self._quotas.clear()  # it is said once
            log.warning(
                "The tenants of FairShare have more nominalQuota than the clusters: %s", ", ".join(above)
            )

    def _takes(self, binding: Binding, targets: Iterable[TargetCluster]) -> Amounts:
        """Return what a binding takes on some clusters."""
        has_sets = len(binding.spec.components) > 1
        count = sum(1 if has_sets else replicas for _, replicas in targets)
        request = request_of(binding, sets=has_sets) if count else ()
        return tuple((name, amount * count) for name, amount in request if name in self._resources)

    def _asks(self, binding: Binding) -> Amounts:
        """Return what a binding takes at least when it is placed, besides what it has."""
        spec, copies = binding.spec, 1
        strategy = spec.placement.replica_scheduling if spec.placement is not None else None
        if strategy is None or strategy.replica_scheduling_type != DIVIDED:
            copies = len(spec.clusters) or 1
        return self._more(binding, self._takes(binding, [TargetCluster("", spec.replicas)] * copies))

    def _more(self, binding: Binding, amounts: Amounts) -> Amounts:
        has = dict(self._counted.get(binding.key, ()))
        return tuple((name, more) for name, amount in amounts if (more := amount - has.get(name, 0)) > 0)

    def _over(self, tenant: str, more: Amounts, besides: Mapping[str, int] = _NONE) -> str:
        """Return the limit of a tenant that it would exceed with so much more, besides what others get, or ""."""
        terms, used = self._terms(tenant), self.used_by(tenant)
        for name, amount in more if terms.borrowing_limit else ():
            has, limit = (
                used.get(name, 0),
                terms.nominal_quota.get(name, 0) + terms.borrowing_limit.get(name, 0),
            )
            if name in terms.borrowing_limit and has + besides.get(name, 0) + amount > limit:
                return f"tenant {tenant} has {_text(has)} of {_text(limit)} {name}"
        return ""

    def _count(self, key: BindingKey, amounts: Amounts) -> None:
        """Replace what a binding uses."""
        before = self._counted.pop(key, ())
        if amounts:
            self._counted[key] = amounts
        if before == amounts:
            return
        tenant, now = self.tenant_of(key), dict(amounts)
        used = self.used.setdefault(tenant, Counter())
        used.update(now)
        used.subtract(dict(before))
        for name, _ in before:
            if not used[name]:
                del used[name]
        if not used:
            del self.used[tenant]
        if any(now.get(name, 0) < amount for name, amount in before):
            self.fallen.add(tenant)
            self._wake(tenant)

    def _wake(self, tenant: str) -> None:
        """Enqueue who waits for a tenant's limit and stays within it now, in rank order."""
        besides = Counter[str]()
        for rank, more in self._gated.get(tenant, [])[:MOST_ENQUEUED]:
            if not self._over(tenant, more, besides):
                besides.update(dict(more))
                self._ungate(rank[2])
                self._handle.enqueue(rank[2])

    def _ungate(self, key: BindingKey) -> None:
        rank = self._ranks.pop(key, None)
        if rank is not None:
            gated = self._gated[self.tenant_of(key)]
            del gated[bisect_left(gated, rank, key=itemgetter(0))]
            if not gated:
                del self._gated[self.tenant_of(key)]


def _version(binding: Binding) -> object:
    return binding.uid, binding.generation, tuple(binding.spec.clusters)


def _text(amount: int) -> str:
    """Return thousandths as a quantity."""
    for suffix, unit in _UNITS.items():
        if amount % unit == 0 and amount:
            return f"{amount // unit}{suffix}"
    return f"{amount}m" if amount % 1000 else str(amount // 1000)
