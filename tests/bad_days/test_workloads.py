"""Plugins that read the workload, in the real process, with and without faults."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.fake_apiserver import (
    FakeApiServer,
    Gate,
    SchedulerProcess,
    binding,
    cluster,
    deployment,
    profile,
    start_scheduler,
    status,
    wait_for,
)

DEPLOYMENTS = "/apis/apps/v1/deployments"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
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


def test_workloads_are_watched_only_while_a_plugin_needs_them(
    tmp_path: Path,
) -> None:
    with FakeApiServer() as server:
        server.put(deployment("sat", annotations={"type": "space"}))
        server.put(binding("web"))
        with scheduling(server, tmp_path, text=IDLE, needs=False) as scheduler:
            placed(server, scheduler, "web")
            assert server.count("LIST", DEPLOYMENTS) == server.count("GET", "/apis/apps/v1") == 0
            plugin = tmp_path / "plugins" / "space.py"
            plugin.write_text(SPACE.format(needs=True))
            wait_for(lambda: server.watching("Deployment"), "the watch of Deployments", scheduler)
            server.put(binding("sat"))
            placed(server, scheduler, "sat")
            plugin.write_text(IDLE.format(needs=False))

            def has_ended() -> bool:
                # The server detects a closed connection at its next write.
                server.put(deployment("other", labels={"version": str(server.version)}))
                return not server.watching("Deployment")

            wait_for(has_ended, "the end of the watch", scheduler)
            server.put(binding("api"))
            placed(server, scheduler, "api")
            assert scheduler.metric('karmada_scheduler_cached_objects{kind="Workload"}') == 0


def test_a_hanging_list_delays_no_other_binding(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(profile("my-scheduler", "space", space=["Space"]))
    with FakeApiServer() as server:
        gate = Gate()
        server.fault(method="LIST", path=DEPLOYMENTS, gate=gate)
        for number in range(60):  # more than are written at a time
            server.put(deployment(f"sat{number}", annotations={"type": "space"}))
            server.put(binding(f"sat{number}", scheduler="space"))
        with scheduling(server, tmp_path, f"--config={config}", "--max-in-flight=8") as scheduler:
            server.put(binding("web"))
            placed(server, scheduler, "web")
            refused(server, scheduler, "sat0", "was not read within 5s")
            assert scheduler.metric("karmada_scheduler_unavailable_workload_kinds") == 1
            gate.open()
            for number in range(60):
                placed(server, scheduler, f"sat{number}")
            assert scheduler.metric("karmada_scheduler_unavailable_workload_kinds") == 0


def test_a_gap_of_the_watch_another_uid_and_thousands_of_other_workloads_change_nothing(
    tmp_path: Path,
) -> None:
    with FakeApiServer() as server:
        for number in range(5000):
            server.put(deployment(f"other{number}"))
        server.put(deployment("sat"))
        server.put(binding("sat"))
        with scheduling(server, tmp_path) as scheduler:
            refused(server, scheduler, "sat", "not of type space")
            gone = server.fault(path=DEPLOYMENTS, answer=status(410, "Expired", "too old"), times=2)
            away = server.fault(path=DEPLOYMENTS, drop=True, times=2)
            server.end_watches("Deployment")
            server.put(deployment("sat", annotations={"type": "space"}))
            placed(server, scheduler, "sat")
            assert (gone.hits, away.hits) == (2, 2)
            server.delete("Deployment", "sat")
            server.put(deployment("sat", uid="recreated"))
            server.put(binding("late", requests={"cpu": "1"}))
            server.put(deployment("recreated", uid="recreated", annotations={"type": "space"}))
            server.put(binding("recreated"))
            refused(server, scheduler, "late", "Deployment default/late does not exist")
            refused(
                server, scheduler, "recreated", "has the uid recreated, the binding names uid-of-recreated"
            )
            server.put(deployment("late", annotations={"type": "space"}))
            placed(server, scheduler, "late")
            assert server.targets("sat")
            assert scheduler.metric('karmada_scheduler_cached_objects{kind="Workload"}') <= 1003


def test_a_restarted_scheduler_has_the_workloads_of_placed_bindings_before_it_decides(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        for name, region in (("m1", "a"), ("m2", "b")):
            server.put(cluster(name, region=region))
        for name in ("web", "api", "db"):
            server.put(deployment(name, labels={"app": "shop"}))
        flag = f"--plugin-dir={EXAMPLES / 'apart'}"
        server.put(binding("web"))
        with start_scheduler(server, tmp_path, flag) as first:
            placed(server, first, "web")
            assert first.stop() == 0
        server.put(binding("api"))
        gate = Gate()
        server.fault(method="LIST", path=DEPLOYMENTS, gate=gate, times=1)
        with start_scheduler(server, tmp_path, flag) as second:
            wait_for(lambda: server.count("LIST", DEPLOYMENTS) >= 2, "the list of Deployments", second)
            assert not server.targets("api")
            gate.open()
            placed(server, second, "api")
            assert {*(server.targets("web") or ()), *(server.targets("api") or ())} == {"m1", "m2"}
            server.put(binding("db"))
            refused(server, second, "db", "in a region that has this app")
