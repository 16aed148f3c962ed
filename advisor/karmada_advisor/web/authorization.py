"""Who may read the page: people who may read all that it shows, as the Karmada API server says.

The page shows everything to everybody whom it lets in. So it asks for the permission to list each kind that it shows, in all
namespaces. The order of the checks is: who is it, may they read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from karmada_scheduler.client.permissions import Permission
from karmada_scheduler.client.reviews import Reviews, ReviewUnavailableError, TokenRefusedError, User
from karmada_scheduler.http_server.request_guard import RequestRefusal

SHOWN: Final = (
    Permission("list", "work.karmada.io", "resourcebindings"),
    Permission("list", "work.karmada.io", "clusterresourcebindings"),
    Permission("list", "cluster.karmada.io", "clusters"),
    Permission("list", "policy.karmada.io", "propagationpolicies"),
    Permission("list", "policy.karmada.io", "clusterpropagationpolicies"),
    Permission("list", "policy.karmada.io", "federatedresourcequotas"),
    Permission("list", "policy.karmada.io", "clustertaintpolicies"),
    Permission("list", "", "events"),
)
"""What the page shows, as permissions."""

_RETRY_SECONDS: Final = 2


class Authorization:
    """Lets requests in by their bearer token."""

    def __init__(self, reviews: Reviews, *, audience: str) -> None:
        """Ask ``reviews``; ``audience`` is named to those who need a token."""
        self._reviews = reviews
        self._audience = audience

    async def refusal(self, headers: Mapping[str, str]) -> RequestRefusal | None:
        """Return why a request is not answered, None if it is."""
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return self._not_known("The page needs a bearer token of the Karmada API server.")
        try:
            user = await self._reviews.user_of(token.strip())
            missing = await self._missing(user)
        except TokenRefusedError as error:
            return self._not_known(str(error))
        except ReviewUnavailableError as error:
            text = f"Nobody knows at the moment whether you may read this: {error}."
            return RequestRefusal(503, text, {"Retry-After": str(_RETRY_SECONDS)})
        if not missing:
            return None
        return RequestRefusal(
            403,
            f"{user.name} may not read all that the page shows. Missing: {', '.join(map(str, missing))}. "
            "The ClusterRole pyscheduler-reader has these permissions.",
        )

    def _not_known(self, problem: str) -> RequestRefusal:
        text = (
            f"{problem} A proxy sends one in the header Authorization; by hand, with the kubeconfig of Karmada: "
            f"kubectl create token NAME -n NAMESPACE --audience={self._audience}"
        )
        return RequestRefusal(401, text, {"WWW-Authenticate": "Bearer"})

    async def _missing(self, user: User) -> list[Permission]:
        allowed = await asyncio.gather(*(self._reviews.is_allowed(user, each) for each in SHOWN))
        return [each for each, is_allowed in zip(SHOWN, allowed, strict=True) if not is_allowed]
