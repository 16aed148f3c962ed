"""When credentials are read again."""

from __future__ import annotations

import asyncio
import ssl
import threading
from pathlib import Path

import pytest

from karmada_pyscheduler.client.identity import ConnectionConfigError, Identity, stat_of
from karmada_pyscheduler.client.login import Login

_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class LoginHarness:
    """Credentials that are numbered by the reads before them."""

    def __init__(self, file: Path, *, life: float | None = None, changes: bool = True) -> None:
        self.file = file
        self.life = life
        self.changes = changes
        self.now = 1000.0
        self.reads = 0
        self.failure: Exception | None = None
        self.hold: threading.Event | None = None
        self.login = Login(self._load, self._identity(), clock=lambda: self.now, now=lambda: self.now)

    def _load(self, _: Identity) -> Identity:
        if self.hold is not None:
            assert self.hold.wait(10)
        self.reads += 1
        if self.failure is not None:
            raise self.failure
        return self._identity()

    def _identity(self) -> Identity:
        return Identity(
            server="http://it",
            authorization=f"Bearer {self.reads if self.changes else 0}",
            tls=_TLS,
            tls_name=None,
            proxy_url=None,
            material=b"",
            files=((str(self.file), stat_of(str(self.file))),),
            loaded_at=self.now,
            expires_at=None if self.life is None else self.now + self.life,
            shortcoming="the token",
        )

    def replace(self, text: str) -> None:
        self.file.write_text(text)

    async def wait_for_renewal(self) -> None:
        while self.login._renewal is not None:
            await asyncio.sleep(0)

    async def reads_after(self, seconds: float) -> int:
        """Request credentials after some seconds, and return how often they were read for it."""
        self.now += seconds
        await self.login.current()
        await self.wait_for_renewal()
        return self.reads


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first")
    return path


async def test_credentials_that_stay_are_read_once(file: Path) -> None:
    harness = LoginHarness(file)
    for _ in range(10):
        assert await harness.reads_after(11) == 0


async def test_a_file_that_changed_is_read_again_within_ten_seconds(file: Path) -> None:
    harness = LoginHarness(file)
    harness.replace("second one")
    assert await harness.reads_after(9) == 0
    assert await harness.reads_after(1) == 1
    assert harness.login.identity.authorization == "Bearer 1"


async def test_a_file_behind_a_link_that_is_swapped_is_read_again(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text("same")
    link = tmp_path / "link"
    link.symlink_to("one")
    harness = LoginHarness(link)
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").rename(link)
    assert await harness.reads_after(11) == 1


async def test_credentials_are_read_again_before_they_expire(file: Path) -> None:
    harness = LoginHarness(file, life=900)
    assert await harness.reads_after(835) == 0
    assert await harness.reads_after(10) == 1
    assert await harness.reads_after(835) == 1
    assert await harness.reads_after(10) == 2


async def test_credentials_of_a_short_life_are_read_again_in_the_last_fifth_of_it(file: Path) -> None:
    harness = LoginHarness(file, life=12)
    assert await harness.reads_after(9) == 0
    assert await harness.reads_after(1) == 1


async def test_refused_credentials_are_read_again_once_for_all_requests(file: Path) -> None:
    harness = LoginHarness(file)
    refused = harness.login.identity
    found = await asyncio.gather(*(harness.login.renewed(refused) for _ in range(5)))
    assert harness.reads == 1
    assert {each.authorization for each in found} == {"Bearer 1"}
    assert all(each.differs_from(refused) for each in found)
    assert (await harness.login.renewed(refused)).authorization == "Bearer 1"
    assert harness.reads == 1


async def test_credentials_are_read_at_most_once_in_some_seconds(file: Path) -> None:
    harness = LoginHarness(file, changes=False)
    for _ in range(5):
        found = await harness.login.renewed(harness.login.identity)
        assert not found.differs_from(harness.login.identity)
    assert harness.reads == 1
    harness.now += 6
    await harness.login.renewed(harness.login.identity)
    assert harness.reads == 2


async def test_no_request_waits_while_the_current_credentials_are_valid(file: Path) -> None:
    harness = LoginHarness(file)
    harness.hold = threading.Event()
    harness.replace("second one")
    harness.now += 11
    assert (await harness.login.current()).authorization == "Bearer 0"
    harness.hold.set()
    await harness.wait_for_renewal()
    assert (await harness.login.current()).authorization == "Bearer 1"


async def test_requests_wait_for_expired_credentials(file: Path) -> None:
    harness = LoginHarness(file, life=20)
    harness.now += 21
    assert (await harness.login.current()).authorization == "Bearer 1"


async def test_unreadable_credentials_leave_the_current_ones_in_use_and_are_logged_once(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    harness = LoginHarness(file)
    harness.failure = ConnectionConfigError("broken")
    harness.replace("second one")
    for _ in range(20):
        await harness.reads_after(11)
    assert harness.login.identity.authorization == "Bearer 0"
    assert 3 < harness.reads < 10, "the pauses grow"
    assert [record.__dict__["error"] for record in caplog.records] == [harness.failure]
    harness.failure = None
    await harness.reads_after(61)
    assert harness.login.identity.authorization == f"Bearer {harness.reads}"


async def test_refused_credentials_that_have_expired_are_explained(file: Path) -> None:
    harness = LoginHarness(file, life=100)
    assert harness.login.explain(harness.login.identity) == ""
    harness.now += 101
    assert harness.login.explain(harness.login.identity) == "the token expired on 1970-01-01T00:18:20Z"
