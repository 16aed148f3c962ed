"""Starts schedulers and pages for tests by forking a process that has imported them: imports are nine tenths of a start.

What it starts is a process of its own with its own arguments, variables, output and signals; only its modules are there
already. A test of the start itself, or of a process with other variables, uses ``subprocess.Popen``.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, Final, NoReturn

ROOT: Final = Path(__file__).parents[1]
MODULE: Final = "karmada_scheduler"
SCHEDULER: Final = (
    "uvloop",
    "karmada_scheduler.command",
    "karmada_pyscheduler.program",
    "karmada_scheduler.config.flags",
)
PAGE: Final = ("karmada_advisor.cli.commands", "karmada_advisor.web.command", "karmada_advisor.web.viewer")
"""What is imported before a fork; the scheduler runs without modules of the advisor, in tests as well."""


class ForkedProcess:
    """A running program, with the methods of ``subprocess.Popen`` that the tests use."""

    def __init__(self, pid: int, ends: socket.socket) -> None:
        """Take the process id and the socket on which its exit status comes."""
        self.pid = pid
        self.returncode: int | None = None
        self._ends = ends

    def poll(self) -> int | None:
        """Return its exit status (negative: the signal that ended it), None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status; subprocess.TimeoutExpired if it still runs after some seconds."""
        if self.returncode is None:
            self._ends.settimeout(timeout)
            try:
                # Nothing comes where its watcher was ended with it.
                self.returncode = int(self._ends.recv(64) or -signal.SIGKILL)
            except (TimeoutError, BlockingIOError) as error:
                raise subprocess.TimeoutExpired(MODULE, timeout or 0) from error
            self._ends.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def start(argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes] | ForkedProcess:
    """Fork a scheduler or page that has the variables of this process, and start any other program.

    Args:
        argv: The command.
        options: Those of ``subprocess.Popen``; for what is forked ``stdin=DEVNULL, stderr=STDOUT``, a file as ``stdout``,
            ``env``, and maybe ``process_group``.
    """
    arguments = list(argv[3:])
    if tuple(argv[:3]) != (sys.executable, "-m", MODULE) or options["env"] != dict(os.environ):
        return subprocess.Popen(argv, **options)
    modules = PAGE if arguments[:1] == ["web"] else SCHEDULER
    return fork(arguments, output=options["stdout"], modules=modules, group=options.get("process_group"))


def fork(
    arguments: Sequence[str], *, output: IO[bytes], modules: Sequence[str], group: int | None = None
) -> ForkedProcess:
    """Run ``python -m karmada_scheduler`` with the variables and the folder of this process, and no input.

    Args:
        arguments: Those of the command.
        output: The file for its output and errors.
        modules: What it has imported already: SCHEDULER or PAGE.
        group: The process group to join; that of the tests by default.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    server = _server(tuple(sorted(variables.items())), str(Path.cwd()), tuple(modules))
    mine, its = socket.socketpair(
        socket.AF_UNIX, socket.SOCK_SEQPACKET
    )  # a process may end before its id is read
    with its:
        request = {"arguments": list(arguments), "variables": dict(os.environ), "group": group}
        socket.send_fds(server, [json.dumps(request).encode()], [output.fileno(), its.fileno()])
    return ForkedProcess(int(mine.recv(64)), mine)


@cache
def _server(variables: tuple[tuple[str, str], ...], folder: str, modules: tuple[str, ...]) -> socket.socket:
    """Start the process that is forked; it ends with this one, which holds the other end of its socket."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), str(its.fileno()), *modules],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # whose buffers are those of a file
            env=dict(variables),
            cwd=folder,
            pass_fds=[its.fileno()],
        )

    def end() -> None:
        mine.close()
        process.wait()

    atexit.register(end)
    return mine


def main(requests: socket.socket, modules: Sequence[str]) -> None:
    """Fork for every request; each child has a watcher, which says how it ended."""
    sys.path[0] = str(Path.cwd())  # as `python -m` has it
    for each in modules:
        importlib.import_module(each)
    assert len(list(Path("/proc/self/task").iterdir())) == 1, (
        "a forked process would lack the threads of this one"
    )
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, _reap)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the tests end what they started
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 2**18, 2)
        if not message:
            return
        if os.fork() == 0:
            requests.close()
            _watch(json.loads(message), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _reap(*_: object) -> None:
    """Wait for the watchers that have ended, so that the time of what they watched is counted as that of a child."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _watch(request: Mapping[str, Any], output: int, ends: int) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        os.close(ends)
        _become(request, output)
    os.close(output)
    os.write(ends, b"%d" % child)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(BrokenPipeError):  # the tests have ended
        os.write(ends, b"%d" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(request: Mapping[str, Any], output: int) -> NoReturn:
    """Run the command as ``python -m karmada_scheduler`` does, and end."""
    status = 1
    try:
        if request["group"] is not None:
            os.setpgid(0, request["group"])
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.environ.update(request["variables"])  # those of pytest are added
        sys.argv[1:] = request["arguments"]
        gc.unfreeze()
        runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 (as the interpreter does)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
