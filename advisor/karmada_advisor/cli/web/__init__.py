"""``karmada-pyscheduler web``: a page in the browser about a control plane, or about files. Nothing is written."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Final

import uvloop

from karmada_advisor.cli.output import GOOD, NO_ANSWER, NOT_GOOD, print_error, print_failure
from karmada_advisor.cli.web.access import PageAccess, audited
from karmada_advisor.cli.web.answers import CommandAnswers
from karmada_advisor.cli.web.reading import Reader
from karmada_advisor.explain.amounts import counted
from karmada_advisor.sources.control_plane import reads_files
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.web.computing import Computer
from karmada_advisor.web.handlers import PROBES, Handlers
from karmada_advisor.web.metrics import CONTENT_TYPE, WebMetrics
from karmada_advisor.web.pages import Pages
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.http_server.messages import AnsweredRequest
from karmada_scheduler.http_server.read_only_server import ReadOnlyServer
from karmada_scheduler.http_server.request_guard import RequestLimits
from karmada_scheduler.http_server.server import ListenError, Server
from karmada_scheduler.process.memory import freeze_objects
from karmada_scheduler.structs import replace

if TYPE_CHECKING:  # files do not need the client
    from karmada_advisor.cli.web.leader import LeaderRecords
    from karmada_advisor.cli.web.watching import Watcher

log = logging.getLogger(__name__)

_SWITCH_SECONDS: Final = 0.001
"""After which the thread that decides lets the one that answers run; five times as often as by default."""
_LIMITS: Final = RequestLimits(rate=100.0, burst=300.0, connections=1000, streams=500)


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
    """The thread of the server has ended by itself."""


def _serve(arguments: argparse.Namespace, own: Sequence[Registration]) -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    metrics = WebMetrics()
    access = PageAccess(arguments, metrics)
    reader = _reader(arguments)
    answers = CommandAnswers(
        arguments,
        reader,
        own,
        metrics=metrics,
        records=_records(arguments, access),
        connection=None if reads_files(arguments) else access.connection,
    )
    if isinstance(reader, Reader):
        reader.read()
    freeze_objects()
    sys.setswitchinterval(_SWITCH_SECONDS)
    pages = Pages()
    computer = Computer(
        computed=answers.computed, on_ended=metrics.answer_ended, on_process=metrics.process_begun
    )
    metrics.expose_pending(lambda: computer.waiting)
    handlers = Handlers(
        answers,
        computer,
        pages,
        is_open=access.is_open,
        has_probes=not arguments.health_probe_bind_address,
        has_metrics=not arguments.metrics_bind_address,
        sessions=access.sessions,
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
            tls=access.tls,
            access=replace(access.access, is_open=handlers.is_for_everybody),
            limits=_LIMITS,
            name="web",
            problem_page=handlers.problem_page,
            on_response=answered,
        )
        with (
            _stopped_by_signals(computer),
            _running((of_platform, server), access, reader, computer.stop),
            answers,
        ):
            if not reader.progress:
                contents = reader.state.contents
                text = f"{counted(len(contents.clusters), 'cluster')} and "
                print_error(f"{text}{counted(len(contents.bindings), 'binding')} from {reader.state.source}")
            scheme = "https" if access.tls else "http"
            print_error(f"The page is on {scheme}://{arguments.bind_address}/ until Ctrl-C.")
            computer.serve(answers.work_ahead, ended=answers.start_again)


def _records(arguments: argparse.Namespace, access: PageAccess) -> LeaderRecords | None:
    """Return what finds the scheduler's leader; None without ``--records``. Raises NoAnswerError."""
    if not arguments.records:
        return None
    from karmada_advisor.cli.web.leader import leader_records

    return leader_records(arguments, access.connection)


def _reader(arguments: argparse.Namespace) -> Reader | Watcher:
    """Return what reads the objects: files, or a control plane by watches, or by lists where these are not allowed.

    Raises:
        NoAnswerError: The control plane cannot be read.
    """
    if reads_files(arguments):
        return Reader(arguments)
    from karmada_advisor.cli.web.watching import Watcher, kinds_of

    found = kinds_of(arguments)
    if not found.unwatched:
        return Watcher(arguments, found)
    print_error(
        f"{found.unwatched}. Everything is listed again every {arguments.refresh:g} s instead; "
        "the ClusterRole pyscheduler-reader has the verb watch."
    )
    return Reader(arguments)


@contextmanager
def _stopped_by_signals(computer: Computer) -> Iterator[None]:
    before = {
        number: signal.signal(number, lambda *_: computer.stop())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _running(
    servers: Sequence[Server | ReadOnlyServer],
    access: PageAccess,
    reader: Reader | Watcher,
    stop: Callable[[], None],
) -> Iterator[None]:
    """Run the servers and the reader in a thread with an event loop of their own.

    Args:
        servers: The servers.
        access: Entered while they run.
        reader: Reads while they run.
        stop: Called when the thread ends, whatever the reason, so that the block ends as well.

    Raises:
        ListenError: The address is in use.
        ServerEndedError: The thread has ended before the block.
    """
    started: Future[None] = Future()
    is_wanted = True
    failures: list[BaseException] = []
    loop = uvloop.new_event_loop()

    async def start() -> None:
        try:
            for each in servers:
                await each.start()
        except BaseException as error:
            started.set_exception(error)
            raise
        started.set_result(None)
        try:
            async with access:
                await reader.keep_reading()
        finally:
            for each in servers:
                await each.stop()

    task = loop.create_task(start())

    def run_loop() -> None:
        try:
            loop.run_until_complete(task)
        except BaseException as error:
            failures.append(error)
            if started.done() and is_wanted:
                log.critical("The server of the page has ended", exc_info=error)
        finally:
            stop()
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    thread = threading.Thread(target=run_loop, name="web server", daemon=True)
    thread.start()
    started.result()
    try:
        yield
    finally:
        has_ended, is_wanted = not thread.is_alive() or bool(failures), False
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(task.cancel)
        thread.join(5)
    if has_ended:
        raise ServerEndedError(
            f"the server of the page has ended: {failures[0] if failures else 'for no reason'!r}"
        )
