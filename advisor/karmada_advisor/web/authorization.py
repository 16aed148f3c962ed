"""Who asks, by the bearer token of a request, and whether they may read all that the page shows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final

from karmada_advisor.web.namespaces import NamespaceHints
from karmada_advisor.web.request_query import RETRY_SECONDS
from karmada_advisor.web.viewer import LIST_BINDINGS, Viewer
from karmada_scheduler.client.karmada import FEDERATED_RESOURCE_QUOTAS, WATCHED
from karmada_scheduler.client.permissions import Permission
from karmada_scheduler.client.reviews import Reviews, ReviewUnavailableError, TokenRefusedError, User
from karmada_scheduler.http_server.request_guard import RequestRefusal

SHOWN: Final = (
    *(Permission("list", each.group, each.plural) for each in (*WATCHED, FEDERATED_RESOURCE_QUOTAS)),
    Permission("list", "policy.karmada.io", "clustertaintpolicies"),
    Permission("list", "", "events"),
)
"""What the page shows, as permissions."""


class Authorization:
    """Lets requests in by their bearer token."""

    def __init__(self, reviews: Reviews, hints: NamespaceHints, *, audience: str) -> None:
        """Ask ``reviews``; ``audience`` is named to those who need a token."""
        self._reviews = reviews
        self._hints = hints
        self._audience = audience

    async def viewer(self, headers: Mapping[str, str]) -> Viewer | RequestRefusal:
        """Return who sends a request, or why it is not answered."""
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return self._unauthenticated("The page needs a bearer token of the Karmada API server.")
        try:
            user = await self._reviews.user_of(token.strip())
            missing = await self._missing(user)
        except TokenRefusedError as error:
            return self._unauthenticated(str(error))
        except ReviewUnavailableError as error:
            text = f"Nobody knows at the moment whether you may read this: {error}."
            return RequestRefusal(503, text, {"Retry-After": str(RETRY_SECONDS)})
        return Viewer(user.name, tuple(missing), partial(self._may_list, user), partial(self._hints.of, user))

    async def _may_list(self, user: User, namespace: str) -> bool:
        return await self._reviews.is_allowed(user, LIST_BINDINGS, namespace=namespace)

    def _unauthenticated(self, problem: str) -> RequestRefusal:
        text = (
            f"{problem} A proxy sends one in the header Authorization; by hand, with the kubeconfig of Karmada: "
            f"kubectl create token NAME -n NAMESPACE --audience={self._audience}"
        )
        return RequestRefusal(401, text, {"WWW-Authenticate": "Bearer"})

    async def _missing(self, user: User) -> list[Permission]:
        allowed = await asyncio.gather(*(self._reviews.is_allowed(user, each) for each in SHOWN))
        return [each for each, is_allowed in zip(SHOWN, allowed, strict=True) if not is_allowed]
