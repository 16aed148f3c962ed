"""The command line: commands, flags, and one message for each error."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from karmada_scheduler import __version__
from karmada_scheduler.command import kubectl_plugin, main
from karmada_scheduler.testing import binding, cluster

QUIET = ["--metrics-bind-address=0", "--health-probe-bind-address=0"]


@pytest.mark.parametrize(
    "arguments", [["version"], ["--version"], ["--v=4", "--version"], ["simulate", "--version"]]
)
def test_the_version_is_printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"karmada-pyscheduler version: {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["help", "simulate"], "--ignore-other-schedulers"),
        (["help", "plugins"], "list all plugins"),
    ],
)
def test_help_is_a_command(arguments: list[str], shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    assert shown.lower() in capsys.readouterr().out.lower()


def test_an_unknown_command_is_named_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["describe"]) == 1
    assert capsys.readouterr().err.splitlines()[0] == (
        'Error: no command "describe"; commands: completion, explain, plan, plugins, rebalance, scheduler, simulate, status, survive, test, web, why-not, version, help; or none, with flags'
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["--kubeconfig", "none"],
        ["scheduler", "--kubeconfig", "none"],
        ["-n", "test", "explain"],
        ["describe", "-A"],
    ],
)
def test_kubectl_never_runs_the_scheduler(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl-pyscheduler", *arguments])
    assert kubectl_plugin() == 2
    assert "Error: kubectl pyscheduler begins with a command" in capsys.readouterr().err


def test_an_unexpected_argument_is_named_with_the_flags_of_its_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plugins", "foo"])
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    assert printed.startswith("usage: karmada-pyscheduler plugins [-h]")
    assert printed.endswith("karmada-pyscheduler plugins: error: unrecognized arguments: foo\n")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"]])
def test_help_has_the_commands_first(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0

    lines = capsys.readouterr().out.splitlines()
    assert "explain, why-not, plan, survive, rebalance, web" in lines[2]
    assert len(lines) <= 20


@pytest.mark.parametrize("arguments", [["scheduler", "--help"], ["help", "scheduler"]])
def test_the_flags_of_the_scheduler_have_a_help_of_their_own(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 0
    assert "--scheduler-name" in capsys.readouterr().out


def test_simulate_decides_over_files_without_a_control_plane(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clusters, bindings = tmp_path / "clusters.json", tmp_path / "bindings.json"
    clusters.write_text(json.dumps(cluster("m1").manifest()))
    bindings.write_text(json.dumps(binding("web").names("m1").manifest()))
    assert main(["simulate", f"--clusters={clusters}", f"--bindings={bindings}", "-o", "json"]) == 0
    [decided] = json.loads(capsys.readouterr().out)
    assert [target["name"] for target in decided["clusters"]] == ["m1"]


def test_a_closed_pipe_ends_the_command_quietly(tmp_path: Path) -> None:
    clusters, bindings = tmp_path / "clusters.json", tmp_path / "bindings.json"
    clusters.write_text(json.dumps(cluster("m1").manifest()))
    items = [binding(f"web-{number}").names("m1").manifest() for number in range(3000)]
    bindings.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    command = [sys.executable, "-m", "karmada_scheduler", "simulate"]
    with subprocess.Popen(
        [*command, f"--clusters={clusters}", f"--bindings={bindings}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 128 + signal.SIGPIPE


def test_wrong_flags_are_named_and_the_exit_status_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--no-such-flag=1"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "Error: unknown flag: --no-such-flag",
        "Run 'karmada-pyscheduler scheduler --help' for the flags.",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "kubeconfig", id="empty"),
        pytest.param("clusters: [", "kubeconfig", id="not-yaml"),
        pytest.param("apiVersion: v1\nkind: Config\n", "kubeconfig", id="nothing-in-it"),
        pytest.param(
            "apiVersion: v1\nkind: Config\ncurrent-context: nope\ncontexts: []\nclusters: []\nusers: []\n",
            "nope",
            id="no-such-context",
        ),
    ],
)
def test_an_unusable_kubeconfig_is_named_and_ends_the_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    assert main([f"--kubeconfig={path}", *QUIET]) == 1
    [error] = [line for line in capsys.readouterr().err.splitlines() if " ERROR " in line]
    assert str(path) in error
    assert message in error
    assert "Traceback" not in error


def test_an_address_in_use_is_named_and_ends_the_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["--metrics-bind-address=0", f"--health-probe-bind-address={address}"]) == 1
    assert f"cannot listen on {address}" in capsys.readouterr().err
