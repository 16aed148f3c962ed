from __future__ import annotations

from pathlib import Path

from tools.controlplane import audit

LINE = '{"user": {"username": "%s"}, "verb": "get"}\n'


def test_a_line_that_the_api_server_has_not_finished_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(LINE % "a" + (LINE % "a")[:20])
    assert len(audit.requests(log)) == 1


def test_only_the_requests_of_the_named_user_are_returned(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(LINE % "a" + LINE % "ab" + '{"user": {"username": "b"}, "verb": "a", "uid": "a"}\n')
    assert [each["user"]["username"] for each in audit.requests(log, user="a")] == ["a"]
