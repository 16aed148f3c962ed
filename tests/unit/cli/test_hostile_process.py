"""``--from`` names something that is not the scheduler: an answer without its record, in bounded time and memory."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.fleet import process, process_http
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.process_http import ProcessAddress
from karmada_scheduler import command
from tests.unit.explain.fleet import billing, checkout, fleet
from tests.unit.web.site import write

Behaviour = Callable[[socket.socket], None]


@contextlib.contextmanager
def serving(behaviour: Behaviour) -> Iterator[str]:
    """Serve every connection with a behaviour; yield the URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    link, _ = listener.accept()
                    threading.Thread(target=answer, args=(link,), daemon=True).start()

        def answer(link: socket.socket) -> None:
            with link, contextlib.suppress(OSError):
                link.recv(65_536)
                behaviour(link)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def sending(text: str | bytes) -> Behaviour:
    return lambda link: link.sendall(text if isinstance(text, bytes) else text.encode())


def response(body: str, status: str = "200 OK", headers: str = "") -> Behaviour:
    return sending(f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body.encode())}\r\n\r\n{body}")


def endless(link: socket.socket) -> None:
    link.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"record": "')
    while True:
        link.sendall(b"x" * 65_536)


def slow_body(link: socket.socket) -> None:
    link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{")
    while True:
        link.sendall(b" ")
        time.sleep(0.02)


def slow_head(link: socket.socket) -> None:
    link.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        link.sendall(b"x")
        time.sleep(0.02)


def silent(link: socket.socket) -> None:
    time.sleep(2)


HOSTILE: Mapping[str, tuple[Behaviour, str]] = {
    "closes": (sending(""), "Remote end closed connection"),
    "no-http": (sending("SSH-2.0-OpenSSH_9.6\r\n"), "it speaks no HTTP (BadStatusLine)"),
    "silent": (silent, ""),
    "endless": (endless, "the response has more than 1 MiB"),
    "slow-body": (slow_body, "no complete answer within 0.5 s"),
    "slow-head": (slow_head, "no complete answer within 0.5 s"),
    "truncated": (
        sending("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}"),
        "the response ends before it is complete",
    ),
    "broken-chunks": (
        sending("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        "it speaks no HTTP (IncompleteRead)",
    ),
    "headers": (
        sending("HTTP/1.1 200 OK\r\n" + "X: y\r\n" * 1000 + "\r\n"),
        "it speaks no HTTP (HTTPException)",
    ),
    "long-header": (
        sending("HTTP/1.1 200 OK\r\nX: " + "y" * 100_000 + "\r\n\r\n"),
        "it speaks no HTTP (LineTooLong)",
    ),
    "redirect": (response("", "302 Found", "Location: http://127.0.0.1:1/\r\n"), "it redirects (status 302)"),
    "file": (response("", "301 Moved", "Location: file:///etc/passwd\r\n"), "it redirects (status 301)"),
    "list": (response("[]"), "the response is no JSON object"),
    "page": (response("<html>"), "unexpected character"),
    "bytes": (sending(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe"), ""),
    "number": (response('{"queue": {"dueInSeconds": 1e999}}'), ""),
    "text-for-number": (
        response('{"queue": {"dueInSeconds": "5"}}'),
        "queue.dueInSeconds: expected a number",
    ),
    "list-for-object": (response('{"queue": [1]}'), "queue: expected an object"),
    "targets": (
        response('{"record": {"targets": {"m1": "many"}}}'),
        "record.targets.m1: expected an integer",
    ),
}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_http, "_TIMEOUT_SECONDS", 0.3)
    monkeypatch.setattr(process_http, "_TOTAL_SECONDS", 0.5)
    monkeypatch.setattr(process_http, "_MAX_BYTES", 2**20)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = {kind: tmp_path / f"{kind}.json" for kind in ("clusters", "bindings")}
    write(paths["clusters"], fleet())
    write(paths["bindings"], [checkout(), billing()])
    return [f"--{kind}={path}" for kind, path in paths.items()]


@pytest.mark.parametrize("name", HOSTILE)
def test_an_answer_that_cannot_be_used_is_named_and_the_binding_is_explained(
    files: list[str], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    behaviour, problem = HOSTILE[name]
    with serving(behaviour) as url:
        began = time.monotonic()
        status = command.main(
            ["explain", "checkout-deployment", "-n", "shop", *files, "--from", url, "-o", "json"]
        )
        assert time.monotonic() - began < 30
    found = json.loads(capsys.readouterr().out)
    assert status in {0, 1}
    text = json.dumps(found["provenance"])
    assert f"{url} cannot be read: " in text
    assert problem in text


def test_json_of_any_depth_is_read_or_refused(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for body in (
        '{"record": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"a":' * 100_000 + "1" + "}" * 100_000,
    ):
        with serving(response(body)) as url:
            status = command.main(["explain", "checkout-deployment", "-n", "shop", *files, "--from", url])
        captured = capsys.readouterr()
        assert status in {0, 1}
        assert "Traceback" not in captured.err


def test_requests_without_an_answer_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_http, "_unanswered", threading.BoundedSemaphore(1))
    with serving(slow_head) as url:
        with pytest.raises(NoAnswerError, match="no complete answer"):
            process.read_state(ProcessAddress(url))
        with pytest.raises(NoAnswerError, match="16 requests before this one"):
            process.read_state(ProcessAddress(url))


@pytest.mark.parametrize(
    "body",
    [
        {"queue": []},
        {"queue": {"due": "many"}},
        {"leading": "yes"},
        {"gated": 5},
        {"records": {"bindings": 1e30}},
        {"process": {"name": "x"}},
    ],
)
def test_a_state_with_wrong_types_is_refused(body: dict[str, Any]) -> None:
    with serving(response(json.dumps(body))) as url, pytest.raises(NoAnswerError, match="cannot be read: "):
        process.read_state(ProcessAddress(url))


def test_records_with_wrong_types_are_left_out() -> None:
    good = {"key": "a/b", "kind": "ResourceBinding", "at": "2026-11-22T14:02:11.482Z", "targets": {"m1": 1}}
    bad: list[Any] = [1, [], {**good, "targets": [1]}, {**good, "attempts": {"a": 1}}, {**good, "at": 5}]
    with serving(response(json.dumps({"items": [*bad, good]}))) as url:
        assert [each["targets"] for each in process.read_decisions(ProcessAddress(url), 400)] == [{"m1": 1}]
    with (
        serving(response('{"items": {}, "error": ["x"]}')) as url,
        pytest.raises(NoAnswerError, match="status 200"),
    ):
        process.read_decisions(ProcessAddress(url), 400)


@pytest.mark.parametrize(
    "url", ["http://localhost:99999", "http://localhost:x", "http://[::1", "http://a b:80"]
)
def test_a_url_that_cannot_be_used_is_a_problem(url: str) -> None:
    with pytest.raises(NoAnswerError):
        process.read_state(ProcessAddress(url))
