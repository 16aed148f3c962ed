"""A session of pytest that runs tests in forks: once to see what they reach, then once for each mistake.

Test modules and what they import are loaded once. A fork takes some 30 ms, and a mistake does not outlive it. Forks that
hang are ended: those that use too much CPU time, and those that use none.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from tools.mutants.mutation import PROBE

_MEMORY: Final = 4 << 30
_HANGS_SECONDS: Final = 10.0
_HANGS_CPU_SECONDS: Final = 0.1
"""A fork that uses less CPU time in so many seconds, and is not ready to run at their end, waits for something."""
_EXAMPLES: Final = 25
"""Random examples per law; a run of the tests has 100."""
Block = tuple[str, str]
"""The path of a module, and a block in it."""


@dataclass(slots=True)
class Reached:
    """What one test does without mistakes."""

    seconds: float = 0.0
    failed: bool = False
    blocks: set[Block] = field(default_factory=set)


class Forks:
    """Runs items of a session in forks of this process."""

    def __init__(self, session: pytest.Session) -> None:
        """Use the collected items of a session."""
        self._session = session
        self.items: Mapping[str, pytest.Item] = {each.nodeid: each for each in session.items}
        self._failed: set[str] = set()
        session.config.pluginmanager.register(self)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember failures of setup, call and teardown."""
        if report.failed:
            self._failed.add(report.nodeid)

    def trace(self, tests: Sequence[str], prepare: Callable[[], None]) -> Any:
        """Run tests in one fork, which has been prepared.

        Returns:
            By test: seconds of CPU time, whether it failed, and the blocks that it reached.
        """

        def run() -> Any:
            reached: set[Block] = set()
            setattr(builtins, PROBE, reached.add)
            prepare()
            answer = {}
            for item, following in self._in_order(tests):
                reached.clear()
                begin = time.process_time()
                self._protocol(item, following)
                seconds = time.process_time() - begin
                answer[item.nodeid] = [round(seconds, 4), item.nodeid in self._failed, sorted(reached)]
            return answer

        answer = _in_fork(run, cpu_seconds=3600)
        if isinstance(answer, str):
            raise SystemExit(f"the tests without mistakes did not end: {answer}")
        return answer

    def first_failure(self, tests: Sequence[str], prepare: Callable[[], None], seconds: float) -> str:
        """Run tests in a prepared fork until one fails.

        Args:
            tests: Their names, in the order in which they run.
            prepare: Makes the mistake.
            seconds: The CPU time that the tests take without it.

        Returns:
            The name of the test that failed, empty if none did, or ``timeout``, ``crash`` or ``invalid``.
        """

        def run() -> Any:
            try:
                prepare()
            except (ValueError, SyntaxError):
                return "invalid"
            for item, following in self._in_order(tests):
                self._protocol(item, following)
                if self._failed:
                    return item.nodeid
            return ""

        answer = _in_fork(run, cpu_seconds=4 + 3 * seconds)
        return str(answer)

    def _in_order(self, tests: Sequence[str]) -> Iterable[tuple[pytest.Item, pytest.Item | None]]:
        """Return each test with the one that follows."""
        items = [self.items[name] for name in tests]
        return zip(items, [*items[1:], None], strict=True)

    def _protocol(self, item: pytest.Item, following: pytest.Item | None) -> None:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _in_fork(run: Callable[[], Any], *, cpu_seconds: float) -> Any:
    """Return what a function returns in a fork, as JSON; ``timeout`` or ``crash`` if it does not return."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.close(reading)
        _be_child(run, writing, cpu_seconds)
    os.close(writing)
    try:
        answer = _answer(reading, pid)
        return _end(pid) if answer is None else answer
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _answer(reading: int, pid: int) -> Any:
    """Return the answer of a fork; None if it ends without one, ``timeout`` if it hangs."""
    content, used = b"", _cpu_seconds(pid)
    while True:
        if not select.select([reading], [], [], _HANGS_SECONDS)[0]:
            before, used = used, _cpu_seconds(pid)
            if used - before < _HANGS_CPU_SECONDS and not _is_ready_to_run(pid):
                return "timeout"
            continue
        part = os.read(reading, 1 << 20)
        content += part
        if not part or content.endswith(b"\n"):
            return json.loads(content)["answer"] if content.endswith(b"\n") else None


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _is_ready_to_run(pid: int) -> bool:
    """Return whether a thread of a process would run if it had a core; on a busy machine it may wait for one."""
    states = (path.read_text(encoding="ascii") for path in Path(f"/proc/{pid}/task").glob("*/stat"))
    return any(each.rpartition(")")[2].split()[0] in "RD" for each in states)


def _end(pid: int) -> str:
    """Return why a fork gave no answer."""
    _, status = os.waitpid(pid, 0)
    return "timeout" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU else "crash"


def _be_child(run: Callable[[], Any], writing: int, cpu_seconds: float) -> NoReturn:
    try:
        os.setsid()
        devnull = os.open(os.devnull, os.O_RDWR)
        for each in range(3):
            os.dup2(devnull, each)
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds) + 1, int(cpu_seconds) + 10))
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        content = memoryview(json.dumps({"answer": run()}).encode() + b"\n")
        while content:
            content = content[os.write(writing, content) :]
    finally:
        os._exit(0)


def with_session(folders: Sequence[str], work: Callable[[Forks], None]) -> int:
    """Collect the tests of folders, call ``work`` with them, and return pytest's status."""

    class Plugin:
        @pytest.hookimpl(tryfirst=True)
        def pytest_collection(self) -> None:
            from hypothesis import Phase, settings

            found = settings.get_profile("laws")
            phases = [Phase.explicit, Phase.generate]
            settings.register_profile("mutants", parent=found, phases=phases, max_examples=_EXAMPLES)
            settings.load_profile("mutants")

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            forks = Forks(session)
            gc.collect()
            work(forks)
            return True

    arguments = [
        "-q",
        "-q",
        "-s",
        "-m",
        "not e2e",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:rerunfailures",
        *folders,
    ]
    return int(pytest.main(arguments, plugins=[Plugin()]))
