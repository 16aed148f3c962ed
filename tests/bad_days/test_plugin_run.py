"""The ``run`` method of a plugin, in the real process."""

from pathlib import Path

from tests.fake_apiserver import FakeApiServer, binding, cluster, start_scheduler, wait_for

RUNS = '''
import asyncio, pathlib, sys

NOTES = pathlib.Path({notes!r})


def note(text):
    with NOTES.open("a") as file:
        print({version!r}, text, file=file)


class Runs:
    """Exits the first time, and then waits for its end."""

    name = "Runs"

    def __init__(self, args, handle):
        self.handle, self.failed = handle, False

    def filter(self, context):
        from karmada_scheduler.framework import SUCCESS
        return SUCCESS

    async def run(self):
        note(f"begins with {{len(self.handle.snapshot())}} clusters")
        if not self.failed:
            self.failed = True
            sys.exit("no prices")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            note("ends")
'''


def test_the_run_method_of_a_plugin_is_restarted_replaced_and_cancelled(tmp_path: Path) -> None:
    plugins, notes = tmp_path / "plugins", tmp_path / "notes"
    plugins.mkdir()
    notes.touch()
    path = plugins / "runs.py"
    path.write_text(RUNS.format(notes=str(notes), version="old"))
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path, f"--plugin-dir={plugins}") as scheduler:
            begins = "old begins with 1 clusters\n"
            wait_for(lambda: notes.read_text() == 2 * begins, "a second beginning", scheduler)
            assert "A plugin's run failed, it is started again plugin=Runs" in scheduler.log
            assert 'error="SystemExit: no prices" seconds=1' in scheduler.log
            assert scheduler.metric('karmada_scheduler_plugin_run_failures_total{plugin="Runs"}') == 1
            server.put(binding("web"))
            wait_for(lambda: server.targets("web"), "a binding to be placed", scheduler)
            path.write_text(RUNS.format(notes=str(notes), version="new"))
            wait_for(lambda: notes.read_text().count("new begins") == 2, "the new version", scheduler)
            assert "old ends\n" in notes.read_text()
            assert scheduler.stop() == 0
            assert notes.read_text().endswith("new ends\n")
