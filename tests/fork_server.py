"""Starts schedulers for tests by forking a process that has imported the scheduler: imports are nine tenths of a start.

``popen`` is called as ``subprocess.Popen`` is. What it starts is a process of its own with its own arguments, variables,
output and signals; only its modules are there already. A test of the start itself uses ``subprocess.Popen``.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

ROOT: Final = Path(__file__).parents[1]
MODULE: Final = "karmada_scheduler"
OF_THE_INTERPRETER: Final = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "OPENBLAS", "OMP_", "MALLOC", "GRPC_")
"""Beginnings of variables that are read before or while modules are imported."""


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
            if not select.select([self._ends], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(MODULE, timeout or 0)
            # Nothing comes where its watcher was ended with it.
            self.returncode = int(self._ends.recv(64) or -signal.SIGKILL)
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


def popen(
    argv: Sequence[str],
    *,
    stdin: int,
    stdout: Any,
    stderr: int,
    env: Mapping[str, str],
    process_group: int | None = None,
) -> ForkedProcess | subprocess.Popen[bytes]:
    """Start a program with its input from /dev/null and one file for its output and errors; fork if it is the scheduler."""
    assert (stdin, stderr) == (subprocess.DEVNULL, subprocess.STDOUT)
    command = [sys.executable, "-m", MODULE]
    if list(argv[:3]) != command or _of_the_interpreter(env) != AT_IMPORT:
        return subprocess.Popen(
            argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, process_group=process_group
        )
    mine, its = socket.socketpair()
    request = {"argv": argv[3:], "env": dict(env), "cwd": str(Path.cwd()), "group": process_group}
    with its:
        socket.send_fds(_server(), [json.dumps(request).encode()], [stdout.fileno(), its.fileno()])
    return ForkedProcess(int(mine.recv(64)), mine)


def _of_the_interpreter(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(OF_THE_INTERPRETER)}


AT_IMPORT: Final = _of_the_interpreter(os.environ)
"""Before any test changes a variable."""


@cache
def _server() -> socket.socket:
    """Start the process that is forked; it ends with this one, which holds the other end of its socket."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(its.fileno())], pass_fds=[its.fileno()], cwd=ROOT
        )

    def end() -> None:
        mine.close()
        process.wait()

    atexit.register(end)
    return mine


def main(requests: socket.socket) -> None:
    """Fork for every request; each child has a watcher, which says how it ended."""
    import uvloop  # noqa: F401

    from karmada_scheduler import app, command, logs  # noqa: F401
    from karmada_scheduler.config import flags  # noqa: F401

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
        for each in descriptors:
            os.close(each)


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
    """Run the scheduler as ``python -m karmada_scheduler`` does, and end."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if request["group"] is not None:
            os.setpgid(0, request["group"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        sys.argv[1:] = request["argv"]
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
    main(socket.socket(fileno=int(sys.argv[1])))
