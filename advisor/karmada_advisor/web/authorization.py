"""Who asks, by the bearer token of a request or by a session, and whether they may read all that the page shows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final

from karmada_advisor.web.namespaces import NamespaceHints
from karmada_advisor.web.request_query import NO_TOKEN, RETRY_SECONDS
from karmada_advisor.web.sessions import LONGEST_TOKEN, Sessions
from karmada_advisor.web.viewer import LIST_EVENTS, LIST_QUOTAS, Viewer
from karmada_pyscheduler.client.karmada import WATCHED
from karmada_pyscheduler.client.permissions import Permission
from karmada_pyscheduler.client.reviews import (
    Reviews,
    ReviewUnavailableError,
    TokenRefusedError,
    TooManyRefusedError,
    User,
)
from karmada_pyscheduler.http_server.request_guard import RequestRefusal, bearer_token
from karmada_scheduler.structs import IdentityStruct

SHOWN: Final = (
    *(Permission("list", each.group, each.plural) for each in WATCHED),
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
        allowed = await asyncio.gather(*(self.reviews.is_allowed(user, each) for each in SHOWN))
        return [each for each, is_allowed in zip(SHOWN, allowed, strict=True) if not is_allowed]


def _unknown(error: TooManyRefusedError | ReviewUnavailableError) -> RequestRefusal:
    headers = {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, TooManyRefusedError):
        return RequestRefusal(429, str(error), headers)
    return RequestRefusal(503, f"The API server cannot check your rights now: {error}.", headers)
