"""``karmada-pyscheduler web``: a page in the browser about a control plane, or about files. Nothing is written."""

from __future__ import annotations

import argparse
import asyncio
import logging
import resource
import signal
import sys
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, redirect_stdout
from typing import Any, Final

import uvloop

from karmada_advisor.cli.output import GOOD, NO_ANSWER, NOT_GOOD, print_error, print_failure
from karmada_advisor.cli.questions import process_rules_of, source_of
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import ControlPlane
from karmada_advisor.web.access import audited, authorization_of, certificate_of, check_flags
from karmada_advisor.web.answer_worker import AnswerWorker
from karmada_advisor.web.answers import Answers
from karmada_advisor.web.handlers import PROBES, Handlers
from karmada_advisor.web.leader import leader_records
from karmada_advisor.web.metrics import CONTENT_TYPE, WebMetrics
from karmada_advisor.web.pages import Pages
from karmada_advisor.web.reading import Reader
from karmada_advisor.web.state import Reveal
from karmada_advisor.web.watching import Watcher, kinds_of, print_read
from karmada_pyscheduler.client.connection import Connection, connect
from karmada_pyscheduler.client.identity import ConnectionConfigError
from karmada_pyscheduler.http_server.listener import ListenError
from karmada_pyscheduler.http_server.read_only_server import ReadOnlyServer, Server
from karmada_pyscheduler.http_server.request_guard import Access, AnsweredRequest, RequestLimits
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.process.memory import freeze_objects

log = logging.getLogger(__name__)

_CONNECTIONS: Final = 1000
_OTHER_FILES: Final = 64
"""File descriptors that connections leave for answers and watches."""


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command until a signal; return its exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.
    """
    try:
        with redirect_stdout(sys.stderr):  # plugins may print
            _serve(arguments, own)
    except (NoAnswerError, ListenError) as error:
        print_failure(error)
        return NO_ANSWER
    except ServerEndedError as error:
        print_error(f"Error: {error}")
        return NOT_GOOD
    return GOOD


class ServerEndedError(Exception):
    """The server has ended by itself."""


def _serve(arguments: argparse.Namespace, own: Sequence[Registration]) -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    check_flags(arguments)
    metrics, source = WebMetrics(), source_of(arguments)
    certificate = certificate_of(arguments, metrics)
    connection = _connection(source.plane) if source.is_control_plane or arguments.records else None
    authorization = authorization_of(arguments, metrics, connection)
    rules = process_rules_of(arguments, own)
    records = leader_records(arguments, connection) if connection and arguments.records else None
    of_plane = connection if source.is_control_plane else None
    reader = _reader(arguments, of_plane, rules)
    answers = Answers(arguments, reader, rules, metrics, records=records, connection=of_plane)
    answers.check_rules()
    freeze_objects()
    worker = AnswerWorker(
        computed=answers.computed, on_ended=metrics.answer_ended, on_process=metrics.processes.inc
    )
    metrics.pending.set_function(lambda: worker.waiting)
    handlers = Handlers(
        answers,
        worker,
        Pages(),
        is_open=authorization is None,
        has_probes=not arguments.health_probe_bind_address,
        has_metrics=not arguments.metrics_bind_address,
        sessions=authorization if arguments.session_keys_file else None,
        reveal=Reveal(arguments.reveal),
    )
    of_platform = Server(
        health_address=arguments.health_probe_bind_address or "",
        metrics_address=arguments.metrics_bind_address or "",
        health=lambda: None,  # it is answered, so the event loop of the page runs
        ready=handlers.not_ready,
        exposition=lambda: answers.metrics,
        content_type=CONTENT_TYPE,
    )
    with audited(arguments.audit_log) as note:

        def answered(request: AnsweredRequest) -> None:
            if not handlers.is_silent(request.route):
                note(request)
            metrics.answered(request)

        server = ReadOnlyServer(
            arguments.bind_address,
            handlers.routes(),
            posts=handlers.posts(),
            always=PROBES,
            tls=None if certificate is None else certificate.context,
            access=Access(
                frozenset(name.lower() for name in arguments.allowed_host),
                "--allowed-host",
                None if authorization is None else authorization.viewer,
                handlers.is_for_everybody,
                tuple(arguments.behind_proxy),
            ),
            limits=RequestLimits(rate=200.0, burst=600.0, connections=_connections(), streams=500),
            name="web",
            problem_page=handlers.problem_page,
            on_response=answered,
        )
        url = f"{'https' if certificate else 'http'}://{arguments.bind_address}/"
        background = answers.background.keep_fresh(worker, lambda: None if reader.progress else reader.state)
        parts = [reader.keep_reading(), background, *([certificate.keep_fresh()] if certificate else ())]
        running = _run((of_platform, server), reader, parts, connection, url=url)
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(running)
        except ListenError:
            raise
        except BaseException as error:
            log.critical("The server of the page has ended", exc_info=error)
            raise ServerEndedError(f"the server of the page has ended: {error!r}") from error


def _connections() -> int:
    """Return how many connections may be open: fewer where the process may open few files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        _CONNECTIONS if files == resource.RLIM_INFINITY else min(_CONNECTIONS, max(1, files - _OTHER_FILES))
    )


async def _run(
    servers: Sequence[Server | ReadOnlyServer],
    reader: Reader | Watcher,
    parts: Iterable[Coroutine[Any, Any, None]],
    connection: Connection | None,
    *,
    url: str,
) -> None:
    """Serve and read until a signal, or until a part fails, whose error is raised. Raises ListenError."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as stack:
        if connection is not None:
            stack.push_async_callback(connection.close)
        for server in servers:
            await server.start()
            stack.push_async_callback(server.stop)
        if not reader.progress:
            print_read(reader.state)
        print_error(f"The page is on {url} until Ctrl-C.")
        tasks = [asyncio.create_task(part) for part in (*parts, stopped.wait())]
        ended, running = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for task in ended:
            task.result()


def _connection(plane: ControlPlane) -> Connection:
    """Return a connection that is opened by the first request. Raises NoAnswerError: there are no usable credentials."""
    try:
        return asyncio.run(connect(kubeconfig=plane.kubeconfig, overrides=plane.overrides, master=""))
    except ConnectionConfigError as error:
        raise NoAnswerError(str(error)) from error


def _reader(arguments: argparse.Namespace, connection: Connection | None, rules: Rules) -> Reader | Watcher:
    """Return what reads the objects: files, or a control plane by watches, or by lists where these are not allowed.

    Raises:
        NoAnswerError: The control plane cannot be read.
    """
    if connection is None:
        reader = Reader(arguments, rules)
        reader.read()
        return reader
    found = kinds_of(arguments)
    if found.unwatched:
        print_error(
            f"{found.unwatched}. Everything is listed again every {arguments.refresh:g} s instead; "
            "the ClusterRole pyscheduler-reader has the verb watch."
        )
    return Watcher(arguments, found, connection, rules=rules)
