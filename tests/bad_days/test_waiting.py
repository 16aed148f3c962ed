"""A binding that waits at Permit is visible in the log, as an Event, and on /metrics."""

from pathlib import Path

from tests.fake_apiserver import FakeApiServer, binding, cluster, start_scheduler, wait_for

GATE = '''
from karmada_scheduler.framework import SUCCESS, Result


class Gate:
    """Lets a binding wait for its peers."""

    name = "Gate"

    def __init__(self, args, handle):
        self.handle = handle

    async def permit(self, context):
        if context.binding.key.name == "opener":
            for waiting in self.handle.waiting():
                waiting.allow("Gate")
            return SUCCESS
        return Result.wait(60, "2 of 3 members are there")
'''

GAUGE = 'karmada_scheduler_permit_waiting_bindings{plugin="Gate"}'


def test_the_reason_for_which_a_binding_waits_is_in_the_log_an_event_and_a_gauge(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "gate.py").write_text(GATE)
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path, f"--plugin-dir={plugins}") as scheduler:
            server.put(binding("web"))
            wait_for(lambda: scheduler.metric(GAUGE) == 1, "the gauge", scheduler)
            text = "waits at Permit for Gate (at most 60s): 2 of 3 members are there"
            assert text in scheduler.log
            events = wait_for(
                lambda: [each for each in server.all("Event") if each["reason"] == "ScheduleBindingWaiting"],
                "the Event",
                scheduler,
            )
            assert {each.get("note") or each.get("message") for each in events} == {text}
            server.put(binding("opener"))
            wait_for(lambda: server.targets("web"), "the waiting binding to be placed", scheduler)
            wait_for(lambda: scheduler.metric(GAUGE) == 0, "the gauge to fall", scheduler)
