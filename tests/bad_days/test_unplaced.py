"""Unplaced bindings are on /metrics while a process leads, and after a restart."""

import re
from pathlib import Path

from tests.fake_apiserver import FakeApiServer, SchedulerProcess, binding, cluster, start_scheduler, wait_for
from tests.fake_apiserver.objects import settled

GATE = '''
from karmada_scheduler.framework import SUCCESS, Result


class Gate:
    """Keeps some bindings out of the queue, and lets others wait."""

    name = "Gate"

    def pre_enqueue(self, context):
        return Result.unschedulable("later") if context.binding.key.name == "gated" else SUCCESS

    async def permit(self, context):
        return Result.wait(600, "peers") if context.binding.key.name == "waiting" else SUCCESS
'''

NOWHERE = {"clusterAffinity": {"clusterNames": ["moon"]}}
SINCE_2026 = {
    "conditions": [
        {"type": "Scheduled", "status": "False", "reason": "NoClusterFit", "message": "no capacity",
         "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]
}  # fmt: skip
DAY = 86400.0


def counts(scheduler: SchedulerProcess) -> dict[str, int]:
    """Return the unplaced bindings by reason, those of which there are some."""
    found = re.findall(
        r'^karmada_scheduler_unplaced_bindings{reason="(\w+)"} (.*)$', scheduler.scrape(), re.MULTILINE
    )
    return {reason: int(float(count)) for reason, count in found if float(count)}


def age(scheduler: SchedulerProcess, reason: str) -> float:
    return scheduler.metric(f'karmada_scheduler_unplaced_binding_age_seconds{{reason="{reason}"}}')


def test_unplaced_bindings_are_counted_by_the_current_leader(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "gate.py").write_text(GATE)
    expected = {"NoClusterFit": 1, "SchedulerError": 1, "gated": 1, "waiting": 1}
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(settled("placed", {"m1": 1}))
        server.put(
            binding("suspended") | {"spec": {**binding("x")["spec"], "suspension": {"scheduling": True}}}
        )
        server.put(binding("theirs", scheduler="default-scheduler", status=SINCE_2026))
        server.put(binding("nowhere", placement=NOWHERE, status=SINCE_2026))
        server.put(binding("absurd", requests={f"r{number}": "1" for number in range(300)}))
        for name in ("gated", "waiting", "web"):
            server.put(binding(name))
        unclaimed = binding("free")
        unclaimed["metadata"]["labels"] = {}
        server.put(unclaimed)
        flags = (f"--plugin-dir={plugins}", "--v=2", "--leader-elect-retry-period=400ms")
        with start_scheduler(server, tmp_path, *flags) as leader:
            wait_for(lambda: counts(leader) == expected, "the gauges", leader)
            assert age(leader, "gated") > DAY, "since its creation"
            assert age(leader, "NoClusterFit") > DAY, "since the transition that was stored"
            assert 0 <= age(leader, "SchedulerError") < DAY, "since the decision"
            assert age(leader, "Unschedulable") == 0
            assert leader.metric("karmada_scheduler_unclaimed_bindings") == 1
            assert leader.log.count("ResourceBinding(default/free) is left alone: no policy claims it") == 1
            with start_scheduler(server, tmp_path, *flags) as standby:
                assert "karmada_scheduler_unplaced_bindings{" not in standby.scrape()
                held = wait_for(
                    lambda: re.search(r"The lease is held by \S+ since \S+Z \(0:00:\d\d\)", standby.log),
                    "the holder of the Lease",
                    standby,
                )
                assert held
                server.delete("ResourceBinding", "absurd")
                leader.stop()
                del expected["SchedulerError"]
                wait_for(lambda: counts(standby) == expected, "the gauges of the next leader", standby)
                assert age(standby, "NoClusterFit") > DAY
