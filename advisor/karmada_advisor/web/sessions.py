"""Sessions of browsers: the token that somebody has pasted, sealed in cookies. Nothing is kept here, so all replicas know all sessions.

A session ends with its time, with the token (which is reviewed again and again), or with the key that has sealed it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from karmada_scheduler.structs import IdentityStruct

log = logging.getLogger(__name__)

LONGEST_TOKEN: Final = 4_500
"""Characters of a token. All cookies of a request are one line, and proxies take 8 KiB of it."""

_NAME: Final = "__Host-pyscheduler-"
"""Browsers take such a cookie from this host alone, over TLS."""
_CHUNK: Final = 3_800
"""Characters of the value of one cookie; browsers take 4,096 with name and attributes."""
_CHUNKS: Final = 2
_ATTRIBUTES: Final = "Path=/; Secure; HttpOnly; SameSite=Strict"
_CHECK_SECONDS: Final = 10.0


class SessionKeysError(Exception):
    """The file of keys cannot be used; the text says why, and has no key."""


class Sessions(IdentityStruct):
    """Seals and opens the cookies of a session.

    Raises SessionKeysError at its creation: the file has no keys.

    Attributes:
        keys: A file with a key a line; the first one seals, all open. It is read again when it changes.
        seconds: How long a session lasts at most.
        clock: Seconds since 1970.
        on_refused: Called for each request with a session that has ended: ``expired``, or ``unreadable`` (of a key that
            was removed, or changed). Who reviews the token adds ``token_refused``.
    """

    keys: Path
    seconds: int
    clock: Callable[[], float] = time.time
    on_refused: Callable[[str], None] = lambda _: None
    _problem: str = ""

    def __post_init__(self) -> None:
        self._text = self._read()
        self._keys = _keys_of(self._text, self.keys)
        self._look_at = self.clock() + _CHECK_SECONDS

    def sealed(self, token: str) -> tuple[str, ...]:
        """Return the values of ``Set-Cookie`` for a new session with a token of at most ``LONGEST_TOKEN`` characters."""
        self._refresh()
        text = self._keys.encrypt_at_time(token.encode(), int(self.clock())).decode()
        parts = [text[start : start + _CHUNK] for start in range(0, len(text), _CHUNK)]
        assert len(parts) <= _CHUNKS
        set_ = [
            f"{_NAME}{number}={part}; Max-Age={self.seconds}; {_ATTRIBUTES}"
            for number, part in enumerate(parts)
        ]
        return (*set_, *ended()[len(parts) :])

    def opened(self, header: str) -> str | None:
        """Return the token of the session in a ``Cookie`` header: "" if it has ended, None if there is none."""
        values: dict[str, str] = {}
        for part in header.split(";"):
            name, _, value = part.strip().partition("=")
            values.setdefault(name, value)
        parts = [values[name] for name in map(_name, range(_CHUNKS)) if values.get(name)]
        if not parts:
            return None
        self._refresh()
        sealed = "".join(parts)
        try:
            return self._keys.decrypt_at_time(sealed, self.seconds, int(self.clock())).decode()
        except (InvalidToken, ValueError):  # not ASCII is a ValueError
            self.on_refused("expired" if self._is_ours(sealed) else "unreadable")
            return ""

    def _is_ours(self, sealed: str) -> bool:
        """Return whether a key opens what is sealed, whatever its age."""
        try:
            self._keys.decrypt(sealed)
        except (InvalidToken, ValueError):
            return False
        return True

    def _refresh(self) -> None:
        """Take the keys of the file as it is now. One that cannot be used is logged, and the keys before stay."""
        now = self.clock()
        if self._look_at - _CHECK_SECONDS <= now < self._look_at:  # else the clock was set back
            return
        self._look_at = now + _CHECK_SECONDS
        try:
            text = self._read()
            if text != self._text:
                self._text, self._keys = text, _keys_of(text, self.keys)
                log.info("Read the keys of sessions again")
            self._problem = ""
        except SessionKeysError as error:
            if str(error) != self._problem:
                log.error("The keys of sessions stay those before: %s", error)  # noqa: TRY400 (the text says it)
            self._problem = str(error)

    def _read(self) -> bytes:
        try:
            return self.keys.read_bytes()
        except OSError as error:
            raise SessionKeysError(f"{self.keys}: {error.strerror}") from error


def ended() -> tuple[str, ...]:
    """Return the values of ``Set-Cookie`` that end the session of a browser."""
    return tuple(f"{_name(number)}=; Max-Age=0; {_ATTRIBUTES}" for number in range(_CHUNKS))


def _name(number: int) -> str:
    return f"{_NAME}{number}"


def _keys_of(text: bytes, path: Path) -> MultiFernet:
    keys = []
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            keys.append(Fernet(line.strip()))
        except ValueError:
            raise SessionKeysError(
                f"{path}: line {number} is no key; make one with: openssl rand -base64 32 | tr +/ -_"
            ) from None
    if not keys:
        raise SessionKeysError(f"{path} has no key; make one with: openssl rand -base64 32 | tr +/ -_")
    return MultiFernet(keys)
