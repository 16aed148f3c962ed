"""``karmada-pyscheduler web``: a page in the browser about a control plane, or about files. Nothing is written."""

from __future__ import annotations

import argparse
import asyncio
import logging
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, redirect_stdout
from typing import TYPE_CHECKING, Final

import uvloop

from karmada_advisor.cli.output import GOOD, NO_ANSWER, NOT_GOOD, print_error, print_failure
from karmada_advisor.cli.questions import process_rules_of, source_of
from karmada_advisor.cli.web.access import PageAccess, audited
from karmada_advisor.cli.web.answers import CommandAnswers
from karmada_advisor.cli.web.reading import Reader
from karmada_advisor.explain.amounts import counted
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import FleetSource
from karmada_advisor.web.answer_worker import AnswerWorker
from karmada_advisor.web.handlers import PROBES, Handlers
from karmada_advisor.web.metrics import CONTENT_TYPE, WebMetrics
from karmada_advisor.web.pages import Pages
from karmada_advisor.web.scope import Reveal
from karmada_pyscheduler.http_server.listener import ListenError
from karmada_pyscheduler.http_server.messages import AnsweredRequest
from karmada_pyscheduler.http_server.read_only_server import ReadOnlyServer
from karmada_pyscheduler.http_server.request_guard import RequestLimits
from karmada_pyscheduler.http_server.server import Server
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.process.memory import freeze_objects
from karmada_scheduler.structs import replace

if TYPE_CHECKING:  # files do not need the client
    from karmada_advisor.cli.web.leader import LeaderRecords
    from karmada_advisor.cli.web.watching import Watcher

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
    metrics = WebMetrics()
    access = PageAccess(arguments, metrics)
    rules, source = process_rules_of(arguments, own), source_of(arguments)
    reader = _reader(arguments, source, rules)
    answers = CommandAnswers(
        arguments,
        reader,
        rules,
        metrics=metrics,
        records=_records(arguments, access),
        connection=access.connection if source.is_control_plane else None,
    )
    if isinstance(reader, Reader):
        reader.read()
    answers.check_rules()
    freeze_objects()
    worker = AnswerWorker(
        computed=answers.computed, on_ended=metrics.answer_ended, on_process=metrics.process_begun
    )
    metrics.expose_pending(lambda: worker.waiting)
    handlers = Handlers(
        answers,
        worker,
        Pages(),
        is_open=access.is_open,
        has_probes=not arguments.health_probe_bind_address,
        has_metrics=not arguments.metrics_bind_address,
        sessions=access.sessions,
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
            tls=access.tls,
            access=replace(access.access, is_open=handlers.is_for_everybody),
            limits=RequestLimits(rate=200.0, burst=600.0, connections=_connections(), streams=500),
            name="web",
            problem_page=handlers.problem_page,
            on_response=answered,
        )
        url = f"{'https' if access.tls else 'http'}://{arguments.bind_address}/"
        running = _run((of_platform, server), access, answers, worker, url=url)
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
    access: PageAccess,
    answers: CommandAnswers,
    worker: AnswerWorker,
    *,
    url: str,
) -> None:
    """Serve and read until a signal, or until a part fails, whose error is raised. Raises ListenError."""
    reader = answers.reader
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as stack:
        for server in servers:
            await server.start()
            stack.push_async_callback(server.stop)
        await stack.enter_async_context(access)
        if not reader.progress:
            contents = reader.state.contents
            text = f"{counted(len(contents.clusters), 'cluster')} and "
            print_error(f"{text}{counted(len(contents.bindings), 'binding')} from {reader.state.source}")
        print_error(f"The page is on {url} until Ctrl-C.")
        background = answers.background.keep_fresh(
            worker.run, lambda: None if reader.progress else answers.state
        )
        parts = [asyncio.create_task(part) for part in (reader.keep_reading(), background, stopped.wait())]
        ended, running = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for task in ended:
            task.result()


def _records(arguments: argparse.Namespace, access: PageAccess) -> LeaderRecords | None:
    """Return what finds the scheduler's leader; None without ``--records``. Raises NoAnswerError."""
    if not arguments.records:
        return None
    from karmada_advisor.cli.web.leader import leader_records

    return leader_records(arguments, access.connection)


def _reader(arguments: argparse.Namespace, source: FleetSource, rules: Rules) -> Reader | Watcher:
    """Return what reads the objects: files, or a control plane by watches, or by lists where these are not allowed.

    Raises:
        NoAnswerError: The control plane cannot be read.
    """
    if not source.is_control_plane:
        return Reader(arguments, rules)
    from karmada_advisor.cli.web.watching import Watcher, kinds_of

    found = kinds_of(arguments)
    if not found.unwatched:
        return Watcher(arguments, found, rules=rules)
    print_error(
        f"{found.unwatched}. Everything is listed again every {arguments.refresh:g} s instead; "
        "the ClusterRole pyscheduler-reader has the verb watch."
    )
    return Reader(arguments, rules)
