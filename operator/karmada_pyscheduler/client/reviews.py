"""Who somebody is and what they may read, as an API server says: TokenReview and SubjectAccessReview.

Answers are kept for a short time. Without a fresh answer there is none: an old yes is never used. A status of 201 alone is
no yes, because a token that is not known gets one, too. About unknown tokens the API server is asked until some of an address, or
many of all, were refused; a token to which it has said yes stays known.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Generic, TypeVar

from karmada_pyscheduler.client.connection import ApiConnection
from karmada_pyscheduler.client.identity import claims_of_token
from karmada_pyscheduler.client.permissions import AUTHORIZATION, Permission, create_review
from karmada_pyscheduler.http_server.connections import counted_as
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.rate_limit import RatesByName, TokenBucket
from karmada_scheduler.structs import IdentityStruct, Struct, field

AUTHENTICATION: Final = "authentication.k8s.io/v1"


LONGEST_TOKEN: Final = 16 * 1024
"""Characters of a token. The API server takes 140 ms to refuse one of 1 MB."""
KEPT_SECONDS: Final = 30.0
"""How long a yes is kept by default."""

SERVICE_ACCOUNT: Final = "system:serviceaccount:"
"""Before namespace and name in the name of the user that an account is."""

_REFUSED_SECONDS: Final = 10.0
"""How long a no is kept at most."""
_MINUTE: Final = 60.0
_REFUSED_OF_ADDRESS: Final = 10
"""Tokens of one address that are refused in a minute; with those that are under review meanwhile, ``_AT_ONCE`` more."""
_REFUSED_OF_ALL: Final = 300
"""The same of all together."""
_SECONDS: Final = 3.0
"""How long a review may take."""
_AT_ONCE: Final = 32
_KEPT_USERS: Final = 1_000
_KEPT_PERMISSIONS: Final = 10_000
"""Each has a hash and a boolean."""
_LONGEST_USER: Final = 64 * 1024
"""Characters of a user with all groups and attributes."""

T = TypeVar("T")
OnReview = Callable[[str, str, str], None]
"""Gets the kind of a review, its result, and its source: ``asked``, ``kept``, ``failed`` or ``limited``. No user is in it."""


class Reviewer(Struct, frozen=True):
    """The name of an API server in the texts of refusals.

    Attributes:
        name: Within a sentence.
        other: What issues the tokens that are taken for its own.
    """

    name: str
    other: str


KARMADA: Final = Reviewer("the Karmada API server", "the cluster that hosts Karmada")
HOST: Final = Reviewer("the API server of the host", "Karmada")


class TokenRefusedError(Exception):
    """The API server does not know whose token it is; the text says why, and what to do."""


class TooManyRefusedError(Exception):
    """Too many tokens were refused, so the API server is not asked about another one."""


class ReviewUnavailableError(Exception):
    """The API server has not answered, so nobody knows."""


class User(Struct, frozen=True):
    """Whom the API server takes the holder of a token for. All of it is part of the question what they may read.

    Attributes:
        name: For example ``system:serviceaccount:shop:dev``.
        uid: It differs when an account was deleted and created again.
        groups: Their groups.
        extra: Further attributes, with their values.
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Reviews(IdentityStruct):
    """Reviews by one API server.

    Attributes:
        connection: To the API server, as somebody who may create reviews.
        audiences: A token is for one of these; empty for the API server's own.
        reviewer: Which API server it is.
        kept_seconds: How long a yes is kept.
        clock: In seconds, never running backwards.
        on_review: Called with each review.
    """

    connection: ApiConnection
    audiences: Sequence[str] = ()
    reviewer: Reviewer = KARMADA
    kept_seconds: float = KEPT_SECONDS
    clock: Callable[[], float] = time.monotonic
    on_review: OnReview = lambda *_: None
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    _refused_of: RatesByName = field(
        default_factory=lambda: RatesByName(_REFUSED_OF_ADDRESS / _MINUTE, _REFUSED_OF_ADDRESS)
    )

    def __post_init__(self) -> None:
        self._users = _Answers[User | TokenRefusedError](
            _KEPT_USERS,
            self.clock,
            self.kept_seconds,
            is_yes=lambda found: isinstance(found, User),
            note=partial(self.on_review, "TokenReview"),
            results={True: "success", False: "failure"},
        )
        self._allowed = _Answers[bool](
            _KEPT_PERMISSIONS,
            self.clock,
            self.kept_seconds,
            is_yes=bool,
            note=partial(self.on_review, "SubjectAccessReview"),
            results={True: "allowed", False: "denied"},
        )
        self._refused = TokenBucket(_REFUSED_OF_ALL / _MINUTE, _REFUSED_OF_ALL, self.clock())

    async def user_of(self, token: str, address: str | None) -> User:
        """Return whose token it is.

        Args:
            token: The token.
            address: Where it comes from; None for a token that is no guess, because it was sealed here.

        Raises:
            TokenRefusedError: It is nobody's.
            TooManyRefusedError: Too many were nobody's.
            ReviewUnavailableError: The API server has not answered.
        """
        if not token or len(token) > LONGEST_TOKEN or not token.isascii() or not token.isprintable():
            raise TokenRefusedError(f"a token has 1 to {LONGEST_TOKEN:,} printable ASCII characters")
        key = hashlib.sha256(token.encode()).digest()
        guesser = None if address is None or self._users.was_yes(key) else counted_as(address)
        found = await self._users.of(key, lambda: self._review_token(token, guesser))
        if isinstance(found, TokenRefusedError):
            raise TokenRefusedError(str(found))
        return found

    async def is_allowed(self, user: User, wanted: Permission, *, namespace: str = "") -> bool:
        """Return whether somebody has a permission, in all namespaces or in one.

        Raises:
            ReviewUnavailableError: The API server has not answered.
        """
        resource, _, subresource = wanted.resource.partition("/")
        attributes = {
            "verb": wanted.verb,
            "group": wanted.group,
            "resource": resource,
            "subresource": subresource,
        }
        attributes |= {"namespace": namespace, "name": wanted.name}
        given = {name: value for name, value in attributes.items() if value}
        return await self._may(user, {"resourceAttributes": given})

    async def may_get(self, user: User, path: str) -> bool:
        """Return whether somebody may get a path that is none of a resource (``nonResourceURLs`` of a ClusterRole).

        Raises:
            ReviewUnavailableError: The API server has not answered.
        """
        return await self._may(user, {"nonResourceAttributes": {"path": path, "verb": "get"}})

    async def _may(self, user: User, attributes: Mapping[str, Mapping[str, str]]) -> bool:
        key = hashlib.sha256(repr((user, attributes)).encode()).digest()
        return await self._allowed.of(key, lambda: self._review_access(user, attributes))

    async def _review_token(self, token: str, guesser: str | None) -> User | TokenRefusedError:
        spec: dict[str, Any] = {"token": token}
        if self.audiences:
            spec["audiences"] = list(self.audiences)
        status = await self._review(AUTHENTICATION, "TokenReview", spec, guesser)
        user = _user_of(status.get("user"))
        granted = status.get("audiences")
        granted = set(map(str, granted)) if isinstance(granted, list) else set()
        is_for_us = not self.audiences or not granted.isdisjoint(self.audiences)
        if status.get("authenticated") is True and user is not None and is_for_us:
            return user
        if guesser is not None:
            self._refused.take(self.clock())
            self._refused_of.take(guesser, self.clock())
        problem = status.get("error")
        text = problem[:300] if isinstance(problem, str) else ""
        return TokenRefusedError(_refusal(token, text, self.audiences, self.reviewer))

    async def _review_access(self, user: User, attributes: Mapping[str, Mapping[str, str]]) -> bool:
        extra = {name: list(values) for name, values in user.extra}
        about = {"user": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
        spec = {**about, **attributes}
        status = await self._review(AUTHORIZATION, "SubjectAccessReview", spec)
        return status.get("allowed") is True and status.get("denied") is not True

    async def _review(
        self, version: str, kind: str, spec: Mapping[str, Any], guesser: str | None = None
    ) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(_SECONDS), self._slots:
                if guesser is not None:
                    self._check_refused(guesser)
                response = await create_review(self.connection, version, kind, spec, timeout=_SECONDS)
        except TimeoutError:
            raise ReviewUnavailableError(f"no {kind} within {_SECONDS:g} s") from None
        except ApiError as error:
            if error.code in (401, 403):
                hint = f"its own user needs the verb create on {kind.lower()}s"
                raise ReviewUnavailableError(f"the API server refuses a {kind}: {error}; {hint}") from error
            raise ReviewUnavailableError(f"no {kind}: {error}") from error
        status = response.get("status")
        return status if isinstance(status, dict) else {}

    def _check_refused(self, guesser: str) -> None:
        if not self._refused_of.allows(guesser, self.clock()):
            text = "Too many tokens from this address were refused. Try again in a minute."
            raise TooManyRefusedError(text)
        if not self._refused.allows(self.clock()):
            raise TooManyRefusedError("Too many tokens were refused. Try again in a minute.")


class _Answers(IdentityStruct, Generic[T]):
    """Answers by question, kept for a time; who asks while an answer is under way waits for the same one."""

    most: int
    clock: Callable[[], float]
    kept_seconds: float
    is_yes: Callable[[T], bool]
    note: Callable[[str, str], None]
    results: Mapping[bool, str]
    _kept: OrderedDict[bytes, tuple[float, T]] = field(default_factory=OrderedDict)
    _under_way: dict[bytes, asyncio.Task[T]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._seconds = {True: self.kept_seconds, False: min(_REFUSED_SECONDS, self.kept_seconds)}

    def was_yes(self, key: bytes) -> bool:
        """Return whether the last answer to a question was yes, however old it is."""
        kept = self._kept.get(key)
        return kept is not None and self.is_yes(kept[1])

    async def of(self, key: bytes, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the kept answer, or ask. An error is kept by nobody."""
        kept = self._kept.get(key)
        if kept is not None and self.clock() < kept[0]:
            answer = kept[1]
        elif (under_way := self._under_way.get(key)) is not None:
            answer = await asyncio.shield(under_way)
        else:
            # The answer is as old as its question: a right may be removed while the answer is under way.
            task = self._under_way[key] = asyncio.create_task(self._ask(key, ask, self.clock()))
            return await asyncio.shield(task)
        self.note(self.results[self.is_yes(answer)], "kept")
        return answer

    async def _ask(self, key: bytes, ask: Callable[[], Coroutine[Any, Any, T]], began: float) -> T:
        try:
            answer = await ask()
        except TooManyRefusedError:
            self.note(self.results[False], "limited")
            raise
        except Exception:
            self.note("error", "failed")
            raise
        finally:
            del self._under_way[key]
        is_yes = self.is_yes(answer)
        self.note(self.results[is_yes], "asked")
        self._kept[key] = (began + self._seconds[is_yes], answer)
        self._kept.move_to_end(key)
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)
        return answer


def _refusal(token: str, problem: str, audiences: Sequence[str], reviewer: Reviewer) -> str:
    """Return why a token is refused and what to do, by what the API server said and by its unverified claims."""
    claims = claims_of_token(token)  # a hint only: nobody has verified them
    said = f" The API server says: {problem}." if problem else ""
    expires = claims.get("exp")
    if isinstance(expires, int) and 0 < expires < time.time():
        return f"The token has expired at {datetime.fromtimestamp(expires, UTC):%Y-%m-%d %H:%M:%SZ}.{said}"
    given = claims.get("aud", [])
    given = [given] if isinstance(given, str) else given
    # Other tokens are for a client of their issuer, and name no audience of ours.
    is_of_account = str(claims.get("sub")).startswith(SERVICE_ACCOUNT)
    if audiences and is_of_account and isinstance(given, list) and not set(map(str, given)) & set(audiences):
        names = ", ".join(map(str, given))[:200] or "nobody"
        return f"The token is for {names}; expected {' or '.join(audiences)}.{said}"
    if not claims:
        return f"This is no token of {reviewer.name}.{said}"
    here = ", and its audience here" if audiences else ""
    return (
        f"{reviewer.name[0].upper()}{reviewer.name[1:]} does not know this token. Is it one of {reviewer.other}, or of an account "
        f"that was deleted? A token of an identity provider needs --oidc-issuer-url there{here}.{said}"
    )


def _user_of(given: object) -> User | None:
    """Return the user of a TokenReview; None if it has no name, or is no user."""
    if not isinstance(given, dict) or not isinstance(given.get("username"), str) or not given["username"]:
        return None
    groups, extra = given.get("groups") or [], given.get("extra") or {}
    if not isinstance(groups, list) or not isinstance(extra, dict):
        return None
    user = User(
        given["username"],
        str(given.get("uid") or ""),
        tuple(map(str, groups)),
        tuple((str(name), tuple(map(str, values or ()))) for name, values in sorted(extra.items())),
    )
    return user if len(repr(user)) <= _LONGEST_USER else None


log = logging.getLogger(__name__)
