"""In which namespaces somebody may have rights: those with a RoleBinding that names them or a group of theirs.

It is a hint only. A SubjectAccessReview decides about each namespace, so a hint that is old, wrong or missing shows nothing that
may not be seen. One for each namespace of a fleet would take seconds for each user.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

from karmada_advisor.state.stored import mappings, value_at
from karmada_pyscheduler.client.reviews import SERVICE_ACCOUNT, User
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import IdentityStruct, field

log = logging.getLogger(__name__)

PATH: Final = "/apis/rbac.authorization.k8s.io/v1/rolebindings"
_KEPT_SECONDS: Final = 60.0
_SECONDS: Final = 10.0
"""How long somebody waits for the list."""

Pages = Callable[[], AsyncGenerator[tuple[Sequence[Mapping[str, Any]], str], None]]


class NamespaceHints(IdentityStruct):
    """The namespaces of RoleBindings by subject, listed when somebody asks and what is known is old.

    ``pages`` yields the items of each page and may raise ApiError; ``clock`` returns seconds.
    """

    pages: Pages
    clock: Callable[[], float] = time.monotonic
    _known: Mapping[str, set[str]] = field(default_factory=dict)
    _until: float = 0.0
    _listing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _is_refused: bool = False

    async def of(self, user: User) -> set[str]:
        """Return the namespaces with a RoleBinding that names somebody; without the right to list them, none."""
        async with self._listing:
            if self.clock() >= self._until:
                await self._list()
                self._until = self.clock() + _KEPT_SECONDS
        subjects = (_key("User", user.name), *(_key("Group", each) for each in user.groups))
        return set().union(*(self._known.get(each, ()) for each in subjects))

    async def _list(self) -> None:
        found: dict[str, set[str]] = {}
        try:
            async with asyncio.timeout(_SECONDS), aclosing(self.pages()) as pages:
                async for items, _ in pages:
                    for item in items:
                        _add(item, found)
        except (ApiError, TimeoutError) as error:
            if not self._is_refused:
                text = "The namespaces of RoleBindings are not known, so the page suggests none of them: %s"
                log.warning(text, error or f"no list within {_SECONDS:g} s")
            self._is_refused = True
            return
        self._known, self._is_refused = found, False


def _key(kind: str, name: str) -> str:
    return f"{kind}/{name}"


def _add(item: Mapping[str, Any], found: dict[str, set[str]]) -> None:
    """Add the namespace of a RoleBinding to each of its subjects."""
    namespace = value_at(item, "metadata", "namespace")
    if not isinstance(namespace, str):
        return
    for subject in mappings(item.get("subjects")):
        kind, name = subject.get("kind"), subject.get("name")
        if kind == "ServiceAccount":
            kind, name = "User", f"{SERVICE_ACCOUNT}{subject.get('namespace')}:{name}"
        found.setdefault(_key(str(kind), str(name)), set()).add(namespace)
