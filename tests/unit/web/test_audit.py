"""The audit log has one line for each request of somebody, and cannot hold up answers."""

from __future__ import annotations

import fcntl
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.web.access import AuditLog, audited
from karmada_pyscheduler.http_server.request_guard import AnsweredRequest, RequestRefusal
from karmada_pyscheduler.records import log_file
from tests.unit.web.site import Site
from tests.unit.web.test_viewer import DEVELOPER, bindings, clusters
from tools.controlplane import wait_for

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


def answered(user: str = "dev", *, route: str = "/b/{namespace}/{name}") -> AnsweredRequest:
    return AnsweredRequest("GET", route, {"namespace": "shop", "name": "web"}, user, "192.0.2.1", 200, 0.0123)


def lines_of(path: Path) -> list[Any]:
    return [json.loads(each) for each in path.read_text().splitlines()]


def test_a_line_says_who_has_read_what(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    with AuditLog(file, now=NOON.timestamp) as log:
        log.add(answered())

    assert lines_of(file) == [
        {
            "time": "2026-11-27T12:00:00.000Z",
            "address": "192.0.2.1",
            "user": "dev",
            "method": "GET",
            "route": "/b/{namespace}/{name}",
            "namespace": "shop",
            "name": "web",
            "status": 200,
            "milliseconds": 12,
        }
    ]


def test_while_a_reader_hangs_lines_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    filled = b"\n" * fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ)
    os.write(writer, filled)
    with os.fdopen(reader, "rb") as lines, AuditLog(Path("stdout"), descriptor=writer) as log:
        log.add(answered("first"))
        wait_for(lambda: not log._file._lines, "the writer to hang in a line", interval=0.01)
        monkeypatch.setattr(log_file, "MAX_BYTES", 0)
        for number in range(3):
            log.add(answered(str(number)))
        monkeypatch.undo()
        log.add(answered("last"))
        assert lines.read(len(filled)) == filled
        found = [json.loads(lines.readline()) for _ in range(2)]
    os.close(writer)

    assert [(each["user"], each.get("dropped")) for each in found] == [("first", None), ("last", 3)]


def test_a_full_disk_loses_lines_and_nothing_else(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    file.symlink_to("/dev/full")
    with AuditLog(file) as log:
        log.add(answered("lost"))
        wait_for(lambda: log._dropped == 1, "a dropped line", interval=0.01)
        file.unlink()
        log.add(answered("kept"))

    assert [(each["user"], each["dropped"]) for each in lines_of(file)] == [("kept", 1)]
    assert caplog.text.count("No space left on device") == 1


def test_its_file_is_continued_and_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    for user in ("first", "second"):
        with audited(str(file)) as note:
            note(answered(user))

    assert [each["user"] for each in lines_of(file)] == ["first", "second"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(NoAnswerError, match=r"--audit-log: .*: Is a directory"),
        audited(str(tmp_path)),
    ):
        pass


async def test_requests_of_the_page_have_lines_without_tokens_and_parameters(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    with AuditLog(file) as log:
        site = Site(tmp_path, clusters=clusters(), bindings=bindings(), viewer=DEVELOPER, on_response=log.add)
        async with site:
            for path in ("/bindings?namespace=shop&q=secret", "/b/shop/web-deployment", "/v1/fleet", "/no"):
                await site.get(path, Authorization="Bearer secret", Cookie="a=secret")

    found = lines_of(file)
    assert [(each["user"].rpartition(":")[2], each["route"], each["status"]) for each in found] == [
        ("dev", "/bindings", 200),
        ("dev", "/b/{namespace}/{name}", 200),
        ("dev", "/v1/fleet", 403),
        ("dev", "", 404),
    ]
    assert "secret" not in file.read_text()


async def test_somebody_who_is_not_let_in_has_a_line_without_a_name(tmp_path: Path) -> None:
    found: list[AnsweredRequest] = []
    async with Site(tmp_path, refusal=RequestRefusal(401, "no token"), on_response=found.append) as site:
        await site.get("/bindings")
        await site.get("/", Host="evil.example")

    assert [(each.address, each.user, each.status) for each in found] == [
        ("127.0.0.1", "", 401),
        ("127.0.0.1", "", 421),
    ]
