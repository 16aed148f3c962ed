"""Plugins in a running scheduler: files that come and go, profiles, Permit, extenders, and plugins that hang."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml

from tests.e2e.backlog import Backlog
from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import DUPLICATED, Workload, condition, named
from tools.controlplane import ControlPlane
from tools.controlplane.waiting import wait_for

ONLY = """
from karmada_scheduler.framework import SUCCESS, Result

class Only:
    name = "Only"

    def filter(self, context):
        if context.cluster.name == "{cluster}":
            return SUCCESS
        return Result.unschedulable("cluster(s) were not {cluster}")
"""
HANGS = """
from karmada_scheduler.framework import SUCCESS

class Hangs:
    name = "Hangs"

    def filter(self, context):
        while context.cycle.binding.key.name == "hanging-deployment":
            pass
        return SUCCESS
"""
GATES = """
from karmada_scheduler.framework import SUCCESS, Result

class Gate:
    name = "Gate"

    async def permit(self, context):
        if context.binding.spec.resource.name == "waiting":
            return Result.wait(60)
        return Result.wait(1) if context.binding.spec.replicas == 3 else SUCCESS

class Opener:
    name = "Opener"

    def __init__(self, args, handle):
        self.handle = handle

    async def post_bind(self, context):
        for each in self.handle.waiting():
            if each.binding.spec.resource.name == "waiting":
                each.allow("Gate")
