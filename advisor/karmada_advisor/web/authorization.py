"""Who asks, by the bearer token of a request or by a session, and whether they may read all that the page shows."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from karmada_advisor.state.stored import mappings, value_at
from karmada_advisor.web.request_query import NO_TOKEN, RETRY_SECONDS
from karmada_advisor.web.sessions import LONGEST_TOKEN, Sessions
from karmada_advisor.web.viewer import LIST_EVENTS, LIST_QUOTAS, Viewer
from karmada_pyscheduler.client.karmada import WATCHED
from karmada_pyscheduler.client.permissions import Permission
from karmada_pyscheduler.client.reviews import (
    SERVICE_ACCOUNT,
    Reviews,
    ReviewUnavailableError,
    TokenRefusedError,
    TooManyRefusedError,
    User,
)
from karmada_pyscheduler.http_server.request_guard import RequestRefusal, bearer_token
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
        subjects = (_key("User", user.name), *(_key("Group", group) for group in user.groups))
        return set().union(*(self._known.get(subject, ()) for subject in subjects))

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


SHOWN: Final = (
    *(Permission("list", kind.group, kind.plural) for kind in WATCHED),
    LIST_QUOTAS,
    Permission("list", "policy.karmada.io", "clustertaintpolicies"),
    LIST_EVENTS,
)
"""What the page shows, as permissions."""


class Authorization(IdentityStruct):
    """Lets requests in by their bearer token, or by that of their session.

    ``audience`` is named to those who need a token. Without ``sessions`` nobody can sign in.
    """

    reviews: Reviews
    hints: NamespaceHints
    audience: str
    sessions: Sessions | None = None

    async def viewer(self, headers: Mapping[str, str], address: str) -> Viewer | RequestRefusal:
        """Return who sends a request from an address, or why it is not answered. A header counts before a session."""
        token = bearer_token(headers)
        is_bearer = bool(token)
        if not is_bearer:
            session = None if self.sessions is None else self.sessions.opened(headers.get("Cookie", ""))
            if not session:
                return self._without_token(headers, has_ended=session is not None)
            token = session
        try:
            user = await self.reviews.user_of(token, address if is_bearer else None)
            missing = await self._missing(user)
        except TokenRefusedError as error:
            if self.sessions is not None and not is_bearer:
                self.sessions.on_refused("token_refused")
            return self._unauthenticated(str(error))
        except (TooManyRefusedError, ReviewUnavailableError) as error:
            return _unknown(error)
        return Viewer(
            user.name,
            tuple(missing),
            partial(self._may, user),
            partial(self.hints.of, user),
            has_session=not is_bearer,
        )

    async def sign_in(self, token: str, address: str) -> tuple[str, ...] | RequestRefusal:
        """Return the values of ``Set-Cookie`` that begin a session with a token from an address, or why there is none."""
        if self.sessions is None:
            return RequestRefusal(404, "nobody signs in here: the page has no --session-keys-file")
        if len(token) > LONGEST_TOKEN:
            text = f"A token of more than {LONGEST_TOKEN:,} characters does not fit into cookies: use a proxy that sends it"
            return RequestRefusal(401, text)
        try:
            await self.reviews.user_of(token, address)
        except TokenRefusedError as error:
            return RequestRefusal(401, str(error))
        except (TooManyRefusedError, ReviewUnavailableError) as error:
            return _unknown(error)
        return self.sessions.sealed(token)

    def _without_token(self, headers: Mapping[str, str], *, has_ended: bool) -> RequestRefusal:
        if has_ended:
            return self._unauthenticated("Your session has ended.")
        if self.sessions is not None and headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}:
            # A browser does not send the cookies with a click on another site's link. It does when the page reloads itself.
            return RequestRefusal(401, "One moment.", {"Refresh": "0"})
        return self._unauthenticated(NO_TOKEN)

    async def _may(self, user: User, wanted: Permission, namespace: str) -> bool:
        return await self.reviews.is_allowed(user, wanted, namespace=namespace)

    def _unauthenticated(self, problem: str) -> RequestRefusal:
        hint = (
            "A proxy sends one in the header Authorization; by hand, with the kubeconfig of Karmada: "
            f"kubectl create token NAME -n NAMESPACE --audience={self.audience}"
        )
        return RequestRefusal(401, problem, {"WWW-Authenticate": "Bearer"}, hint=hint)

    async def _missing(self, user: User) -> list[Permission]:
        allowed = await asyncio.gather(*(self.reviews.is_allowed(user, kind) for kind in SHOWN))
        return [kind for kind, is_allowed in zip(SHOWN, allowed, strict=True) if not is_allowed]


def _unknown(error: TooManyRefusedError | ReviewUnavailableError) -> RequestRefusal:
    headers = {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, TooManyRefusedError):
        return RequestRefusal(429, str(error), headers)
    return RequestRefusal(503, f"The API server cannot check your rights now: {error}.", headers)
