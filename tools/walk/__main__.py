"""``make walk``: which functions of the scheduler one new binding passes, from its event to its status.

The real scheduler runs in this process, on the model of the API server in another thread. ``sys.setprofile`` sees every
call, and only frames of the scheduler and its plugins count, not those of kopf, asyncio or the standard library.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from types import CodeType
from typing import Final

from karmada_pyscheduler import app
from karmada_scheduler.config.options import Options
from tests.fake_apiserver import FakeApiServer, binding, cluster
from tests.fake_apiserver.process import write_kubeconfig
from tools.walk.recorder import PHASES, ROOT, Recorder

_SECONDS: Final = 30.0


async def walk(server: FakeApiServer, folder: Path) -> Recorder:
    """Run the scheduler until it has placed two bindings, and return what it called for the second one."""
    options = Options(
        scheduler_name="my-scheduler",
        health_address="",
        metrics_address="",
        kubeconfig=str(write_kubeconfig(server, folder / "kubeconfig")),
    )
    for number in range(1, 4):
        server.put(cluster(f"m{number}"))
    running = asyncio.create_task(app.run(options))
    try:
        server.put(binding("first", replicas=2))
        await _until_reported(server, "first", running)
        recorder = Recorder()
        with recorder.recording():
            server.put(binding("web", replicas=2))
            await _until_reported(server, "web", running)
        return recorder
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        await running


async def _until_reported(server: FakeApiServer, name: str, running: asyncio.Task[None]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not (server.get("ResourceBinding", name) or {}).get("status", {}).get("conditions"):
        if running.done() or time.monotonic() > deadline:
            raise SystemExit(f"{name} was not scheduled")
        await asyncio.sleep(0.05)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the walk; the exit status is 1 if a phase is deeper than its limit."""
    parser = argparse.ArgumentParser(prog="tools.walk", description=__doc__)
    parser.add_argument("--functions", action="store_true", help="print all functions, not only the stacks")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="walk-") as folder, FakeApiServer() as server:
        steps = asyncio.run(walk(server, Path(folder))).steps
    for phase in PHASES:
        step = steps[phase.name]
        print(f"\n{phase.name}: {len(step.stack)} frames deep")
        print(*map(_place, step.functions if given.functions else step.stack), sep="\n")
    print(f"\n{'':16}{'depth':>6}{'limit':>6}{'functions':>10}{'files':>6}")
    for phase in PHASES:
        print(_row(phase.name, steps[phase.name].functions, len(steps[phase.name].stack), phase.limit))
    print(_row("in total", {code for step in steps.values() for code in step.functions}))
    return int(any(len(steps[phase.name].stack) > phase.limit for phase in PHASES))


def _place(code: CodeType) -> str:
    file = Path(code.co_filename).relative_to(ROOT)
    return f"  {code.co_qualname}  {file.relative_to(*file.parts[:2])}:{code.co_firstlineno}"


def _row(name: str, functions: Collection[CodeType], *depth_and_limit: int) -> str:
    files = {code.co_filename for code in functions}
    numbers = "".join(f"{number:6}" for number in depth_and_limit) or " " * 12
    return f"{name:16}{numbers}{len(functions):10}{len(files):6}"


if __name__ == "__main__":
    sys.exit(main())