"""
BOTH = named("sim-a1", "sim-a2", replicaScheduling=DUPLICATED)
KIND = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def configuration(folder: Path, **fields: Any) -> str:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({**KIND, **fields}))
    return f"--config={path}"


def test_plugin_files_are_added_changed_and_removed_under_load(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    """As a mounted ConfigMap: the files are links through ..data, which is swapped."""

    def publish(version: str, text: str | None) -> float:
        folder = tmp_path / version
        folder.mkdir()
        if text is not None:
            (folder / "only.py").write_text(text)
        (tmp_path / "..data_tmp").symlink_to(version)
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")
        return time.time()

    (tmp_path / "only.py").symlink_to("..data/only.py")
    publish("..v1", ONLY.format(cluster="sim-a1"))
    scheduler = start_scheduler(f"--plugin-dir={tmp_path}")
    backlog = Backlog(controlplane, namespace, "my-scheduler")
    backlog.create(range(40))
    first = Workload(controlplane, namespace, "first").create(BOTH, replicas=2)
    first.wait_placed({"sim-a1": 2})

    saved = publish("..v2", ONLY.format(cluster="sim-a2"))
    [line] = wait_for(
        lambda: [line for line in scheduler.log.splitlines() if "Loaded plugin" in line], "the new version"
    )
    assert _time_of(line) - saved < 5  # two seconds on an idle machine
    backlog.create(range(40, 60))
    second = Workload(controlplane, namespace, "second").create(BOTH, replicas=2)
    second.wait_placed({"sim-a2": 2})

    publish("..v3", "raise RuntimeError('half-written')")
    log = wait_for(lambda: scheduler.log, "the refusal", until=lambda log: "half-written" in log, timeout=20)
    assert "Refused a new version of a file, the previous version stays: RuntimeError: half-written" in log
    assert f'File "{tmp_path / "only.py"}", line 1' in log
    third = Workload(controlplane, namespace, "third").create(BOTH, replicas=2)
    third.wait_placed({"sim-a2": 2})

    publish("..v4", None)
    wait_for(lambda: "Removed the plugins of a deleted file" in scheduler.log, "the removal", timeout=20)
    fourth = Workload(controlplane, namespace, "fourth").create(BOTH, replicas=2)
    fourth.wait_placed({"sim-a1": 2, "sim-a2": 2})
    assert len(backlog.wait_placed(64, timeout=60)) == 64


def _time_of(line: str) -> float:
    return datetime.fromisoformat(line.partition(" ")[0]).timestamp()


def test_a_plugin_that_hangs_costs_its_own_binding_and_not_the_lease(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    scheduler = start_scheduler(f"--plugin-dir={tmp_path}", configuration(tmp_path, pluginTimeoutSeconds=1))
    hanging = Workload(controlplane, namespace, "hanging").create(BOTH, replicas=2)
    hanging.wait(
        lambda found: condition(found).get("reason") == "SchedulerError",
        "to have the condition SchedulerError",
        timeout=40,
    )
    assert 'plugin "Hangs" took longer than 1s at Filter' in hanging.scheduled()["message"]
    for number in range(3):
        Workload(controlplane, namespace, f"web{number}").create(BOTH, replicas=2)
    for number in range(3):
        Workload(controlplane, namespace, f"web{number}").wait_placed({"sim-a1": 2, "sim-a2": 2}, timeout=40)
    assert scheduler.answers("/healthz") == 200
    assert "leaderelection lost" not in scheduler.log
    assert hanging.placed() == {}


def test_a_binding_waits_at_permit_until_it_is_allowed_or_its_time_is_up(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    (tmp_path / "gates.py").write_text(GATES)
    scheduler = start_scheduler(f"--plugin-dir={tmp_path}")
    waiting = Workload(controlplane, namespace, "waiting").create(BOTH, replicas=1)
    wait_for(
        lambda: "waiting-deployment" in scheduler.log and "waits at Permit for Gate" in scheduler.log,
        "the wait",
    )
    assert waiting.placed() == {}
    web = Workload(controlplane, namespace).create(BOTH, replicas=2)
    web.wait_placed({"sim-a1": 2, "sim-a2": 2})
    waiting.wait_placed({"sim-a1": 1, "sim-a2": 1})

    web.scale(3)
    found = web.wait(lambda found: condition(found).get("reason") == "Unschedulable", "to be refused")
    assert (
        condition(found)["message"]
        == "refused at Permit by Gate: rejected due to timeout after waiting 1s at plugin Gate"
    )
    assert web.placed() == {"sim-a1": 2, "sim-a2": 2}


class Extender(BaseHTTPRequestHandler):
    """Keeps clusters with a 2 in their name; answers 500 while `broken`."""

    broken = False

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = question["ClusterNames"]
        answer: Any = [{"Host": name, "Score": 10 if name == "sim-a2" else 0} for name in names]
        if self.path.endswith("/filter"):
            kept = [name for name in names if name.endswith("2")]
            refused = {name: "refused by the extender" for name in names if name not in kept}
            answer = {"ClusterNames": kept, "FailedClusters": refused}
        body = json.dumps(answer).encode()
        self.send_response(500 if self.broken else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serving() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Extender)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_extenders_filter_and_score_and_a_broken_one_moves_nothing(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    Extender.broken = False
    profile = [{"schedulerName": "my-scheduler"}]
    with serving() as url:
        extender = {"urlPrefix": url, "filterVerb": "filter", "nodeCacheCapable": True}
        scores = {"urlPrefix": url, "prioritizeVerb": "prioritize", "weight": 5, "nodeCacheCapable": True}
        scheduler = start_scheduler(configuration(tmp_path, profiles=profile, extenders=[extender, scores]))
        web = Workload(controlplane, namespace).create(
            named("sim-a1", "sim-a2", "sim-b2", replicaScheduling=DUPLICATED), replicas=2
        )
        found = web.wait_settled(replicas=2)
        assert "sim-a2" in found
        assert "sim-a1" not in found
        best = Workload(controlplane, namespace, "best").create(
            named(
                "sim-a2",
                "sim-b2",
                replicaScheduling=DUPLICATED,
                spreadConstraints=[{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
            ),
            replicas=2,
        )
        best.wait_placed({"sim-a2": 2})

        Extender.broken = True
        web.scale(3)
        broken = web.wait(
            lambda found: condition(found).get("reason") == "SchedulerError",
            "to have the condition SchedulerError",
        )
        assert "failed filter with extender at URL" in condition(broken)["message"]
        assert web.placed() == found
        scheduler.process.stop()

        start_scheduler(
            configuration(tmp_path, profiles=profile, extenders=[{**extender, "ignorable": True}])
        )
        web.wait(lambda found: condition(found).get("status") == "True", "to go on without it")
        assert "sim-a1" in web.placed()
