"""The start: probes are answered from the first second, and slow steps delay nothing else."""

from pathlib import Path

from tests.fake_apiserver import FakeApiServer, binding, cluster, start_scheduler, wait_for

SLOW = '''
import pathlib, time

while not pathlib.Path({gate!r}).exists():
    time.sleep(0.02)


class Slow:
    """Takes its time to be loaded."""

    name = "Slow"

    def filter(self, context):
        from karmada_scheduler.framework import SUCCESS
        return SUCCESS
'''


def test_probes_are_answered_while_plugins_are_loaded(tmp_path: Path) -> None:
    plugins, gate = tmp_path / "plugins", tmp_path / "gate"
    plugins.mkdir()
    (plugins / "slow.py").write_text(SLOW.format(gate=str(gate)))
    with (
        FakeApiServer() as server,
        start_scheduler(server, tmp_path, f"--plugin-dir={plugins}", wait_ready=False, env={}) as scheduler,
    ):
        server.put(cluster("m1"))
        server.put(binding("web"))
        wait_for(lambda: scheduler.answers("/healthz") == 200, "an answer", scheduler)
        assert scheduler.text("/readyz") == "plugins are being loaded\n"
        gate.touch()
        wait_for(lambda: server.targets("web"), "a binding to be placed", scheduler)
        wait_for(lambda: scheduler.answers("/readyz") == 200, "ready", scheduler)


def test_all_missing_permissions_are_named_at_once(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.rules = [{"verbs": ["list", "watch"], "apiGroups": ["policy.karmada.io"], "resources": ["*"]}]
        with start_scheduler(server, tmp_path, env={}) as scheduler:
            [line] = [each for each in scheduler.log.splitlines() if "may not" in each]
            assert "list clusters.cluster.karmada.io, watch clusters.cluster.karmada.io" in line
            assert "patch resourcebindings.work.karmada.io/status" in line
            assert "propagationpolicies" not in line
