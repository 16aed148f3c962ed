"""Who looks at the page, and what of it they may see.

A viewer who may list everything that the page shows sees everything. Answers to others are computed from a part of the fleet
(``web.scoped_fleet``): the bindings of namespaces in which the Karmada API server lets them list bindings, and what else they may
list. A view that does not say who may see it is for the former only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Final

from karmada_advisor.web.request_query import RequestRefusedError
from karmada_advisor.web.state import Reveal, Scope
from karmada_pyscheduler.client.permissions import Permission
from karmada_pyscheduler.client.reviews import SERVICE_ACCOUNT
from karmada_scheduler.structs import Struct

LIST_BINDINGS: Final = Permission("list", "work.karmada.io", "resourcebindings")
LIST_CLUSTER_BINDINGS: Final = Permission("list", "work.karmada.io", "clusterresourcebindings")
LIST_EVENTS: Final = Permission("list", "", "events")
LIST_QUOTAS: Final = Permission("list", "policy.karmada.io", "federatedresourcequotas")
LIST_CLUSTERS: Final = Permission("list", "cluster.karmada.io", "clusters")
LIST_POLICIES: Final = Permission("list", "policy.karmada.io", "propagationpolicies")
LIST_CLUSTER_POLICIES: Final = Permission("list", "policy.karmada.io", "clusterpropagationpolicies")
LIST_LEASES: Final = Permission("list", "coordination.k8s.io", "leases")

MOST_NAMESPACES: Final = 200
"""Namespaces that are looked at for one viewer; 200 reviews take 0.6 s, and their answers are kept."""


async def _never(_: Permission, __: str) -> bool:
    return False


async def _no_hints() -> Collection[str]:
    return ()


class Viewer(Struct, frozen=True):
    """Somebody who was let in.

    Attributes:
        name: The name of the user.
        missing: What they would need to see everything; none if they do.
        may: Returns whether they have a permission in a namespace, "" for all.
        hints: Returns namespaces in which they may have rights.
        has_session: Whether they have signed in on the page, so that they can sign out.
    """

    name: str
    missing: tuple[Permission, ...]
    may: Callable[[Permission, str], Awaitable[bool]]
    hints: Callable[[], Awaitable[Collection[str]]] = _no_hints
    has_session: bool = False

    @property
    def sees_all(self) -> bool:
        """Whether nothing is hidden."""
        return not self.missing

    @property
    def home(self) -> str:
        """The namespace that they probably look for; "" if it is not known."""
        namespace, _, name = self.name.removeprefix(SERVICE_ACCOUNT).partition(":")
        return namespace if self.name.startswith(SERVICE_ACCOUNT) and name else ""

    async def namespaces(self, existing: Sequence[str]) -> list[str]:
        """Return namespaces whose bindings they may list, their own first; at most ``MOST_NAMESPACES``, and maybe not all.

        Args:
            existing: Those that have bindings, sorted.

        Raises:
            RequestRefusedError: Nobody was let in.
        """
        self.check_known()
        if LIST_BINDINGS not in self.missing:
            return list(existing[:MOST_NAMESPACES])
        found = sorted({*await self.hints(), self.home} - {""}, key=lambda each: (each != self.home, each))
        found = found[:MOST_NAMESPACES]
        allowed = await asyncio.gather(*map(self.may_list, found))
        return [namespace for namespace, is_allowed in zip(found, allowed, strict=True) if is_allowed]

    async def scope(self, reveal: Reveal, namespace: str, existing: Sequence[str]) -> Scope:
        """Return what of the fleet answers are computed from.

        Args:
            reveal: What is read besides the bindings that they may list.
            namespace: The one that is asked about, whose bindings they may list; "" for all that are known to be theirs.
            existing: The namespaces that have bindings, sorted.

        Raises:
            RequestRefusedError: Nobody was let in.
        """
        self.check_known()
        lists_all = LIST_BINDINGS not in self.missing
        if lists_all:
            names = frozenset(existing)
        else:
            names = frozenset((namespace,) if namespace else await self.namespaces(existing))
        has_cluster_bindings = LIST_CLUSTER_BINDINGS not in self.missing
        is_trusted = reveal is Reveal.FLEET
        has_clusters = is_trusted or LIST_CLUSTERS not in self.missing
        has_policies = is_trusted or (
            LIST_CLUSTER_POLICIES not in self.missing and await self._may_in_all(LIST_POLICIES, names)
        )
        has_schedulers = is_trusted or await self.may(LIST_LEASES, "")
        of_policies = LIST_POLICIES if LIST_CLUSTER_POLICIES not in self.missing else LIST_CLUSTER_POLICIES
        others = _unread(
            (lists_all, f"bindings outside of {_listed(names)}", LIST_BINDINGS),
            (has_cluster_bindings, "ClusterResourceBindings", LIST_CLUSTER_BINDINGS),
        )
        facts = _unread(
            (has_clusters, "decisions, and changes that place a binding", LIST_CLUSTERS),
            (has_policies, "what policies say", of_policies),
            (has_schedulers, "which schedulers run", LIST_LEASES),
        )
        return Scope(
            names | {""} if has_cluster_bindings else names,
            has_clusters,
            has_policies,
            has_schedulers,
            is_trusted,
            "; ".join(others),
            (*facts, *others),
        )

    async def _may_in_all(self, wanted: Permission, namespaces: Iterable[str]) -> bool:
        """Return whether they have a permission in each of some namespaces."""
        if wanted not in self.missing:
            return True
        return all(await asyncio.gather(*(self.may(wanted, namespace) for namespace in namespaces)))

    async def may_list(self, namespace: str) -> bool:
        """Return whether they may list the bindings of a namespace."""
        return await self.may(LIST_BINDINGS, namespace)

    async def sees_events(self, namespace: str) -> bool:
        """Return whether they may see the Events of a namespace."""
        return LIST_EVENTS not in self.missing or await self.may(LIST_EVENTS, namespace)

    async def sees_quotas(self, namespace: str) -> bool:
        """Return whether they may see the FederatedResourceQuotas of a namespace."""
        return self.sees_all or await self.may(LIST_QUOTAS, namespace)

    async def sees_templates(self, groups: Iterable[str]) -> bool:
        """Return whether they may list the templates of some API groups in all namespaces; of "", Pods."""
        wanted = [Permission("list", group, "*" if group else "pods") for group in dict.fromkeys(groups)]
        return all(await asyncio.gather(*(self.may(kind, "") for kind in wanted)))

    def check_known(self) -> None:
        """Check that somebody was let in.

        Raises:
            RequestRefusedError: Nobody was.
        """
        if self is NOBODY:
            raise RequestRefusedError(403, "not authenticated")

    def check_all(self) -> None:
        """Check that the viewer may see everything.

        Raises:
            RequestRefusedError: They may not.
        """
        if self.sees_all:
            return
        raise RequestRefusedError(
            403,
            f"{self.name} may not read all that this view shows. Missing: {', '.join(map(str, self.missing))}. "
            "The ClusterRole pyscheduler-reader has these permissions. "
            f"The bindings of one namespace are on /bindings?namespace={self.home or 'NAMESPACE'}",
        )

    async def check_namespace(self, namespace: str) -> None:
        """Check that the viewer may see the bindings of a namespace, before anything is looked up.

        Raises:
            RequestRefusedError: They may not, or no namespace is given. It says the same whether the namespace exists or not.
        """
        if self.sees_all:
            return
        if not namespace:
            raise RequestRefusedError(
                403,
                f"{self.name} may not list the bindings of all namespaces; "
                f"choose one: /bindings?namespace={self.home or 'NAMESPACE'}",
            )
        if not await self.may_list(namespace):
            text = f"{self.name} may not {LIST_BINDINGS} in the namespace {namespace}"
            raise RequestRefusedError(403, text, (LIST_BINDINGS, namespace))


def _unread(*parts: tuple[bool, str, Permission]) -> list[str]:
    """Return what is not read and which permission it needs; parts are whether they are read, what, and the permission."""
    return [f"{what} (you may not {permission})" for is_read, what, permission in parts if not is_read]


def _listed(namespaces: Collection[str]) -> str:
    if len(namespaces) == 1:
        return f"the namespace {next(iter(namespaces))}"
    return f"{len(namespaces):,} namespaces"


async def _always(_: Permission, __: str) -> bool:
    return True


EVERYBODY: Final = Viewer("", (), _always)
"""The viewer of a page on a loopback address."""
NOBODY: Final = Viewer(
    "", (LIST_BINDINGS, LIST_CLUSTER_BINDINGS, LIST_CLUSTERS, LIST_CLUSTER_POLICIES, LIST_EVENTS), _never
)
"""Somebody who was not let in, and gets the page that says so."""
