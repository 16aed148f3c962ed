"""A binding that waits in the queue of a running scheduler."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.asking import Answer, Asking, reader
from tests.e2e.backlog import Backlog
from tests.e2e.conftest import StartScheduler
from tools.controlplane import ControlPlane
from tools.controlplane.processes import free_port

SLOW = """\
import asyncio

from karmada_scheduler.framework import SUCCESS


class Slow:
    name = "Slow"

    async def pre_bind(self, context, /):
        await asyncio.sleep(1.5)
        return SUCCESS
"""
COUNT = 12


def test_a_binding_in_the_queue_has_its_position_and_how_long_it_has_waited(
    controlplane: ControlPlane,
    namespace: str,
    start_scheduler: StartScheduler,
    tmp_path: Path,
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    name, port = "queued", free_port()
    start_scheduler(
        "--max-in-flight=1",
        f"--plugin-dir={tmp_path}",
        f"--explain-bind-address=127.0.0.1:{port}",
        "--feature-gates=PriorityBasedScheduling=true",
        name=name,
    )
    backlog = Backlog(controlplane, namespace, name)
    for number in range(COUNT):
        backlog.create(range(number, number + 1), priority=COUNT - number)
    ask = Asking(reader(controlplane, "queue-reader"), namespace)

    def explained() -> Answer:
        return ask.explain(
            f"rb/work-{COUNT - 1}", f"--from=http://127.0.0.1:{port}", f"--scheduler-name={name}"
        )

    answer = controlplane.wait_for(
        explained,
        "the last one to wait",
        until=lambda found: (
            found.fields["provenance"]["queueState"] == "active"
            and found.evidence.get("waitedSeconds", 0) > 0
        ),
    )

    assert answer.codes[0] == "WaitingInQueue"
    evidence = answer.evidence
    assert evidence["queue"] == "active"
    assert 1 <= evidence["before"] < COUNT
    assert evidence["priority"] == 1
    assert f"{evidence['before']} bindings come first" in answer.fields["causes"][0]["text"]
