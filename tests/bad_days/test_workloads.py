"""Plugins that see the workload, in the whole process, on good days and bad ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.fake_apiserver import (
    FakeApiServer,
    SchedulerProcess,
    binding,
    cluster,
    deployment,
    start_scheduler,
    wait_for,
)

DEPLOYMENTS = "/apis/apps/v1/deployments"
SPACE = '''
from karmada_scheduler.framework import SUCCESS, Result


class Space:
    """Only workloads of type space are placed."""

    name = "Space"
    needs_workload = {needs}

    def filter(self, context):
        workload = context.workload
        if workload is None:
            return Result.unschedulable(f"no workload: {{context.workload_problem}}")
        if workload.annotations.get("type") != "space":
            return Result.unschedulable("not of type space")
        return SUCCESS
'''
IDLE = SPACE[: SPACE.index("        workload =")] + "        return SUCCESS\n"


@contextlib.contextmanager
def scheduling(
    server: FakeApiServer, folder: Path, *flags: str, text: str = SPACE, needs: bool = True
) -> Iterator[SchedulerProcess]:
    plugins = folder / "plugins"
    plugins.mkdir(exist_ok=True)
    (plugins / "space.py").write_text(text.format(needs=needs))
    server.put(cluster("m1"))
    with start_scheduler(server, folder, f"--plugin-dir={plugins}", *flags) as scheduler:
        yield scheduler


def placed(server: FakeApiServer, scheduler: SchedulerProcess, name: str) -> None:
    wait_for(lambda: server.targets(name), f"{name} to be placed", scheduler)


def refused(server: FakeApiServer, scheduler: SchedulerProcess, name: str, text: str) -> str:
    wait_for(
        lambda: text in server.condition(name).get("message", ""), f"{name} to be refused: {text}", scheduler
    )
    return str(server.condition(name)["message"])


def test_a_plugin_decides_by_the_annotation_of_the_workload_and_a_change_of_it_wakes_the_binding(
    tmp_path: Path,
) -> None:
    with FakeApiServer() as server:
        server.put(deployment("sat", annotations={"type": "space"}))
        server.put(deployment("web"))
        server.put(binding("sat"))
        server.put(binding("web"))
        with scheduling(server, tmp_path) as scheduler:
            placed(server, scheduler, "sat")
            refused(server, scheduler, "web", "not of type space")
            found = server.get("Deployment", "web")
            assert found is not None
            found["metadata"]["annotations"]["type"] = "space"
            server.put(found)
            placed(server, scheduler, "web")
            server.put(deployment("new", annotations={"type": "space"}))
            server.put(binding("new"))
            placed(server, scheduler, "new")
            assert server.count("LIST", DEPLOYMENTS) == server.count("WATCH", DEPLOYMENTS) == 1
            asked = [each.accept for each in server.requests if each.path.startswith(DEPLOYMENTS)]
            assert all("as=PartialObjectMetadata" in accept for accept in asked)
            assert (
                scheduler.metric('karmada_scheduler_queue_incoming_bindings_total{event="WorkloadChanged"}')
                == 1
            )
