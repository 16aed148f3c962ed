"""The scheduler as a program: runs it until it ends, reports what ended it, and ends the process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import uvloop

from karmada_pyscheduler import app
from karmada_pyscheduler.client.identity import ConnectionConfigError
from karmada_pyscheduler.http_server.listener import ListenError
from karmada_scheduler import logs
from karmada_scheduler.config.options import Options
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.process import process_exit

log = logging.getLogger(__name__)


def run(options: Options, plugins: Sequence[Registration]) -> int:
    """Run the scheduler; the process then ends without waiting for the rest of its event loop and threads."""
    logs.configure(verbosity_level=options.verbosity, json_format=options.logging_format == "json")
    status = 0
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    try:
        runner.run(app.run(options, plugins))
    except* ConfigError as problems:
        for error in _leaves(problems):
            assert isinstance(error, ConfigError)
            for problem in error.problems:
                log.error("couldn't create scheduler: %s", problem, exc_info=problem.cause)  # noqa: TRY400 (of the plugin)
        status = 1
    except* (ConnectionConfigError, ListenError) as problems:
        for error in _leaves(problems):
            log.error("%s", error)  # noqa: TRY400 (the text is complete)
        status = 1
    except* Exception:
        log.exception("The scheduler failed")
        status = 1
    process_exit.end(status)
    runner.close()  # only where ``end`` is replaced, in tests
    return status


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return leaves
