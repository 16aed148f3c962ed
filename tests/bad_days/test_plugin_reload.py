"""Files of plugins are replaced, broken and removed while their plugins are being called, in the real process."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

from tests.bad_days.test_plugins import OTHERS, SHORT_LEASE, configured, scheduling
from tests.fake_apiserver import binding, wait_for

COUNT = 60
RELOADS = 4
"""How often the log names the file: versions that are used, and those that are refused."""

SLOW = '''
import asyncio, time
from karmada_scheduler.framework import SUCCESS, Result, StateKey

VERSION = {version}
BEGUN = StateKey("Slow")


class Slow:
    """Waits at each extension point, and refuses a decision that another version of it has begun."""

    name = "Slow"

    def __init__(self, args, handle):
        self.reserved = set()

    def check(self, cycle):
        if cycle.state.read(BEGUN) is not self:
            return Result.error("MIXED versions in one decision")
        return SUCCESS

    async def pre_filter(self, context):
        context.cycle.state.write(BEGUN, self)
        await asyncio.sleep(0.05)
        return SUCCESS

    def filter(self, context):
        time.sleep(0.02)
        return self.check(context.cycle)

    async def pre_score(self, context):
        await asyncio.sleep(0.05)
        return self.check(context.cycle)

    def score(self, context):
        return 50

    def reserve(self, context):
        self.reserved.add(context.binding.key)
        return self.check(context.cycle)

    def unreserve(self, context):
        self.reserved.discard(context.binding.key)

    async def permit(self, context):
        await asyncio.sleep(0.05)
        return self.check(context.cycle)

    async def pre_bind(self, context):
        await asyncio.sleep(0.05)
        if context.binding.key not in self.reserved:
            return Result.error("MIXED: reserved by another version")
        return self.check(context.cycle)

    async def post_bind(self, context):
        self.reserved.discard(context.binding.key)
'''


def test_a_decision_under_way_ends_with_the_version_that_began_it(tmp_path: Path) -> None:
    versions = itertools.count(1)
    flags = configured(tmp_path, SLOW.format(version=0), "Slow")
    path = tmp_path / "plugins" / "plugin.py"
    stopped = threading.Event()

    def replace() -> None:
        """Save a version, half of one, and none, again and again."""
        for step in itertools.cycle(("whole", "half", "whole", "away", "whole", "raises")):
            if stopped.wait(0.15):
                return
            text = SLOW.format(version=next(versions))
            match step:
                case "half":
                    path.write_text(text[: len(text) // 2])
                case "away":
                    path.unlink()
                case "raises":
                    path.write_text("1 // 0\n" + text)
                case _:
                    path.write_text(text)

    with scheduling(tmp_path, *flags, *SHORT_LEASE) as (server, scheduler):
        wait_for(lambda: server.lease().get("holderIdentity"), "the Lease to be taken", scheduler)
        holder = server.lease()["holderIdentity"]
        editor = threading.Thread(target=replace)
        editor.start()
        try:
            names: list[str] = []
            while len(names) < 2 * COUNT or scheduler.log.count("plugin.py") < RELOADS:
                assert len(names) < 100 * COUNT, scheduler.log
                number = len(names)
                names += [f"slow-{number}", f"other-{number}"]
                server.put(binding(f"slow-{number}"))
                server.put(binding(f"other-{number}", scheduler=OTHERS))
                stopped.wait(0.05)
            wait_for(
                lambda: all(server.condition(name) for name in names), "all decisions", scheduler, timeout=90
            )
        finally:
            stopped.set()
            editor.join()
        path.write_text(SLOW.format(version="'last'"))
        assert "MIXED" not in scheduler.log
        assert not any("MIXED" in str(each.body) for each in server.requests)
        assert {server.condition(name)["status"] for name in names} == {"True"}
        assert all(server.targets(name) for name in names)
        assert next(versions) > 10
        assert scheduler.answers("/healthz") == 200
        assert server.lease()["holderIdentity"] == holder
        assert scheduler.exit_status is None
