"""Credentials that expire or are replaced while the scheduler runs."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from tests.fake_apiserver import FakeApiServer, binding, cluster, start_scheduler, wait_for
from tests.fake_apiserver.process import write_kubeconfig


def _swap(volume: Path, number: int, **files: str) -> None:
    """Replace the files of a volume as the kubelet does: by a symbolic link to another folder."""
    folder = volume / f"..{number}"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
        if number == 1:
            (volume / name).symlink_to(Path("..data") / name)
    link = volume / "..new"
    link.symlink_to(folder.name)
    link.rename(volume / "..data")


def _plugin(folder: Path, life: float = 3600.0) -> Path:
    """An exec plugin that gives out the token of a file, good for some seconds, and notes that it was called."""
    path = folder / "plugin"
    path.write_text(
        textwrap.dedent(f"""\
        #!{sys.executable}
        import datetime, json, pathlib
        folder = pathlib.Path({str(folder)!r})
        with (folder / "calls").open("a") as calls:
            calls.write("x")
        expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds={life})
        print(json.dumps({{
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": {{"token": (folder / "token").read_text(), "expirationTimestamp": expires.isoformat()}},
        }}))
        """)
    )
    path.chmod(0o700)
    return path


def _exec(command: str) -> dict[str, str]:
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": command}


def test_a_token_that_is_replaced_in_a_secret_is_used(tmp_path: Path) -> None:
    volume = tmp_path / "secret"
    _swap(volume, 1, token="first\n")
    with FakeApiServer() as server:
        server.token = "first"
        server.put(cluster("m1"))
        kubeconfig = write_kubeconfig(server, tmp_path / "kubeconfig", tokenFile=str(volume / "token"))
        with start_scheduler(server, tmp_path, kubeconfig=kubeconfig) as scheduler:
            server.put(binding("a"))
            wait_for(lambda: server.targets("a") == {"m1": 1}, "a to be placed", scheduler)
            server.token = "second"
            _swap(volume, 2, token="second\n")
            server.end_watches()
            server.put(binding("b"))
            wait_for(lambda: server.targets("b") == {"m1": 1}, "b to be placed", scheduler)
            holder = server.lease()["holderIdentity"]
            renewed = server.lease()["renewTime"]
            wait_for(lambda: server.lease()["renewTime"] > renewed, "the lease to be renewed", scheduler)
            assert server.lease()["holderIdentity"] == holder
            assert "kopf failed" not in scheduler.log


def test_an_exec_plugin_is_run_again_before_its_token_expires_and_when_that_is_refused(
    tmp_path: Path,
) -> None:
    plugin = _plugin(tmp_path, life=2.0)
    token, calls = tmp_path / "token", tmp_path / "calls"
    token.write_text("first")
    with FakeApiServer() as server:
        server.token = "first"
        server.put(cluster("m1"))
        kubeconfig = write_kubeconfig(server, tmp_path / "kubeconfig", exec=_exec(str(plugin)))
        flags = ("--resync-period=100ms", "--leader-elect-retry-period=100ms")
        with start_scheduler(server, tmp_path, *flags, kubeconfig=kubeconfig) as scheduler:
            wait_for(lambda: len(calls.read_text()) >= 4, "the plugin to be called again", scheduler)
            assert 'code="401"' not in scheduler.scrape()
            token.write_text("second")
            server.token = "second"
            server.put(binding("a"))
            wait_for(lambda: server.targets("a") == {"m1": 1}, "a to be placed", scheduler)
            assert len(calls.read_text()) < 20


def test_a_broken_kubeconfig_leaves_the_current_credentials_in_use(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.token = "first"
        server.put(cluster("m1"))
        kubeconfig = write_kubeconfig(server, tmp_path / "kubeconfig", token="first")
        with start_scheduler(server, tmp_path, "--resync-period=100ms", kubeconfig=kubeconfig) as scheduler:
            good = kubeconfig.read_text()
            kubeconfig.write_text("clusters: [")
            server.token = "second"  # so that it is read at once
            wait_for(lambda: "Cannot read credentials again" in scheduler.log, "a warning", scheduler)
            server.token = "first"
            server.put(binding("a"))
            wait_for(lambda: server.targets("a") == {"m1": 1}, "a to be placed", scheduler)
            kubeconfig.write_text(good)
            assert scheduler.log.count("Cannot read credentials again") <= 2  # one of each connection


@pytest.mark.parametrize("what", ["empty", "no plugin", "plugin fails"])
def test_a_start_without_usable_credentials_ends_with_the_reason(tmp_path: Path, what: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    wanted = f"kubeconfig {kubeconfig}: "
    with FakeApiServer() as server:
        if what == "empty":
            kubeconfig.write_text("")
            wanted += f"{kubeconfig} is empty"
        elif what == "no plugin":
            plugin = {**_exec("aws-not-there"), "installHint": "Install it from there."}
            write_kubeconfig(server, kubeconfig, exec=plugin)
            wanted += (
                "exec plugin aws-not-there: cannot be run: No such file or directory; Install it from there."
            )
        else:
            write_kubeconfig(
                server, kubeconfig, exec={**_exec("sh"), "args": ["-c", "echo expired >&2; exit 3"]}
            )
            wanted += "exec plugin sh: ended with status 3: expired"
        with start_scheduler(server, tmp_path, kubeconfig=kubeconfig, wait_ready=False) as scheduler:
            assert scheduler.wait(20) == 1
            assert wanted in scheduler.log
            assert server.count("GET") == 0
