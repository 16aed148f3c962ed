"""What a scheduler process takes from its environment: time, chance, names, connections, threads, signals.

``Environment()`` has the real ones. A simulation runs the same process with others, so everything that depends on the
machine is a field here.
"""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from random import Random
from typing import Final

from karmada_pyscheduler.client.connection import Connection, connect
from karmada_pyscheduler.estimator.grpc_channel import GrpcChannel
from karmada_pyscheduler.estimator.transport import DialEstimator
from karmada_pyscheduler.extenders.transport import HttpExtenderTransport, NewExtenderTransport
from karmada_pyscheduler.http_server.read_only_server import Server
from karmada_pyscheduler.informer.kopf_watch import EventSource, KopfWatch
from karmada_pyscheduler.process.supervisor import Supervisor
from karmada_pyscheduler.scheduler.decision_runner import new_budget
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.framework.runtime.timeouts import CallTimeout, SigalrmTimeout
from karmada_scheduler.process import memory, process_exit
from karmada_scheduler.process.daemon_thread import InThread, in_daemon_thread
from karmada_scheduler.process.memory import release_free
from karmada_scheduler.process.process_exit import TerminationSignals
from karmada_scheduler.structs import Struct, field


def _now() -> datetime:
    return datetime.now(UTC)


def _boot_time() -> float:
    """Return seconds that include the time of suspension, where the system counts it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _identity() -> str:
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Environment(Struct, frozen=True, kw_only=True):
    """The environment of one process.

    Attributes:
        clock: In seconds, never running backwards.
        boot_clock: As ``clock``, and also running while the machine is suspended.
        now: The time of day.
        random: Jitter of retries.
        identity: Returns the name of this process in the Lease; unique among all candidates.
        connect: Opens a connection to the Karmada API server.
        watch: Makes the event source.
        supervisor: Makes the thread that renews the Lease.
        server: Makes the server of probes and metrics.
        signals: The termination signals of the process.
        end: Ends the process at once; see ``process_exit.end``.
        in_thread: Runs a blocking function apart from the event loop.
        call_timeout: Makes the limit for each call of a plugin, in seconds.
        decision_budget: Makes the budget of one decision.
        extender_transport: Makes the connections to an extender.
        dial_estimator: Opens a channel to the estimator of a member cluster.
        initial_list: Entered while the caches are filled.
        after_list: Called after each complete list.
    """

    clock: Callable[[], float] = time.monotonic
    boot_clock: Callable[[], float] = _boot_time
    now: Callable[[], datetime] = _now
    random: Random = field(default_factory=Random)
    identity: Callable[[], str] = _identity
    connect: Callable[..., Awaitable[Connection]] = connect
    watch: Callable[..., EventSource] = KopfWatch
    supervisor: Callable[..., Supervisor] = Supervisor
    server: Callable[..., Server] = Server
    signals: TerminationSignals = process_exit.TERMINATION
    end: Callable[..., None] = process_exit.end
    in_thread: InThread = in_daemon_thread
    call_timeout: Callable[[float], CallTimeout] = SigalrmTimeout
    decision_budget: Callable[[], Budget] = new_budget
    extender_transport: NewExtenderTransport = HttpExtenderTransport
    dial_estimator: DialEstimator = GrpcChannel.dial
    initial_list: Callable[[], AbstractContextManager[None]] = memory.paused_collection
    after_list: Callable[[], None] = release_free


REAL: Final = Environment()
"""The environment of a process that is not simulated."""
