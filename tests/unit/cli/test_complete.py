"""Completion of a line, as shells and kubectl ask for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from karmada_advisor.cli.commands import COMMANDS
from karmada_scheduler import __main__ as program
from karmada_scheduler.command import main
from tests.fake_apiserver import FakeApiServer, binding, cluster, status
from tests.fake_apiserver.process import write_kubeconfig

NO_FILES, FILES = ":4", ":0"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApiServer]:
    with FakeApiServer() as server:
        server.put(cluster("m1", region="mars", labels={"tier": "prod"}))
        server.put(cluster("m2"))
        server.put(binding("web-deployment"))
        server.put(binding("db-statefulset", namespace="shop"))
        server.put({**binding("viewer-clusterrole", namespace=""), "kind": "ClusterResourceBinding"})
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(server, tmp_path / "config")))
        yield server


@pytest.fixture
def no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nothing"))


def complete(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """Return the choices without descriptions, and the directive."""
    assert main(["__complete", "--", *words]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return [line.partition("\t")[0] for line in captured.out.splitlines()]


def test_the_first_word_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert complete(capsys, "") == [*sorted(COMMANDS), NO_FILES]
    assert complete(capsys, "pl") == ["plan", "plugins", NO_FILES]


def test_flags_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert complete(capsys, "explain", "--co") == ["--color", "--config", "--context", NO_FILES]
    assert complete(capsys, "completion", "--co") == [NO_FILES]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["explain", "-o", "ya"], ["yaml", NO_FILES]),
        (["explain", "--output=ya"], ["--output=yaml", NO_FILES]),
        (["completion", "z"], ["zsh", NO_FILES]),
        (["explain", "--config", ""], [FILES]),
        (["explain", "web", "more", ""], [NO_FILES]),
        (["nonsense", ""], [NO_FILES]),
    ],
)
def test_values_are_those_that_the_flag_takes(
    words: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert complete(capsys, *words) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["explain", ""], ["deployment/web", "web-deployment"]),
        (["explain", "-n", "shop", "st"], ["statefulset/db"]),
        (["explain", "deploy/"], ["deploy/web"]),
        (["explain", "deploy", ""], ["web"]),
        (["explain", "-n", "shop", "statefulsets.apps/d"], ["statefulsets.apps/db"]),
        (["explain", "shop/sts/"], ["shop/sts/db"]),
        (["why-not", "-n", "shop", "sts/"], ["sts/db"]),
        (["explain", "crb/"], ["crb/viewer-clusterrole"]),
        (["explain", "clusterrole/"], ["clusterrole/viewer"]),
        (["explain", "rb/"], ["rb/web-deployment"]),
        (["explain", "job/"], []),
        (["explain", "-n", ""], ["default", "shop"]),
        (["explain", "--on", "m"], ["m1", "m2"]),
        (["why-not", "web-deployment", "m"], ["m1", "m2"]),
        (["why-not", "web-deployment", ""], ["m1", "m2"]),
        (["why-not", "--cluster", ""], ["m1", "m2"]),
        (["rebalance", "-n", "s"], ["shop"]),
        (["survive", "-n", "s"], ["shop"]),
    ],
)
@pytest.mark.usefixtures("server")
def test_names_are_those_of_the_control_plane(
    words: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert complete(capsys, *words) == [*expected, NO_FILES]


def test_contexts_clusters_and_users_are_those_of_the_kubeconfig(
    server: FakeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del server
    document = orjson.loads((tmp_path / "config").read_bytes())
    for flag, kind in (("--context", "contexts"), ("--cluster", "clusters"), ("--user", "users")):
        names = [each["name"] for each in document[kind]]
        assert complete(capsys, "explain", flag, "") == [*names, NO_FILES]


@pytest.mark.usefixtures("no_server")
def test_without_a_control_plane_nothing_is_completed_and_nothing_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert complete(capsys, "explain", "") == [NO_FILES]


def test_what_may_not_be_listed_is_not_completed(
    server: FakeApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.fault(method="LIST", path="/clusters$", answer=status(403, "Forbidden", "no"))

    assert complete(capsys, "explain", "--on", "") == [NO_FILES]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_short_and_right(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out

    assert len(script.splitlines()) <= 25
    if found := shutil.which(shell):
        ran = subprocess.run([found, "-n"], input=script, text=True, capture_output=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")


def test_bash_completes_a_word_with_a_slash(tmp_path: Path) -> None:
    tool = tmp_path / "karmada-pyscheduler"
    tool.write_text('#!/bin/sh\nprintf \'deployment/web\\tthe workload\\n:4\\n\'; echo "$*" >> "$0.log"\n')
    tool.chmod(0o755)
    script = f"""
        PATH={tmp_path}:$PATH
        source <({sys.executable} -m karmada_scheduler completion bash)
        COMP_WORDS=(karmada-pyscheduler explain -n shop '') COMP_CWORD=4
        _karmada_pyscheduler
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """

    ran = subprocess.run(["bash", "-c", script], text=True, capture_output=True, check=True)

    assert ran.stdout == "deployment/web\n"
    assert (tmp_path / "karmada-pyscheduler.log").read_text() == "__complete -- explain -n shop \n"


@pytest.mark.parametrize(
    ("entry", "given", "expected"),
    [
        (program.kubectl_complete, ["explain", ""], ["__complete", "--", "explain", ""]),
    ],
)
def test_kubectl_calls_the_same_program(
    entry: object, given: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(program, "main", lambda: called.append(sys.argv[1:]))
    monkeypatch.setattr(sys, "argv", ["kubectl-pyscheduler", *given])

    assert callable(entry)
    entry()

    assert called == [expected]
