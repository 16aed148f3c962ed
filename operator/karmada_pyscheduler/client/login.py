"""Keeps credentials valid: reads them again when files change, before they expire, and when they are refused.

Source: k8s.io/client-go v0.35.3 transport/token_source.go, cert_rotation.go and plugin/pkg/client/auth/exec.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from karmada_pyscheduler.client.identity import Identity
from karmada_scheduler.api.content_cache import MEBI, cached_by_content
from karmada_scheduler.process.daemon_thread import InThread, in_daemon_thread
from karmada_scheduler.structs import IdentityStruct

log = logging.getLogger(__name__)

_CHECK_SECONDS: Final = 10.0
"""How often files are checked. The kubelet takes about a minute to update a changed Secret."""

_PAUSES: Final = (5.0, 5.0, 10.0, 20.0, 60.0)
"""Seconds between two attempts to read credentials, growing while they fail."""

_MARGIN_SECONDS: Final = 60.0
_MARGIN_SHARE: Final = 0.2
"""Credentials are read again this long before they expire, or in the last fifth of their life if that is shorter."""


class Login(IdentityStruct):
    """The credentials of one connection. Belongs to one event loop.

    Attributes:
        load: Reads credentials, and gets the current ones; blocks. ConnectionConfigError without any.
        identity: The current credentials; first those to begin with.
        clock: In seconds, never running backwards.
        now: The time of day in seconds since 1970.
        in_thread: Runs ``load``.
    """

    load: Callable[[Identity], Identity]
    identity: Identity
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    in_thread: InThread = in_daemon_thread
    _renewal: asyncio.Task[None] | None = None
    _failures: int = 0
    _not_before: float = 0.0
    _logged: str = ""

    def __post_init__(self) -> None:
        self._check_at = self.clock()
        self._plan_check()
        self._warn(())

    def explain(self, identity: Identity) -> str:
        """Return which refused credentials have expired or are not valid yet, "" for none."""
        now = self.now()
        return identity.expired(now) or identity.not_yet_valid(now)

    def ready(self) -> Identity | None:
        """Return credentials for a request, None if they have expired and are being read."""
        if self.clock() >= self._check_at:
            self._plan_check()
            due = self._due_at()
            if self.identity.files_changed() or (due is not None and self.now() >= due):
                self._start_renewal()
        if self._renewal is not None and self.identity.expired(self.now()):
            return None
        return self.identity

    async def current(self) -> Identity:
        """Return credentials for a request; waits only if they have expired."""
        if self.ready() is None and self._renewal is not None:
            await asyncio.shield(self._renewal)
        return self.identity

    async def renewed(self, refused: Identity) -> Identity:
        """Return credentials that were read after others were refused; the same ones if that was a moment ago."""
        if self.identity is refused:
            self._start_renewal()
            if self._renewal is not None:
                await asyncio.shield(self._renewal)
        return self.identity

    def close(self) -> None:
        """Stop to read credentials."""
        if self._renewal is not None:
            self._renewal.cancel()

    def _due_at(self) -> float | None:
        found = self.identity
        if found.expires_at is None:
            return None
        life = max(0.0, found.expires_at - found.loaded_at)
        return found.expires_at - min(_MARGIN_SECONDS, life * _MARGIN_SHARE)

    def _plan_check(self) -> None:
        due = self._due_at()
        wait = _CHECK_SECONDS if due is None else max(1.0, min(_CHECK_SECONDS, due - self.now()))
        self._check_at = self.clock() + wait

    def _start_renewal(self) -> None:
        if self._renewal is None and self.clock() >= self._not_before:
            self._renewal = asyncio.create_task(self._renew(), name="read credentials")

    async def _renew(self) -> None:
        before = self.identity
        try:
            found = await self.in_thread(lambda: self.load(before), name="credentials")
        except Exception as problem:  # noqa: BLE001 (the current credentials may still be valid)
            self._failures += 1
            if str(problem) != self._logged:
                self._logged = str(problem)
                log.warning(
                    "Cannot read credentials again, the current ones stay in use", extra={"error": problem}
                )
        else:
            self._failures, self._logged = 0, ""
            self.identity = found
            if found.differs_from(before):
                log.info("Read new credentials for the API server")
            self._warn(before.warnings)
        finally:
            self._not_before = self.clock() + _PAUSES[min(self._failures, len(_PAUSES) - 1)]
            self._plan_check()
            self._renewal = None

    def _warn(self, known: tuple[str, ...]) -> None:
        for text in self.identity.warnings:
            if text not in known:
                _warn_once(text)


@cached_by_content(entries=64, short=4096, long_bytes=MEBI)
def _warn_once(text: str) -> None:
    """Log a warning once, although each connection of the process may cause it."""
    log.warning("%s", text)
